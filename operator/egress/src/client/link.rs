//! The link of one run: frames to the broker and from it.

use std::{fmt::Debug, time::Duration};

use bytes::BytesMut;
use skillet_protocol::{Decoder, Direction, NetworkRequest, NetworkResponse};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadHalf},
    sync::{mpsc, watch},
    time::sleep,
};
use tracing::warn;

use super::BrokerError;
use crate::frames::{QUEUED_FRAMES, READ_BYTES, write_frames};

/// Time for the frames that are queued when a half of a link is dropped.
const END_LIMIT: Duration = Duration::from_secs(2);

trait Stream: AsyncRead + AsyncWrite + Debug + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Debug + Send + Unpin> Stream for S {}

/// A link of a run. It ends when either half is dropped; frames that were sent before are still written.
#[derive(Debug)]
pub struct RunLink {
    sender: RunSender,
    receiver: RunReceiver,
}

/// The sending half. Clones send on the same link.
#[derive(Clone, Debug)]
pub struct RunSender {
    address: String,
    frames: mpsc::Sender<Vec<u8>>,
    _open: watch::Sender<()>,
}

/// The receiving half.
#[derive(Debug)]
pub struct RunReceiver {
    stream: ReadHalf<Box<dyn Stream>>,
    decoder: Decoder,
    buffer: BytesMut,
    // Dropping it ends the task that writes.
    _open: watch::Sender<()>,
}

impl RunLink {
    /// Makes a link of a stream on which the policy of the run was sent. Errors name the broker's address.
    pub fn new(
        address: String,
        stream: impl AsyncRead + AsyncWrite + Debug + Send + Unpin + 'static,
    ) -> Self {
        let stream: Box<dyn Stream> = Box::new(stream);
        let (reader, writer) = tokio::io::split(stream);
        let (frames, mut queued) = mpsc::channel(QUEUED_FRAMES);
        let (sender_open, sending) = watch::channel(());
        let (receiver_open, receiving) = watch::channel(());
        tokio::spawn(async move {
            let stop = dropped(receiving.clone());
            let limit = async {
                tokio::select! {
                    () = dropped(sending) => {}
                    () = dropped(receiving) => {}
                }
                sleep(END_LIMIT).await;
            };
            tokio::select! {
                // An error of writing is also the end of reading.
                result = write_frames(writer, &mut queued, stop) => drop(result),
                () = limit => {}
            }
        });
        let decoder = Decoder::new(Direction::ToRunner);
        let receiver = RunReceiver { stream: reader, decoder, buffer: BytesMut::new(), _open: receiver_open };
        Self { sender: RunSender { address, frames, _open: sender_open }, receiver }
    }

    /// Returns both halves. They must be used by turns or by two tasks: who only sends is held up when the broker has
    /// something to say.
    pub fn split(self) -> (RunSender, RunReceiver) {
        (self.sender, self.receiver)
    }
}

/// Waits until every sender is dropped.
async fn dropped(mut half: watch::Receiver<()>) {
    while half.changed().await.is_ok() {}
}

impl RunSender {
    /// Sends a frame; waits while the broker takes none.
    pub async fn send(&self, request: NetworkRequest) -> Result<(), BrokerError> {
        let frame = request.encode().map_err(BrokerError::Frame)?;
        let ended = |_| BrokerError::LinkEnded { address: self.address.clone() };
        self.frames.send(frame).await.map_err(ended)
    }
}

impl RunReceiver {
    /// Returns the next frame; `None` when the link has ended. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<NetworkResponse> {
        loop {
            match self.decoder.pop().map(|frame| frame.map(NetworkResponse::decode)) {
                Ok(Some(Ok(response))) => return Some(response),
                Ok(None) => {}
                Ok(Some(Err(error))) => {
                    warn!(%error, "The broker sent a frame that cannot be read");
                    return None;
                }
                Err(error) => {
                    warn!(%error, "The broker sent what is no frame");
                    return None;
                }
            }
            self.buffer.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.buffer).await.ok()? == 0 {
                return None;
            }
            self.decoder.push(&self.buffer);
            self.buffer.clear();
        }
    }
}
