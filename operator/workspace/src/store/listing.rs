//! Entries of a listing from the files of a workspace: the folders are those of the files' paths.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{Entry, WorkspaceError, backend::StoredFile, path::StorePath};

/// Most bytes of all paths of a listing.
const MAX_PATH_BYTES: usize = 1 << 20;

/// Returns files and their folders below `folder`, in the order of their paths.
pub(super) fn entries(
    files: Vec<StoredFile>,
    folder: Option<&StorePath>,
    most: usize,
) -> Result<Vec<Entry>, WorkspaceError> {
    let root = folder.map_or("", StorePath::as_str);
    let (mut entries, mut path_bytes) = (BTreeMap::new(), 0);
    for StoredFile { path, bytes, modified } in files {
        for (at, _) in path.match_indices('/').filter(|(at, _)| *at > root.len()) {
            let path = path[..at].to_owned();
            let entry = entries.entry(path.clone()).or_insert_with(|| {
                path_bytes += path.len();
                Entry { path, bytes: 0, modified: Timestamp::MIN, is_folder: true }
            });
            entry.bytes = entry.bytes.saturating_add(bytes);
            entry.modified = entry.modified.max(modified);
        }
        path_bytes += path.len();
        entries.insert(path.clone(), Entry { path, bytes, modified, is_folder: false });
        if entries.len() > most || path_bytes > MAX_PATH_BYTES {
            let most = most.min(entries.len() - 1) as u64;
            return Err(WorkspaceError::TooMany { path: root.to_owned(), most });
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

    #[test]
    fn long_paths_count_by_their_bytes() {
        let folders = vec!["x".repeat(20); 30].join("/");
        let paths: Vec<String> = (0..200).map(|number| format!("{number}/{folders}")).collect();
        let files = files(&paths.iter().map(String::as_str).collect::<Vec<_>>());
        let error = entries(files, None, 100_000).unwrap_err();
        assert!(error.to_string().contains("files and folders"), "{error}");
    }
}
