//! The workspace of an execution: the files of its caller in its namespace, which the store of workspaces keeps.

use bytes::Bytes;
use skillet_api::{Reason, SkillExecution};
use skillet_core::{
    admission::Refusal,
    builtin::{MAX_FILE_BYTES, WorkspacePath, workspace_owner},
};
use skillet_workspace::{WorkspaceClient, WorkspaceError, WorkspaceId, WriteMode};

use super::reference::ExecutionRef;
use crate::context::Context;

/// The files of one caller.
pub(super) struct CallerWorkspace {
    client: WorkspaceClient,
    id: WorkspaceId,
}

impl CallerWorkspace {
    /// Fails if this operator has no store.
    pub(super) fn of(
        ctx: &Context,
        reference: &ExecutionRef,
        execution: &SkillExecution,
    ) -> Result<Self, Refusal> {
        let client = ctx.workspaces.clone().ok_or_else(|| {
            let message = "this operator has no store of workspaces; the chart installs one with workspaces.enabled: true";
            Refusal::new(Reason::WorkspaceUnavailable, message)
        })?;
        let owner = workspace_owner(reference.namespace(), execution.spec.caller.as_deref());
        Ok(Self { client, id: WorkspaceId::of_owner(&owner) })
    }

    /// Returns the content of a file that is small enough for an output.
    pub(super) async fn read(&self, path: &WorkspacePath) -> Result<Bytes, Refusal> {
        let read = self.client.read(&self.id, path.as_str(), MAX_FILE_BYTES).await;
        read.map_err(|error| match error {
            WorkspaceError::TooLarge { .. } => {
                let message = format!("Skill file exceeds the {MAX_FILE_BYTES} byte read limit: {error}");
                Refusal::new(Reason::FileTooLarge, message)
            }
            error => refusal(&error),
        })
    }

    /// Writes a file and its folders.
    pub(super) async fn write(
        &self,
        path: &WorkspacePath,
        content: Bytes,
        mode: WriteMode,
    ) -> Result<(), Refusal> {
        let written = self.client.write(&self.id, path.as_str(), content, mode).await;
        written.map(|_size| ()).map_err(|error| match error {
            WorkspaceError::Unavailable { .. } => {
                let message =
                    format!("{error}; {path} may have been written: read it before you write it again");
                Refusal::new(Reason::WorkspaceUnavailable, message)
            }
            error => refusal(&error),
        })
    }
}

fn refusal(error: &WorkspaceError) -> Refusal {
    let reason = match error {
        WorkspaceError::NotFound { .. } => Reason::FileNotFound,
        WorkspaceError::Exists { .. } => Reason::FileExists,
        WorkspaceError::TooLarge { .. } | WorkspaceError::TooMany { .. } => Reason::FileTooLarge,
        WorkspaceError::QuotaExceeded { .. } => Reason::WorkspaceFull,
        WorkspaceError::NotAFile { .. } | WorkspaceError::PathRefused { .. } => Reason::InputInvalid,
        WorkspaceError::Unavailable { .. } => Reason::WorkspaceUnavailable,
    };
    Refusal::new(reason, error.to_string())
}

#[cfg(test)]
mod tests {
    use skillet_workspace::Quota;

    use super::*;

    #[test]
    fn a_failure_of_the_store_is_a_reason_with_the_words_of_the_store() {
        let path = || "a.txt".to_owned();
        for (error, reason) in [
            (WorkspaceError::NotFound { path: path() }, Reason::FileNotFound),
            (WorkspaceError::Exists { path: path() }, Reason::FileExists),
            (WorkspaceError::NotAFile { path: path() }, Reason::InputInvalid),
            (WorkspaceError::TooLarge { path: path(), bytes: 2, most: 1 }, Reason::FileTooLarge),
            (WorkspaceError::TooMany { path: path(), most: 1 }, Reason::FileTooLarge),
            (
                WorkspaceError::QuotaExceeded { path: path(), quota: Quota::Bytes, would: 2, most: 1 },
                Reason::WorkspaceFull,
            ),
            (WorkspaceError::PathRefused { path: path(), cause: "a link".into() }, Reason::InputInvalid),
            (WorkspaceError::Unavailable { cause: "full disk".into() }, Reason::WorkspaceUnavailable),
        ] {
            assert_eq!(refusal(&error), Refusal::new(reason, error.to_string()));
        }
    }
}
