//! Paths inside a workspace: the same rules for a folder and a bucket, whatever a client has checked before.

use std::fmt;

use crate::WorkspaceError;

/// Most bytes of a path: a key of S3 has 1024, and the prefix of the bucket and the workspace need some.
const MAX_PATH_BYTES: usize = 800;
/// Most bytes of a name on the file systems of Linux.
const MAX_SEGMENT_BYTES: usize = 255;
const MAX_SEGMENTS: usize = 32;

/// A path of names, none of which leads up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StorePath(String);

impl StorePath {
    pub(crate) fn parse(path: &str) -> Result<Self, WorkspaceError> {
        let cause = if path.is_empty() {
            "it is empty"
        } else if path.len() > MAX_PATH_BYTES {
            // The whole path would fill the message.
            let start: String = path.chars().take(40).collect();
            let cause = format!("it has {} bytes, and at most {MAX_PATH_BYTES} are allowed", path.len());
            return Err(WorkspaceError::refused(&format!("{start}…"), cause));
        } else if path.starts_with('/') {
            "it is absolute; write it from the root of the workspace"
        } else if path.chars().any(char::is_control) {
            "it has a control character"
        } else if path.split('/').any(str::is_empty) {
            "it has an empty segment"
        } else if path.split('/').any(|segment| segment == "." || segment == "..") {
            "it has the segment . or .."
        } else if path.split('/').any(|segment| segment.len() > MAX_SEGMENT_BYTES) {
            "a segment has more than 255 bytes"
        } else if path.split('/').count() > MAX_SEGMENTS {
            "it has more than 32 segments"
        } else {
            return Ok(Self(path.to_owned()));
        };
        Err(WorkspaceError::refused(path, cause))
    }

    /// Reads the path of a folder, where `""` is the root of the workspace.
    pub(crate) fn parse_folder(path: &str) -> Result<Option<Self>, WorkspaceError> {
        if path.is_empty() { Ok(None) } else { Self::parse(path).map(Some) }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the folder, if the path has one, and the name in it.
    pub(crate) fn split(&self) -> (Option<&str>, &str) {
        match self.0.rsplit_once('/') {
            Some((folder, name)) => (Some(folder), name),
            None => (None, &self.0),
        }
    }

    /// Returns the folders of the path, from the root downwards.
    pub(crate) fn folders(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.match_indices('/').map(|(at, _)| &self.0[..at])
    }
}

impl fmt::Display for StorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(path: &str) -> String {
        match StorePath::parse(path) {
            Err(WorkspaceError::PathRefused { cause, .. }) => cause,
            other => panic!("{path:?}: {other:?}"),
        }
    }

    #[test]
    fn names_below_the_root_are_paths() {
        for path in ["a", "a/b.txt", "..a", "...", " x/ä b", ".env", "a\\b", "a%2e", &["s"; 32].join("/")] {
            assert_eq!(StorePath::parse(path).unwrap().as_str(), path);
        }
        assert_eq!(StorePath::parse_folder(""), Ok(None));
    }

    #[test]
    fn a_path_that_leads_elsewhere_is_refused_with_its_cause() {
        for (path, part) in [
            ("", "empty"),
            ("/etc/passwd", "absolute"),
            ("..", "segment . or .."),
            ("a/../../b", "segment . or .."),
            ("./a", "segment . or .."),
            ("a//b", "empty segment"),
            ("a/", "empty segment"),
            ("a\0b", "control"),
            ("a\nb", "control"),
        ] {
            assert!(cause(path).contains(part), "{path:?}: {}", cause(path));
        }
        assert!(cause(&"x".repeat(256)).contains("255"));
        assert!(cause(&["s"; 33].join("/")).contains("32 segments"));
        assert!(cause(&"x/".repeat(500)).contains("1000 bytes"));
    }

    #[test]
    fn a_long_path_does_not_fill_its_message() {
        let error = StorePath::parse(&"x".repeat(100_000)).unwrap_err();
        assert!(error.to_string().len() < 200, "{error}");
    }

    #[test]
    fn a_path_knows_its_folders() {
        let path = StorePath::parse("a/b/c").unwrap();
        assert_eq!(path.folders().collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!(path.split(), (Some("a/b"), "c"));
        let path = StorePath::parse("c").unwrap();
        assert_eq!(path.folders().count(), 0);
        assert_eq!(path.split(), (None, "c"));
    }
}
