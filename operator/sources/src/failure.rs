//! The end of a look at a repository that failed.

use std::fmt;

use skillet_api::Reason;
use skillet_instructions::tree::{FILE_LIMIT, SIZE_LIMIT, TreeError};
use thiserror::Error;

/// The field of a SkillSource that says where its files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Git,
    Oci,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Git => "spec.git",
            Self::Oci => "spec.oci",
        })
    }
}

/// The reason why the files of a source could not be read. Each message names the field and the fix where there is one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Failure {
    #[error(
        "the host {0} is not allowed; an administrator adds it to spec.sources.allowedHosts of SkillPolicy default"
    )]
    HostNotAllowed(String),
    #[error("{0}.url: {1}")]
    BadUrl(Place, String),
    #[error("{0}.ref: {1}")]
    BadReference(Place, String),
    #[error("{0}.secretRef: {1}")]
    Secret(Place, String),
    #[error("{0}")]
    Unavailable(String),
    #[error("the transfer took longer than spec.timeout")]
    TimedOut,
    #[error("{0}")]
    AccessDenied(String),
    #[error("the repository has no {1}; see {0}.ref")]
    RevisionNotFound(Place, String),
    #[error("revision {revision} has no directory {path}; see spec.path")]
    PathNotFound { revision: String, path: String },
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    TooLarge(String),
}

impl Failure {
    /// Returns one word for condition, event and metric.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::HostNotAllowed(_) => Reason::HostNotAllowed,
            Self::BadUrl(..) | Self::BadReference(..) => Reason::SpecInvalid,
            Self::Secret(..) => Reason::SecretMissing,
            Self::Unavailable(_) | Self::TimedOut => Reason::SourceUnavailable,
            Self::AccessDenied(_) => Reason::AccessDenied,
            Self::RevisionNotFound(..) => Reason::RevisionNotFound,
            Self::PathNotFound { .. } => Reason::PathNotFound,
            Self::Invalid(_) => Reason::SourceInvalid,
            Self::TooLarge(_) => Reason::SourceTooLarge,
        }
    }

    /// True if only an edit of the object, or of the policy, helps.
    pub(crate) fn waits_for_an_edit(&self) -> bool {
        matches!(self, Self::HostNotAllowed(_) | Self::BadUrl(..) | Self::BadReference(..))
    }
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Self {
        let found = match error {
            TreeError::TooManyFiles => format!("there are more than {FILE_LIMIT} files"),
            TreeError::TooLarge => format!("the files have more than {} MiB", SIZE_LIMIT >> 20),
            TreeError::BadPath(_) => error.to_string(),
        };
        Self::TooLarge(format!("{found}; set spec.path, spec.include or spec.exclude"))
    }
}
