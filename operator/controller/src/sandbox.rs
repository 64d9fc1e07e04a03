//! A sandbox: one Job with one pod, used once. How it is followed, opened, settled and removed.
//!
//! Nothing here knows what an execution is. A run takes a ready stream from [`open`] whether the sandbox was made
//! a moment ago or long before.

pub mod hub;
pub mod logs;
pub mod make;
pub mod manifest;
pub mod open;
pub mod remove;
pub mod state;
pub mod stream;

pub use hub::{Follower, PodHub};
pub use make::{MakeError, make};
pub use open::{OpenError, open};
pub use remove::Remover;
pub use state::{Ended, SandboxState, is_node_unreachable};
pub use stream::{HeldStream, StreamEnd};
