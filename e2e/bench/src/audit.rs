//! The API server's audit log, read from where it ended when the measurement began.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::Deserialize;

/// A request that was answered.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    pub(crate) verb: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: Object,
}

#[derive(Clone, Debug, Deserialize)]
struct User {
    username: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Object {
    #[serde(default)]
    resource: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

impl Request {
    /// The caller: a user and its program.
    pub(crate) fn requester(&self) -> (&str, &str) {
        (&self.user.username, &self.user_agent)
    }

    /// Such as `skillexecutions/status`.
    pub(crate) fn resource(&self) -> String {
        let Object { resource, subresource, .. } = &self.object_ref;
        if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.object_ref.namespace
    }

    pub(crate) fn name(&self) -> &str {
        &self.object_ref.name
    }

    pub(crate) fn is_attach(&self) -> bool {
        self.object_ref.subresource == "attach"
    }

    pub(crate) fn is_write(&self) -> bool {
        !self.is_attach()
            && matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }
}

/// The log, and where it ended.
pub(crate) struct Log {
    path: PathBuf,
    end: u64,
}

impl Log {
    pub(crate) fn at_its_end(path: &Path) -> anyhow::Result<Self> {
        let lacking = || {
            format!(
                "there is no audit log at {}: it takes the local node, or SKILLET_CLUSTER_DIR",
                path.display()
            )
        };
        let end = File::open(path).and_then(|file| file.metadata()).with_context(lacking)?.len();
        Ok(Self { path: path.to_owned(), end })
    }

    /// The lines written since.
    pub(crate) fn since(&self) -> anyhow::Result<Vec<Request>> {
        let mut file = File::open(&self.path)?;
        // A log that is shorter than before was begun anew.
        let start = if file.metadata()?.len() < self.end { 0 } else { self.end };
        file.seek(SeekFrom::Start(start))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // The last line may be half written.
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}
