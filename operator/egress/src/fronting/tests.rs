//! Names inside of connections, whole and in pieces.

use super::*;

const HOST: &str = "api.example.com";

/// Passes pieces of bytes, and returns what went out and whether all passed.
fn pass<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, Result<(), Mismatch>) {
    let mut guard = Guard::new(HostName::parse(HOST).unwrap());
    let mut out = BytesMut::new();
    for piece in pieces {
        if let Err(mismatch) = guard.pass(piece, &mut out) {
            return (out.to_vec(), Err(mismatch));
        }
    }
    (out.to_vec(), Ok(()))
}

/// Passes bytes whole, byte by byte, and cut at each place of the first kilobyte.
#[track_caller]
fn check(bytes: &[u8], is_allowed: bool) {
    let cuts = (1..bytes.len().min(1024)).step_by(7).map(|at| {
        let (first, second) = bytes.split_at(at);
        vec![first, second]
    });
    for pieces in cuts.chain([vec![bytes], bytes.chunks(1).collect()]) {
        let count = pieces.len();
        let (out, result) = pass(pieces);
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(result.is_ok(), is_allowed, "{count} pieces of {text}");
        if is_allowed {
            assert!(out == bytes, "{count} pieces of {text}: {} bytes", out.len());
        } else {
            assert!(!String::from_utf8_lossy(&out).contains("evil.example\r\n\r\n"), "{out:?}");
        }
    }
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

fn server_name(name: &[u8]) -> Vec<u8> {
    [&[0, 0][..], &sized(&sized(&[&[0][..], &sized(name)].concat()))].concat()
}

/// The message of a ClientHello with these extensions.
fn hello(extensions: &[u8]) -> Vec<u8> {
    let body = [&[3, 3][..], &[7; 32], &[0], &sized(&[0x13, 1]), &[1, 0], &sized(extensions)].concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[1][..], &length[1..], &body].concat()
}

fn record(kind: u8, fragment: &[u8]) -> Vec<u8> {
    [&[kind, 3, 1][..], &sized(fragment)].concat()
}

fn hello_for(name: &str) -> Vec<u8> {
    record(22, &hello(&[server_name(name.as_bytes()), vec![0, 16, 0, 0]].concat()))
}

#[test]
fn a_server_name_must_be_the_hosts() {
    for (name, is_allowed) in [
        ("api.example.com", true),
        ("API.Example.com", true),
        ("api.example.com.", true),
        ("evil.example", false),
        ("example.com", false),
        ("x.api.example.com", false),
        ("api.example.com\0", false),
        ("", false),
        ("93.184.216.34", false),
    ] {
        check(&[hello_for(name), record(22, &[16, 0, 0, 0]), b"rest".to_vec()].concat(), is_allowed);
    }
}

#[test]
fn a_client_hello_without_a_name_passes_and_a_strange_one_does_not() {
    let two_names = sized(&[&[0][..], &sized(HOST.as_bytes()), &[0], &sized(b"evil.example")].concat());
    let two_names = [&[0, 0][..], &sized(&two_names)].concat();
    let twice = [server_name(HOST.as_bytes()), server_name(b"evil.example")].concat();
    let truncated = &hello(&server_name(HOST.as_bytes()))[..60];
    let mut other_length = hello(&[]);
    other_length[3] += 1;
    for (fragment, is_allowed) in [
        (hello(&[]), true),
        (hello(&[0, 16, 0, 0]), true),
        (hello(&two_names), false),
        (hello(&twice), false),
        (hello(&[0, 0, 0, 0]), false),
        ([hello(&[]), vec![1]].concat(), false),
        (vec![2, 0, 0, 0], false),
        (vec![1, 0x7f, 0xff, 0xff, 3, 3], false),
        (Vec::new(), false),
    ] {
        check(&[record(22, &fragment), record(23, b"data")].concat(), is_allowed);
    }
    // A part of a ClientHello never goes out.
    for part in [truncated.to_vec(), other_length] {
        assert_eq!(pass([record(22, &part).as_slice()]), (Vec::new(), Ok(())));
    }
}

#[test]
fn a_client_hello_in_many_records_is_put_together() {
    for name in [HOST, "evil.example"] {
        let whole = hello(&server_name(name.as_bytes()));
        for size in [1, 5, 40] {
            let records: Vec<u8> = whole.chunks(size).flat_map(|part| record(22, part)).collect();
            check(&[records, record(23, b"data")].concat(), name == HOST);
        }
    }
    let large = hello(&[server_name(HOST.as_bytes()), vec![0, 21], sized(&vec![0; 17_000])].concat());
    let records: Vec<u8> = large.chunks(16_000).flat_map(|part| record(22, part)).collect();
    assert_eq!(pass([records.as_slice()]).1, Err(Mismatch), "more than 16 KiB");
}

#[test]
fn a_second_client_hello_must_name_the_host_too() {
    let early = record(22, &hello(&[server_name(HOST.as_bytes()), vec![0, 42, 0, 0]].concat()));
    let change = record(20, &[1]);
    for (first, between, second, is_allowed) in [
        (hello_for(HOST), change.clone(), hello_for(HOST), true),
        (hello_for(HOST), change.clone(), hello_for("evil.example"), false),
        (hello_for(HOST), Vec::new(), hello_for("evil.example"), false),
        (early.clone(), record(23, &[9; 100]), hello_for("evil.example"), false),
        (early.clone(), record(23, &[9; 100]), hello_for(HOST), true),
        (hello_for(HOST), change.clone(), record(22, &hello(&server_name(b"evil.example"))[..30]), false),
        // The encrypted end of a handshake of TLS 1.2.
        (hello_for(HOST), change.clone(), record(22, &[1, 200, 9, 9, 9, 9, 9, 9]), true),
        (hello_for(HOST), record(23, b"data"), hello_for("evil.example"), true),
    ] {
        check(&[first, between, second].concat(), is_allowed);
    }
}

#[test]
fn other_protocols_pass_at_once() {
    for bytes in [
        &b"SSH-2.0-OpenSSH_9.6\r\n"[..],
        b"\0\0\0\x08\x04\xd2\x16\x2f",
        b"*1\r\n$4\r\nPING\r\n",
        b"PING\r\nGET key\r\n",
        b"EHLO client.example\r\nMAIL FROM:<a@b.example>\r\n",
        b"hello",
        b"hello world",
        b"\r\n\r\n",
        b"\x16",
        b"\x16\x05data",
        b"get key\r\n",
        b"USER anonymous\r\n",
        b"\x80\x2e\x01\x03\x01",
    ] {
        let (out, result) = pass([bytes]);
        assert_eq!(result, Ok(()), "{bytes:?}");
        // One byte of TLS is held back.
        assert_eq!(out, if bytes == b"\x16" { b"" } else { bytes }, "{bytes:?}");
        if bytes.len() > 1 {
            check(bytes, true);
        }
    }
}

fn request(lines: &str) -> Vec<u8> {
    lines.replace('\n', "\r\n").into_bytes()
}

#[test]
fn a_request_must_name_the_host_wherever_it_names_one() {
    for (lines, is_allowed) in [
        ("GET / HTTP/1.1\nHost: api.example.com\n\n", true),
        ("GET / HTTP/1.1\nhost:API.example.com.:8080\n\n", true),
        ("GET / HTTP/1.0\n\n", true),
        ("\n\nGET / HTTP/1.1\nHost: api.example.com\n\n", true),
        ("OPTIONS * HTTP/1.1\nHost: api.example.com\n\n", true),
        ("GET //evil.example/ HTTP/1.1\nHost: api.example.com\n\n", true),
        ("GET http://api.example.com/x HTTP/1.1\nHost: api.example.com\n\n", true),
        ("REPORT /dav HTTP/1.1\nHost: api.example.com\n\n", true),
        ("GET / HTTP/1.1\nHost: evil.example\n\n", false),
        ("\n\nGET / HTTP/1.1\nHost: evil.example\n\n", false),
        ("FOO / HTTP/1.1\nHost: evil.example\n\n", false),
        ("get / http/1.1\nHost: evil.example\n\n", false),
        ("GET\t/ HTTP/1.1\nHost: evil.example\n\n", false),
        ("GET / HTTP/1.1\nHost: api.example.com\nHost: evil.example\n\n", false),
        ("GET / HTTP/1.1\nHost: api.example.com\nHOST: api.example.com\n\n", false),
        ("GET / HTTP/1.1\nHost : evil.example\n\n", false),
        ("GET / HTTP/1.1\nX: y\n Host: evil.example\n\n", false),
        ("GET / HTTP/1.1\nHost: api.example.com@evil.example\n\n", false),
        ("GET / HTTP/1.1\nHost: api.example.com evil.example\n\n", false),
        ("GET / HTTP/1.1\nHost: api.example.com:80:90\n\n", false),
        ("GET / HTTP/1.1\nHost: api.example.com:\n\n", false),
        ("GET / HTTP/1.1\nHost: \n\n", false),
        ("GET / HTTP/1.1\nHost: 93.184.216.34\n\n", false),
        ("GET http://evil.example/ HTTP/1.1\nHost: api.example.com\n\n", false),
        ("GET http://api.example.com@evil.example/ HTTP/1.1\nHost: api.example.com\n\n", false),
        ("GET evil.example/ HTTP/1.1\nHost: api.example.com\n\n", false),
        ("GET / HTTP/1.1\nBad\0: x\nHost: api.example.com\n\n", false),
        ("GET / HTTP/2.0\nHost: api.example.com\n\n", false),
        ("PRI * HTTP/2.0\n\nSM\n\n", false),
        ("CONNECT evil.example:443 HTTP/1.1\nHost: api.example.com\n\n", false),
        ("CONNECT api.example.com:443 HTTP/1.1\nHost: evil.example\n\n", false),
        ("CONNECT api.example.com:443 HTTP/1.1\nHost: api.example.com\n\n", true),
        ("GET /\n\nGET / HTTP/1.1\nHost: evil.example\n\n", false),
        ("POST / x\nHost: evil.example\n\n", false),
    ] {
        check(&request(lines), is_allowed);
    }
    check(b"GET / HTTP/1.1\nHost: evil.example\n\n", false);
    check(b"GET / HTTP/1.1\nHost: api.example.com\n\nGET / HTTP/1.1\nHost: evil.example\n\n", false);
}

#[test]
fn every_request_of_a_connection_is_checked_behind_every_body() {
    let evil = "GET / HTTP/1.1\nHost: evil.example\n\n";
    let good = "GET / HTTP/1.1\nHost: api.example.com\n\n";
    for (head, body) in [
        ("", ""),
        ("Content-Length: 0\n", ""),
        ("Content-Length: 5\n", "hello"),
        ("Content-Length: 37\n", "GET / HTTP/1.1\nHost: evil.example\n"),
        ("Transfer-Encoding: chunked\n", "0\n\n"),
        ("Transfer-Encoding: Chunked\n", "5;a=\"b\"\nhello\nA\n0123456789\n0\nX: y\nHost: z\n\n"),
        ("Expect: 100-continue\nContent-Length: 2\n", "hi"),
    ] {
        let first = format!("POST / HTTP/1.1\nHost: api.example.com\n{head}\n{body}");
        check(&request(&format!("{first}{good}{good}")), true);
        check(&request(&format!("{first}{evil}")), false);
        check(&request(&format!("{good}{first}{good}{evil}")), false);
    }
}

#[test]
fn framing_that_servers_might_read_in_two_ways_is_refused() {
    for (head, body) in [
        ("Content-Length: 5\nTransfer-Encoding: chunked\n", "0\n\n"),
        ("Content-Length: 5\nContent-Length: 5\n", "hello"),
        ("Content-Length: 5\nContent-Length: 6\n", "hello"),
        ("Content-Length: 5, 5\n", "hello"),
        ("Content-Length: +5\n", "hello"),
        ("Content-Length: -1\n", "x"),
        ("Content-Length: 0x5\n", "hello"),
        ("Content-Length: \n", "x"),
        ("Content-Length: 9999999999999999\n", "x"),
        ("Transfer-Encoding: identity\n", "x"),
        ("Transfer-Encoding: gzip, chunked\n", "0\n\n"),
        ("Transfer-Encoding: chunked\nTransfer-Encoding: identity\n", "0\n\n"),
        ("Transfer-Encoding: xchunked\n", "0\n\n"),
        ("Transfer-Encoding: \"chunked\"\n", "0\n\n"),
        ("Transfer-Encoding: chunked\n", "-1\n\n"),
        ("Transfer-Encoding: chunked\n", "0x5\nhello\n0\n\n"),
        ("Transfer-Encoding: chunked\n", " 5\nhello\n0\n\n"),
        ("Transfer-Encoding: chunked\n", "5 \nhello\n0\n\n"),
        ("Transfer-Encoding: chunked\n", "\n"),
        ("Transfer-Encoding: chunked\n", "5\nhelloX\n0\n\n"),
        ("Transfer-Encoding: chunked\n", "5;\0\nhello\n0\n\n"),
        ("Transfer-Encoding: chunked\n", "ffffffffffffffff\nhello"),
    ] {
        check(&request(&format!("POST / HTTP/1.1\nHost: api.example.com\n{head}\n{body}")), false);
    }
    let chunked = "POST / HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in [
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello\r\n0\n\n",
        "5;a\rb\r\nhello",
        "5\r\nhello\r\n0\r\nA: b\n\r\n",
    ] {
        check(format!("{chunked}{body}").as_bytes(), false);
    }
    check(&request("POST / HTTP/1.0\nHost: api.example.com\nTransfer-Encoding: chunked\n\n0\n\n"), false);
}

#[test]
fn a_head_without_an_end_is_refused() {
    for start in ["GET /", "GET / HTTP/1.1\r\nX: "] {
        let endless = format!("{start}{}", "a".repeat(40_000));
        assert_eq!(pass([endless.as_bytes()]).1, Err(Mismatch), "{start}");
        let (out, result) = pass(endless.as_bytes().chunks(1000));
        assert_eq!(result, Err(Mismatch), "{start}");
        assert!(out.len() <= MAX_HEAD);
    }
}

/// Asks for another protocol, has the host respond, and then sends more.
fn switch(lines: &str, responses: &[&str], more: &[u8]) -> (Vec<u8>, Result<(), Mismatch>) {
    let mut guard = Guard::new(HostName::parse(HOST).unwrap());
    let mut out = BytesMut::new();
    let all = [&request(lines), more].concat();
    guard.pass(&all, &mut out).unwrap();
    assert_eq!(out, request(lines), "what follows waits for the response");
    assert_eq!(guard.waits(), !more.is_empty());
    let mut result = Ok(());
    for response in responses {
        result = result.and_then(|()| guard.observe(&request(response), &mut out));
    }
    result = result.and_then(|()| guard.pass(b"", &mut out));
    (out.split_off(request(lines).len()).to_vec(), result)
}

#[test]
fn another_protocol_passes_only_after_the_host_has_agreed() {
    let upgrade = "GET / HTTP/1.1\nHost: api.example.com\nConnection: upgrade\nUpgrade: websocket\n\n";
    let to_h2c = &upgrade.replace("websocket", "h2c");
    let connect = "CONNECT api.example.com:443 HTTP/1.1\nHost: api.example.com\n\n";
    let evil = b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    let good = b"GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
    let agreed = "HTTP/1.1 101 Switching Protocols\nUpgrade: websocket\n\n";
    let frames = &[0x81, 0x05, 1, 2, 3][..];
    for (lines, responses, more, is_allowed) in [
        (upgrade, &[agreed][..], frames, true),
        (upgrade, &["HTTP/1.1 103 Early Hints\n\n", "HTTP/1.1 ", "101 Yes\n\n"], frames, true),
        (upgrade, &[agreed], evil, true),
        (upgrade, &["HTTP/1.1 200 OK\n\n"], evil, false),
        (upgrade, &["HTTP/1.1 200 OK\n\n"], good, true),
        (upgrade, &["HTTP/1.1 100 Continue\n\nHTTP/1.1 400 No\n\n"], evil, false),
        (upgrade, &["no HTTP at all\n"], evil, false),
        (to_h2c, &[agreed], frames, false),
        (to_h2c, &["HTTP/1.1 200 OK\n\n"], good, true),
        (connect, &["HTTP/1.1 200 OK\n\n"], frames, true),
        (connect, &["HTTP/1.1 405 No\n\n"], evil, false),
        (connect, &[agreed], evil, false),
    ] {
        let (out, result) = switch(lines, responses, more);
        assert_eq!(result.is_ok(), is_allowed, "{lines} {responses:?}");
        assert_eq!(out, if is_allowed { more } else { b"" }, "{lines} {responses:?}");
    }
    let second = [good, request(upgrade).as_slice()].concat();
    check(&second, false);
}
