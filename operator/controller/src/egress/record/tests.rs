//! Records of frames: bytes, verdicts, bounds.

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
    assert_eq!(record.transferred(), (5, 7));
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
