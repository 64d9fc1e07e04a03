//! Connections that must work under the rules of `attacks`: hosts, addresses, and what goes over the connection.

use super::{
    attacks::{client_hello, rules},
    *,
};

/// Connects by a name with an answer, dials this address of it, and has what is sent come back, with both ends.
struct Permitted {
    what: &'static str,
    to: (&'static str, u16),
    answer: &'static [&'static str],
    dialed: &'static str,
    bytes: Vec<u8>,
}

const IPV6: &str = "2606:4700::1111";

fn hosts() -> Vec<Permitted> {
    let of = |what, to, answer, dialed| Permitted { what, to, answer, dialed, bytes: b"\0ping".to_vec() };
    vec![
        of("a host", (HOST, 80), &[PUBLIC], PUBLIC),
        of("its other port", (HOST, 443), &[PUBLIC], PUBLIC),
        of("in capitals", ("API.Example.COM", 80), &[PUBLIC], PUBLIC),
        of("with the dot of the root", ("api.example.com.", 80), &[PUBLIC], PUBLIC),
        of("below a wildcard", ("a.wild.example", 80), &[PUBLIC], PUBLIC),
        of("far below it", ("a.b.c.wild.example", 80), &[PUBLIC], PUBLIC),
        of("with an underscore", ("_a.wild.example", 80), &[PUBLIC], PUBLIC),
        of("of digits", ("1.wild.example", 80), &[PUBLIC], PUBLIC),
        of("in Unicode", ("bücher.wild.example", 80), &[PUBLIC], PUBLIC),
        of("in Punycode", ("xn--bcher-kva.wild.example", 80), &[PUBLIC], PUBLIC),
        of("over IPv6", (HOST, 80), &[IPV6], IPV6),
        of("with both families", (HOST, 80), &[IPV6, PUBLIC], IPV6),
        of("with a private address before", (HOST, 80), &["10.0.0.1", PUBLIC], PUBLIC),
        of("with addresses of the cluster around", (HOST, 80), &["93.184.217.1", PUBLIC, "::1"], PUBLIC),
        of("a neighbor of a denied address", (HOST, 80), &["93.184.216.98"], "93.184.216.98"),
        of("an internal host", ("db.example", 5432), &["10.1.2.3"], "10.1.2.3"),
        of("an internal host over IPv6", ("db.example", 5432), &["fd12::1"], "fd12::1"),
        of("an internal host among the services", ("db.example", 5432), &["10.96.0.10"], "10.96.0.10"),
        of("an internal host with a public address", ("db.example", 5433), &[PUBLIC], PUBLIC),
        of(
            "an internal host with a loopback address too",
            ("db.example", 5432),
            &["127.0.0.1", "10.0.0.9"],
            "10.0.0.9",
        ),
    ]
}

fn traffic() -> Vec<Permitted> {
    let of = |what, bytes| Permitted { what, to: (HOST, 80), answer: &[PUBLIC], dialed: PUBLIC, bytes };
    let text = |lines: &str| lines.replace('\n', "\r\n").into_bytes();
    let request = "GET / HTTP/1.1\nHost: api.example.com\n\n";
    let body = "x".repeat(20_000);
    vec![
        of("HTTP", text(request)),
        of("a kept connection", text(&request.repeat(9))),
        of("Host with a port", text("GET / HTTP/1.1\nHost: api.example.com:80\n\n")),
        of("a whole URL", text("GET http://api.example.com/ HTTP/1.1\nHost: api.example.com\n\n")),
        of("HTTP/1.0 without Host", text("GET / HTTP/1.0\n\n")),
        of(
            "a large body",
            text(&format!("POST / HTTP/1.1\nHost: api.example.com\nContent-Length: 20000\n\n{body}")),
        ),
        of(
            "chunks",
            text(&format!(
                "POST / HTTP/1.1\nHost: api.example.com\nTransfer-Encoding: chunked\n\n4e20\n{body}\n0\n\n"
            )),
        ),
        of(
            "another name in a body",
            text("POST / HTTP/1.1\nHost: api.example.com\nContent-Length: 18\n\nHost: evil.example"),
        ),
        of("TLS with the host's name", client_hello(HOST)),
        of("SSH", b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()),
        of("a query for TLS of PostgreSQL", b"\0\0\0\x08\x04\xd2\x16\x2f".to_vec()),
        of("Redis", b"*1\r\n$4\r\nPING\r\n".to_vec()),
        of("every byte", (0..=255).collect()),
    ]
}

/// A host that sends back what it gets, and ends when the program has.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut reader, mut writer) = stream.split();
            tokio::io::copy(&mut reader, &mut writer).await.ok();
            writer.shutdown().await.ok();
        }
    });
    at
}

#[tokio::test]
async fn what_a_run_may_reach_is_reached_and_its_bytes_come_back() {
    let broker = TestBroker::start().await;
    let at = echo().await;
    let mut program = Program::start(&broker, &rules()).await;
    let all: Vec<Permitted> = hosts().into_iter().chain(traffic()).collect();
    assert!(all.len() >= 30, "{} connections", all.len());
    for (channel, Permitted { what, to: (host, port), answer, dialed, bytes }) in (1..).zip(all) {
        let name = crate::HostName::parse(host).unwrap();
        broker.answers.set(name.as_str(), &[answer]);
        broker.loopback.put(dialed, port, at);
        program.open(channel, host, port).await;
        assert_eq!(program.opened().await, (channel, Verdict::Allowed, Some(dialed.into())), "{what}");
        program.write(channel, &bytes).await;
        assert!(program.read(channel, bytes.len()).await == bytes, "{what}");
        // The program's end goes to the host, which still has its own.
        program.send(NetworkRequest::Close(channel, CloseKind::End)).await;
        while let Some(response) = program.next().await {
            if response == NetworkResponse::Close(channel, CloseKind::End) {
                break;
            }
            assert!(matches!(response, NetworkResponse::Window(..)), "{what}: {response:?}");
        }
        assert_eq!(
            broker.loopback.dialed().last(),
            Some(&SocketAddr::new(dialed.parse().unwrap(), port)),
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_websocket_carries_any_bytes_once_the_host_has_agreed() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    let mut program = Program::start(&broker, &rules()).await;
    program.connect(1).await;
    let mut host = accept(&listener).await;
    let request =
        b"GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    program.write(1, request).await;
    assert_eq!(read_exact(&mut host, request.len()).await, request);
    let agreed = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
    host.write_all(agreed).await.unwrap();
    assert_eq!(program.read(1, agreed.len()).await, agreed);
    let frame = b"\x81\x05Host: evil.example";
    program.write(1, frame).await;
    assert_eq!(read_exact(&mut host, frame.len()).await, frame);
    host.write_all(frame).await.unwrap();
    assert_eq!(program.read(1, frame.len()).await, frame);
}
