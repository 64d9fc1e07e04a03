//! The two sides of a copy, as people write them: a path here, or `workspace:PATH`.

use std::{convert::Infallible, path::PathBuf, str::FromStr};

const PREFIX: &str = "workspace:";

/// A path in the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemotePath(String);

/// A side of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Here(PathBuf),
    Workspace(RemotePath),
}

impl RemotePath {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path without `/` at its end.
    pub(super) fn folder(&self) -> &str {
        self.0.trim_end_matches('/')
    }

    pub(super) fn is_folder(&self) -> bool {
        self.0.is_empty() || self.0.ends_with('/')
    }

    /// Returns the path of something in the folder.
    pub(super) fn join(&self, name: &str) -> String {
        match self.folder() {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.folder().rsplit('/').next().unwrap_or_default()
    }
}

impl FromStr for RemotePath {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.strip_prefix(PREFIX).unwrap_or(text).to_owned()))
    }
}

impl FromStr for Place {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.strip_prefix(PREFIX) {
            Some(path) => Self::Workspace(RemotePath(path.to_owned())),
            None => Self::Here(text.into()),
        })
    }
}
