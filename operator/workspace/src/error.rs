//! Failures of the store, as its server sends them and its client returns them.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A limit of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quota {
    Bytes,
    Files,
}

impl Quota {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Files => "files",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(tag = "error", rename_all_fields = "camelCase")]
pub enum WorkspaceError {
    #[error("the workspace has no {path}")]
    NotFound { path: String },
    #[error("{path} exists already; write with overwrite, or to another path")]
    Exists { path: String },
    #[error("{path} is a folder and not a file")]
    NotAFile { path: String },
    #[error("{path} would have {bytes} bytes, and at most {most} are allowed")]
    TooLarge { path: String, bytes: u64, most: u64 },
    #[error("{path} holds more than {most} files and folders; list a folder below it")]
    TooMany { path: String, most: u64 },
    #[error("writing {path} would fill the workspace with {would} {quota}, and its quota is {most}; remove files of the workspace", quota = quota.as_str())]
    QuotaExceeded { path: String, quota: Quota, would: u64, most: u64 },
    #[error("the path {path:?} is refused: {cause}")]
    PathRefused { path: String, cause: String },
    #[error("the store of workspaces is not available: {cause}")]
    Unavailable { cause: String },
}

impl WorkspaceError {
    /// Returns the name of the variant, for metrics and conditions of callers.
    pub fn word(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "NotFound",
            Self::Exists { .. } => "Exists",
            Self::NotAFile { .. } => "NotAFile",
            Self::TooLarge { .. } => "TooLarge",
            Self::TooMany { .. } => "TooMany",
            Self::QuotaExceeded { .. } => "QuotaExceeded",
            Self::PathRefused { .. } => "PathRefused",
            Self::Unavailable { .. } => "Unavailable",
        }
    }

    pub(crate) fn unavailable(cause: impl Into<String>) -> Self {
        Self::Unavailable { cause: cause.into() }
    }

    pub(crate) fn refused(path: &str, cause: impl Into<String>) -> Self {
        Self::PathRefused { path: path.to_owned(), cause: cause.into() }
    }
}
