//! The language between the operator and the runner of one sandbox.
//!
//! Bytes in, bytes out: no sockets, no files, no cluster. The operator and the runner both use it, so it stays
//! small and never panics on what the other side sends.
//!
//! Down (operator to runner): [`Down::Hello`], [`Down::Run`], [`Down::Cancel`].
//! Up (runner to operator): [`Up::Ready`], then for an accepted run [`Up::Accepted`], output, [`Up::Exit`].
//! The bytes from `Accepted` to just before `Exit` are digested by [`StreamWriter`] and checked by [`StreamReader`].

mod base64;
mod carriage;
mod frame;
mod isolation;
mod mask;
mod message;
mod receipt;
mod run;
mod stream;

pub use frame::{Decoder, Direction, Frame, FrameError, HEADER_BYTES, Kind, encode};
pub use isolation::{Isolation, Level};
pub use mask::{MASK, MIN_MASKED_BYTES, Masker};
pub use message::{Accepted, Down, Hello, MessageError, Ready, Refusal, Refused, Up};
pub use receipt::{Outcome, Receipt, StreamSummary, TERMINATION_MESSAGE_BYTES};
pub use run::{Content, File, InvalidRun, Limits, Program, Run};
pub use stream::{StreamError, StreamReader, StreamWriter};

/// Largest payload of a `Run` frame: program, files, input and environment together.
pub const MAX_RUN_BYTES: usize = 8 * 1024 * 1024;

/// Largest payload of one output frame; longer output is cut into several.
pub const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// Largest payload of a tail frame: the end of a stream that was larger than its cap.
pub const MAX_TAIL_BYTES: usize = 4 * 1024;

/// Largest payload of every other frame.
pub const MAX_CONTROL_BYTES: usize = 64 * 1024;
