//! Failures of the broker, and what they say about the request.

use tokio::{io::AsyncReadExt as _, net::TcpListener};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::mounted;
use crate::testing::{Authority, read_request};

/// Sends a request to a broker that gives this answer, and returns the error.
async fn failure(answer: &'static str) -> BrokerError {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    authority.mount(folder.path(), BROKER_NAME);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let acceptor = TlsAcceptor::from(mounted::server(folder.path(), Duration::ZERO).unwrap().current());
    let broker = async {
        let mut stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
        read_request(&mut stream).await;
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.ok();
    };
    let client = BrokerClient::new(BrokerSettings { address, tls_folder: folder.path().into() });
    let answered = async { client.request(EgressRequest::default()).await.unwrap_err() };
    let both = async {
        tokio::pin!(answered, broker);
        tokio::select! {
            error = &mut answered => error,
            () = &mut broker => answered.await,
        }
    };
    timeout(Duration::from_secs(10), both).await.unwrap()
}

#[tokio::test]
async fn a_request_that_never_reached_the_broker_was_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let client = BrokerClient::new(BrokerSettings { address: closed, tls_folder: folder.path().into() });
    let tls = client.request(EgressRequest::default()).await.unwrap_err();
    assert!(matches!(tls, BrokerError::Tls { .. }) && !tls.was_sent(), "{tls}");
    Authority::new().mount(folder.path(), "skillet-operator");
    let unreachable = client.request(EgressRequest::default()).await.unwrap_err();
    assert!(
        matches!(unreachable, BrokerError::Unreachable { .. }) && !unreachable.was_sent(),
        "{unreachable}"
    );
    let url = "u".repeat(MAX_REQUEST_BYTES);
    let large = client.request(EgressRequest { url, ..EgressRequest::default() }).await.unwrap_err();
    assert!(matches!(large, BrokerError::RequestTooLarge) && !large.was_sent(), "{large}");
    assert!(!BrokerError::PolicyTooLarge.was_sent());
}

#[tokio::test]
async fn a_request_whose_answer_is_missing_may_have_been_sent() {
    let broken = failure("").await;
    assert!(matches!(broken, BrokerError::Broken { .. }) && broken.was_sent(), "{broken}");
    let cut = failure("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{").await;
    assert!(matches!(cut, BrokerError::Broken { .. }) && cut.was_sent(), "{cut}");
    assert!(BrokerError::TimedOut { address: String::new() }.was_sent());
}

#[tokio::test]
async fn a_request_that_the_broker_refuses_was_not_sent_unless_the_broker_failed() {
    for (status, was_sent) in
        [(400, false), (413, false), (503, false), (204, true), (500, true), (502, true)]
    {
        let error = BrokerError::Refused { address: "b".into(), status, message: "m".into() };
        assert_eq!(error.was_sent(), was_sent, "{status}");
    }
    let refused = failure("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 9\r\n\r\nno ").await;
    assert!(matches!(refused, BrokerError::Refused { status: 503, .. }) && !refused.was_sent(), "{refused}");
}

#[tokio::test]
async fn the_error_of_a_malformed_answer_quotes_nothing_of_it() {
    let error = failure("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n\"secret\"").await;
    assert!(matches!(error, BrokerError::Malformed { .. }) && error.was_sent(), "{error}");
    let message = error.to_string();
    assert!(message.ends_with("answered what is no answer: Data error in line 1, column 8"), "{message}");
}
