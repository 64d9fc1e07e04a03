//! The relay before a runner that is a pipe, without a broker: refusals, bounds and the record.

mod stalled;

use std::collections::BTreeSet;

use futures::StreamExt as _;
use skillet_core::skill::ValidNetwork;
use skillet_protocol::{Decoder, Direction};
use tokio::io::{DuplexStream, duplex};
use tokio_tungstenite::{WebSocketStream, tungstenite::protocol::Role};

use super::*;
use crate::{catalog::Catalog, egress::Egress, sandbox::AbortOnDrop};

/// A relay without a broker, and what its runner gets.
struct Without {
    relay: Relay,
    down: WebSocketStream<DuplexStream>,
    decoder: Decoder,
    _writer: AbortOnDrop,
}

/// A run that no policy lets reach a host.
fn access() -> RunAccess {
    RunAccess {
        egress: Egress::default(),
        catalog: Arc::new(Catalog::default()),
        execution_uid: "u".into(),
        namespace: "team".into(),
        tenant: "team".into(),
        network: ValidNetwork { hosts: Vec::new() },
    }
}

/// The next frame that a runner gets.
async fn next_of(down: &mut WebSocketStream<DuplexStream>, decoder: &mut Decoder) -> NetworkResponse {
    loop {
        if let Some(frame) = decoder.pop().unwrap() {
            return NetworkResponse::decode(frame).unwrap();
        }
        let message = down.next().await.unwrap().unwrap().into_data();
        // The first byte names standard input. A ping has none.
        decoder.push(message.get(1..).unwrap_or_default());
    }
}

impl Without {
    async fn start(connections: u32) -> Self {
        let (up, down) = duplex(1 << 20);
        let up = WebSocketStream::from_raw_socket(up, Role::Client, None).await;
        let down = WebSocketStream::from_raw_socket(down, Role::Server, None).await;
        let (sender, writer) = RunnerSender::start(up);
        let decoder = Decoder::new(Direction::ToRunner);
        Self { relay: Relay::start(access(), connections, sender), down, decoder, _writer: writer }
    }

    fn open(&self, channel: Channel) -> Result<(), StreamEnd> {
        self.relay.take(NetworkRequest::Open(OpenChannel { channel, host: "a.dev".into(), port: 443 }))
    }

    async fn next(&mut self) -> NetworkResponse {
        next_of(&mut self.down, &mut self.decoder).await
    }

    /// The channels that get a verdict, until so many did.
    async fn refused(&mut self, count: usize) -> BTreeSet<(Channel, &'static str)> {
        let mut refused = BTreeSet::new();
        while refused.len() < count {
            if let NetworkResponse::Opened(ChannelOpened { channel, verdict, .. }) = self.next().await {
                refused.insert((channel, verdict.as_str()));
            }
        }
        refused
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_way_out_every_connection_is_refused_and_recorded() {
    let mut run = Without::start(64).await;
    for channel in 1..=20 {
        run.open(channel).unwrap();
    }
    // The default policy lets no skill reach a host.
    let refused = run.refused(20).await;
    assert!(refused.iter().all(|(_, verdict)| *verdict == "HostNotAllowed"), "{refused:?}");
    let connections = run.relay.finish(&EgressMetrics::default()).await;
    assert_eq!((connections.allowed, connections.refused, connections.list.len()), (0, 20, 20));
}

#[tokio::test]
async fn a_flood_of_connections_is_refused_and_fills_no_memory() {
    let run = Without::start(1).await;
    // Nothing else works meanwhile: the task of the relay has no turn before the first await.
    for channel in 1..=100_000 {
        run.open(channel).unwrap();
        run.relay.take(NetworkRequest::Close(channel, CloseKind::Reset)).unwrap();
    }
    let room = *lock(&run.relay.room.0);
    assert!(room < CONNECTION_COST, "{room} bytes of room are left");
    assert_eq!(run.relay.refusals.capacity(), 0);
}

#[tokio::test]
async fn more_data_than_the_windows_allow_ends_the_stream() {
    let run = Without::start(1).await;
    run.open(1).unwrap();
    let data = || NetworkRequest::Data(1, vec![0; 32 * 1024]);
    let taken = (0..10_000).take_while(|_| run.relay.take(data()).is_ok()).count();
    assert!(taken < 300, "{taken} frames of 32 KiB");
    assert!(matches!(run.relay.take(data()), Err(StreamEnd::TooLong)));
}
