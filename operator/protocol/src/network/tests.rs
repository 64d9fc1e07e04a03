//! Frames of channels come back as they were sent, and wrong ones are refused.

use super::*;
use crate::frame::{Decoder, Direction};

fn read(bytes: &[u8], direction: Direction) -> Frame {
    let mut decoder = Decoder::new(direction);
    decoder.push(bytes);
    decoder.pop().unwrap().unwrap()
}

#[test]
fn every_request_comes_back() {
    for request in [
        NetworkRequest::Open(OpenChannel { channel: 7, host: "api.example.com".into(), port: 443 }),
        NetworkRequest::Data(7, vec![0, 1, 2]),
        NetworkRequest::Data(u32::MAX, Vec::new()),
        NetworkRequest::Window(7, 65_536),
        NetworkRequest::Close(7, CloseKind::End),
        NetworkRequest::Close(7, CloseKind::Reset),
        NetworkRequest::Refused(RefusedConnection {
            host: "10.0.0.1".into(),
            port: 80,
            verdict: Verdict::HostNotAllowed,
        }),
    ] {
        let frame = read(&request.encode().unwrap(), Direction::ToOperator);
        assert_eq!(NetworkRequest::decode(frame).unwrap(), request);
    }
}

#[test]
fn every_response_comes_back() {
    for response in [
        NetworkResponse::Opened(ChannelOpened {
            channel: 7,
            verdict: Verdict::Allowed,
            address: Some("203.0.113.1".into()),
        }),
        NetworkResponse::Data(7, vec![0, 1, 2]),
        NetworkResponse::Window(7, 1),
        NetworkResponse::Close(7, CloseKind::Reset),
    ] {
        let frame = read(&response.encode().unwrap(), Direction::ToRunner);
        assert_eq!(NetworkResponse::decode(frame).unwrap(), response);
    }
}

#[test]
fn payloads_of_another_length_are_refused() {
    for (kind, payload) in [
        (Kind::ChannelWritten, &b"abc"[..]),
        (Kind::RunnerWindow, b"\0\0\0\x01\0\0\0"),
        (Kind::RunnerWindow, b"\0\0\0\x01\0\0\0\0\0"),
        (Kind::RunnerClose, b"\0\0\0\x01"),
        (Kind::RunnerClose, b"\0\0\0\x01\x02"),
    ] {
        let frame = read(&encode(kind, payload).unwrap(), Direction::ToOperator);
        let error = NetworkRequest::decode(frame).unwrap_err();
        assert!(matches!(error, MessageError::Malformed(found) if found == kind), "{error}");
    }
}

#[test]
fn data_is_limited() {
    assert!(NetworkRequest::Data(1, vec![0; MAX_NETWORK_DATA]).encode().is_ok());
    assert!(NetworkRequest::Data(1, vec![0; MAX_NETWORK_DATA + 1]).encode().is_err());
}

#[test]
fn a_verdict_is_its_word() {
    for verdict in Verdict::ALL {
        assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.as_str());
    }
}

#[test]
fn exact_names_are_the_first_hosts_of_a_run() {
    let names = ["*.b.dev", "a.dev", "*", "203.0.113.7", "localhost", "x.localhost", "c.dev", "a.dev"];
    assert_eq!(named_hosts(names), ["a.dev", "c.dev"]);
    assert_eq!(host_address(0), Ipv4Addr::new(198, 18, 1, 0));
    assert_eq!(host_address(256), Ipv4Addr::new(198, 18, 2, 0));
    assert_eq!(host_index(host_address(300)), Some(300));
    assert_eq!(host_index(Ipv4Addr::new(198, 18, 0, 255)), None);
}
