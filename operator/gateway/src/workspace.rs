//! The workspace of a caller in a namespace: the files that the executions which the gateway creates for it read and write.

use bytes::Bytes;
use skillet_core::builtin::{PathRefusal, WorkspacePath, workspace_owner};
use skillet_workspace::{Entry, WorkspaceClient, WorkspaceError, WorkspaceId, WriteMode};
use thiserror::Error;

use crate::{
    auth::{Caller, Verb},
    executions::caller_text,
    service::{ServiceError, SkillService},
};

/// Most bytes of a file that the gateway passes on.
pub(crate) const MAX_FILE_BYTES: usize = 32 << 20;

/// The reason why nothing was done with a workspace.
#[derive(Debug, Error)]
pub enum FileError {
    #[error("this gateway has no store of workspaces; the chart installs one with workspaces.enabled: true")]
    NoStore,
    #[error(transparent)]
    Path(#[from] PathRefusal),
    #[error(transparent)]
    Store(#[from] WorkspaceError),
}

/// The files of one caller in one namespace.
pub(crate) struct CallerWorkspace {
    client: WorkspaceClient,
    id: WorkspaceId,
}

impl SkillService {
    /// Returns the caller's workspace in its own namespace, or in the given one. As for its runs, a caller that may run only
    /// some skills of the namespace has to name one of these.
    pub(crate) async fn workspace(
        &self,
        caller: &Caller,
        namespace: Option<&str>,
        skill: Option<&str>,
    ) -> Result<CallerWorkspace, ServiceError> {
        self.namespaces_of(caller, namespace)?;
        let namespace = namespace.unwrap_or(&caller.namespace);
        self.auth.authorize(caller, Verb::Execute, namespace, skill).await?;
        let client = self.workspaces.clone().ok_or(FileError::NoStore)?;
        Ok(CallerWorkspace { client, id: workspace_id(namespace, caller) })
    }
}

impl CallerWorkspace {
    /// Returns the files and folders below a folder; below the root if it is empty.
    pub(crate) async fn list(&self, folder: &str) -> Result<Vec<Entry>, FileError> {
        let folder = match folder {
            "" => String::new(),
            folder => WorkspacePath::parse(folder)?.to_string(),
        };
        Ok(self.client.list(&self.id, &folder).await?)
    }

    /// Returns the bytes of a file.
    pub(crate) async fn size(&self, path: &str) -> Result<u64, FileError> {
        let path = WorkspacePath::parse(path)?;
        let entries = self.client.list(&self.id, path.as_str()).await?;
        match entries.as_slice() {
            [file] if file.path == path.as_str() && !file.is_folder => Ok(file.bytes),
            _ => Err(WorkspaceError::NotAFile { path: path.to_string() }.into()),
        }
    }

    /// Returns the content of a file that has at most `most` bytes.
    pub(crate) async fn read(&self, path: &str, most: u64) -> Result<Bytes, FileError> {
        Ok(self.client.read(&self.id, WorkspacePath::parse(path)?.as_str(), most).await?)
    }

    /// Writes a file and its folders, and returns its path and size.
    pub(crate) async fn write(
        &self,
        path: &str,
        content: Bytes,
        mode: WriteMode,
    ) -> Result<(WorkspacePath, u64), FileError> {
        let path = WorkspacePath::parse(path)?;
        let bytes = self.client.write(&self.id, path.as_str(), content, mode).await?;
        Ok((path, bytes))
    }

    /// Removes a file, or a folder with its content.
    pub(crate) async fn remove(&self, path: &str) -> Result<(), FileError> {
        Ok(self.client.remove(&self.id, WorkspacePath::parse(path)?.as_str()).await?)
    }
}

/// The workspace of the executions that the gateway creates for a caller in a namespace.
fn workspace_id(namespace: &str, caller: &Caller) -> WorkspaceId {
    WorkspaceId::of_owner(&workspace_owner(namespace, Some(&caller_text(caller))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        executions::{ExecutionRequest, created_object},
        testing::TestGateway,
    };

    #[test]
    fn a_callers_workspace_is_that_of_the_executions_made_for_it() {
        for (account, namespace) in
            [("team/agent", "team"), ("team/agent", "platform"), ("team/other", "team")]
        {
            let caller = TestGateway::caller(account);
            let made = created_object(&ExecutionRequest::new(caller.clone(), namespace, "s"));
            let of_run =
                workspace_owner(made.metadata.namespace.as_deref().unwrap(), made.spec.caller.as_deref());
            assert_eq!(of_run, format!("{namespace}/{account}"));
            assert_eq!(workspace_id(namespace, &caller), WorkspaceId::of_owner(&of_run));
        }
    }
}
