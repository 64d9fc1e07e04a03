//! Opens below an open folder. No call follows a link or leaves the folder: the kernel refuses both.

use std::{fs, io::Read as _};

use bytes::Bytes;
use jiff::Timestamp;
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat},
    io::Errno,
};

use super::failed;
use crate::{WorkspaceError, backend::StoredFile, path::StorePath};

/// Attempts to open while the folders above are being renamed.
const ATTEMPTS: usize = 16;

/// A regular file that has one name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) bytes: u64,
    pub(super) modified: Timestamp,
}

/// Returns the time of the last change.
pub(super) fn modified(stat: &Stat) -> Timestamp {
    let nanosecond = i32::try_from(stat.st_mtime_nsec).unwrap_or_default();
    Timestamp::new(stat.st_mtime, nanosecond).unwrap_or_default()
}

impl Leaf {
    pub(super) fn of(stat: &Stat) -> Self {
        Self { bytes: u64::try_from(stat.st_size).unwrap_or(0), modified: modified(stat) }
    }

    pub(super) fn stored(self, path: &str) -> StoredFile {
        let Self { bytes, modified } = self;
        StoredFile { path: path.to_owned(), bytes, modified }
    }
}

fn open(folder: impl AsFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..ATTEMPTS {
        opened = rustix::fs::openat2(&folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
        if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    opened
}

pub(super) fn open_folder(folder: impl AsFd, path: &str) -> Result<OwnedFd, Errno> {
    open(folder, path, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// Opens a folder, and makes it if it does not exist.
pub(super) fn make_folder(folder: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    match rustix::fs::mkdirat(&folder, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => open_folder(folder, name),
        Err(error) => Err(error),
    }
}

/// Opens the folder of a path, if it exists.
pub(super) fn existing_folder(
    workspace: &OwnedFd,
    path: &StorePath,
) -> Result<Option<OwnedFd>, WorkspaceError> {
    match open_folder(workspace, path.split().0.unwrap_or(".")) {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(refused(path, error)),
    }
}

/// Opens the folder of a path, and makes the folders that do not exist.
pub(super) fn make_folders(workspace: OwnedFd, path: &StorePath) -> Result<OwnedFd, WorkspaceError> {
    let mut folder = workspace;
    for name in path.split().0.into_iter().flat_map(|folders| folders.split('/')) {
        folder = make_folder(&folder, name).map_err(|error| match error {
            Errno::NOTDIR => {
                WorkspaceError::refused(path.as_str(), format!("{name} is a file and no folder"))
            }
            error => refused(path, error),
        })?;
    }
    Ok(folder)
}

/// Returns the file of the path in its folder, if there is one.
pub(super) fn regular_file(folder: &OwnedFd, path: &StorePath) -> Result<Option<Leaf>, WorkspaceError> {
    match rustix::fs::statat(folder, path.split().1, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => leaf(&stat, path).map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(failed("read", path.as_str(), error)),
    }
}

/// Opens the file of the path in its folder, if there is one.
pub(super) fn open_file(
    folder: &OwnedFd,
    path: &StorePath,
) -> Result<Option<(fs::File, Leaf)>, WorkspaceError> {
    // A pipe would not be opened before somebody writes to it.
    let file = match open(folder, path.split().1, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::NXIO | Errno::NODEV) => return Err(WorkspaceError::refused(path.as_str(), NOT_REGULAR)),
        Err(error) => return Err(refused(path, error)),
    };
    let stat = rustix::fs::fstat(&file).map_err(|error| failed("read", path.as_str(), error))?;
    let leaf = leaf(&stat, path)?;
    Ok(Some((file.into(), leaf)))
}

/// Reads a file that has at most `most` bytes, also if it grows meanwhile.
pub(super) fn read(
    file: fs::File,
    leaf: &Leaf,
    path: &StorePath,
    most: u64,
) -> Result<Bytes, WorkspaceError> {
    let too_large = |bytes| WorkspaceError::TooLarge { path: path.to_string(), bytes, most };
    if leaf.bytes > most {
        return Err(too_large(leaf.bytes));
    }
    let mut content = Vec::with_capacity(usize::try_from(leaf.bytes).unwrap_or_default());
    let read = file.take(most.saturating_add(1)).read_to_end(&mut content);
    read.map_err(|error| super::failed_io("read", path.as_str(), &error))?;
    if content.len() as u64 > most { Err(too_large(content.len() as u64)) } else { Ok(content.into()) }
}

/// Moves a file to a name that must not exist.
pub(super) fn move_new(from: &OwnedFd, name: &str, folder: &OwnedFd, leaf: &str) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, name, folder, leaf, RenameFlags::NOREPLACE) {
        // NFS has no such rename, but gives a file a second name only if that is free.
        Err(Errno::INVAL | Errno::NOSYS) => link_new(from, name, folder, leaf),
        moved => moved,
    }
}

pub(super) fn link_new(from: &OwnedFd, name: &str, folder: &OwnedFd, leaf: &str) -> Result<(), Errno> {
    rustix::fs::linkat(from, name, folder, leaf, AtFlags::empty())?;
    rustix::fs::unlinkat(from, name, AtFlags::empty())
}

const NOT_REGULAR: &str = "it is no regular file";

fn leaf(stat: &Stat, path: &StorePath) -> Result<Leaf, WorkspaceError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink > 1 => {
            Err(WorkspaceError::refused(path.as_str(), "the file has another name, which may be outside"))
        }
        FileType::RegularFile => Ok(Leaf::of(stat)),
        FileType::Directory => Err(WorkspaceError::NotAFile { path: path.to_string() }),
        FileType::Symlink => Err(refused(path, Errno::LOOP)),
        _ => Err(WorkspaceError::refused(path.as_str(), NOT_REGULAR)),
    }
}

fn refused(path: &StorePath, error: Errno) -> WorkspaceError {
    match error {
        Errno::LOOP => WorkspaceError::refused(path.as_str(), "a part of it is a link"),
        Errno::XDEV => WorkspaceError::refused(path.as_str(), "it leads out of the workspace"),
        error => failed("open", path.as_str(), error),
    }
}
