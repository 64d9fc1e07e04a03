//! The store of workspaces: the files of callers, in a folder or in an S3 bucket, the server for them, and its client.
//!
//! The store knows no caller and no cluster: operator and gateway name the workspace by its id. It follows no link.

mod backend;
mod bucket;
mod client;
mod error;
mod folder;
mod id;
mod memory;
mod metrics;
mod path;
#[cfg(any(test, feature = "testing"))]
mod served;
mod server;
mod store;
#[cfg(test)]
mod testing;
mod wire;

pub use bucket::{Bucket, BucketError, BucketSettings};
pub use client::{WorkspaceClient, WorkspaceSettings};
pub use error::{Quota, WorkspaceError};
pub use folder::{Folder, FolderError};
pub use id::{InvalidWorkspaceId, WorkspaceId};
pub use metrics::Metrics;
#[cfg(any(test, feature = "testing"))]
pub use served::{Authority, LIMITS, Served};
pub use server::{Place, Server, ServerError, ServerSettings};
pub use store::Limits;
pub use wire::{Entry, STORE_NAME, WriteMode};
