//! Channels of runs through client, link and dialer.

mod attacks;
mod end;
mod limits;
mod permitted;
mod windows;

use std::net::SocketAddr;

use skillet_protocol::{INITIAL_WINDOW_BYTES, MAX_NETWORK_DATA, RefusedConnection};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::{
    RunPolicy, RunReceiver, RunSender,
    testing::{PUBLIC, TestBroker, eventually, policy},
};

const HOST: &str = "api.example.com";
const LIMIT: Duration = Duration::from_secs(10);

/// A run's end of a link.
struct Program {
    sender: RunSender,
    receiver: RunReceiver,
}

impl Program {
    async fn start(broker: &TestBroker, policy: &RunPolicy) -> Self {
        let (sender, receiver) = broker.client().open_run(policy).await.unwrap().split();
        Self { sender, receiver }
    }

    async fn send(&self, request: NetworkRequest) {
        self.sender.send(request).await.unwrap();
    }

    async fn open(&self, channel: Channel, host: &str, port: u16) {
        self.send(NetworkRequest::Open(OpenChannel { channel, host: host.into(), port })).await;
    }

    async fn write(&self, channel: Channel, bytes: &[u8]) {
        self.send(NetworkRequest::Data(channel, bytes.to_vec())).await;
    }

    async fn next(&mut self) -> Option<NetworkResponse> {
        timeout(LIMIT, self.receiver.next()).await.expect("a frame comes in time")
    }

    async fn opened(&mut self) -> (Channel, Verdict, Option<String>) {
        match self.next().await {
            Some(NetworkResponse::Opened(ChannelOpened { channel, verdict, address })) => {
                (channel, verdict, address)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Opens a channel that is allowed.
    async fn connect(&mut self, channel: Channel) {
        self.open(channel, HOST, 80).await;
        assert_eq!(self.opened().await, (channel, Verdict::Allowed, Some(PUBLIC.into())));
    }

    /// Reads data of a channel until it has so many bytes, and gives the room back.
    async fn read(&mut self, channel: Channel, length: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < length {
            match self.next().await {
                Some(NetworkResponse::Data(of, bytes)) if of == channel => {
                    self.send(NetworkRequest::Window(channel, bytes.len().try_into().unwrap())).await;
                    all.extend(bytes);
                }
                Some(NetworkResponse::Window(..)) => {}
                other => panic!("after {} bytes: {other:?}", all.len()),
            }
        }
        all
    }

    async fn refused(&mut self, channel: Channel, expected: Verdict) {
        loop {
            match self.next().await {
                Some(NetworkResponse::Window(..) | NetworkResponse::Data(..)) => {}
                Some(NetworkResponse::Opened(ChannelOpened { channel: of, verdict, .. })) => {
                    assert_eq!((of, verdict), (channel, expected));
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(self.next().await, Some(NetworkResponse::Close(channel, CloseKind::Reset)));
    }
}

async fn listen(broker: &TestBroker) -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    broker.host(HOST, 80, listener.local_addr().unwrap());
    listener
}

fn allowed() -> RunPolicy {
    policy(&[(HOST, &[80])])
}

async fn accept(listener: &TcpListener) -> TcpStream {
    timeout(LIMIT, listener.accept()).await.unwrap().unwrap().0
}

async fn read_exact(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    timeout(LIMIT, stream.read_exact(&mut bytes)).await.unwrap().unwrap();
    bytes
}

#[tokio::test]
async fn bytes_go_both_ways_and_each_direction_ends_by_itself() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    let mut program = Program::start(&broker, &allowed()).await;
    program.connect(1).await;
    let mut host = accept(&listener).await;
    program.write(1, b"\0ping").await;
    assert_eq!(read_exact(&mut host, 5).await, b"\0ping");
    program.send(NetworkRequest::Close(1, CloseKind::End)).await;
    assert_eq!(timeout(LIMIT, host.read(&mut [0])).await.unwrap().unwrap(), 0);
    host.write_all(b"pong").await.unwrap();
    assert_eq!(program.read(1, 4).await, b"pong");
    host.shutdown().await.unwrap();
    assert_eq!(program.next().await, Some(NetworkResponse::Close(1, CloseKind::End)));
    eventually("the channel is over", || broker.metrics().contains("skillet_broker_open_channels 0")).await;
    let metrics = broker.metrics();
    assert!(metrics.contains(r#"skillet_broker_transferred_bytes_total{direction="sent"} 5"#), "{metrics}");
    assert!(
        metrics.contains(r#"skillet_broker_transferred_bytes_total{direction="received"} 4"#),
        "{metrics}"
    );
}

#[tokio::test]
async fn a_channel_that_may_not_be_opened_has_a_verdict_and_no_close() {
    let broker = TestBroker::start().await;
    broker.answers.set(HOST, &[&["10.0.0.1", "fd00::1"], &[PUBLIC]]);
    let mut program = Program::start(&broker, &allowed()).await;
    for (channel, host, port, verdict, address) in [
        (1, "other.example.com", 80, Verdict::HostNotAllowed, None),
        (2, "169.254.169.254", 80, Verdict::HostNotAllowed, None),
        (3, "api.example.com\0.evil", 80, Verdict::HostNotAllowed, None),
        (4, HOST, 22, Verdict::PortNotAllowed, None),
        (5, HOST, 80, Verdict::AddressNotAllowed, Some("10.0.0.1")),
    ] {
        program.open(channel, host, port).await;
        let expected = (channel, verdict, address.map(str::to_owned));
        assert_eq!(program.opened().await, expected, "{host:?}");
    }
    assert_eq!(broker.loopback.dialed(), []);
    program
        .send(NetworkRequest::Refused(RefusedConnection {
            host: "h".into(),
            port: 0,
            verdict: Verdict::HostNotAllowed,
        }))
        .await;
    let counted = r#"skillet_broker_refused_by_runners_total{verdict="HostNotAllowed"} 1"#;
    eventually("the runner's own refusal is counted", || broker.metrics().contains(counted)).await;
}

#[tokio::test]
async fn the_address_that_was_checked_is_dialed_whatever_the_next_answer_is() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    broker.answers.set(HOST, &[&["10.0.0.1", PUBLIC, "127.0.0.1"], &["127.0.0.1"]]);
    let mut program = Program::start(&broker, &allowed()).await;
    program.connect(1).await;
    let _host = accept(&listener).await;
    program.open(2, HOST, 80).await;
    assert_eq!(program.opened().await, (2, Verdict::AddressNotAllowed, Some("127.0.0.1".into())));
    assert_eq!(broker.loopback.dialed(), [SocketAddr::new(PUBLIC.parse().unwrap(), 80)]);
}

#[tokio::test]
async fn a_large_transfer_keeps_to_the_window_in_both_directions() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    let mut program = Program::start(&broker, &allowed()).await;
    program.connect(1).await;
    let mut host = accept(&listener).await;
    let sent: Vec<u8> = (0..4_000_000u32).map(|number| (number % 251) as u8).collect();
    let echo = tokio::spawn(async move {
        let (mut reader, mut writer) = host.split();
        tokio::io::copy(&mut reader, &mut writer).await.unwrap()
    });
    let (mut room, mut at, mut back) = (INITIAL_WINDOW_BYTES as usize, 0, Vec::new());
    while back.len() < sent.len() {
        let step = room.min(sent.len() - at).min(MAX_NETWORK_DATA);
        if step > 0 {
            program.write(1, &sent[at..at + step]).await;
            (room, at) = (room - step, at + step);
            continue;
        }
        match program.next().await.unwrap() {
            NetworkResponse::Window(1, bytes) => room += bytes as usize,
            NetworkResponse::Data(1, bytes) => {
                program.send(NetworkRequest::Window(1, bytes.len().try_into().unwrap())).await;
                back.extend(bytes);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(back == sent);
    program.send(NetworkRequest::Close(1, CloseKind::End)).await;
    assert_eq!(timeout(LIMIT, echo).await.unwrap().unwrap(), 4_000_000);
}

#[tokio::test]
async fn a_slow_reader_costs_a_window_and_holds_up_no_other_channel() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    let mut program = Program::start(&broker, &allowed()).await;
    program.connect(1).await;
    let mut flood = accept(&listener).await;
    program.connect(2).await;
    let mut other = accept(&listener).await;
    let flooding = tokio::spawn(async move { flood.write_all(&vec![0; 64 << 20]).await });
    let mut first = 0;
    while first < INITIAL_WINDOW_BYTES as usize {
        let Some(NetworkResponse::Data(1, bytes)) = program.next().await else { panic!("data comes") };
        first += bytes.len();
    }
    assert_eq!(first, INITIAL_WINDOW_BYTES as usize);
    for round in 0..100u8 {
        program.write(2, &[round]).await;
        assert_eq!(read_exact(&mut other, 1).await, [round]);
        other.write_all(&[round]).await.unwrap();
        // The next frame is of the other channel: the flood has sent no more than its window.
        assert_eq!(program.next().await, Some(NetworkResponse::Data(2, vec![round])));
    }
    program.send(NetworkRequest::Close(1, CloseKind::Reset)).await;
    assert!(timeout(LIMIT, flooding).await.unwrap().unwrap().is_err(), "the host sees the end");
}

#[tokio::test]
async fn runs_do_not_see_each_others_channels() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    let mut first = Program::start(&broker, &allowed()).await;
    let mut second = Program::start(&broker, &allowed()).await;
    first.connect(1).await;
    let mut host = accept(&listener).await;
    second.write(1, b"\0intruder").await;
    second.send(NetworkRequest::Close(1, CloseKind::Reset)).await;
    second.connect(2).await;
    first.write(1, b"\0first").await;
    assert_eq!(read_exact(&mut host, 6).await, b"\0first");
    host.write_all(b"answer").await.unwrap();
    assert_eq!(first.read(1, 6).await, b"answer");
}

#[tokio::test]
async fn the_end_of_a_link_ends_its_connections() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    let mut program = Program::start(&broker, &allowed()).await;
    program.connect(1).await;
    let mut host = accept(&listener).await;
    drop(program);
    assert!(matches!(timeout(LIMIT, host.read(&mut [0])).await.unwrap(), Ok(0) | Err(_)));
    eventually("the link is gone", || broker.metrics().contains("skillet_broker_run_links 0")).await;
}

#[tokio::test]
async fn the_end_of_the_broker_ends_the_link_and_is_named() {
    let mut broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    let client = broker.client();
    let mut program = Program::start(&broker, &allowed()).await;
    program.connect(1).await;
    let _host = accept(&listener).await;
    broker.tasks.shutdown().await;
    assert_eq!(program.next().await, None);
    let error = client.open_run(&allowed()).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("could not reach the broker {}: ", broker.address)), "{error}");
}

#[tokio::test]
async fn a_policy_that_cannot_be_held_to_ends_the_link() {
    let broker = TestBroker::start().await;
    let mut program = Program::start(&broker, &policy(&[("a*b", &[80])])).await;
    assert_eq!(program.next().await, None);
    let too_large = RunPolicy { run: "r".repeat(crate::MAX_POLICY_BYTES), ..allowed() };
    let error = broker.client().open_run(&too_large).await.unwrap_err();
    assert_eq!(error.to_string(), "the policy of the run is larger than 256 KiB");
}

#[tokio::test]
async fn a_host_that_never_answers_holds_up_no_reset() {
    let broker = TestBroker::start().await;
    broker.answers.set(HOST, &[&["93.184.216.99"]]);
    let mut program = Program::start(&broker, &RunPolicy { connections: 1, ..allowed() }).await;
    program.open(1, HOST, 80).await;
    eventually("the broker dials", || broker.loopback.dialed().len() == 1).await;
    program.send(NetworkRequest::Close(1, CloseKind::Reset)).await;
    let listener = listen(&broker).await;
    program.open(2, HOST, 80).await;
    assert_eq!(program.opened().await.1, Verdict::Allowed, "the place is free again");
    accept(&listener).await;
}

#[tokio::test]
async fn a_program_that_names_another_host_is_refused_after_it_was_connected() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    let mut program = Program::start(&broker, &allowed()).await;
    program.connect(1).await;
    let mut host = accept(&listener).await;
    program
        .write(
            1,
            b"GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        )
        .await;
    program.refused(1, Verdict::HostMismatch).await;
    let mut got = Vec::new();
    timeout(LIMIT, host.read_to_end(&mut got)).await.unwrap().ok();
    assert!(!String::from_utf8_lossy(&got).contains("evil"), "{got:?}");
    assert!(broker.metrics().contains(r#"connections_total{verdict="HostMismatch"} 1"#));
}
