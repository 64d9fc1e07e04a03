//! Bytes that a program wrote just before its end.

use super::*;

/// Writes to a channel whose connection does not exist yet, ends it, and drops the link.
async fn write_and_leave(broker: &TestBroker, bytes: &[u8], receiver_first: bool) {
    let Program { sender, receiver } = Program::start(broker, &allowed()).await;
    sender.send(NetworkRequest::Open(OpenChannel { channel: 1, host: HOST.into(), port: 80 })).await.unwrap();
    for part in bytes.chunks(bytes.len() / 8) {
        sender.send(NetworkRequest::Data(1, part.to_vec())).await.unwrap();
    }
    sender.send(NetworkRequest::Close(1, CloseKind::End)).await.unwrap();
    if receiver_first {
        drop(receiver);
        drop(sender);
    } else {
        drop(sender);
        drop(receiver);
    }
}

#[tokio::test]
async fn bytes_before_an_end_reach_the_host_after_the_link_is_gone() {
    let bytes = vec![b'\0'; INITIAL_WINDOW_BYTES as usize];
    for receiver_first in [true, false] {
        let broker = TestBroker::start().await;
        let listener = listen(&broker).await;
        write_and_leave(&broker, &bytes, receiver_first).await;
        let mut host = accept(&listener).await;
        let mut got = Vec::new();
        timeout(LIMIT, host.read_to_end(&mut got)).await.unwrap().expect("the connection is not reset");
        assert!(got == bytes, "{} bytes", got.len());
        // A host that answers with more than a window sees no reset either.
        timeout(LIMIT, host.write_all(&vec![0; 1 << 20])).await.unwrap().unwrap();
        host.shutdown().await.unwrap();
        eventually("the link is gone", || broker.metrics().contains("skillet_broker_run_links 0")).await;
    }
}

#[tokio::test]
async fn a_host_that_does_not_end_holds_a_link_for_a_limited_time() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    write_and_leave(&broker, b"\0 12345678", true).await;
    let mut host = accept(&listener).await;
    assert_eq!(read_exact(&mut host, 10).await, b"\0 12345678");
    assert_eq!(timeout(LIMIT, host.read(&mut [0])).await.unwrap().unwrap(), 0);
    assert!(broker.metrics().contains("skillet_broker_run_links 1"), "the host may still answer");
    eventually("the link is gone", || broker.metrics().contains("skillet_broker_run_links 0")).await;
}

#[tokio::test]
async fn channels_without_an_end_stop_with_their_link() {
    let broker = TestBroker::start().await;
    broker.answers.set(HOST, &[&["93.184.216.99"]]);
    let program = Program::start(&broker, &allowed()).await;
    program.open(1, HOST, 80).await;
    eventually("the broker dials", || broker.loopback.dialed().len() == 1).await;
    let left = std::time::Instant::now();
    drop(program);
    eventually("the link is gone", || broker.metrics().contains("skillet_broker_run_links 0")).await;
    assert!(left.elapsed() < END_LIMIT, "{:?}", left.elapsed());
}
