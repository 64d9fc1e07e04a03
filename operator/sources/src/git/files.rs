//! The files of a commit: a walk of its trees that ends, whatever the trees hold.

use std::sync::atomic::{AtomicBool, Ordering};

use gix::{ObjectId, Repository, object::tree::EntryKind};
use skillet_instructions::tree::{FILE_SIZE_LIMIT, FileTree};

use super::invalid;
use crate::{
    failure::Failure,
    fetch::{Files, directory},
    selection::Selection,
};

/// Most entries of directories that are looked at: a tree may name itself many times over in a few bytes.
const ENTRY_LIMIT: usize = 100_000;
const DEPTH_LIMIT: usize = 32;
/// Longest target of a link, in bytes.
const LINK_LIMIT: u64 = 4096;

pub(super) fn read(
    repository: &Repository,
    commit: ObjectId,
    revision: String,
    path: &str,
    selection: &Selection,
    interrupted: &AtomicBool,
) -> Result<Files, Failure> {
    let object = repository.find_object(commit).map_err(|error| invalid(&error))?;
    let mut tree = object.peel_to_tree().map_err(|error| invalid(&error))?;
    let path = directory(path);
    if !path.is_empty() {
        let missing = || Failure::PathNotFound { revision: revision.clone(), path: path.to_owned() };
        let entry = tree.lookup_entry_by_path(path).map_err(|error| invalid(&error))?.ok_or_else(missing)?;
        if !entry.mode().is_tree() {
            return Err(missing());
        }
        tree = entry.object().map_err(|error| invalid(&error))?.into_tree();
    }
    let mut walk = Walk {
        repository,
        selection,
        interrupted,
        entries: 0,
        files: Files { revision, tree: FileTree::default(), image: None, refused: Vec::new() },
    };
    walk.directory(tree.id, "", 0)?;
    Ok(walk.files)
}

struct Walk<'a> {
    repository: &'a Repository,
    selection: &'a Selection,
    interrupted: &'a AtomicBool,
    entries: usize,
    files: Files,
}

impl Walk<'_> {
    fn directory(&mut self, id: ObjectId, path: &str, depth: usize) -> Result<(), Failure> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Failure::TimedOut);
        }
        if depth > DEPTH_LIMIT {
            self.files
                .refused
                .push((path.to_owned(), format!("lies more than {DEPTH_LIMIT} directories deep")));
            return Ok(());
        }
        let tree = self.repository.find_tree(id).map_err(|error| invalid(&error))?;
        for entry in tree.iter() {
            let entry = entry.map_err(|error| invalid(&error))?;
            self.entries += 1;
            if self.entries > ENTRY_LIMIT {
                return Err(Failure::TooLarge(format!(
                    "the repository has more than {ENTRY_LIMIT} files and directories; set spec.path or spec.exclude"
                )));
            }
            let Ok(name) = std::str::from_utf8(entry.filename()) else {
                let name = entry.filename().to_string();
                self.files.refused.push((join(path, &name), "has a name that is not UTF-8".to_owned()));
                continue;
            };
            let (inner, kind, id) = (join(path, name), entry.mode().kind(), entry.object_id());
            match kind {
                EntryKind::Tree if self.selection.has_directory(&inner) => {
                    self.directory(id, &inner, depth + 1)?;
                }
                EntryKind::Blob | EntryKind::BlobExecutable if self.selection.has_file(&inner) => {
                    self.file(id, &inner)?;
                }
                EntryKind::Link if self.selection.has_file(&inner) => self.link(id, &inner)?,
                // A submodule is another repository.
                EntryKind::Tree
                | EntryKind::Blob
                | EntryKind::BlobExecutable
                | EntryKind::Link
                | EntryKind::Commit => {}
            }
        }
        Ok(())
    }

    fn file(&mut self, id: ObjectId, path: &str) -> Result<(), Failure> {
        let size = self.repository.find_header(id).map_err(|error| invalid(&error))?.size();
        let added = if size > FILE_SIZE_LIMIT as u64 {
            self.files.tree.add_large_file(path)
        } else {
            let mut blob = self.repository.find_blob(id).map_err(|error| invalid(&error))?;
            self.files.tree.add_file(path, blob.take_data())
        };
        self.files.keep(path, added)
    }

    fn link(&mut self, id: ObjectId, path: &str) -> Result<(), Failure> {
        let size = self.repository.find_header(id).map_err(|error| invalid(&error))?.size();
        let target = if size > LINK_LIMIT {
            String::new()
        } else {
            let blob = self.repository.find_blob(id).map_err(|error| invalid(&error))?;
            String::from_utf8_lossy(&blob.data).into_owned()
        };
        let added = self.files.tree.add_link(path, &target);
        self.files.keep(path, added)
    }
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}
