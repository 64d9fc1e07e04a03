//! The payloads of frames: JSON for orders and responses, raw bytes for output.
//!
//! Each message knows its frame type. `stream` checks the order of messages.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::frame::{Frame, FrameError, Kind, encode};
use crate::{Isolation, NetworkRequest, NetworkResponse, Receipt, Run};

/// From the operator to the runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorMessage {
    Hello(Hello),
    Run(Box<Run>),
    Cancel,
    /// More standard input for a program whose run keeps it open. No bytes close it.
    Input(Vec<u8>),
    Network(NetworkResponse),
}

/// From the runner to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunnerMessage {
    Ready(Box<Ready>),
    Accepted(Accepted),
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// The last bytes of a stream that was larger than its cap; they do not overlap what was sent.
    StdoutTail(Vec<u8>),
    StderrTail(Vec<u8>),
    Refused(Refused),
    Exit(Box<Receipt>),
    Network(NetworkRequest),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// The leader's epoch; grows with every change of leader.
    pub epoch: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    pub isolation: Isolation,
    /// Version of the runner.
    pub runner: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    pub execution_uid: String,
    pub attempt: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// Epoch of the refused order, because every attached operator receives the refusal. `None` if the order was unreadable.
    pub epoch: Option<u64>,
    pub reason: RefusalReason,
    pub message: String,
}

/// The reason for which a `Run` was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalReason {
    /// No `Hello` came before it.
    NoHello,
    /// A greater epoch has been seen: another leader owns this sandbox.
    StaleEpoch,
    /// A sandbox runs one program, once.
    AlreadyAccepted,
    /// The order itself cannot be carried out.
    InvalidRun,
}

#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("the payload of a {kind:?} frame is not what it should be")]
    Payload { kind: Kind, source: serde_json::Error },
    #[error("the payload of a {0:?} frame has another length")]
    Malformed(Kind),
    #[error("a {0:?} frame goes the other way")]
    Direction(Kind),
}

impl OperatorMessage {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Hello(_) => Kind::Hello,
            Self::Run(_) => Kind::Run,
            Self::Cancel => Kind::Cancel,
            Self::Input(_) => Kind::Input,
            Self::Network(response) => response.kind(),
        }
    }

    /// The bytes of the frame; an error when it is over the limit of its type.
    pub fn encode(&self) -> Result<Vec<u8>, MessageError> {
        let payload = match self {
            Self::Hello(hello) => to_json(self.kind(), hello)?,
            Self::Run(run) => to_json(self.kind(), run)?,
            Self::Cancel => b"{}".to_vec(),
            Self::Input(bytes) => return Ok(encode(Kind::Input, bytes)?),
            Self::Network(response) => return response.encode(),
        };
        Ok(encode(self.kind(), &payload)?)
    }

    pub fn decode(frame: Frame) -> Result<Self, MessageError> {
        match frame.kind {
            Kind::Hello => from_json(&frame).map(Self::Hello),
            Kind::Run => from_json(&frame).map(|run| Self::Run(Box::new(run))),
            Kind::Cancel => Ok(Self::Cancel),
            Kind::Input => Ok(Self::Input(frame.payload)),
            kind if kind.is_network() => NetworkResponse::decode(frame).map(Self::Network),
            kind => Err(MessageError::Direction(kind)),
        }
    }
}

impl RunnerMessage {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Ready(_) => Kind::Ready,
            Self::Accepted(_) => Kind::Accepted,
            Self::Stdout(_) => Kind::Stdout,
            Self::Stderr(_) => Kind::Stderr,
            Self::StdoutTail(_) => Kind::StdoutTail,
            Self::StderrTail(_) => Kind::StderrTail,
            Self::Refused(_) => Kind::Refused,
            Self::Exit(_) => Kind::Exit,
            Self::Network(request) => request.kind(),
        }
    }

    /// The bytes of the frame; an error when it is over the limit of its type.
    pub fn encode(&self) -> Result<Vec<u8>, MessageError> {
        let kind = self.kind();
        let payload = match self {
            Self::Stdout(bytes) | Self::Stderr(bytes) | Self::StdoutTail(bytes) | Self::StderrTail(bytes) => {
                return Ok(encode(kind, bytes)?);
            }
            Self::Network(request) => return request.encode(),
            Self::Ready(ready) => to_json(kind, ready)?,
            Self::Accepted(accepted) => to_json(kind, accepted)?,
            Self::Refused(refused) => to_json(kind, refused)?,
            Self::Exit(receipt) => to_json(kind, receipt)?,
        };
        Ok(encode(kind, &payload)?)
    }

    pub fn decode(frame: Frame) -> Result<Self, MessageError> {
        match frame.kind {
            Kind::Ready => from_json(&frame).map(|ready| Self::Ready(Box::new(ready))),
            Kind::Accepted => from_json(&frame).map(Self::Accepted),
            Kind::Stdout => Ok(Self::Stdout(frame.payload)),
            Kind::Stderr => Ok(Self::Stderr(frame.payload)),
            Kind::StdoutTail => Ok(Self::StdoutTail(frame.payload)),
            Kind::StderrTail => Ok(Self::StderrTail(frame.payload)),
            Kind::Refused => from_json(&frame).map(Self::Refused),
            Kind::Exit => from_json(&frame).map(|receipt| Self::Exit(Box::new(receipt))),
            kind if kind.is_network() => NetworkRequest::decode(frame).map(Self::Network),
            kind => Err(MessageError::Direction(kind)),
        }
    }
}

pub(crate) fn to_json<T: Serialize>(kind: Kind, value: &T) -> Result<Vec<u8>, MessageError> {
    serde_json::to_vec(value).map_err(|source| MessageError::Payload { kind, source })
}

pub(crate) fn from_json<T: DeserializeOwned>(frame: &Frame) -> Result<T, MessageError> {
    serde_json::from_slice(&frame.payload)
        .map_err(|source| MessageError::Payload { kind: frame.kind, source })
}
