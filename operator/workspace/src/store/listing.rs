//! Entries of a listing from the files of a workspace: the folders are those of the files' paths.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{Entry, WorkspaceError, backend::StoredFile, path::StorePath};

/// Returns files and their folders below `folder`, in the order of their paths.
pub(super) fn entries(
    files: Vec<StoredFile>,
    folder: Option<&StorePath>,
    most: usize,
) -> Result<Vec<Entry>, WorkspaceError> {
    let root = folder.map_or("", StorePath::as_str);
    let mut entries = BTreeMap::new();
    for StoredFile { path, bytes, modified } in files {
        for (at, _) in path.match_indices('/').filter(|(at, _)| *at > root.len()) {
            let path = path[..at].to_owned();
            let is_new = |path| Entry { path, bytes: 0, modified: Timestamp::MIN, is_folder: true };
            let entry = entries.entry(path.clone()).or_insert_with(|| is_new(path));
            entry.bytes = entry.bytes.saturating_add(bytes);
            entry.modified = entry.modified.max(modified);
        }
        entries.insert(path.clone(), Entry { path, bytes, modified, is_folder: false });
        if entries.len() > most {
            return Err(WorkspaceError::TooMany { path: root.to_owned(), most: most as u64 });
        }
    }
    Ok(entries.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> Vec<StoredFile> {
        let file = |(at, path): (usize, &&str)| StoredFile {
            path: (*path).to_owned(),
            bytes: 10,
            modified: Timestamp::from_second(i64::try_from(at).unwrap()).unwrap(),
        };
        paths.iter().enumerate().map(file).collect()
    }

    fn shown(paths: &[&str], folder: &str) -> Vec<String> {
        let folder = StorePath::parse_folder(folder).unwrap();
        let show = |entry: Entry| {
            let kind = if entry.is_folder { "/" } else { "" };
            format!("{}{kind} {} {}", entry.path, entry.bytes, entry.modified.as_second())
        };
        entries(files(paths), folder.as_ref(), 100).unwrap().into_iter().map(show).collect()
    }

    #[test]
    fn folders_are_those_of_the_files_with_their_sum_and_newest_change() {
        assert_eq!(
            shown(&["b", "a/x/1", "a/2", "a/x/3"], ""),
            ["a/ 30 3", "a/2 10 2", "a/x/ 20 3", "a/x/1 10 1", "a/x/3 10 3", "b 10 0"]
        );
    }

    #[test]
    fn a_listing_of_a_folder_does_not_have_that_folder() {
        assert_eq!(shown(&["a/x/1", "a/2"], "a"), ["a/2 10 1", "a/x/ 10 0", "a/x/1 10 0"]);
        assert_eq!(shown(&["a/2"], "a/2"), ["a/2 10 0"]);
    }

    #[test]
    fn folders_count_as_entries() {
        let error = entries(files(&["a/b/c/d"]), None, 3).unwrap_err();
        assert!(error.to_string().contains("more than 3 files and folders"), "{error}");
    }
}
