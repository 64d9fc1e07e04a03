//! The store of workspaces: the files of callers, in a folder or in an S3 bucket, the server for them, and its client.
//!
//! The store knows no caller and no cluster: operator and gateway name the workspace by its id. It follows no link.

mod client;
mod error;
mod id;
mod wire;

pub use client::{WorkspaceClient, WorkspaceSettings};
pub use error::{Quota, WorkspaceError};
pub use id::{InvalidWorkspaceId, WorkspaceId};
pub use wire::{Entry, STORE_NAME, WriteMode};
