//! The broker's own connections: identities, their renewal, the certificates of hosts, and the shutdown.

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::{
    BrokerClient, BrokerSettings, EgressResult,
    testing::{Authority, PUBLIC, TestBroker, policy, read_request},
};

const LIMIT: Duration = Duration::from_secs(10);

fn request(url: &str) -> EgressRequest {
    EgressRequest {
        policy: policy(&[("api.example.com", &[443])]),
        method: "GET".into(),
        url: url.into(),
        timeout_ms: 10_000,
        response_bytes: 1000,
        ..EgressRequest::default()
    }
}

fn client_of(broker: &TestBroker, folder: &std::path::Path) -> BrokerClient {
    let settings = BrokerSettings { address: broker.address.to_string(), tls_folder: folder.to_owned() };
    BrokerClient::renewed_every(Duration::ZERO, settings)
}

async fn error(client: &BrokerClient) -> String {
    client.request(request("https://api.example.com/")).await.unwrap_err().to_string()
}

#[tokio::test]
async fn only_clients_and_brokers_of_the_authority_are_trusted() {
    let broker = TestBroker::start().await;
    let folder = broker.folder.path();
    let unknown = Authority::new();
    let other = folder.join("other");
    fs::create_dir(&other).unwrap();
    unknown.mount(&other, "skillet-operator");
    assert!(
        error(&client_of(&broker, &other)).await.contains("UnknownIssuer"),
        "the client refuses the broker"
    );
    fs::write(other.join("ca.crt"), broker.authority.pem()).unwrap();
    let refused = error(&client_of(&broker, &other)).await;
    assert!(refused.contains(&broker.address.to_string()), "{refused}");
    assert!(
        refused.contains("alert") || refused.contains("closed") || refused.contains("reset"),
        "{refused}"
    );
    broker.authority.mount(&folder.join("broker"), "another-service");
    let misnamed = error(&broker.client()).await;
    assert!(misnamed.contains("not valid for name"), "{misnamed}");
    fs::remove_file(other.join("tls.key")).unwrap();
    let unreadable = error(&client_of(&broker, &other)).await;
    assert!(unreadable.contains("could not read") && unreadable.contains("tls.key"), "{unreadable}");
}

#[tokio::test]
async fn a_client_without_a_certificate_is_refused() {
    let broker = TestBroker::start().await;
    let trusting = mounted::hosts(Some(&broker.folder.path().join("broker/ca.crt")), Duration::ZERO).unwrap();
    let connector = tokio_rustls::TlsConnector::from(trusting.current());
    let stream = TcpStream::connect(broker.address).await.unwrap();
    let name = rustls_pki_types::ServerName::try_from(crate::BROKER_NAME).unwrap();
    // The client learns that it is refused with its first read.
    let refused = async {
        let mut stream = connector.connect(name, stream).await?;
        stream.write_all(b"POST /v1/requests HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n").await?;
        stream.read_u8().await
    };
    let refused = timeout(LIMIT, refused).await.unwrap().unwrap_err().to_string();
    assert!(refused.to_lowercase().contains("certificate"), "{refused}");
}

#[tokio::test]
async fn renewed_certificates_are_used_without_a_restart() {
    let broker = TestBroker::start().await;
    let folder = broker.folder.path();
    let client = broker.client();
    assert!(client.request(request("https://other.example/")).await.is_ok());
    let renewed = Authority::new();
    renewed.mount(&folder.join("broker"), crate::BROKER_NAME);
    let stale = client_of(&broker, &folder.join("operator"));
    assert!(error(&stale).await.contains("UnknownIssuer"), "the client does not know the new authority yet");
    renewed.mount(&folder.join("operator"), "skillet-operator");
    stale.request(request("https://other.example/")).await.unwrap();
    fs::write(folder.join("broker/tls.key"), "no key").unwrap();
    client_of(&broker, &folder.join("operator")).request(request("https://other.example/")).await.unwrap();
}

#[tokio::test]
async fn the_certificate_of_a_host_is_checked_against_the_bundle() {
    let broker = TestBroker::start().await;
    let folder = broker.folder.path();
    let handshakes = Arc::new(AtomicUsize::new(0));
    let mut ports = Vec::new();
    for (name, authority) in [
        ("api.example.com", &broker.hosts),
        ("other.example", &broker.hosts),
        ("api.example.com", &broker.authority),
    ] {
        // A host needs an authority of clients only because the broker's own configuration is used for it.
        let mount = folder.join(format!("host-{}", ports.len()));
        fs::create_dir(&mount).unwrap();
        authority.mount(&mount, name);
        let config = host_config(&mount);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        ports.push(listener.local_addr().unwrap());
        let handshakes = Arc::clone(&handshakes);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = TlsAcceptor::from(Arc::clone(&config)).accept(stream).await else {
                    continue;
                };
                handshakes.fetch_add(1, Ordering::Relaxed);
                read_request(&mut stream).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
                stream.shutdown().await.ok();
            }
        });
    }
    broker.answers.set("api.example.com", &[&[PUBLIC]]);
    for (place, said) in
        [(ports[0], None), (ports[1], Some("not valid for name")), (ports[2], Some("UnknownIssuer"))]
    {
        broker.loopback.put(PUBLIC, 443, place);
        let outcome = broker.client().request(request("https://api.example.com/")).await.unwrap();
        match (outcome.result, said) {
            (EgressResult::Response(response), None) => assert_eq!(response.body, b"ok"),
            (EgressResult::TlsFailed { message }, Some(said)) => assert!(message.contains(said), "{message}"),
            (other, _) => panic!("{other:?}"),
        }
    }
    fs::write(folder.join("bundle.crt"), broker.authority.pem()).unwrap();
    let outcome = broker.client().request(request("https://api.example.com/")).await.unwrap();
    assert!(matches!(outcome.result, EgressResult::Response(_)), "{outcome:?}");
    assert_eq!(handshakes.load(Ordering::Relaxed), 2);
}

fn host_config(folder: &std::path::Path) -> Arc<ServerConfig> {
    use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
    let chain = CertificateDer::pem_file_iter(folder.join("tls.crt")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(folder.join("tls.key")).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap())
}

#[tokio::test]
async fn a_broker_that_drains_takes_no_more_and_waits_for_runs_up_to_its_time() {
    let mut broker = TestBroker::start_with(|settings| settings.drain = Duration::from_millis(100)).await;
    let rules = policy(&[("api.example.com", &[443])]);
    let (sender, mut receiver) = broker.client().open_run(&rules).await.unwrap().split();
    let (early, mut early_receiver) = broker.client().open_run(&rules).await.unwrap().split();
    drop(broker.stop.take());
    drop(early);
    assert_eq!(timeout(LIMIT, early_receiver.next()).await.unwrap(), None);
    assert!(timeout(LIMIT, broker.tasks.join_next()).await.unwrap().unwrap().is_ok());
    assert_eq!(timeout(LIMIT, receiver.next()).await.unwrap(), None);
    drop(sender);
    assert!(error(&broker.client()).await.starts_with("could not reach the broker"));
}

#[tokio::test]
async fn a_broker_that_stops_accepts_until_the_service_knows_it() {
    let mut broker = TestBroker::start_settling(SETTLE, |_| {}).await;
    drop(broker.stop.take());
    // The first connection lets the broker see the signal; the second comes after it.
    for _ in 0..2 {
        broker.client().request(request("https://other.example/")).await.unwrap();
    }
    assert!(timeout(LIMIT, broker.tasks.join_next()).await.unwrap().unwrap().is_ok());
    assert!(error(&broker.client()).await.starts_with("could not reach the broker"));
}

#[tokio::test]
async fn a_kept_connection_serves_many_requests_and_then_a_run() {
    let broker = TestBroker::start().await;
    let client = broker.client();
    for _ in 0..20 {
        client.request(request("https://other.example/")).await.unwrap();
    }
    let link = client.open_run(&policy(&[])).await.unwrap();
    let metrics = broker.metrics();
    assert!(metrics.contains("skillet_broker_operator_connections_total 1\n"), "{metrics}");
    drop(link);
}

#[tokio::test]
async fn requests_of_another_form_are_refused_by_their_path() {
    let broker = TestBroker::start().await;
    let folder = broker.folder.path().join("operator");
    let connector =
        tokio_rustls::TlsConnector::from(mounted::client(&folder, Duration::ZERO).unwrap().current());
    for (head, body, status, said) in [
        ("GET /", "", "404 Not Found", "no such path"),
        ("GET /v1/requests", "", "400 Bad Request", "none of this path"),
        ("POST /v1/runs", "", "400 Bad Request", "none of this path"),
        ("POST /v1/requests", r#"{"url":"secret"}"#, "400 Bad Request", "not of its form"),
    ] {
        let stream = TcpStream::connect(broker.address).await.unwrap();
        let name = rustls_pki_types::ServerName::try_from(crate::BROKER_NAME).unwrap();
        let mut stream = connector.connect(name, stream).await.unwrap();
        let length = body.len();
        let sent = format!(
            "{head} HTTP/1.1\r\nhost: b\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(
            answer.contains(status) && answer.contains(said) && !answer.contains("secret"),
            "{head}: {answer}"
        );
    }
}
