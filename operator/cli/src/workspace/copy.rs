//! `kubectl skill workspace cp`: files and folders, to the workspace and from it.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use thiserror::Error;

use super::{
    files::Files,
    place::{Place, RemotePath},
};
use crate::{arguments::WorkspaceCpArgs, error::CliError, exit::Exit};

#[derive(Debug, Error)]
pub(crate) enum CopyError {
    #[error("one of SRC and DST must be in the workspace, written workspace:PATH, and the other one here")]
    SameSide,
    #[error("{} is a directory; -r copies it with its content", .0.display())]
    Directory(PathBuf),
    #[error("{} is no file and no directory", .0.display())]
    NoFile(PathBuf),
    #[error("could not read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("could not write {}: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("the workspace has a file {0:?}, which this system cannot name")]
    NoName(String),
    #[error("the workspace has no files below {0:?}")]
    NoFiles(String),
}

impl CopyError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::SameSide | Self::Directory(_) | Self::NoFile(_) | Self::Unreadable { .. } => Exit::Usage,
            Self::NoFiles(_) => Exit::Refused,
            Self::Unwritable { .. } | Self::NoName(_) => Exit::Failed,
        }
    }
}

/// Refuses what needs no cluster to be refused.
pub(super) fn check(args: &WorkspaceCpArgs) -> Result<(), CopyError> {
    match (&args.from, &args.to) {
        (Place::Here(_), Place::Here(_)) | (Place::Workspace(_), Place::Workspace(_)) => {
            Err(CopyError::SameSide)
        }
        (Place::Here(from), Place::Workspace(_)) if from.is_dir() && !args.recursive => {
            Err(CopyError::Directory(from.clone()))
        }
        (Place::Here(_), Place::Workspace(_)) | (Place::Workspace(_), Place::Here(_)) => Ok(()),
    }
}

/// Copies, and returns the number of files.
pub(super) async fn run(files: &Files, args: &WorkspaceCpArgs) -> Result<usize, CliError> {
    match (&args.from, &args.to) {
        (Place::Here(from), Place::Workspace(to)) => upload(files, from, to).await,
        (Place::Workspace(from), Place::Here(to)) if args.recursive => download_folder(files, from, to).await,
        (Place::Workspace(from), Place::Here(to)) => {
            let is_folder = to.is_dir() || to.as_os_str().to_string_lossy().ends_with('/');
            let place = if is_folder { below(to, from.name())? } else { to.clone() };
            write(&place, &files.read(from.as_str()).await?)?;
            Ok(1)
        }
        (Place::Here(_), Place::Here(_)) | (Place::Workspace(_), Place::Workspace(_)) => {
            Err(CopyError::SameSide.into())
        }
    }
}

async fn upload(files: &Files, from: &Path, to: &RemotePath) -> Result<usize, CliError> {
    let mut found = Vec::new();
    if from.is_dir() {
        find(from, "", &mut found)?;
        found.iter_mut().for_each(|(_, path)| *path = to.join(path));
    } else {
        let name = from.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| CopyError::NoFile(from.to_owned()))?;
        let path = if to.is_folder() { to.join(name) } else { to.as_str().to_owned() };
        found.push((from.to_owned(), path));
    }
    for (file, path) in &found {
        let content =
            fs::read(file).map_err(|source| CopyError::Unreadable { path: file.clone(), source })?;
        files.write(path, content).await?;
    }
    Ok(found.len())
}

/// Finds the files below a directory, with their paths from there. Links are left out.
fn find(directory: &Path, prefix: &str, found: &mut Vec<(PathBuf, String)>) -> Result<(), CopyError> {
    let unreadable = |source| CopyError::Unreadable { path: directory.to_owned(), source };
    let entries: Result<Vec<_>, _> = fs::read_dir(directory).map_err(unreadable)?.collect();
    let mut entries = entries.map_err(unreadable)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().map_err(unreadable)?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| CopyError::NoFile(entry.path()))?;
        if kind.is_dir() {
            find(&entry.path(), &format!("{prefix}{name}/"), found)?;
        } else if kind.is_file() {
            found.push((entry.path(), format!("{prefix}{name}")));
        }
    }
    Ok(())
}

async fn download_folder(files: &Files, from: &RemotePath, to: &Path) -> Result<usize, CliError> {
    let entries = files.list(from.folder()).await?;
    let mut count = 0;
    for entry in entries.iter().filter(|entry| !entry.is_folder) {
        let path = entry.path.strip_prefix(from.folder()).unwrap_or(&entry.path).trim_start_matches('/');
        // A file is listed as itself.
        let path = if path.is_empty() { from.name() } else { path };
        let place = below(to, path)?;
        write(&place, &files.read(&entry.path).await?)?;
        count += 1;
    }
    if count == 0 { Err(CopyError::NoFiles(from.as_str().to_owned()).into()) } else { Ok(count) }
}

/// Returns the place of a path of the workspace in a directory here. None of its parts may lead out of the directory.
fn below(directory: &Path, path: &str) -> Result<PathBuf, CopyError> {
    let mut place = directory.to_owned();
    for part in path.split('/') {
        let mut components = Path::new(part).components();
        match (components.next(), components.next()) {
            (Some(Component::Normal(name)), None) => place.push(name),
            _ => return Err(CopyError::NoName(path.to_owned())),
        }
    }
    Ok(place)
}

fn write(place: &Path, content: &[u8]) -> Result<(), CopyError> {
    let unwritable = |source| CopyError::Unwritable { path: place.to_owned(), source };
    if let Some(directory) = place.parent() {
        fs::create_dir_all(directory).map_err(unwritable)?;
    }
    fs::write(place, content).map_err(unwritable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_of_the_workspace_leads_out_of_the_directory() {
        assert_eq!(below(Path::new("to"), "a/..b").unwrap(), Path::new("to/a/..b"));
        for path in ["", "..", "a/../../b", "/etc/passwd", "a//b", "."] {
            let error = below(Path::new("to"), path).unwrap_err();
            assert!(matches!(&error, CopyError::NoName(found) if found == path), "{path}: {error}");
        }
    }
}
