//! HTTP requests of skills through client, broker and dialer.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use tokio::{io::AsyncReadExt as _, net::TcpListener, time::timeout};

use super::*;
use crate::testing::{PUBLIC, TestBroker, http_host, policy, read_request, rule};

fn get(url: &str) -> EgressRequest {
    EgressRequest {
        policy: policy(&[("api.example.com", &[80, 443]), ("*.example.net", &[80])]),
        method: "GET".into(),
        url: url.into(),
        timeout_ms: 10_000,
        response_bytes: 1 << 20,
        redirects: 5,
        ..EgressRequest::default()
    }
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}

#[track_caller]
fn replied(response: &EgressResponse) -> &HttpResponse {
    match &response.result {
        EgressResult::Response(response) => response,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_request_reaches_an_allowed_host_and_is_recorded() {
    let broker = TestBroker::start().await;
    let (host, requests) = http_host(response("201 Created", "x-id: 7\r\n", "made")).await;
    broker.host("api.example.com", 80, host);
    let request = EgressRequest {
        method: "POST".into(),
        headers: vec![
            ("Authorization".into(), "Bearer t".into()),
            ("Host".into(), "evil.example".into()),
            ("Transfer-Encoding".into(), "chunked".into()),
        ],
        body: Some(b"hello".to_vec()),
        ..get("http://API.example.com./v1/things?a=b#part")
    };
    let outcome = broker.client().request(request).await.unwrap();
    let got = replied(&outcome);
    assert_eq!((got.status, got.body.as_slice()), (201, &b"made"[..]));
    assert!(got.headers.contains(&("x-id".into(), "7".into())));
    assert_eq!(got.url, "http://api.example.com./v1/things?a=b");
    let sent = &requests.all()[0];
    assert!(sent.starts_with("POST /v1/things?a=b HTTP/1.1\r\nhost: api.example.com"), "{sent}");
    assert!(sent.contains("authorization: Bearer t\r\n") && sent.ends_with("\r\n\r\nhello"), "{sent}");
    assert!(!sent.contains("evil") && !sent.contains("chunked"), "{sent}");
    let [connection] = outcome.connections.as_slice() else { panic!("{:?}", outcome.connections) };
    assert_eq!(connection.address.as_deref(), Some(PUBLIC));
    assert_eq!((connection.verdict, connection.port), (Verdict::Allowed, 80));
    assert_eq!(connection.sent_bytes, sent.len() as u64);
    assert!(
        connection.received_bytes > 40 && connection.started_at > 1_700_000_000_000_000,
        "{connection:?}"
    );
    assert!(broker.metrics().contains(r#"skillet_broker_requests_total{outcome="Response"} 1"#));
}

#[tokio::test]
async fn requests_that_may_not_be_sent_are_refused_with_their_verdict_and_record() {
    let broker = TestBroker::start().await;
    broker.answers.set("api.example.com", &[&["10.1.2.3"]]);
    for (url, verdict) in [
        ("http://other.example.com/", Verdict::HostNotAllowed),
        ("http://example.net/", Verdict::HostNotAllowed),
        ("http://127.0.0.1/", Verdict::HostNotAllowed),
        ("http://0x7f.1/", Verdict::HostNotAllowed),
        ("http://[::1]/", Verdict::HostNotAllowed),
        ("http://api.example.com:22/", Verdict::PortNotAllowed),
        ("http://a.example.net/", Verdict::NameNotFound),
        ("http://api.example.com/", Verdict::AddressNotAllowed),
    ] {
        let outcome = broker.client().request(get(url)).await.unwrap();
        assert!(
            matches!(&outcome.result, EgressResult::Failed { verdict: found, .. } if *found == verdict),
            "{url}: {outcome:?}"
        );
        assert_eq!(outcome.connections[0].verdict, verdict, "{url}");
    }
    assert_eq!(broker.loopback.dialed(), []);
}

#[tokio::test]
async fn a_request_that_cannot_be_sent_names_the_mistake() {
    let broker = TestBroker::start().await;
    let header = |name: &str, value: &str| EgressRequest {
        headers: vec![(name.into(), value.into())],
        ..get("http://api.example.com/")
    };
    for (request, said) in [
        (get("ftp://api.example.com/"), "neither http nor https"),
        (get("http://me:secret@api.example.com/"), "user name"),
        (get("/path"), "cannot be read"),
        (EgressRequest { method: "CONNECT".into(), ..get("http://api.example.com/") }, "CONNECT"),
        (EgressRequest { method: "G T".into(), ..get("http://api.example.com/") }, "no HTTP method"),
        (header("x y", "z"), "no name of a header"),
        (header("x-key", "secret\r\nx: y"), "\"x-key\" cannot be sent"),
        (
            EgressRequest { policy: policy(&[("a*b", &[80])]), ..get("http://api.example.com/") },
            "pattern \"a*b\"",
        ),
    ] {
        let outcome = broker.client().request(request).await.unwrap();
        let EgressResult::Invalid { message } = outcome.result else { panic!("{outcome:?}") };
        assert!(message.contains(said) && !message.contains("secret"), "{message}");
        assert_eq!(outcome.connections, []);
    }
}

#[tokio::test]
async fn a_body_is_decoded_and_limited() {
    let broker = TestBroker::start().await;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&vec![b'a'; 100_000]).unwrap();
    let packed = encoder.finish().unwrap();
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", packed.len());
    assert!(bytes.len() < 1000);
    let bytes = {
        let mut all = std::mem::take(&mut bytes).into_bytes();
        all.extend(packed);
        all
    };
    let (host, _) = http_host(bytes).await;
    broker.host("api.example.com", 80, host);
    let outcome = broker.client().request(get("http://api.example.com/")).await.unwrap();
    let got = replied(&outcome);
    assert_eq!(got.body, vec![b'a'; 100_000]);
    assert!(!got.headers.iter().any(|(name, _)| name == "content-encoding" || name == "content-length"));
    let small = EgressRequest { response_bytes: 99_999, ..get("http://api.example.com/") };
    let outcome = broker.client().request(small).await.unwrap();
    assert_eq!(outcome.result, EgressResult::BodyTooLarge { limit: 99_999 });
    let cut = EgressRequest { response_bytes: 99_999, cuts_body: true, ..get("http://api.example.com/") };
    let outcome = broker.client().request(cut).await.unwrap();
    let got = replied(&outcome);
    assert!(got.is_truncated && got.body == vec![b'a'; 99_999]);
}

#[tokio::test]
async fn a_host_that_does_not_answer_is_a_timeout_with_its_connection() {
    let broker = TestBroker::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    broker.host("api.example.com", 80, listener.local_addr().unwrap());
    let request = EgressRequest { timeout_ms: 50, ..get("http://api.example.com/") };
    let outcome = broker.client().request(request).await.unwrap();
    assert_eq!(outcome.result, EgressResult::TimedOut);
    assert_eq!(outcome.connections[0].verdict, Verdict::Allowed);
    assert!(outcome.connections[0].duration_ms >= 40, "{:?}", outcome.connections);
}

#[tokio::test]
async fn a_host_that_accepts_no_connection_is_a_timeout_as_well() {
    let broker = TestBroker::start().await;
    broker.answers.set("api.example.com", &[&[PUBLIC]]);
    let request = EgressRequest { timeout_ms: 50, ..get("http://api.example.com/") };
    let outcome = broker.client().request(request).await.unwrap();
    assert_eq!(outcome.result, EgressResult::TimedOut);
    assert_eq!(outcome.connections[0].verdict, Verdict::ConnectTimedOut);
}

#[tokio::test]
async fn a_request_with_little_time_is_refused_by_its_tenants_rate_and_blames_no_host() {
    let broker = TestBroker::start_with(|settings| settings.limits.tenant_rate = 1).await;
    let (host, requests) = http_host(response("200 OK", "", "")).await;
    broker.host("api.example.com", 80, host);
    replied(&broker.client().request(get("http://api.example.com/")).await.unwrap());
    let request = EgressRequest { timeout_ms: 100, ..get("http://api.example.com/") };
    let outcome = broker.client().request(request).await.unwrap();
    let message = "the namespace opens connections too fast".to_owned();
    assert_eq!(outcome.result, EgressResult::Failed { verdict: Verdict::EgressLimitReached, message });
    assert_eq!(outcome.connections[0].verdict, Verdict::EgressLimitReached);
    assert_eq!(requests.all().len(), 1);
}

#[tokio::test]
async fn a_redirect_is_followed_only_where_the_request_may_go() {
    for (location, hosts, expected) in [
        ("/next", vec![], Ok("api.example.com")),
        ("http://a.example.net/", vec![rule("*.example.net", &[80])], Ok("a.example.net")),
        ("http://a.example.net/", vec![], Err(Some(Verdict::HostNotAllowed))),
        ("http://a.example.net:81/", vec![rule("*.example.net", &[81])], Err(Some(Verdict::PortNotAllowed))),
        ("http://other.example/", vec![rule("other.example", &[80])], Err(Some(Verdict::HostNotAllowed))),
        ("http://169.254.169.254/latest", vec![], Err(Some(Verdict::HostNotAllowed))),
        ("//127.1/", vec![], Err(Some(Verdict::HostNotAllowed))),
        ("http://\u{ff11}27.0.0.1/", vec![], Err(Some(Verdict::HostNotAllowed))),
        ("http://api.example.com:443/", vec![], Err(Some(Verdict::HostNotAllowed))),
        ("http://u:p@api.example.com/", vec![], Err(None)),
        ("http://api.example.com@evil.example/", vec![], Err(None)),
        ("gopher://api.example.com/", vec![], Err(None)),
        ("http://[::1/", vec![], Err(None)),
    ] {
        let broker = TestBroker::start().await;
        let answer = response("302 Found", &format!("location: {location}\r\n"), "");
        let (host, requests) = http_host(answer).await;
        let (other, _) = http_host(response("200 OK", "", "there")).await;
        broker.host("api.example.com", 80, host);
        broker.answers.set("a.example.net", &[&["93.184.216.35"]]);
        broker.loopback.put("93.184.216.35", 80, other);
        let request = EgressRequest {
            method: "POST".into(),
            headers: vec![
                ("authorization".into(), "Bearer t".into()),
                ("cookie".into(), "c".into()),
                ("accept".into(), "text/plain".into()),
            ],
            body: Some(b"form".to_vec()),
            redirect_hosts: hosts,
            redirects: 1,
            ..get("http://api.example.com/")
        };
        let outcome = broker.client().request(request).await.unwrap();
        match (&outcome.result, expected) {
            (EgressResult::Response(got), Ok(host)) => assert!(got.url.contains(host), "{location}"),
            // The host redirects again and again.
            (EgressResult::RedirectRefused { message, .. }, Ok("api.example.com")) => {
                assert!(message.contains("more than 1 times"), "{message}");
                assert!(requests.all()[1].starts_with("GET /next HTTP/1.1"), "{:?}", requests.all());
                assert!(requests.all()[1].contains("Bearer t"));
            }
            (EgressResult::RedirectRefused { verdict, .. }, Err(expected)) => {
                assert_eq!(*verdict, expected, "{location}");
                let refused = outcome.connections.iter().find(|record| record.verdict != Verdict::Allowed);
                assert_eq!(refused.map(|record| record.verdict), expected, "{location}");
                assert_eq!(broker.loopback.dialed().len(), 1, "{location}");
            }
            (other, _) => panic!("{location}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_request_that_is_dropped_ends_its_connection() {
    let broker = TestBroker::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    broker.host("api.example.com", 80, listener.local_addr().unwrap());
    let client = broker.client();
    let request = tokio::spawn(async move { client.request(get("http://api.example.com/")).await });
    let (mut host, _) = listener.accept().await.unwrap();
    read_request(&mut host).await;
    request.abort();
    let ended = timeout(Duration::from_secs(10), host.read(&mut [0])).await.unwrap();
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
}

#[tokio::test]
async fn a_host_that_breaks_off_and_one_over_the_runs_limit_differ() {
    let broker = TestBroker::start().await;
    let (host, _) = http_host("HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\nhalf").await;
    broker.host("api.example.com", 80, host);
    let outcome = broker.client().request(get("http://api.example.com/")).await.unwrap();
    assert!(matches!(outcome.result, EgressResult::Broken { .. }), "{outcome:?}");
    let (host, _) = http_host(response("200 OK", "", &"a".repeat(5000))).await;
    broker.host("api.example.com", 80, host);
    let mut small = get("http://api.example.com/");
    small.policy.transfer_bytes = 1000;
    let outcome = broker.client().request(small).await.unwrap();
    let verdict = Verdict::EgressLimitReached;
    assert!(
        matches!(&outcome.result, EgressResult::Failed { verdict: found, .. } if *found == verdict),
        "{outcome:?}"
    );
    assert_eq!(outcome.connections[0].verdict, verdict);
    let (host, _) = http_host("SSH-2.0-OpenSSH\r\n").await;
    broker.host("api.example.com", 80, host);
    let outcome = broker.client().request(get("http://api.example.com/")).await.unwrap();
    assert!(matches!(outcome.result, EgressResult::Broken { .. }), "{outcome:?}");
}
