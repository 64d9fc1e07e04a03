//! The record of a run's connections: made of the frames that the operator passes on, bounded, and pure.
//!
//! The broker tells its decision about each connection. Bytes and times are the operator's own.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use skillet_api::{
    Verdict,
    network::{Connection, Connections},
};
use skillet_protocol::{
    Channel, ChannelOpened, CloseKind, NetworkRequest, NetworkResponse, RefusedConnection,
};

/// Most connections that a status lists. The others are counted.
const MAX_LISTED: usize = 50;
/// Longest host in the record, in characters. A name of DNS has no more.
const MAX_HOST: usize = 253;

/// Connections of one run.
#[derive(Debug, Default)]
pub(crate) struct ConnectionRecord {
    connections: Connections,
    /// Connections that are over, and refusals.
    verdicts: HashMap<Verdict, u64>,
    open: HashMap<Channel, OpenChannel>,
}

/// A channel whose end was not seen.
#[derive(Debug)]
struct OpenChannel {
    /// Place in the list, if it has one.
    place: Option<usize>,
    started_at: Timestamp,
    verdict: Option<Verdict>,
    has_sent_all: bool,
    has_received_all: bool,
}

impl ConnectionRecord {
    /// Notes a frame of the runner.
    pub(crate) fn on_request(&mut self, request: &NetworkRequest, now: Timestamp) {
        match request {
            NetworkRequest::Open(open) => {
                let place = self.list(&open.host, open.port, Verdict::ConnectFailed, now);
                let channel = OpenChannel {
                    place,
                    started_at: now,
                    verdict: None,
                    has_sent_all: false,
                    has_received_all: false,
                };
                self.open.insert(open.channel, channel);
            }
            NetworkRequest::Data(channel, bytes) => self.count(*channel, bytes.len(), 0),
            NetworkRequest::Close(channel, CloseKind::End) => {
                if let Some(open) = self.open.get_mut(channel) {
                    open.has_sent_all = true;
                }
                self.end_if_over(*channel, now);
            }
            NetworkRequest::Close(channel, CloseKind::Reset) => self.end(*channel, now),
            NetworkRequest::Refused(refused) => self.refuse(refused, now),
            NetworkRequest::Window(..) => {}
        }
    }

    /// Notes a frame for the runner.
    pub(crate) fn on_response(&mut self, response: &NetworkResponse, now: Timestamp) {
        match response {
            NetworkResponse::Opened(opened) => self.decide(opened, now),
            NetworkResponse::Data(channel, bytes) => self.count(*channel, 0, bytes.len()),
            NetworkResponse::Close(channel, CloseKind::End) => {
                if let Some(open) = self.open.get_mut(channel) {
                    open.has_received_all = true;
                }
                self.end_if_over(*channel, now);
            }
            NetworkResponse::Close(channel, CloseKind::Reset) => self.end(*channel, now),
            NetworkResponse::Window(..) => {}
        }
    }

    /// Returns the bytes that the run has sent and received.
    pub(crate) fn transferred(&self) -> (u64, u64) {
        (self.connections.sent_bytes, self.connections.received_bytes)
    }

    /// Returns the channels that are open, or wait for a decision.
    pub(crate) fn open_channels(&self) -> Vec<Channel> {
        self.open.keys().copied().collect()
    }

    /// Returns the record of a run that ends now, and its connections by verdict.
    pub(crate) fn finish(mut self, now: Timestamp) -> (Connections, HashMap<Verdict, u64>) {
        for channel in self.open_channels() {
            self.end(channel, now);
        }
        (self.connections, self.verdicts)
    }

    fn note(&mut self, verdict: Verdict) {
        *self.verdicts.entry(verdict).or_default() += 1;
        if verdict != Verdict::Allowed {
            self.connections.refused = self.connections.refused.saturating_add(1);
        }
    }

    /// Adds a connection to the list, if it has room.
    fn list(&mut self, host: &str, port: u16, verdict: Verdict, now: Timestamp) -> Option<usize> {
        let list = &mut self.connections.list;
        (list.len() < MAX_LISTED).then(|| {
            list.push(Connection {
                host: printable(host),
                port,
                address: None,
                verdict,
                sent_bytes: 0,
                received_bytes: 0,
                started_at: Some(MicroTime(now)),
                duration_ms: None,
                repeats: None,
            });
            list.len() - 1
        })
    }

    fn decide(&mut self, opened: &ChannelOpened, now: Timestamp) {
        let Some(open) = self.open.get_mut(&opened.channel) else { return };
        let before = open.verdict.replace(opened.verdict);
        if let Some(connection) = open.place.and_then(|place| self.connections.list.get_mut(place)) {
            connection.verdict = opened.verdict;
            connection.address = opened.address.as_deref().map(printable).or(connection.address.take());
        }
        if before == Some(Verdict::Allowed) {
            self.connections.allowed = self.connections.allowed.saturating_sub(1);
        }
        if opened.verdict == Verdict::Allowed {
            self.connections.allowed = self.connections.allowed.saturating_add(1);
        } else {
            self.end(opened.channel, now);
        }
    }

    fn count(&mut self, channel: Channel, sent: usize, received: usize) {
        let Some(open) = self.open.get(&channel) else { return };
        let (sent, received) = (sent as u64, received as u64);
        self.connections.sent_bytes = self.connections.sent_bytes.saturating_add(sent);
        self.connections.received_bytes = self.connections.received_bytes.saturating_add(received);
        if let Some(connection) = open.place.and_then(|place| self.connections.list.get_mut(place)) {
            connection.sent_bytes = connection.sent_bytes.saturating_add(sent);
            connection.received_bytes = connection.received_bytes.saturating_add(received);
        }
    }

    fn end_if_over(&mut self, channel: Channel, now: Timestamp) {
        if self.open.get(&channel).is_some_and(|open| open.has_sent_all && open.has_received_all) {
            self.end(channel, now);
        }
    }

    /// Ends a channel. One without a decision, or with another than `Allowed`, counts as refused.
    fn end(&mut self, channel: Channel, now: Timestamp) {
        let Some(open) = self.open.remove(&channel) else { return };
        self.note(open.verdict.unwrap_or(Verdict::ConnectFailed));
        if let Some(connection) = open.place.and_then(|place| self.connections.list.get_mut(place)) {
            let duration = now.duration_since(open.started_at).as_millis();
            connection.duration_ms = Some(u64::try_from(duration).unwrap_or_default());
        }
    }

    /// Notes a connection or a lookup that the runner refused. A repeated one is counted where it is listed.
    fn refuse(&mut self, refused: &RefusedConnection, now: Timestamp) {
        let RefusedConnection { host, port, verdict } = refused;
        self.note(*verdict);
        let name = printable(host);
        let is_same = |listed: &&mut Connection| {
            listed.host == name
                && listed.port == *port
                && listed.verdict == *verdict
                && listed.address.is_none()
        };
        match self.connections.list.iter_mut().find(is_same) {
            Some(listed) => listed.repeats = Some(listed.repeats.unwrap_or(0).saturating_add(1)),
            None => drop(self.list(host, *port, *verdict, now)),
        }
    }
}

/// Adds the connections of a later attempt.
pub(crate) fn add(all: &mut Option<Connections>, later: Connections) {
    let Some(sum) = all else {
        *all = Some(later);
        return;
    };
    let Connections { allowed, refused, sent_bytes, received_bytes, list } = later;
    sum.allowed = sum.allowed.saturating_add(allowed);
    sum.refused = sum.refused.saturating_add(refused);
    sum.sent_bytes = sum.sent_bytes.saturating_add(sent_bytes);
    sum.received_bytes = sum.received_bytes.saturating_add(received_bytes);
    sum.list.extend(list);
    sum.list.truncate(MAX_LISTED);
}

/// A program chooses these words: a status can keep them, and a terminal can show them.
fn printable(text: &str) -> String {
    let shown = |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    text.chars().map(shown).take(MAX_HOST).collect()
}

#[cfg(test)]
mod tests;
