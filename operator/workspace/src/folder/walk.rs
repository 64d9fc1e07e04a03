//! Walks over the files of a workspace and over the marks of all workspaces. Links and other special files are not entered.

use jiff::Timestamp;
use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, Dir, FileType},
    io::Errno,
};

use super::{
    Places,
    beneath::{self, Leaf},
    failed,
};
use crate::{
    WorkspaceError, WorkspaceId,
    backend::{StoredFile, Usage},
    path::StorePath,
};

impl Places {
    pub(super) fn list(
        &self,
        id: &WorkspaceId,
        folder: Option<&StorePath>,
        most: usize,
    ) -> Result<Vec<StoredFile>, WorkspaceError> {
        let mut files = Vec::new();
        let Some(workspace) = self.workspace(id)? else { return Ok(files) };
        let mut start = String::new();
        if let Some(folder) = folder {
            let Some(parent) = beneath::existing_folder(&workspace, folder)? else { return Ok(files) };
            match beneath::regular_file(&parent, folder) {
                Err(WorkspaceError::NotAFile { .. }) => folder.as_str().clone_into(&mut start),
                Err(error) => return Err(error),
                Ok(file) => return Ok(file.map(|leaf| leaf.stored(folder.as_str())).into_iter().collect()),
            }
        }
        let at = start.clone();
        walk(&workspace, start, |path, leaf| {
            if files.len() == most {
                return Err(WorkspaceError::TooMany { path: at.clone(), most: most as u64 });
            }
            files.push(leaf.stored(path));
            Ok(())
        })?;
        Ok(files)
    }

    pub(super) fn usage(&self, id: &WorkspaceId) -> Result<Usage, WorkspaceError> {
        let mut usage = Usage::default();
        if let Some(workspace) = self.workspace(id)? {
            walk(&workspace, String::new(), |_, leaf| {
                usage.files += 1;
                usage.bytes = usage.bytes.saturating_add(leaf.bytes);
                Ok(())
            })?;
        }
        Ok(usage)
    }

    pub(super) fn workspaces(&self) -> Result<Vec<(WorkspaceId, Timestamp)>, WorkspaceError> {
        let failed = |error| failed("list the marks of", "workspaces", error);
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.used).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_str().unwrap_or_default();
            let Ok(id) = name.parse::<WorkspaceId>() else { continue };
            match rustix::fs::statat(&self.used, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => found.push((id, beneath::modified(&stat))),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(found)
    }
}

/// Visits every regular file below a folder. Folders that are gone, or that are links meanwhile, are left out.
fn walk(
    workspace: &OwnedFd,
    start: String,
    mut visit: impl FnMut(&str, Leaf) -> Result<(), WorkspaceError>,
) -> Result<(), WorkspaceError> {
    let mut folders = vec![start];
    while let Some(folder) = folders.pop() {
        let path = if folder.is_empty() { "." } else { &folder };
        let opened = match beneath::open_folder(workspace, path) {
            Ok(opened) => opened,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NAMETOOLONG) => continue,
            Err(error) => return Err(failed("list", path, error)),
        };
        for entry in Dir::read_from(&opened).map_err(|error| failed("list", path, error))? {
            let entry = entry.map_err(|error| failed("list", path, error))?;
            // A name that is no text has no path that a client could send.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            let found = match rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => found,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(failed("list", &path, error)),
            };
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => folders.push(path),
                FileType::RegularFile => visit(&path, Leaf::of(&found))?,
                _ => {}
            }
        }
    }
    Ok(())
}
