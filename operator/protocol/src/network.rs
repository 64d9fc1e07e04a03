//! Connections of a program without a network: the runner opens channels, and the broker dials for them.
//!
//! The frames of channels travel beside output on the stream of a run. They are no part of the run's digest, and an operator
//! that settles a run from its log skips them. The same frames, without the escapes of the log, go on to the broker.
//!
//! Each side may send [`INITIAL_WINDOW_BYTES`] of data on a new channel, and more only after `Window` frames of the receiver,
//! so a channel that nobody reads holds up no other frame.
//!
//! # The life of a channel
//!
//! - The broker answers each `Open` once. After a verdict other than `Allowed` the channel is over, and no `Close` follows.
//! - The broker may end an open channel itself. It then sends a later `Opened` with the cause, `HostMismatch` or
//!   `EgressLimitReached`, and a `Reset`. The runner ignores that `Opened`; the operator records its verdict.
//! - `End` is the end of its sender's direction. After both, the channel is over.
//! - `Reset` ends both directions at once. The runner may send it before `Opened`, for a program that waits no longer.
//! - Frames of a channel that is over are ignored, because the sides do not end it at the same time.
//! - `Exit` ends every channel. Bytes before an `End` are still delivered to the host.

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use crate::frame::{Frame, Kind, encode};
use crate::message::{MessageError, from_json, to_json};

#[cfg(test)]
mod tests;

/// Data that a sender may send on a new channel before the first `Window` frame.
pub const INITIAL_WINDOW_BYTES: u32 = 64 * 1024;

/// Data that a fast receiver allows beyond the first window, to a few channels at one time: the way between runner and
/// broker is long.
pub const EXTRA_WINDOW_BYTES: u32 = 7 * INITIAL_WINDOW_BYTES;

/// Most channels of one run that have a larger window at one time.
pub const EXTENDED_CHANNELS: usize = 8;

/// Most channels of one run at one time.
pub const MAX_CHANNELS: usize = 256;

/// Most bytes of data in one frame.
pub const MAX_NETWORK_DATA: usize = 32 * 1024;

/// Bytes of the channel number before data.
const CHANNEL_BYTES: usize = 4;

/// Largest payload of a frame with data.
pub(crate) const MAX_DATA_PAYLOAD: usize = CHANNEL_BYTES + MAX_NETWORK_DATA;

/// Number of a connection. The runner chooses it and never uses it twice in a run.
pub type Channel = u32;

/// The hosts that the program of a run may connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunNetwork {
    pub hosts: Vec<HostRule>,
    /// Most connections at one time, at most [`MAX_CHANNELS`].
    pub connections: u32,
}

/// A host pattern, lower case and without a dot at its end, and its TCP ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRule {
    /// A name such as `api.example.com`, or `*.example.com` for all names below it.
    pub name: String,
    pub ports: Vec<u16>,
}

/// The first address for the hosts of a program. Those below it are the sandbox's own; the range of 198.18.0.0/15 is for
/// benchmarks only.
const FIRST_HOST_ADDRESS: u32 = u32::from_be_bytes([198, 18, 1, 0]);

/// Returns the address by which a program means the host number `index` of its run, from 0. It means nothing outside of the sandbox.
pub fn host_address(index: u32) -> Ipv4Addr {
    Ipv4Addr::from(FIRST_HOST_ADDRESS.saturating_add(index))
}

/// Returns the number of the host that a program means by an address, if the run has so many. `None`: it is below the first.
pub fn host_index(address: Ipv4Addr) -> Option<u32> {
    u32::from(address).checked_sub(FIRST_HOST_ADDRESS)
}

/// Returns the exact names among those of a run's rules, each once, in the order of their [`host_address`]. They are the first
/// hosts of the run, so their addresses are known before it begins.
pub fn named_hosts<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for name in names {
        let is_loopback = name == "localhost" || name.ends_with(".localhost");
        let is_exact = !name.starts_with('*') && name.parse::<IpAddr>().is_err() && !is_loopback;
        if is_exact && !hosts.iter().any(|host| host == name) {
            hosts.push(name.to_owned());
        }
    }
    hosts
}

/// From the runner, through the operator, to the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkRequest {
    Open(OpenChannel),
    /// Bytes that the program wrote.
    Data(Channel, Vec<u8>),
    /// The runner takes so many more bytes.
    Window(Channel, u32),
    Close(Channel, CloseKind),
    /// A connection or a lookup that the runner refused itself. It is only recorded.
    Refused(RefusedConnection),
}

/// From the broker, through the operator, to the runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkResponse {
    Opened(ChannelOpened),
    /// Bytes of the host.
    Data(Channel, Vec<u8>),
    /// The broker takes so many more bytes.
    Window(Channel, u32),
    Close(Channel, CloseKind),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenChannel {
    pub channel: Channel,
    /// The name that the program looked up, or the address that it named.
    pub host: String,
    pub port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelOpened {
    pub channel: Channel,
    pub verdict: Verdict,
    /// The address that was dialed, or that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedConnection {
    pub host: String,
    /// 0 for a lookup.
    pub port: u16,
    pub verdict: Verdict,
}

/// The end of one direction of a channel, or of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CloseKind {
    /// The sender sends no more data; it still receives.
    End = 0,
    /// The channel is over at once, in both directions.
    Reset = 1,
}

/// The decision about a connection. Each word but `Allowed` is also a reason of executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum Verdict {
    Allowed,
    /// Skill or policy do not name the host.
    HostNotAllowed,
    /// They name the host without this port.
    PortNotAllowed,
    /// The host has an address that nobody may reach.
    AddressNotAllowed,
    /// The name in TLS or HTTP is another than the connection's.
    HostMismatch,
    /// The name has no address.
    NameNotFound,
    /// The host refused the connection or could not be reached.
    ConnectFailed,
    /// The host did not answer in time.
    ConnectTimedOut,
    /// A limit of connections, bytes, rate or time is reached.
    EgressLimitReached,
    /// The broker cannot be reached.
    BrokerUnavailable,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 10] = [
        Self::Allowed,
        Self::HostNotAllowed,
        Self::PortNotAllowed,
        Self::AddressNotAllowed,
        Self::HostMismatch,
        Self::NameNotFound,
        Self::ConnectFailed,
        Self::ConnectTimedOut,
        Self::EgressLimitReached,
        Self::BrokerUnavailable,
    ];

    /// Returns the word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "Allowed",
            Self::HostNotAllowed => "HostNotAllowed",
            Self::PortNotAllowed => "PortNotAllowed",
            Self::AddressNotAllowed => "AddressNotAllowed",
            Self::HostMismatch => "HostMismatch",
            Self::NameNotFound => "NameNotFound",
            Self::ConnectFailed => "ConnectFailed",
            Self::ConnectTimedOut => "ConnectTimedOut",
            Self::EgressLimitReached => "EgressLimitReached",
            Self::BrokerUnavailable => "BrokerUnavailable",
        }
    }
}

impl NetworkRequest {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Open(_) => Kind::ChannelOpen,
            Self::Data(..) => Kind::ChannelWritten,
            Self::Window(..) => Kind::RunnerWindow,
            Self::Close(..) => Kind::RunnerClose,
            Self::Refused(_) => Kind::ConnectionRefused,
        }
    }

    /// The bytes of the frame; an error when it is over the limit of its type.
    pub fn encode(&self) -> Result<Vec<u8>, MessageError> {
        let kind = self.kind();
        let payload = match self {
            Self::Open(open) => to_json(kind, open)?,
            Self::Refused(refused) => to_json(kind, refused)?,
            Self::Data(channel, bytes) => with_channel(*channel, bytes),
            Self::Window(channel, bytes) => with_channel(*channel, &bytes.to_be_bytes()),
            Self::Close(channel, close) => with_channel(*channel, &[*close as u8]),
        };
        Ok(encode(kind, &payload)?)
    }

    pub fn decode(frame: Frame) -> Result<Self, MessageError> {
        match frame.kind {
            Kind::ChannelOpen => from_json(&frame).map(Self::Open),
            Kind::ConnectionRefused => from_json(&frame).map(Self::Refused),
            Kind::ChannelWritten => data(frame).map(|(channel, bytes)| Self::Data(channel, bytes)),
            Kind::RunnerWindow => window(&frame).map(|(channel, bytes)| Self::Window(channel, bytes)),
            Kind::RunnerClose => close(&frame).map(|(channel, close)| Self::Close(channel, close)),
            kind => Err(MessageError::Direction(kind)),
        }
    }
}

impl NetworkResponse {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Opened(_) => Kind::ChannelOpened,
            Self::Data(..) => Kind::ChannelReceived,
            Self::Window(..) => Kind::BrokerWindow,
            Self::Close(..) => Kind::BrokerClose,
        }
    }

    /// The bytes of the frame; an error when it is over the limit of its type.
    pub fn encode(&self) -> Result<Vec<u8>, MessageError> {
        let kind = self.kind();
        let payload = match self {
            Self::Opened(opened) => to_json(kind, opened)?,
            Self::Data(channel, bytes) => with_channel(*channel, bytes),
            Self::Window(channel, bytes) => with_channel(*channel, &bytes.to_be_bytes()),
            Self::Close(channel, close) => with_channel(*channel, &[*close as u8]),
        };
        Ok(encode(kind, &payload)?)
    }

    pub fn decode(frame: Frame) -> Result<Self, MessageError> {
        match frame.kind {
            Kind::ChannelOpened => from_json(&frame).map(Self::Opened),
            Kind::ChannelReceived => data(frame).map(|(channel, bytes)| Self::Data(channel, bytes)),
            Kind::BrokerWindow => window(&frame).map(|(channel, bytes)| Self::Window(channel, bytes)),
            Kind::BrokerClose => close(&frame).map(|(channel, close)| Self::Close(channel, close)),
            kind => Err(MessageError::Direction(kind)),
        }
    }
}

fn with_channel(channel: Channel, rest: &[u8]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(CHANNEL_BYTES + rest.len());
    payload.extend_from_slice(&channel.to_be_bytes());
    payload.extend_from_slice(rest);
    payload
}

fn data(mut frame: Frame) -> Result<(Channel, Vec<u8>), MessageError> {
    let (channel, _) = split_channel(&frame)?;
    frame.payload.drain(..CHANNEL_BYTES);
    Ok((channel, frame.payload))
}

fn window(frame: &Frame) -> Result<(Channel, u32), MessageError> {
    let (channel, rest) = split_channel(frame)?;
    let bytes = rest.try_into().map_err(|_| MessageError::Malformed(frame.kind))?;
    Ok((channel, u32::from_be_bytes(bytes)))
}

fn close(frame: &Frame) -> Result<(Channel, CloseKind), MessageError> {
    match split_channel(frame)? {
        (channel, [0]) => Ok((channel, CloseKind::End)),
        (channel, [1]) => Ok((channel, CloseKind::Reset)),
        _ => Err(MessageError::Malformed(frame.kind)),
    }
}

fn split_channel(frame: &Frame) -> Result<(Channel, &[u8]), MessageError> {
    let (channel, rest) =
        frame.payload.split_first_chunk::<CHANNEL_BYTES>().ok_or(MessageError::Malformed(frame.kind))?;
    Ok((Channel::from_be_bytes(*channel), rest))
}
