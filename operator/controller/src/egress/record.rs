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
mod tests {
    use skillet_protocol::OpenChannel as Open;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn open(record: &mut ConnectionRecord, channel: Channel, host: &str) {
        let open = Open { channel, host: host.into(), port: 443 };
        record.on_request(&NetworkRequest::Open(open), at(10));
    }

    fn opened(record: &mut ConnectionRecord, channel: Channel, verdict: Verdict) {
        let address = Some("203.0.113.7".to_owned());
        record.on_response(&NetworkResponse::Opened(ChannelOpened { channel, verdict, address }), at(11));
    }

    fn refused(host: &str) -> NetworkRequest {
        NetworkRequest::Refused(RefusedConnection {
            host: host.into(),
            port: 0,
            verdict: Verdict::HostNotAllowed,
        })
    }

    #[test]
    fn a_connection_has_its_address_bytes_and_time() {
        let mut record = ConnectionRecord::default();
        open(&mut record, 1, "api.example.com");
        opened(&mut record, 1, Verdict::Allowed);
        record.on_request(&NetworkRequest::Data(1, vec![0; 5]), at(11));
        record.on_response(&NetworkResponse::Data(1, vec![0; 7]), at(11));
        record.on_request(&NetworkRequest::Close(1, CloseKind::End), at(12));
        assert_eq!(record.open_channels(), [1], "the other direction is open");
        record.on_response(&NetworkResponse::Close(1, CloseKind::End), at(13));
        assert!(record.open_channels().is_empty());
        record.on_response(&NetworkResponse::Data(1, vec![0; 7]), at(14));
        let Connections { allowed, refused, sent_bytes, received_bytes, list } = record.finish(at(20)).0;
        assert_eq!(
            (allowed, refused, sent_bytes, received_bytes),
            (1, 0, 5, 7),
            "bytes behind the end do not count"
        );
        assert_eq!(
            list,
            [Connection {
                host: "api.example.com".into(),
                port: 443,
                address: Some("203.0.113.7".into()),
                verdict: Verdict::Allowed,
                sent_bytes: 5,
                received_bytes: 7,
                started_at: Some(MicroTime(at(10))),
                duration_ms: Some(3000),
                repeats: None,
            }]
        );
    }

    #[test]
    fn a_refused_connection_and_one_without_a_decision_are_counted_as_refused() {
        let mut record = ConnectionRecord::default();
        open(&mut record, 1, "a.example.com");
        opened(&mut record, 1, Verdict::AddressNotAllowed);
        open(&mut record, 2, "b.example.com");
        let (connections, verdicts) = record.finish(at(12));
        assert_eq!((connections.allowed, connections.refused), (0, 2));
        assert_eq!(verdicts[&Verdict::AddressNotAllowed] + verdicts[&Verdict::ConnectFailed], 2);
        let listed: Vec<Verdict> = connections.list.iter().map(|listed| listed.verdict).collect();
        assert_eq!(listed, [Verdict::AddressNotAllowed, Verdict::ConnectFailed]);
    }

    #[test]
    fn a_later_verdict_replaces_the_first() {
        let mut record = ConnectionRecord::default();
        open(&mut record, 1, "a.example.com");
        opened(&mut record, 1, Verdict::Allowed);
        let mismatch = ChannelOpened { channel: 1, verdict: Verdict::HostMismatch, address: None };
        record.on_response(&NetworkResponse::Opened(mismatch), at(12));
        let (connections, verdicts) = record.finish(at(12));
        assert_eq!((connections.allowed, connections.refused), (0, 1));
        assert_eq!(verdicts, HashMap::from([(Verdict::HostMismatch, 1)]));
        let listed = &connections.list[0];
        assert_eq!((listed.verdict, listed.address.as_deref()), (Verdict::HostMismatch, Some("203.0.113.7")));
    }

    #[test]
    fn refusals_of_one_kind_take_one_place() {
        let mut record = ConnectionRecord::default();
        for _ in 0..1000 {
            record.on_request(&refused("evil.example"), at(10));
        }
        let (connections, verdicts) = record.finish(at(12));
        assert_eq!((connections.refused, connections.list.len()), (1000, 1));
        assert_eq!(verdicts, HashMap::from([(Verdict::HostNotAllowed, 1000)]));
        assert_eq!(connections.list[0].repeats, Some(999));
    }

    #[test]
    fn a_flood_is_counted_and_not_listed() {
        let mut record = ConnectionRecord::default();
        for number in 0..1000 {
            record.on_request(&refused(&format!("h{number}.example")), at(10));
            open(&mut record, number, "api.example.com");
            opened(&mut record, number, Verdict::Allowed);
            record.on_request(&NetworkRequest::Data(number, vec![0; 2]), at(11));
            record.on_request(&NetworkRequest::Close(number, CloseKind::Reset), at(12));
        }
        let (connections, verdicts) = record.finish(at(12));
        assert_eq!((connections.allowed, connections.refused, connections.sent_bytes), (1000, 1000, 2000));
        assert_eq!(connections.list.len(), MAX_LISTED);
        assert_eq!((verdicts[&Verdict::Allowed], verdicts[&Verdict::HostNotAllowed]), (1000, 1000));
    }

    #[test]
    fn what_a_program_calls_a_host_is_printable_and_short() {
        let mut record = ConnectionRecord::default();
        record.on_request(&refused(&format!("a\0\x1b[2J{}", "x".repeat(1000))), at(10));
        let host = &record.finish(at(12)).0.list[0].host;
        assert!(host.starts_with("a\u{fffd}\u{fffd}[2Jxx"), "{host}");
        assert_eq!(host.chars().count(), MAX_HOST);
    }

    #[test]
    fn attempts_add_up() {
        let one = |verdict| {
            let mut record = ConnectionRecord::default();
            open(&mut record, 1, "a.example.com");
            opened(&mut record, 1, verdict);
            record.on_request(&NetworkRequest::Data(1, vec![0; 2]), at(11));
            record.finish(at(12)).0
        };
        let mut all = None;
        for _ in 0..40 {
            add(&mut all, one(Verdict::Allowed));
            add(&mut all, one(Verdict::ConnectTimedOut));
        }
        let all = all.unwrap();
        assert_eq!((all.allowed, all.refused, all.sent_bytes, all.list.len()), (40, 40, 80, MAX_LISTED));
    }
}
