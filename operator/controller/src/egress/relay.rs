//! Passes the frames of a run's connections between its runner and the broker, beside the run's own messages.
//!
//! A connection to the broker is opened by the first connection of the program. If it ends, the channels on it are reset,
//! and the next connection of the program opens another. The windows of the protocol bound what waits here.

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use skillet_api::network::Connections;
use skillet_egress::{BrokerClient, RunLink, RunPolicy};
use skillet_kube::lock;
use skillet_protocol::{
    Channel, ChannelOpened, CloseKind, INITIAL_WINDOW_BYTES, MAX_CHANNELS, NetworkRequest, NetworkResponse,
    OpenChannel, OperatorMessage, Verdict,
};
use tokio::{sync::mpsc, task::JoinHandle};
use tracing::{Instrument as _, warn};

use super::{metrics::EgressMetrics, record::ConnectionRecord};
use crate::sandbox::{RunnerSender, StreamEnd};

/// The frames of one run on their way. Dropped, it ends every connection of the run.
pub(crate) struct Relay {
    requests: mpsc::UnboundedSender<NetworkRequest>,
    /// Bytes that may still be added before the broker has taken some.
    room: Arc<Room>,
    record: Arc<Mutex<ConnectionRecord>>,
    task: JoinHandle<()>,
}

/// Bytes of the program that wait for the broker. A runner that keeps to the windows never fills it.
struct Room(Mutex<usize>);

impl Room {
    fn take(&self, bytes: usize) -> bool {
        let mut left = lock(&self.0);
        let is_enough = *left >= bytes;
        *left = left.saturating_sub(bytes);
        is_enough
    }

    fn give_back(&self, bytes: usize) {
        *lock(&self.0) += bytes;
    }
}

impl Relay {
    /// Without a broker each connection fails as `BrokerUnavailable`.
    pub(crate) fn start(broker: Option<(BrokerClient, RunPolicy)>, runner: RunnerSender) -> Self {
        let (requests, inbox) = mpsc::unbounded_channel();
        let record = Arc::<Mutex<ConnectionRecord>>::default();
        let room = Arc::new(Room(Mutex::new(MAX_CHANNELS * INITIAL_WINDOW_BYTES as usize)));
        let passage = Passage { broker, runner, inbox, room: room.clone(), record: record.clone() };
        Self { requests, room, record, task: tokio::spawn(passage.work().in_current_span()) }
    }

    /// Takes a frame of the runner. Fails if the runner sends more than its windows allow.
    pub(crate) fn take(&self, request: NetworkRequest) -> Result<(), StreamEnd> {
        lock(&self.record).on_request(&request, Timestamp::now());
        if !self.room.take(size(&request)) {
            return Err(StreamEnd::TooLong);
        }
        // The task has ended only if the stream has, which the caller finds by itself.
        self.requests.send(request).ok();
        Ok(())
    }

    /// Ends every connection, counts them, and returns the record.
    pub(crate) fn finish(self, metrics: &EgressMetrics) -> Connections {
        self.task.abort();
        let (connections, verdicts) = std::mem::take(&mut *lock(&self.record)).finish(Timestamp::now());
        metrics.count(&connections, &verdicts);
        connections
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn size(request: &NetworkRequest) -> usize {
    match request {
        NetworkRequest::Data(_, bytes) => bytes.len(),
        NetworkRequest::Open(_)
        | NetworkRequest::Window(..)
        | NetworkRequest::Close(..)
        | NetworkRequest::Refused(_) => 0,
    }
}

/// The task of a relay.
struct Passage {
    broker: Option<(BrokerClient, RunPolicy)>,
    runner: RunnerSender,
    inbox: mpsc::UnboundedReceiver<NetworkRequest>,
    room: Arc<Room>,
    record: Arc<Mutex<ConnectionRecord>>,
}

impl Passage {
    /// Works until the runner's stream ends.
    async fn work(mut self) {
        while let Some(open) = self.next_open().await {
            let passed = match self.connect().await {
                Some(link) => self.pass(link, NetworkRequest::Open(open)).await,
                None => self.answer(open.channel, Verdict::BrokerUnavailable).await,
            };
            if let Err(error) = passed {
                warn!(%error, "Frames of connections could not be sent to the runner");
                return;
            }
        }
    }

    /// The next connection of the program. Frames of channels that are over mean nothing.
    async fn next_open(&mut self) -> Option<OpenChannel> {
        loop {
            let request = self.inbox.recv().await?;
            self.room.give_back(size(&request));
            if let NetworkRequest::Open(open) = request {
                return Some(open);
            }
        }
    }

    async fn connect(&self) -> Option<RunLink> {
        let (broker, policy) = self.broker.as_ref()?;
        let opened = broker.open_run(policy).await;
        opened.inspect_err(|error| warn!(%error, "The broker of egress cannot be reached")).ok()
    }

    /// Passes frames until the broker ends the link, and resets what was open on it.
    async fn pass(&mut self, link: RunLink, first: NetworkRequest) -> Result<(), StreamEnd> {
        let (sender, mut receiver) = link.split();
        let Self { inbox, room, runner, record, .. } = self;
        let up = async {
            let mut request = first;
            loop {
                let bytes = size(&request);
                if sender.send(request).await.is_err() {
                    return;
                }
                room.give_back(bytes);
                let Some(next) = inbox.recv().await else { return };
                request = next;
            }
        };
        let down = async {
            while let Some(response) = receiver.next().await {
                lock(record).on_response(&response, Timestamp::now());
                runner.send(&OperatorMessage::Network(response)).await?;
            }
            Ok::<(), StreamEnd>(())
        };
        tokio::select! {
            () = up => {}
            sent = down => sent?,
        }
        let open = lock(&self.record).open_channels();
        for channel in open {
            // A runner that waits for the broker's decision takes no reset for it.
            self.answer(channel, Verdict::BrokerUnavailable).await?;
            self.send(NetworkResponse::Close(channel, CloseKind::Reset)).await?;
        }
        Ok(())
    }

    async fn answer(&self, channel: Channel, verdict: Verdict) -> Result<(), StreamEnd> {
        self.send(NetworkResponse::Opened(ChannelOpened { channel, verdict, address: None })).await
    }

    async fn send(&self, response: NetworkResponse) -> Result<(), StreamEnd> {
        lock(&self.record).on_response(&response, Timestamp::now());
        self.runner.send(&OperatorMessage::Network(response)).await
    }
}
