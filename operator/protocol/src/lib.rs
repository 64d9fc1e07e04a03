//! The messages between the operator and the runner of one sandbox.
//!
//! Operator to runner: [`OperatorMessage::Hello`], [`OperatorMessage::Run`], [`OperatorMessage::Input`],
//! [`OperatorMessage::Cancel`], and what the broker answers to a program's connections.
//! Runner to operator: [`RunnerMessage::Ready`], then for an accepted run [`RunnerMessage::Accepted`], output, and
//! [`RunnerMessage::Exit`]. The frames of connections, [`NetworkRequest`], come between.
//!
//! # Guarantees
//!
//! - [`StreamReader`] never panics, and buffers at most one frame and one push, whatever the other side sends.
//! - [`StreamWriter`] digests every byte from `Accepted` to just before `Exit`. [`StreamReader`] returns `Exit` only if
//!   that digest matches, so a stream that was cut or changed is never a result.
//! - Encoded runner frames contain no line ends, so a container log keeps them byte for byte and is not much larger than the output.
//!
//! The crate opens no socket and no file. The runner is copied into every sandbox, so dependencies stay few.

mod base64;
mod frame;
mod isolation;
mod line_escape;
mod mask;
mod message;
mod network;
mod receipt;
mod run;
mod stream;

pub use frame::{Decoder, Direction, Frame, FrameError, HEADER_BYTES, Kind, encode};
pub use isolation::{Isolation, Level};
pub use mask::{MASK, MIN_MASKED_BYTES, Masker};
pub use message::{
    Accepted, Hello, MessageError, OperatorMessage, Ready, RefusalReason, Refused, RunnerMessage,
};
pub use network::{
    Channel, ChannelOpened, CloseKind, EXTENDED_CHANNELS, EXTRA_WINDOW_BYTES, HostRule, INITIAL_WINDOW_BYTES,
    MAX_CHANNELS, MAX_NETWORK_DATA, NetworkRequest, NetworkResponse, OpenChannel, RefusedConnection,
    RunNetwork, Verdict, host_address, host_index, named_hosts,
};
pub use receipt::{Receipt, RunOutcome, StreamSummary, TERMINATION_MESSAGE_BYTES};
pub use run::{FileContent, InvalidRun, Program, Run, RunFile, RunLimits};
pub use stream::{StreamError, StreamReader, StreamWriter};

/// The only folder of a sandbox that a program may write to.
pub const SCRATCH: &str = "/dev/shm";

/// Name of a program's working directory in that folder.
pub const WORK_FOLDER: &str = "work";

/// Largest payload of a `Run` frame: program, files, input and environment together.
pub const MAX_RUN_BYTES: usize = 8 * 1024 * 1024;

/// Largest payload of one output frame; longer output is cut into several.
pub const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// Largest payload of a tail frame: the end of a stream that was larger than its cap.
pub const MAX_TAIL_BYTES: usize = 4 * 1024;

/// Largest payload of every other frame.
pub const MAX_CONTROL_BYTES: usize = 64 * 1024;
