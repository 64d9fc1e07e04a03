//! `connect`: to an allowed host through a channel, to the runner's name server, or to the sandbox itself.
//!
//! The address was read once. The decision and the connection are of that copy, whatever the program writes meanwhile.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::time::Instant;

use skillet_protocol::{ChannelOpened, CloseKind, NetworkRequest, OpenChannel, Verdict};

use super::Network;
use super::address::{Family, OWN, canonical, is_own};
use super::caller::{Given, ProgramFile};
use super::calls::Answer;
use super::flow::Flow;
use super::socket::{Connected, Connecting, State, error_of};
use crate::sys::listener::{self, Call};

/// The port of name servers.
pub(super) const NAME_SERVER: u16 = 53;

impl Network {
    pub(super) fn connect(&mut self, call: &Call, file: ProgramFile) -> Result<Answer, i32> {
        let Some(given) = self.read_address(call, 1)? else { return Ok(Answer::Nothing) };
        let socket = self.sockets.get_mut(&file.inode).ok_or(libc::EBADF)?;
        let peer = match given {
            Given::Unspecified => return self.disconnect(file.inode),
            Given::Inet(peer) if peer.is_ipv6() != (socket.family == Family::V6) => {
                return Err(libc::EAFNOSUPPORT);
            }
            Given::Inet(peer) => SocketAddr::new(canonical(peer.ip()), peer.port()),
        };
        match &mut socket.state {
            State::Datagram { .. } => return self.connect_datagram(file.inode, peer),
            State::Fresh if socket.error != 0 => return Err(std::mem::take(&mut socket.error)),
            State::Fresh => {}
            State::Connecting(_) => return Err(libc::EALREADY),
            State::Connected(connected) if !connected.is_announced => {
                connected.is_announced = true;
                return Ok(Answer::Value(0));
            }
            State::Connected(_) | State::NameServer { .. } | State::Listening(_) => {
                return Err(libc::EISCONN);
            }
        }
        if peer.port() == NAME_SERVER {
            let port = self.next_port();
            let socket = self.sockets.get_mut(&file.inode).ok_or(libc::EBADF)?;
            socket.program_end = None;
            socket.local.get_or_insert(SocketAddr::new(OWN.into(), port));
            socket.state = State::NameServer { peer, received: Vec::new() };
            self.mark_ready(file.inode);
            return Ok(Answer::Value(0));
        }
        if is_own(peer.ip()) {
            return self.connect_loopback(file.inode, peer);
        }
        self.open(call, file, peer)
    }

    /// Opens a channel to the host that `peer` means.
    fn open(&mut self, call: &Call, file: ProgramFile, peer: SocketAddr) -> Result<Answer, i32> {
        let host = match self.names.host(peer.ip(), peer.port()) {
            Ok(host) => host,
            Err(verdict) => return Err(self.refuse(peer, verdict)),
        };
        if !self.has_operator {
            return Err(libc::ENETUNREACH);
        }
        if !self.has_room_for_channel() {
            return Err(libc::EAGAIN);
        }
        self.last_channel = self.last_channel.checked_add(1).ok_or(libc::EAGAIN)?;
        let (channel, port) = (self.last_channel, self.next_port());
        let socket = self.sockets.get_mut(&file.inode).ok_or(libc::EBADF)?;
        // Without the copy the socket cannot look busy, so the caller waits even if it did not want to.
        let waits = !file.is_nonblocking || socket.program_end.is_none();
        let is_held = !waits && self.holds.begin(file.inode, Instant::now());
        let waits = waits || is_held;
        let filled = if waits { 0 } else { socket.fill() };
        if !is_held {
            socket.program_end = None;
        }
        let port = socket.local.map(|local| local.port()).filter(|port| *port != 0).unwrap_or(port);
        socket.local = Some(SocketAddr::new(OWN.into(), port));
        let caller = waits.then_some(call.id);
        socket.state = State::Connecting(Connecting { channel, peer, caller, filled });
        self.channels.insert(channel, file.inode);
        self.requests.push(NetworkRequest::Open(OpenChannel { channel, host, port: peer.port() }));
        if waits { Ok(Answer::Nothing) } else { Err(libc::EINPROGRESS) }
    }

    /// Records a refusal, and returns its error.
    pub(super) fn refuse(&mut self, peer: SocketAddr, verdict: Verdict) -> i32 {
        let host = self.names.name(peer.ip()).map_or_else(|| peer.ip().to_string(), str::to_owned);
        self.record(&host, peer.port(), verdict);
        match peer.ip() {
            // A client that tries both families continues with the other.
            IpAddr::V6(_) => libc::ENETUNREACH,
            IpAddr::V4(_) => error_of(verdict),
        }
    }

    pub(super) fn record(&mut self, host: &str, port: u16, verdict: Verdict) {
        if self.has_operator {
            self.requests.extend(self.refusals.record(host, port, verdict));
        }
    }

    fn has_room_for_channel(&mut self) -> bool {
        if self.channels.len() + self.lingering.len() >= self.max_channels
            && let Some(channel) = self.lingering.pop_front()
        {
            self.requests.push(NetworkRequest::Close(channel, CloseKind::Reset));
        }
        self.channels.len() + self.lingering.len() < self.max_channels
    }

    /// `connect` to no address: what was connected is no more.
    fn disconnect(&mut self, inode: u64) -> Result<Answer, i32> {
        let socket = self.sockets.get_mut(&inode).ok_or(libc::EBADF)?;
        match &mut socket.state {
            State::Datagram { peer } => *peer = None,
            State::Fresh => {}
            State::Connecting(_) | State::Connected(_) | State::NameServer { .. } => self.close(inode),
            State::Listening(_) => return Err(libc::EINVAL),
        }
        Ok(Answer::Value(0))
    }

    /// Tells a caller that does not want to wait that its connection is not made yet.
    pub(super) fn end_hold(&mut self, inode: u64) {
        let Some(socket) = self.sockets.get_mut(&inode) else { return };
        let State::Connecting(Connecting { caller: Some(call), .. }) = socket.state else { return };
        if socket.program_end.is_none() {
            // Without the copy the socket cannot look busy: the caller waits even if it did not want to.
            return;
        }
        self.holds.spare_next();
        let filled = socket.fill();
        if let State::Connecting(connecting) = &mut socket.state {
            (connecting.caller, connecting.filled) = (None, filled);
        }
        // An error means that the caller was killed; then its socket is closed as well.
        let _ = listener::fail(self.listener.as_fd(), call, libc::EINPROGRESS);
    }

    /// The broker's answer to an `Open`.
    pub(super) fn opened(&mut self, opened: &ChannelOpened) {
        let Some(inode) = self.channels.get(&opened.channel).copied() else { return };
        let Some(socket) = self.sockets.get_mut(&inode) else { return };
        let State::Connecting(connecting) = &socket.state else { return };
        let Connecting { channel, peer, caller, filled } = *connecting;
        self.holds.end(inode);
        let error = error_of(opened.verdict);
        if error == 0 {
            let flow = Some(Flow::new());
            let is_announced = caller.is_some();
            socket.state = State::Connected(Connected { channel, peer, is_announced, flow });
        } else {
            self.channels.remove(&channel);
            socket.state = State::Fresh;
            if caller.is_none() {
                socket.error = error;
            }
        }
        socket.program_end = None;
        socket.drain(filled);
        let listener = self.listener.as_fd();
        if let Some(id) = caller {
            // An error means that the caller was killed; then its socket is closed as well.
            let _ = match error {
                0 => listener::succeed(listener, id, 0),
                _ => listener::fail(listener, id, error),
            };
        }
        self.mark_ready(inode);
    }
}
