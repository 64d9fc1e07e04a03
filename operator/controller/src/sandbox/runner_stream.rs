//! The attach connection to one runner: frames down and messages up.
//!
//! Messages count only if the protocol's digest covers them. An early end is an error here and never a result.
//! Several tasks may send: a frame that waits for a slow stream holds up no message that comes up.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{AttachParams, AttachedProcess},
};
use skillet_protocol::{
    Hello, MessageError, OperatorMessage, Ready, RunnerMessage, StreamError, StreamReader,
};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use super::manifest::CONTAINER;

/// Buffer between the websocket and us; a frame of output is at most 64 KiB.
const BUFFER_BYTES: usize = 128 * 1024;
/// A runner answers Hello in about a millisecond once it has tested itself, for which it has five seconds. One that takes
/// longer never answers.
const READY_LIMIT: Duration = Duration::from_secs(8);

/// The error that ends a stream.
#[derive(Debug, Error)]
pub(crate) enum StreamEnd {
    #[error("the stream ended early")]
    Closed,
    #[error("the stream could not be read")]
    Read(#[source] std::io::Error),
    #[error("the stream could not be written")]
    Write(#[source] std::io::Error),
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
    // Dropping it ends the connection.
    _process: AttachedProcess,
    sender: RunnerSender,
    // The pipe behind standard input does not say that its reader is gone: a frame would wait in it forever.
    _writer: AbortOnDrop,
    stdout: Box<dyn AsyncRead + Send + Unpin>,
    reader: StreamReader,
    buffer: Vec<u8>,
}

/// Frames that wait for the stream, of all who send.
const WAITING_FRAMES: usize = 4;

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
    written: oneshot::Sender<std::io::Result<()>>,
}

impl RunnerSender {
    /// Starts the task, which ends with the second value.
    pub(crate) fn start(stdin: impl AsyncWrite + Send + Unpin + 'static) -> (Self, AbortOnDrop) {
        let (sender, frames) = mpsc::channel(WAITING_FRAMES);
        let task = tokio::spawn(write_frames(stdin, frames));
        (Self(sender), AbortOnDrop(task))
    }

    /// Sends one frame, and waits until the stream has taken it.
    pub(crate) async fn send(&self, message: &OperatorMessage) -> Result<(), StreamEnd> {
        let (written, result) = oneshot::channel();
        let frame = Outgoing { bytes: message.encode()?, written };
        self.0.send(frame).await.map_err(|_| StreamEnd::Closed)?;
        result.await.map_err(|_| StreamEnd::Closed)?.map_err(StreamEnd::Write)
    }
}

/// Ends with the last who may send, and with the first error.
async fn write_frames(mut stdin: impl AsyncWrite + Unpin, mut frames: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { bytes, written }) = frames.recv().await {
        let result = async {
            stdin.write_all(&bytes).await?;
            stdin.flush().await
        };
        let result = result.await;
        let is_broken = result.is_err();
        written.send(result).ok();
        if is_broken {
            return;
        }
    }
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
            max_stdin_buf_size: Some(BUFFER_BYTES),
            max_stdout_buf_size: Some(BUFFER_BYTES),
            ..AttachParams::default()
        };
        let mut process = pods.attach(pod, &params).await.map_err(|e| StreamEnd::Attach(Box::new(e)))?;
        let (Some(stdin), Some(stdout)) = (process.stdin(), process.stdout()) else {
            return Err(StreamEnd::Closed);
        };
        let (sender, writer) = RunnerSender::start(stdin);
        let mut stream = Self {
            _process: process,
            sender,
            _writer: writer,
            stdout: Box::new(stdout),
            reader: StreamReader::new(),
            buffer: vec![0; BUFFER_BYTES],
        };
        stream.send(&OperatorMessage::Hello(Hello { epoch })).await?;
        match timeout(READY_LIMIT, stream.next()).await {
            Err(_) => Err(StreamEnd::NoAnswer),
            Ok(Ok(RunnerMessage::Ready(ready))) => Ok((stream, *ready)),
            Ok(Ok(_)) => Err(StreamEnd::NotReady),
            Ok(Err(end)) => Err(end),
        }
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
            let read = self.stdout.read(&mut self.buffer).await.map_err(StreamEnd::Read)?;
            if read == 0 {
                return Err(StreamEnd::Closed);
            }
            self.reader.push(&self.buffer[..read]);
        }
    }
}
