//! The place of the files: a folder or a bucket. Quota, locks and expiry are the store's.

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;

use crate::{WorkspaceError, WorkspaceId, WriteMode, path::StorePath};

/// A file of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) modified: Timestamp,
}

/// The files of a workspace as its quota counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
}

/// A place for files. The store calls it for one write or removal of a workspace at a time.
#[async_trait]
pub(crate) trait Backend: Send + Sync {
    /// Returns the file of the path, if there is one.
    async fn file(&self, id: &WorkspaceId, path: &StorePath) -> Result<Option<StoredFile>, WorkspaceError>;

    async fn read(&self, id: &WorkspaceId, path: &StorePath, most: u64) -> Result<Bytes, WorkspaceError>;

    /// Writes all of the content or nothing, and returns the size of the file, which is `most` at most.
    async fn write(
        &self,
        id: &WorkspaceId,
        path: &StorePath,
        content: Bytes,
        mode: WriteMode,
        most: u64,
    ) -> Result<u64, WorkspaceError>;

    /// Returns the files below a folder, in any order, and fails if they are more than `most`.
    async fn files(
        &self,
        id: &WorkspaceId,
        folder: Option<&StorePath>,
        most: usize,
    ) -> Result<Vec<StoredFile>, WorkspaceError>;

    async fn usage(&self, id: &WorkspaceId) -> Result<Usage, WorkspaceError>;

    /// Removes a file, a folder with its content, or the whole workspace.
    async fn remove(&self, id: &WorkspaceId, path: Option<&StorePath>) -> Result<(), WorkspaceError>;

    /// Notes that the workspace is used now.
    async fn mark_used(&self, id: &WorkspaceId) -> Result<(), WorkspaceError>;

    /// Removes the note of the last use.
    async fn forget(&self, id: &WorkspaceId) -> Result<(), WorkspaceError>;

    /// Returns all workspaces with the time of their last use.
    async fn workspaces(&self) -> Result<Vec<(WorkspaceId, Timestamp)>, WorkspaceError>;
}
