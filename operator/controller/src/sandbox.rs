//! A sandbox: one Job with one pod, used once. Created, followed, attached to, read and removed here.
//!
//! Nothing here knows what an execution is. A run takes a ready stream from [`mod@attach`], whether the sandbox was created
//! a moment ago or long before.

pub(crate) mod attach;
pub(crate) mod capacity;
pub(crate) mod create;
pub(crate) mod logs;
pub(crate) mod manifest;
pub(crate) mod pod_state;
pub(crate) mod pod_watch;
pub(crate) mod quota;
pub(crate) mod remove;
pub(crate) mod runner_stream;
pub(crate) mod start_word;

pub(crate) use attach::{AttachError, BindLimits, attach, wait_until_bound};
pub(crate) use create::{CreateError, create};
pub(crate) use pod_state::{Ended, PodState, image_id, is_node_unreachable};
pub(crate) use pod_watch::{PodReceiver, PodWatch};
pub(crate) use quota::QuotaRefusal;
pub(crate) use remove::Remover;
#[cfg(test)]
pub(crate) use runner_stream::AbortOnDrop;
pub(crate) use runner_stream::{RunnerSender, RunnerStream, StreamEnd};
pub(crate) use start_word::describe_start;
