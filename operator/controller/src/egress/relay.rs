//! Passes the frames of a run's connections between its runner and the broker, beside the run's own messages.
//!
//! A link to the broker is opened by the first connection of the program. If it ends, the channels on it are reset, and the
//! next connection of the program opens another. The windows of the protocol, and [`Room`], bound what waits here. A broker
//! that answers nothing ends its link too: see [`Waits`].

mod waits;

use std::{
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::FutureExt as _;
use jiff::Timestamp;
use skillet_api::network::Connections;
use skillet_egress::{BrokerError, RunLink, RunSender};
use skillet_kube::lock;
use skillet_protocol::{
    Channel, ChannelOpened, CloseKind, EXTENDED_CHANNELS, EXTRA_WINDOW_BYTES, INITIAL_WINDOW_BYTES,
    NetworkRequest, NetworkResponse, OpenChannel, OperatorMessage, Verdict,
};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tracing::{Instrument as _, warn};

use self::waits::{Wait, Waits};
use super::{RunAccess, metrics::EgressMetrics, record::ConnectionRecord};
use crate::sandbox::{RunnerSender, StreamEnd};

/// Room for the larger windows of a few channels, and of those that have ended while their bytes wait here.
const LARGER_WINDOWS: usize = 2 * EXTENDED_CHANNELS * EXTRA_WINDOW_BYTES as usize;
/// Room that a connection takes beside its data, its end included.
const CONNECTION_COST: usize = 1024;
/// Connections that wait for room and are refused; further ones wait for their own time limit.
const REFUSALS: usize = 256;
/// Time for what the program wrote last.
const LAST_BYTES: Duration = Duration::from_secs(2);

/// The frames of one run on their way. Dropped, it ends every connection of the run.
pub(crate) struct Relay {
    requests: Option<mpsc::UnboundedSender<NetworkRequest>>,
    refusals: mpsc::Sender<Channel>,
    room: Arc<Room>,
    record: Arc<Mutex<ConnectionRecord>>,
    task: JoinHandle<()>,
}

/// Bytes that may still wait for the broker. A runner that keeps to the windows never fills it with data.
struct Room(Mutex<usize>);

impl Room {
    fn take(&self, bytes: usize) -> bool {
        let mut left = lock(&self.0);
        let is_enough = *left >= bytes;
        if is_enough {
            *left -= bytes;
        }
        is_enough
    }

    fn give_back(&self, bytes: usize) {
        *lock(&self.0) += bytes;
    }
}

impl Relay {
    /// Starts to pass frames on for a run that may have so many connections at one time.
    pub(crate) fn start(access: RunAccess, connections: u32, runner: RunnerSender) -> Self {
        let (requests, inbox) = mpsc::unbounded_channel();
        let (refusals, refused) = mpsc::channel(REFUSALS);
        let record = Arc::<Mutex<ConnectionRecord>>::default();
        let bytes = connections as usize * (INITIAL_WINDOW_BYTES as usize + CONNECTION_COST) + LARGER_WINDOWS;
        let room = Arc::new(Room(Mutex::new(bytes)));
        let passage = Passage {
            access,
            runner: Runner { sender: runner, record: record.clone() },
            inbox,
            room: room.clone(),
        };
        let refuse = refuse_all(refused, passage.runner.clone());
        let work = async {
            tokio::select! {
                () = passage.work() => {}
                () = refuse => {}
            }
        };
        let task = tokio::spawn(work.in_current_span());
        Self { requests: Some(requests), refusals, room, record, task }
    }

    /// Takes a frame of the runner. Fails if the runner sends more data than its windows allow.
    pub(crate) fn take(&self, request: NetworkRequest) -> Result<(), StreamEnd> {
        // Held over both, so that whoever lists the open channels finds the frames of each in the inbox or passed on.
        let mut record = lock(&self.record);
        record.on_request(&request, Timestamp::now());
        if !self.room.take(cost(&request)) {
            let NetworkRequest::Open(OpenChannel { channel, .. }) = request else {
                return Err(StreamEnd::TooLong);
            };
            self.refusals.try_send(channel).ok();
            return Ok(());
        }
        if let Some(requests) = &self.requests {
            // The task has ended only if the stream has, which the caller finds by itself.
            requests.send(request).ok();
        }
        Ok(())
    }

    /// Passes on what the program wrote last, ends every connection, counts them, and returns the record.
    pub(crate) async fn finish(mut self, metrics: &EgressMetrics) -> Connections {
        self.requests = None;
        // Later bytes than these have no host that waits for them.
        timeout(LAST_BYTES, &mut self.task).await.ok();
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

/// Returns the room that a frame takes. A channel's own place covers its end, and windows follow data of the host.
fn cost(request: &NetworkRequest) -> usize {
    match request {
        NetworkRequest::Data(_, bytes) => bytes.len(),
        NetworkRequest::Open(_) => CONNECTION_COST,
        NetworkRequest::Window(..) | NetworkRequest::Close(..) | NetworkRequest::Refused(_) => 0,
    }
}

/// The way to the runner. What goes down is in the record.
#[derive(Clone)]
struct Runner {
    sender: RunnerSender,
    record: Arc<Mutex<ConnectionRecord>>,
}

impl Runner {
    async fn send(&self, response: NetworkResponse) -> Result<(), StreamEnd> {
        lock(&self.record).on_response(&response, Timestamp::now());
        self.sender.push(&OperatorMessage::Network(response)).await
    }

    async fn refuse(&self, channel: Channel, verdict: Verdict) -> Result<(), StreamEnd> {
        self.send(NetworkResponse::Opened(ChannelOpened { channel, verdict, address: None })).await
    }
}

/// Refuses the connections for which there is no room.
async fn refuse_all(mut refused: mpsc::Receiver<Channel>, runner: Runner) {
    while let Some(channel) = refused.recv().await {
        if runner.refuse(channel, Verdict::EgressLimitReached).await.is_err() {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Sends a frame, and notes the wait if the broker does not take it at once.
async fn send(sender: &RunSender, request: NetworkRequest, waits: &Waits) -> Result<(), BrokerError> {
    let mut sent = pin!(sender.send(request));
    if let Some(sent) = sent.as_mut().now_or_never() {
        return sent;
    }
    waits.begin(Wait::Room);
    let sent = sent.await;
    waits.end(Wait::Room);
    sent
}

/// The task of a relay.
struct Passage {
    access: RunAccess,
    runner: Runner,
    inbox: mpsc::UnboundedReceiver<NetworkRequest>,
    room: Arc<Room>,
}

impl Passage {
    /// Works until the runner's stream ends.
    async fn work(mut self) {
        while let Some(open) = self.next_open().await {
            let transferred = lock(&self.runner.record).transferred();
            let passed = match self.access.open(transferred).await {
                Ok(link) => self.pass(link, NetworkRequest::Open(open)).await,
                Err(verdict) => self.end_open_channels(verdict).await,
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
            self.room.give_back(cost(&request));
            if let NetworkRequest::Open(open) = request {
                return Some(open);
            }
        }
    }

    /// Passes frames until the broker ends the link or answers nothing in time, and resets what was open on it.
    async fn pass(&mut self, link: RunLink, first: NetworkRequest) -> Result<(), StreamEnd> {
        let (sender, mut receiver) = link.split();
        let waits = Waits::default();
        let Self { inbox, room, runner, .. } = self;
        let up = async {
            let mut request = first;
            loop {
                let cost = cost(&request);
                waits.on_request(&request);
                let sent = send(&sender, request, &waits).await;
                room.give_back(cost);
                if sent.is_err() {
                    return false;
                }
                let Some(next) = inbox.recv().await else { return true };
                request = next;
            }
        };
        let down = async {
            while let Some(response) = receiver.next().await {
                waits.on_response(&response);
                waits.hold();
                runner.send(response).await?;
                waits.release();
            }
            Ok::<(), StreamEnd>(())
        };
        let is_over = tokio::select! {
            // What has come already is read before a time is up.
            biased;
            sent = down => {
                sent?;
                false
            }
            is_over = up => is_over,
            () = waits.overdue() => {
                warn!("The broker of egress does not answer; the link of the run ends");
                false
            }
        };
        // The link writes what it has when both of its ends are gone.
        drop((sender, receiver));
        if is_over { Ok(()) } else { self.end_open_channels(Verdict::BrokerUnavailable).await }
    }

    /// Refuses the channels that wait for a decision, resets the others, and forgets the frames of both.
    async fn end_open_channels(&mut self, verdict: Verdict) -> Result<(), StreamEnd> {
        let open = {
            let record = lock(&self.runner.record);
            while let Ok(request) = self.inbox.try_recv() {
                self.room.give_back(cost(&request));
            }
            record.open_channels()
        };
        for channel in open {
            // A channel that is open takes the verdict for the record, and the reset for its end.
            self.runner.refuse(channel, verdict).await?;
            self.runner.send(NetworkResponse::Close(channel, CloseKind::Reset)).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
