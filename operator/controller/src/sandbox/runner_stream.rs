//! The attach connection to one runner: frames down and messages up.
//!
//! Messages count only if the protocol's digest covers them. An early end is an error here and never a result.
//! Several tasks may send: a frame that waits for a slow stream holds up no message that comes up.

use std::time::Duration;

use futures::{
    Sink, SinkExt as _, StreamExt as _,
    stream::{BoxStream, iter},
};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::AttachParams, core::Request};
use skillet_protocol::{
    Hello, MessageError, OperatorMessage, Ready, RunnerMessage, StreamError, StreamReader,
};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Bytes, Error as SocketError, Message},
};

use super::manifest::CONTAINER;

/// A runner answers Hello in about a millisecond once it has tested itself, for which it has five seconds. One that takes
/// longer never answers.
const READY_LIMIT: Duration = Duration::from_secs(8);
/// First byte of each message: the stream of the container that the rest belongs to.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
/// First byte of the message that says how the attach ended.
const STATUS: u8 = 3;
/// Most bytes of frames in one message. API server and kubelet copy 32 KiB at a time.
const MESSAGE_BYTES: usize = 64 * 1024;
/// Time without a frame after which a ping shows that the connection is in use.
const PING_AFTER: Duration = Duration::from_secs(60);

/// The error that ends a stream.
#[derive(Debug, Error)]
pub(crate) enum StreamEnd {
    #[error("the stream ended early")]
    Closed,
    #[error("the stream could not be read")]
    Read(#[source] Box<SocketError>),
    #[error("the stream could not be written")]
    Write(#[source] Box<SocketError>),
    #[error("the stream is not what a runner sends")]
    Protocol(#[from] StreamError),
    #[error("a frame could not be written")]
    Encode(#[from] MessageError),
    #[error("the stream is longer than a runner's")]
    TooLong,
    #[error("the runner did not answer in time")]
    NoAnswer,
    #[error("the runner said something else than Ready")]
    NotReady,
    #[error("the pod could not be attached to")]
    Attach(#[source] Box<kube::Error>),
}

/// The attach connection to one runner.
pub(crate) struct RunnerStream {
    sender: RunnerSender,
    // A server that is gone without a word takes no frame and refuses none: one would wait forever.
    _writer: AbortOnDrop,
    messages: BoxStream<'static, Result<Message, SocketError>>,
    reader: StreamReader,
}

/// Frames that wait for the stream, of all who send.
const WAITING_FRAMES: usize = 8;

/// The way down to one runner. A task writes each frame whole, also if its sender is dropped.
#[derive(Clone)]
pub(crate) struct RunnerSender(mpsc::Sender<Outgoing>);

/// A task that ends when this is dropped.
pub(crate) struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Outgoing {
    bytes: Vec<u8>,
    /// Takes the result, if somebody waits for it.
    written: Option<oneshot::Sender<Result<(), SocketError>>>,
}

impl RunnerSender {
    /// Starts the task, which ends with the second value.
    pub(crate) fn start(
        socket: impl Sink<Message, Error = SocketError> + Send + Unpin + 'static,
    ) -> (Self, AbortOnDrop) {
        let (sender, frames) = mpsc::channel(WAITING_FRAMES);
        let task = tokio::spawn(write_frames(socket, frames));
        (Self(sender), AbortOnDrop(task))
    }

    /// Sends one frame, and waits until the stream has taken it.
    pub(crate) async fn send(&self, message: &OperatorMessage) -> Result<(), StreamEnd> {
        let (written, result) = oneshot::channel();
        self.queue(message, Some(written)).await?;
        result.await.map_err(|_| StreamEnd::Closed)?.map_err(|error| StreamEnd::Write(Box::new(error)))
    }

    /// Sends one frame, and waits only for its place in the queue, so that frames can share a message.
    pub(crate) async fn push(&self, message: &OperatorMessage) -> Result<(), StreamEnd> {
        self.queue(message, None).await
    }

    async fn queue(
        &self,
        message: &OperatorMessage,
        written: Option<oneshot::Sender<Result<(), SocketError>>>,
    ) -> Result<(), StreamEnd> {
        let frame = Outgoing { bytes: message.encode()?, written };
        self.0.send(frame).await.map_err(|_| StreamEnd::Closed)
    }
}

/// Ends with the last who may send, and with the first error.
async fn write_frames(
    mut socket: impl Sink<Message, Error = SocketError> + Unpin,
    mut frames: mpsc::Receiver<Outgoing>,
) {
    let mut waiting = Vec::with_capacity(WAITING_FRAMES);
    loop {
        let result = match timeout(PING_AFTER, frames.recv_many(&mut waiting, WAITING_FRAMES)).await {
            Ok(0) => return,
            Ok(_) => {
                let mut messages = iter(messages(&waiting)).map(Ok);
                socket.send_all(&mut messages).await
            }
            Err(_) => socket.send(Message::Ping(Bytes::new())).await,
        };
        let mut senders = waiting.drain(..).filter_map(|frame| frame.written);
        if let Err(error) = result {
            // The others learn that the stream is closed.
            if let Some(first) = senders.next() {
                first.send(Err(error)).ok();
            }
            return;
        }
        for written in senders {
            written.send(Ok(())).ok();
        }
    }
}

/// Packs frames into as few messages as their size allows. Each message costs API server and kubelet about as much as its
/// bytes do.
fn messages(frames: &[Outgoing]) -> Vec<Message> {
    let mut messages = Vec::with_capacity(1);
    let mut left: usize = frames.iter().map(|frame| frame.bytes.len()).sum();
    let mut message = Vec::new();
    for mut bytes in frames.iter().map(|frame| frame.bytes.as_slice()) {
        while !bytes.is_empty() {
            if message.is_empty() {
                message = Vec::with_capacity(1 + left.min(MESSAGE_BYTES));
                message.push(STDIN);
            }
            let (taken, rest) = bytes.split_at(bytes.len().min(1 + MESSAGE_BYTES - message.len()));
            message.extend_from_slice(taken);
            left -= taken.len();
            bytes = rest;
            if message.len() > MESSAGE_BYTES || left == 0 {
                messages.push(Message::binary(std::mem::take(&mut message)));
            }
        }
    }
    messages
}

impl RunnerStream {
    /// Attaches to `pod` and greets its runner. Fails at once where the container does not run yet.
    pub(crate) async fn attach(pods: &Api<Pod>, pod: &str, epoch: u64) -> Result<(Self, Ready), StreamEnd> {
        let params = AttachParams {
            // An admission webhook may have added containers.
            container: Some(CONTAINER.into()),
            stdin: true,
            stdout: true,
            stderr: false,
            tty: false,
            ..AttachParams::default()
        };
        let failed = |error| StreamEnd::Attach(Box::new(error));
        let request = Request::new(pods.resource_url()).attach(pod, &params);
        let request = request.map_err(|error| failed(kube::Error::BuildRequest(error)))?;
        let connection = pods.clone().into_client().connect(request).await.map_err(failed)?;
        let mut stream = Self::start(connection.into_stream());
        stream.send(&OperatorMessage::Hello(Hello { epoch })).await?;
        match timeout(READY_LIMIT, stream.next()).await {
            Err(_) => Err(StreamEnd::NoAnswer),
            Ok(Ok(RunnerMessage::Ready(ready))) => Ok((stream, *ready)),
            Ok(Ok(_)) => Err(StreamEnd::NotReady),
            Ok(Err(end)) => Err(end),
        }
    }

    fn start<S>(socket: WebSocketStream<S>) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (socket, messages) = socket.split();
        let (sender, writer) = RunnerSender::start(socket);
        Self { sender, _writer: writer, messages: messages.boxed(), reader: StreamReader::new() }
    }

    /// Keeps the stream open until the run in the sandbox has ended, whichever operator started it.
    pub(crate) async fn wait_for_end(&mut self) {
        while !matches!(self.next().await, Ok(RunnerMessage::Exit(_)) | Err(_)) {}
    }

    /// Sends one frame.
    pub(crate) async fn send(&mut self, message: &OperatorMessage) -> Result<(), StreamEnd> {
        self.sender.send(message).await
    }

    /// Returns a way to send beside this stream.
    pub(crate) fn sender(&self) -> RunnerSender {
        self.sender.clone()
    }

    /// The next message. Safe to drop and call again: nothing read is lost.
    pub(crate) async fn next(&mut self) -> Result<RunnerMessage, StreamEnd> {
        loop {
            if let Some(message) = self.reader.next_message()? {
                return Ok(message);
            }
            match self.messages.next().await {
                Some(Ok(Message::Binary(bytes))) => match bytes.split_first() {
                    Some((&STDOUT, bytes)) => self.reader.push(bytes),
                    Some((&STATUS, _)) => return Err(StreamEnd::Closed),
                    _ => {}
                },
                None | Some(Ok(Message::Close(_))) => return Err(StreamEnd::Closed),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(StreamEnd::Read(Box::new(error))),
            }
        }
    }
}

#[cfg(test)]
mod tests;
