//! The stream of one run: the order of its frames, and the digest that closes it.
//!
//! The runner writes through [`StreamWriter`], the operator reads through [`StreamReader`]. Streams through the API
//! server can end early without an error, so only an `Exit` with the right digest is an end.

use sha2::{Digest as _, Sha256};

use crate::frame::{Decoder, Direction, Frame, Kind};
use crate::line_escape::{Unescape, escape, escape_line};
use crate::message::{MessageError, RunnerMessage};
use crate::receipt::Receipt;

#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error("a {kind:?} frame came {state}")]
    OutOfOrder { kind: Kind, state: &'static str },
    #[error("{bytes} bytes came after the end")]
    Trailing { bytes: usize },
    #[error("the stream ended early, {state}")]
    EndedEarly { state: &'static str },
    #[error("the stream was aborted after an earlier error")]
    Broken,
    #[error("the digest of the stream is {read}, the receipt says {sealed:?}")]
    DigestMismatch { read: String, sealed: String },
}

#[derive(Clone, Debug)]
enum State {
    Waiting,
    Running(Sha256),
    Ended,
    Broken,
}

impl State {
    fn name(&self) -> &'static str {
        match self {
            Self::Waiting => "before a run was accepted",
            Self::Running(_) => "during the run",
            Self::Ended => "after the end",
            Self::Broken => "after an error",
        }
    }
}

/// Encodes the runner's frames and digests those of the run.
#[derive(Debug, Default)]
pub struct StreamWriter {
    digest: Option<Sha256>,
}

impl StreamWriter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Encodes one frame without line ends, and puts one after a frame that tells how the sandbox is used: an operator that
    /// finds the sandbox must see that in the log at once. `Exit` goes through [`StreamWriter::exit`], which knows the digest.
    pub fn frame(&mut self, message: &RunnerMessage) -> Result<Vec<u8>, MessageError> {
        let bytes = message.encode()?;
        if matches!(message, RunnerMessage::Accepted(_)) {
            self.digest = Some(Sha256::new());
        }
        // Whoever settles a run from its log need not keep what went through its connections.
        if let Some(digest) = &mut self.digest
            && !message.kind().is_network()
        {
            digest.update(&bytes);
        }
        Ok(match message {
            RunnerMessage::Ready(_) | RunnerMessage::Accepted(_) | RunnerMessage::Refused(_) => {
                escape_line(bytes)
            }
            _ => escape(bytes),
        })
    }

    /// Closes the stream: puts the digest into `receipt` and returns its encoded `Exit` frame.
    pub fn exit(&mut self, receipt: &mut Receipt) -> Result<Vec<u8>, MessageError> {
        receipt.digest = self.digest.take().map(hex).unwrap_or_default();
        RunnerMessage::Exit(Box::new(receipt.clone())).encode().map(escape)
    }
}

/// Reads one sandbox's stream: bytes in, messages out. The digest covers every message of the run.
///
/// An error is final. Messages are returned as they arrive, for live output, and are the result only after
/// [`StreamReader::finish`] succeeds.
#[derive(Debug)]
pub struct StreamReader {
    unescape: Unescape,
    decoder: Decoder,
    state: State,
}

impl Default for StreamReader {
    fn default() -> Self {
        Self::new()
    }
}

impl StreamReader {
    pub fn new() -> Self {
        Self {
            unescape: Unescape::default(),
            decoder: Decoder::new(Direction::ToOperator),
            state: State::Waiting,
        }
    }

    /// Adds received bytes; then call [`StreamReader::next_message`] until it returns `None`.
    pub fn push(&mut self, bytes: &[u8]) {
        self.decoder.push(&self.unescape.push(bytes));
    }

    /// Returns the next message, or `None` if more bytes are needed. `Exit` is returned only with the right digest.
    pub fn next_message(&mut self) -> Result<Option<RunnerMessage>, StreamError> {
        let state = std::mem::replace(&mut self.state, State::Broken);
        if matches!(state, State::Broken) {
            return Err(StreamError::Broken);
        }
        let Some(frame) = self.decoder.pop().map_err(MessageError::from)? else {
            self.state = state;
            return Ok(None);
        };
        let mut read = None;
        let next = match (state, frame.kind) {
            (State::Waiting, Kind::Ready | Kind::Refused) => State::Waiting,
            (State::Waiting, Kind::Accepted) => State::Running(extend(Sha256::new(), &frame)),
            (
                State::Running(digest),
                Kind::Stdout | Kind::Stderr | Kind::StdoutTail | Kind::StderrTail | Kind::Refused,
            ) => State::Running(extend(digest, &frame)),
            (State::Running(digest), kind) if kind.is_network() => State::Running(digest),
            (State::Running(digest), Kind::Exit) => {
                read = Some(hex(digest));
                State::Ended
            }
            (state, kind) => return Err(StreamError::OutOfOrder { kind, state: state.name() }),
        };
        let message = RunnerMessage::decode(frame)?;
        if let (RunnerMessage::Exit(receipt), Some(read)) = (&message, read)
            && receipt.digest != read
        {
            return Err(StreamError::DigestMismatch { read, sealed: receipt.digest.clone() });
        }
        self.state = next;
        Ok(Some(message))
    }

    /// Ends the stream; an error unless `Exit` was read and nothing followed it.
    pub fn finish(&self) -> Result<(), StreamError> {
        match self.state {
            State::Ended if self.decoder.buffered() == 0 => Ok(()),
            State::Ended => Err(StreamError::Trailing { bytes: self.decoder.buffered() }),
            State::Waiting | State::Running(_) => Err(StreamError::EndedEarly { state: self.state.name() }),
            State::Broken => Err(StreamError::Broken),
        }
    }
}

fn extend(mut digest: Sha256, frame: &Frame) -> Sha256 {
    digest.update(frame.header());
    digest.update(&frame.payload);
    digest
}

fn hex(digest: Sha256) -> String {
    format!("{:x}", digest.finalize())
}
