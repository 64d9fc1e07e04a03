//! The agreement of client and server: paths, parameters, and the entries of a listing.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use url::form_urlencoded;

use crate::WorkspaceId;

/// Name in the certificate of the store.
pub const STORE_NAME: &str = "skillet-workspaces";
/// Reads a file with GET, writes it with PUT, removes a file or folder with DELETE.
pub(crate) const FILES_PATH: &str = "/v1/files";
/// Lists the entries of a folder with GET.
pub(crate) const ENTRIES_PATH: &str = "/v1/entries";
/// Most bytes of the JSON of a listing.
pub(crate) const MAX_LISTING_BYTES: usize = 16 << 20;

/// Handling of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteMode {
    /// The write fails if the file exists.
    Create,
    Overwrite,
    /// The content is added to the file, which is made if it does not exist.
    Append,
}

impl WriteMode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Overwrite => "overwrite",
            Self::Append => "append",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Create, Self::Overwrite, Self::Append].into_iter().find(|mode| mode.as_str() == text)
    }
}

/// A file or folder of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Path from the workspace's root, with `/` between its segments.
    pub path: String,
    /// Size of a file; the sum of the files in a folder.
    pub bytes: u64,
    /// Time of the last change; of a folder, the last change of a file in it.
    pub modified: Timestamp,
    pub is_folder: bool,
}

/// Body of the response to a write.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Written {
    /// Size of the file.
    pub(crate) bytes: u64,
}

/// Parameters of a request, as the query of its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) workspace: WorkspaceId,
    pub(crate) path: String,
    pub(crate) most: Option<u64>,
    pub(crate) mode: Option<WriteMode>,
}

impl Parameters {
    pub(crate) fn new(workspace: &WorkspaceId, path: &str) -> Self {
        Self { workspace: workspace.clone(), path: path.to_owned(), most: None, mode: None }
    }

    pub(crate) fn to_query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("workspace", self.workspace.as_str()).append_pair("path", &self.path);
        if let Some(most) = self.most {
            query.append_pair("most", &most.to_string());
        }
        if let Some(mode) = self.mode {
            query.append_pair("mode", mode.as_str());
        }
        query.finish()
    }

    /// Returns `None` for parameters that no client of this version sends.
    pub(crate) fn from_query(query: &str) -> Option<Self> {
        let (mut workspace, mut path, mut most, mut mode) = (None, None, None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "workspace" if workspace.is_none() => workspace = Some(value.parse().ok()?),
                "path" if path.is_none() => path = Some(value.into_owned()),
                "most" if most.is_none() => most = Some(value.parse().ok()?),
                "mode" if mode.is_none() => mode = Some(WriteMode::parse(&value)?),
                _ => return None,
            }
        }
        Some(Self { workspace: workspace?, path: path?, most, mode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_arrive_as_they_were_sent() {
        let workspace = WorkspaceId::of_owner("team/agent");
        for path in ["", "a b&path=c", "ä/../%2e\0\n+", "漢字"] {
            let mut sent = Parameters::new(&workspace, path);
            assert_eq!(Parameters::from_query(&sent.to_query()), Some(sent.clone()));
            sent.most = Some(u64::MAX);
            sent.mode = Some(WriteMode::Append);
            assert_eq!(Parameters::from_query(&sent.to_query()), Some(sent));
        }
    }

    #[test]
    fn parameters_that_are_missing_twice_there_or_unknown_are_refused() {
        let id = WorkspaceId::of_owner("team/agent");
        assert!(Parameters::from_query(&format!("workspace={id}&path=a")).is_some());
        for query in [
            String::new(),
            format!("workspace={id}"),
            "path=a".to_owned(),
            "workspace=..&path=a".to_owned(),
            format!("workspace={id}&path=a&path=b"),
            format!("workspace={id}&workspace={id}&path=a"),
            format!("workspace={id}&path=a&mode=truncate"),
            format!("workspace={id}&path=a&most=-1"),
            format!("workspace={id}&path=a&owner=b"),
        ] {
            assert_eq!(Parameters::from_query(&query), None, "{query}");
        }
    }
}
