//! Limits of channels, runs and tenants.

use super::*;

#[tokio::test]
async fn a_sender_that_ignores_the_window_loses_its_channel() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    let mut program = Program::start(&broker, &allowed()).await;
    program.connect(1).await;
    let _host = accept(&listener).await;
    for _ in 0..1000 {
        program.write(1, &vec![1; MAX_NETWORK_DATA]).await;
    }
    program.refused(1, Verdict::EgressLimitReached).await;
    program.connect(2).await;
}

#[tokio::test]
async fn connections_at_one_time_are_limited_and_free_again_after_their_end() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    let mut program = Program::start(&broker, &RunPolicy { connections: 2, ..allowed() }).await;
    program.connect(1).await;
    program.connect(2).await;
    program.open(3, HOST, 80).await;
    assert_eq!(program.opened().await, (3, Verdict::EgressLimitReached, None));
    drop(accept(&listener).await);
    assert_eq!(program.next().await, Some(NetworkResponse::Close(1, CloseKind::End)));
    program.send(NetworkRequest::Close(1, CloseKind::End)).await;
    eventually("the channel is over", || broker.metrics().contains("skillet_broker_open_channels 1")).await;
    program.connect(4).await;
}

#[tokio::test]
async fn bytes_of_a_run_are_limited_in_each_direction() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    let mut program = Program::start(&broker, &RunPolicy { transfer_bytes: 1000, ..allowed() }).await;
    program.connect(1).await;
    let mut host = accept(&listener).await;
    program.write(1, &[0; 1000]).await;
    read_exact(&mut host, 1000).await;
    host.write_all(&[1; 1001]).await.unwrap();
    program.refused(1, Verdict::EgressLimitReached).await;
    program.connect(2).await;
    let _second = accept(&listener).await;
    program.write(2, &[0]).await;
    program.refused(2, Verdict::EgressLimitReached).await;
}

#[tokio::test]
async fn limits_of_a_tenant_hold_for_its_runs_together() {
    let broker = TestBroker::start_with(|settings| settings.limits.tenant_connections = 1).await;
    let _listener = listen(&broker).await;
    let mut first = Program::start(&broker, &allowed()).await;
    let mut second = Program::start(&broker, &allowed()).await;
    let mut other = Program::start(&broker, &RunPolicy { tenant: "other".into(), ..allowed() }).await;
    first.connect(1).await;
    second.open(1, HOST, 80).await;
    assert_eq!(second.opened().await, (1, Verdict::EgressLimitReached, None));
    other.connect(1).await;
}

#[tokio::test]
async fn a_channel_without_traffic_ends_after_its_time() {
    let broker = TestBroker::start_with(|settings| settings.idle_limit = Duration::from_millis(50)).await;
    let _listener = listen(&broker).await;
    let mut program = Program::start(&broker, &allowed()).await;
    program.connect(1).await;
    program.refused(1, Verdict::EgressLimitReached).await;
}

#[tokio::test]
async fn a_link_ends_after_its_time() {
    let broker = TestBroker::start_with(|settings| settings.link_limit = Duration::from_millis(50)).await;
    let mut program = Program::start(&broker, &allowed()).await;
    assert_eq!(program.next().await, None);
}

#[tokio::test]
async fn a_flood_of_opens_takes_no_memory_and_no_more_places_than_there_are() {
    let broker = TestBroker::start().await;
    broker.answers.set(HOST, &[&["93.184.216.99"]]);
    let mut program = Program::start(&broker, &RunPolicy { connections: u32::MAX, ..allowed() }).await;
    let sender = program.sender.clone();
    let flood = tokio::spawn(async move {
        for channel in 0..20_000 {
            let open = OpenChannel { channel, host: HOST.into(), port: 80 };
            sender.send(NetworkRequest::Open(open)).await.unwrap();
        }
    });
    for _ in 0..20_000 - MAX_OPEN {
        assert_eq!(program.opened().await.1, Verdict::EgressLimitReached);
    }
    timeout(LIMIT, flood).await.unwrap().unwrap();
    assert!(broker.loopback.dialed().len() <= MAX_CHANNELS, "{}", broker.loopback.dialed().len());
}
