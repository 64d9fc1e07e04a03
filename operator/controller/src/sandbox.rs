//! A sandbox: one Job with one pod, used once. Created, followed, attached to, read and removed here.
//!
//! Nothing here knows what an execution is. A run takes a ready stream from [`attach`], whether the sandbox was created
//! a moment ago or long before.

pub mod attach;
pub mod capacity;
pub mod create;
pub mod logs;
pub mod manifest;
pub mod pod_state;
pub mod pod_watch;
pub mod remove;
pub mod runner_stream;

pub use attach::{AttachError, BindLimits, attach, wait_until_bound};
pub use create::{CreateError, create};
pub use pod_state::{Ended, PodState, is_node_unreachable};
pub use pod_watch::{PodReceiver, PodWatch};
pub use remove::Remover;
pub use runner_stream::{RunnerStream, StreamEnd};
