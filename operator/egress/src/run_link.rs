//! The broker's side of a run's link: frames in, a task for each channel, frames out.
//!
//! Nothing that a runner sends makes this grow: channels are limited, each holds at most a window of bytes, and a link whose
//! other side does not read is not read either.

mod channel;
mod inbox;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::BytesMut;
use skillet_protocol::{
    Channel, ChannelOpened, CloseKind, Decoder, Direction, EXTENDED_CHANNELS, MAX_CHANNELS, MessageError,
    NetworkRequest, NetworkResponse, OpenChannel, Verdict,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    sync::{Semaphore, mpsc, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tracing::{debug, info, warn};

use self::{channel::OpenedChannel, inbox::Inbox};
use crate::{
    dialer::Dialer,
    frames::{QUEUED_FRAMES, READ_BYTES, write_frames},
    limits::RunScope,
    metrics::Metrics,
    server::becomes_true,
    wire::read_policy,
};

/// Most channels that a link knows: those that may be open, and as many that are ending or wait for their place.
const MAX_OPEN: usize = 2 * MAX_CHANNELS;

/// Time for the first bytes of a link.
const POLICY_LIMIT: Duration = Duration::from_secs(10);

/// Time after the end of a link for bytes that a program wrote before it ended a channel.
const END_LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkSettings {
    /// Longest time for which a channel may have no traffic.
    pub(crate) idle_limit: Duration,
    /// Longest time of a link.
    pub(crate) link_limit: Duration,
}

/// Serves the link of one run until either side ends it.
pub(crate) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    dialer: Dialer,
    settings: LinkSettings,
    metrics: Metrics,
    mut ended: watch::Receiver<bool>,
) {
    let policy = match timeout(POLICY_LIMIT, read_policy(&mut stream)).await {
        Ok(Ok(policy)) => policy,
        Ok(Err(error)) => return warn!(%error, "The policy of a run could not be read"),
        Err(_) => return warn!("The policy of a run did not come in time"),
    };
    let scope = match RunScope::new(&policy) {
        Ok(scope) => scope,
        Err(error) => return warn!(run = %policy.run, %error, "The policy of a run cannot be held to"),
    };
    drop(policy);
    let _held = metrics.run_link();
    let (mut reader, writer) = tokio::io::split(stream);
    let (frames, mut queued) = mpsc::channel(QUEUED_FRAMES);
    let mut link = Link {
        scope: Arc::clone(&scope),
        dialer,
        metrics,
        idle_limit: settings.idle_limit,
        frames,
        larger_windows: Arc::new(Semaphore::new(EXTENDED_CHANNELS)),
        inboxes: HashMap::new(),
        channels: JoinSet::new(),
    };
    tokio::select! {
        result = link.read(&mut reader) => match result {
            Ok(()) => debug!(run = %scope.run, "The link of a run ended"),
            Err(error) => warn!(run = %scope.run, %error, "The link of a run was broken"),
        },
        () = write(writer, &mut queued) => debug!(run = %scope.run, "The operator ended the link of a run"),
        () = sleep(settings.link_limit) => {
            return info!(run = %scope.run, "The link of a run has reached its time limit");
        }
        () = becomes_true(&mut ended) => return info!(run = %scope.run, "The link of a run ends with the broker"),
    }
    // The operator learns of the end at once.
    drop(reader);
    tokio::select! {
        () = link.finish() => {}
        () = discard(&mut queued) => {}
        () = sleep(END_LIMIT) => debug!(run = %scope.run, "Channels did not end in time after their link"),
    }
}

/// Writes frames as long as the operator reads them, and a while longer drops them: what it sent before is still read.
async fn write(writer: impl AsyncWrite + Unpin, queued: &mut mpsc::Receiver<Vec<u8>>) {
    if write_frames(writer, queued, std::future::pending()).await.is_err() {
        timeout(END_LIMIT, discard(queued)).await.ok();
    }
}

/// Takes frames that nobody reads, so that no channel waits for room.
async fn discard(queued: &mut mpsc::Receiver<Vec<u8>>) {
    while queued.recv().await.is_some() {}
}

/// A fault of the other side, after which frames have no meaning.
#[derive(Debug, thiserror::Error)]
enum LinkError {
    #[error("could not read from the operator")]
    Read(#[from] std::io::Error),
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error("channel {0} was opened twice")]
    OpenedTwice(Channel),
}

struct Link {
    scope: Arc<RunScope>,
    dialer: Dialer,
    metrics: Metrics,
    idle_limit: Duration,
    frames: mpsc::Sender<Vec<u8>>,
    larger_windows: Arc<Semaphore>,
    inboxes: HashMap<Channel, Arc<Inbox>>,
    channels: JoinSet<Channel>,
}

impl Link {
    async fn read(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<(), LinkError> {
        let mut decoder = Decoder::new(Direction::ToOperator);
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(READ_BYTES);
            let read = tokio::select! {
                read = stream.read_buf(&mut buffer) => read?,
                Some(ended) = self.channels.join_next() => {
                    self.forget(ended.ok());
                    continue;
                }
            };
            if read == 0 {
                return Ok(());
            }
            decoder.push(&buffer);
            buffer.clear();
            while let Some(frame) = decoder.pop().map_err(MessageError::from)? {
                self.receive(NetworkRequest::decode(frame)?).await?;
            }
        }
    }

    async fn receive(&mut self, request: NetworkRequest) -> Result<(), LinkError> {
        match request {
            NetworkRequest::Open(open) => return self.open(open).await,
            NetworkRequest::Data(channel, bytes) => self.inbox(channel, |inbox| inbox.push(&bytes)),
            NetworkRequest::Window(channel, bytes) => self.inbox(channel, |inbox| inbox.add_credit(bytes)),
            NetworkRequest::Close(channel, CloseKind::End) => self.inbox(channel, Inbox::end),
            NetworkRequest::Close(channel, CloseKind::Reset) => self.inbox(channel, Inbox::reset),
            NetworkRequest::Refused(refused) => self.metrics.refused_by_runner(refused.verdict),
        }
        Ok(())
    }

    /// Passes something to a channel. One that is over or never was is no fault: frames cross.
    fn inbox(&self, channel: Channel, act: impl FnOnce(&Inbox)) {
        if let Some(inbox) = self.inboxes.get(&channel) {
            act(inbox);
        }
    }

    async fn open(&mut self, open: OpenChannel) -> Result<(), LinkError> {
        while let Some(ended) = self.channels.try_join_next() {
            self.forget(ended.ok());
        }
        let OpenChannel { channel, host, port } = open;
        if self.inboxes.contains_key(&channel) {
            return Err(LinkError::OpenedTwice(channel));
        }
        if self.inboxes.len() >= MAX_OPEN {
            self.metrics.dialed(Verdict::EgressLimitReached);
            let opened = ChannelOpened { channel, verdict: Verdict::EgressLimitReached, address: None };
            // The queue has an end, so that a flood of frames waits here and takes no memory.
            self.frames.send(NetworkResponse::Opened(opened).encode()?).await.ok();
            return Ok(());
        }
        let inbox = Arc::new(Inbox::default());
        self.inboxes.insert(channel, Arc::clone(&inbox));
        let opened = OpenedChannel {
            channel,
            inbox,
            frames: self.frames.clone(),
            scope: Arc::clone(&self.scope),
            metrics: self.metrics.clone(),
            idle_limit: self.idle_limit,
            larger_windows: Arc::clone(&self.larger_windows),
        };
        self.channels.spawn(opened.run(self.dialer.clone(), host, port));
        Ok(())
    }

    /// Waits for the channels that the program has ended, and ends the others.
    async fn finish(&mut self) {
        for inbox in self.inboxes.values() {
            inbox.lose_link();
        }
        while self.channels.join_next().await.is_some() {}
    }

    fn forget(&mut self, channel: Option<Channel>) {
        if let Some(channel) = channel {
            self.inboxes.remove(&channel);
        }
    }
}
