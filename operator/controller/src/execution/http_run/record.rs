//! The record of the connections of a run's requests: those in the broker's answers, and the request that it has. Pure.
//!
//! A request is in the record before it is sent, so that a run without the broker's answer shows where its request went.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use skillet_api::{
    Verdict,
    http::HttpMethod,
    network::{Connection, Connections},
};
use skillet_egress::ConnectionRecord;

/// Connections of one run.
#[derive(Debug, Default)]
pub(super) struct RequestRecord {
    /// Connections of the requests that are over. `None` before the first request.
    connections: Option<Connections>,
    verdicts: HashMap<Verdict, u64>,
    /// The request whose end is not known.
    open: Option<OpenRequest>,
}

/// A request that was sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OpenRequest {
    pub(super) method: HttpMethod,
    /// `None` if it is for no host.
    pub(super) host_and_port: Option<(String, u16)>,
    /// `None`: another operator sent it.
    pub(super) sent_at: Option<Timestamp>,
}

impl RequestRecord {
    /// Notes a request that is sent now, or was sent by another operator.
    pub(super) fn send(&mut self, request: OpenRequest) {
        self.connections.get_or_insert_default();
        self.open = Some(request);
    }

    /// Puts the broker's connections in the place of the request.
    pub(super) fn answer(&mut self, records: &[ConnectionRecord]) {
        self.open = None;
        for record in records {
            self.add(connection(record));
        }
    }

    /// Ends a request that the broker did not answer. The host may have it if it `was_sent`.
    pub(super) fn fail(&mut self, was_sent: bool, now: Timestamp) {
        let verdict = if was_sent { Verdict::Allowed } else { Verdict::BrokerUnavailable };
        if let Some(connection) = self.open.take().and_then(|open| open.end(verdict, now)) {
            self.add(connection);
        }
    }

    /// Returns the bytes that the run has sent and received.
    pub(super) fn transferred(&self) -> (u64, u64) {
        self.connections.as_ref().map_or((0, 0), |all| (all.sent_bytes, all.received_bytes))
    }

    /// Returns the method of the request whose end is not known.
    pub(super) fn open_method(&self) -> Option<HttpMethod> {
        self.open.as_ref().map(|open| open.method)
    }

    /// Returns the record of a run that ends now, and its connections by verdict. `None` if no request was sent.
    pub(super) fn finish(mut self, now: Timestamp) -> Option<(Connections, HashMap<Verdict, u64>)> {
        self.fail(true, now);
        Some((self.connections?, self.verdicts))
    }

    fn add(&mut self, connection: Connection) {
        *self.verdicts.entry(connection.verdict).or_default() += 1;
        let is_allowed = connection.verdict == Verdict::Allowed;
        let one = Connections {
            allowed: u32::from(is_allowed),
            refused: u32::from(!is_allowed),
            sent_bytes: connection.sent_bytes,
            received_bytes: connection.received_bytes,
            list: vec![connection],
        };
        crate::egress::add(&mut self.connections, one);
    }
}

impl OpenRequest {
    fn end(self, verdict: Verdict, now: Timestamp) -> Option<Connection> {
        let (host, port) = self.host_and_port?;
        let duration = self.sent_at.map(|sent_at| now.duration_since(sent_at).as_millis());
        Some(Connection {
            host,
            port,
            address: None,
            verdict,
            sent_bytes: 0,
            received_bytes: 0,
            started_at: self.sent_at.map(MicroTime),
            duration_ms: duration.map(|duration| u64::try_from(duration).unwrap_or_default()),
            repeats: None,
        })
    }
}

/// Returns a connection of the broker as a status shows it.
fn connection(record: &ConnectionRecord) -> Connection {
    let started_at = i64::try_from(record.started_at).ok();
    Connection {
        host: record.host.clone(),
        port: record.port,
        address: record.address.clone(),
        verdict: record.verdict,
        sent_bytes: record.sent_bytes,
        received_bytes: record.received_bytes,
        started_at: started_at.and_then(|micros| Timestamp::from_microsecond(micros).ok()).map(MicroTime),
        duration_ms: Some(record.duration_ms),
        repeats: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Timestamp = Timestamp::UNIX_EPOCH;

    fn later() -> Timestamp {
        Timestamp::from_millisecond(250).unwrap()
    }

    fn request(method: HttpMethod) -> OpenRequest {
        let host_and_port = Some(("api.example.com".to_owned(), 8443));
        OpenRequest { method, host_and_port, sent_at: Some(SENT) }
    }

    fn answered(verdict: Verdict) -> ConnectionRecord {
        ConnectionRecord {
            host: "h".into(),
            port: 443,
            address: Some("203.0.113.9".into()),
            verdict,
            sent_bytes: 3,
            received_bytes: 4,
            started_at: 1_000_000,
            duration_ms: 5,
        }
    }

    fn sent(method: HttpMethod) -> RequestRecord {
        let mut record = RequestRecord::default();
        record.send(request(method));
        record
    }

    #[test]
    fn the_brokers_connections_take_the_place_of_the_request() {
        let mut record = sent(HttpMethod::Get);
        record.answer(&[answered(Verdict::Allowed), answered(Verdict::ConnectFailed)]);
        assert_eq!(record.open_method(), None);
        record.send(request(HttpMethod::Get));
        record.answer(&[answered(Verdict::Allowed)]);
        assert_eq!(record.transferred(), (9, 12));
        let (all, verdicts) = record.finish(later()).unwrap();
        assert_eq!((all.allowed, all.refused, all.sent_bytes, all.received_bytes), (2, 1, 9, 12));
        assert_eq!(all.list.iter().map(|listed| listed.host.as_str()).collect::<Vec<_>>(), ["h"; 3]);
        assert_eq!(all.list[0].started_at.as_ref().unwrap().0.as_second(), 1);
        assert_eq!(verdicts, HashMap::from([(Verdict::Allowed, 2), (Verdict::ConnectFailed, 1)]));
    }

    #[test]
    fn a_request_without_an_answer_stays_in_the_record() {
        let record = sent(HttpMethod::Post);
        assert_eq!(record.open_method(), Some(HttpMethod::Post));
        let (all, verdicts) = record.finish(later()).unwrap();
        let listed = &all.list[0];
        assert_eq!((listed.host.as_str(), listed.port, &listed.address), ("api.example.com", 8443, &None));
        assert_eq!((listed.verdict, listed.sent_bytes), (Verdict::Allowed, 0));
        assert_eq!((listed.started_at.clone(), listed.duration_ms), (Some(MicroTime(SENT)), Some(250)));
        assert_eq!((all.allowed, all.refused, verdicts), (1, 0, HashMap::from([(Verdict::Allowed, 1)])));
    }

    #[test]
    fn a_request_that_the_broker_never_got_has_reached_no_host() {
        let mut record = sent(HttpMethod::Get);
        record.fail(false, later());
        record.send(request(HttpMethod::Get));
        record.fail(true, later());
        assert_eq!(record.open_method(), None);
        let (all, verdicts) = record.finish(later()).unwrap();
        assert_eq!((all.allowed, all.refused, all.list.len()), (1, 1, 2));
        assert_eq!(verdicts, HashMap::from([(Verdict::BrokerUnavailable, 1), (Verdict::Allowed, 1)]));
    }

    #[test]
    fn a_request_of_an_operator_that_is_gone_has_no_times() {
        let mut record = RequestRecord::default();
        record.send(OpenRequest { sent_at: None, ..request(HttpMethod::Post) });
        let (all, _verdicts) = record.finish(later()).unwrap();
        let listed = &all.list[0];
        assert_eq!((listed.host.as_str(), listed.verdict), ("api.example.com", Verdict::Allowed));
        assert_eq!((&listed.started_at, listed.duration_ms), (&None, None));
    }

    #[test]
    fn a_run_that_sent_no_request_has_no_record() {
        assert!(RequestRecord::default().finish(later()).is_none());
    }
}
