//! Workspaces in a folder of a file system.
//!
//! `files/<id>` has the files of a workspace, `used/<id>` the time of its last use, and `tmp` what is not complete. Every path
//! is opened by the kernel beneath its workspace and without a link on the way, so that nothing can lead out of it between a
//! check and a use.

mod beneath;
#[cfg(test)]
mod tests;
mod walk;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT},
    io::Errno,
};
use thiserror::Error;
use tokio::task::spawn_blocking;

use self::beneath::Leaf;
use crate::{
    WorkspaceError, WorkspaceId, WriteMode,
    backend::{Backend, StoredFile, Usage},
    path::StorePath,
};

#[derive(Debug, Error)]
#[error("could not use {} for workspaces", path.display())]
pub struct FolderError {
    path: PathBuf,
    source: io::Error,
}

/// Workspaces in a folder. Clones are the same folder.
#[derive(Clone, Debug)]
pub struct Folder(Arc<Places>);

#[derive(Debug)]
struct Places {
    files: OwnedFd,
    used: OwnedFd,
    tmp: OwnedFd,
    tmp_path: PathBuf,
    next: AtomicU64,
}

impl Folder {
    /// Opens the folder, makes what is missing in it, and removes what an earlier process has left incomplete.
    pub fn open(root: &Path) -> Result<Self, FolderError> {
        let failed = |path: &Path, source: io::Error| FolderError { path: path.to_owned(), source };
        let open = |name: &str| {
            let path = root.join(name);
            fs::create_dir_all(&path).map_err(|source| failed(&path, source))?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            rustix::fs::open(&path, flags, Mode::empty()).map_err(|error| failed(&path, error.into()))
        };
        let tmp_path = root.join("tmp");
        if let Err(error) = fs::remove_dir_all(&tmp_path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(failed(&tmp_path, error));
        }
        let places = Places {
            files: open("files")?,
            used: open("used")?,
            tmp: open("tmp")?,
            tmp_path,
            next: AtomicU64::new(0),
        };
        Ok(Self(Arc::new(places)))
    }

    /// Runs file system calls on a thread that may wait.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Places) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let places = Arc::clone(&self.0);
        match spawn_blocking(move || work(&places)).await {
            Ok(result) => result,
            Err(error) => Err(WorkspaceError::unavailable(error.to_string())),
        }
    }
}

#[async_trait]
impl Backend for Folder {
    async fn file(&self, id: &WorkspaceId, path: &StorePath) -> Result<Option<StoredFile>, WorkspaceError> {
        let (id, path) = (id.clone(), path.clone());
        self.blocking(move |places| places.file(&id, &path)).await
    }

    async fn read(&self, id: &WorkspaceId, path: &StorePath, most: u64) -> Result<Bytes, WorkspaceError> {
        let (id, path) = (id.clone(), path.clone());
        self.blocking(move |places| places.read(&id, &path, most)).await
    }

    async fn write(
        &self,
        id: &WorkspaceId,
        path: &StorePath,
        content: Bytes,
        mode: WriteMode,
        most: u64,
    ) -> Result<u64, WorkspaceError> {
        let (id, path) = (id.clone(), path.clone());
        self.blocking(move |places| places.write(&id, &path, &content, mode, most)).await
    }

    async fn files(
        &self,
        id: &WorkspaceId,
        folder: Option<&StorePath>,
        most: usize,
    ) -> Result<Vec<StoredFile>, WorkspaceError> {
        let (id, folder) = (id.clone(), folder.cloned());
        self.blocking(move |places| places.list(&id, folder.as_ref(), most)).await
    }

    async fn usage(&self, id: &WorkspaceId) -> Result<Usage, WorkspaceError> {
        let id = id.clone();
        self.blocking(move |places| places.usage(&id)).await
    }

    async fn remove(&self, id: &WorkspaceId, path: Option<&StorePath>) -> Result<(), WorkspaceError> {
        let (id, path) = (id.clone(), path.cloned());
        self.blocking(move |places| match path {
            Some(path) => places.remove(&id, &path),
            None => places.remove_all(&id),
        })
        .await
    }

    async fn mark_used(&self, id: &WorkspaceId) -> Result<(), WorkspaceError> {
        let id = id.clone();
        self.blocking(move |places| places.mark_used(&id, Timestamp::now())).await
    }

    async fn forget(&self, id: &WorkspaceId) -> Result<(), WorkspaceError> {
        let id = id.clone();
        self.blocking(move |places| match rustix::fs::unlinkat(&places.used, id.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed("remove the mark of", id.as_str(), error)),
        })
        .await
    }

    async fn workspaces(&self) -> Result<Vec<(WorkspaceId, Timestamp)>, WorkspaceError> {
        self.blocking(Places::workspaces).await
    }
}

impl Places {
    /// Opens the workspace, if it exists.
    fn workspace(&self, id: &WorkspaceId) -> Result<Option<OwnedFd>, WorkspaceError> {
        match beneath::open_folder(&self.files, id.as_str()) {
            Ok(workspace) => Ok(Some(workspace)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(failed("open the workspace", id.as_str(), error)),
        }
    }

    fn file(&self, id: &WorkspaceId, path: &StorePath) -> Result<Option<StoredFile>, WorkspaceError> {
        let Some(workspace) = self.workspace(id)? else { return Ok(None) };
        let Some(folder) = beneath::existing_folder(&workspace, path)? else { return Ok(None) };
        Ok(beneath::regular_file(&folder, path)?.map(|leaf| leaf.stored(path.as_str())))
    }

    fn read(&self, id: &WorkspaceId, path: &StorePath, most: u64) -> Result<Bytes, WorkspaceError> {
        let absent = || WorkspaceError::NotFound { path: path.to_string() };
        let workspace = self.workspace(id)?.ok_or_else(absent)?;
        let folder = beneath::existing_folder(&workspace, path)?.ok_or_else(absent)?;
        let (file, leaf) = beneath::open_file(&folder, path)?.ok_or_else(absent)?;
        beneath::read(file, &leaf, path, most)
    }

    fn write(
        &self,
        id: &WorkspaceId,
        path: &StorePath,
        content: &[u8],
        mode: WriteMode,
        most: u64,
    ) -> Result<u64, WorkspaceError> {
        let workspace = beneath::make_folder(&self.files, id.as_str())
            .map_err(|error| failed("make the workspace", id.as_str(), error))?;
        let folder = beneath::make_folders(workspace, path)?;
        let before = beneath::open_file(&folder, path)?;
        if before.is_some() && mode == WriteMode::Create {
            return Err(WorkspaceError::Exists { path: path.to_string() });
        }
        let before = if mode == WriteMode::Append { before } else { None };
        let name = self.temporary_name();
        let written = self.write_temporary(&name, before, content, path, most).and_then(|bytes| {
            self.move_into_place(&name, &folder, path, mode)?;
            Ok(bytes)
        });
        if written.is_err() {
            // What cannot be removed now is removed at the next start.
            rustix::fs::unlinkat(&self.tmp, &name, AtFlags::empty()).ok();
        }
        written
    }

    fn write_temporary(
        &self,
        name: &str,
        before: Option<(fs::File, Leaf)>,
        content: &[u8],
        path: &StorePath,
        most: u64,
    ) -> Result<u64, WorkspaceError> {
        use io::{Read as _, Write as _};

        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&self.tmp, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| failed("write", path.as_str(), error))?;
        let mut file = fs::File::from(file);
        let write = |file: &mut fs::File| -> io::Result<u64> {
            let old = match before {
                // One byte more than is allowed is enough to know that the file is too large.
                Some((old, _)) => io::copy(&mut old.take(most.saturating_add(1)), file)?,
                None => 0,
            };
            let bytes = old.saturating_add(content.len() as u64);
            if bytes <= most {
                file.write_all(content)?;
                // A rename may reach the disk before the content, and leave an empty file after a crash.
                file.sync_data()?;
            }
            Ok(bytes)
        };
        let bytes = write(&mut file).map_err(|error| failed_io("write", path.as_str(), &error))?;
        if bytes > most {
            return Err(WorkspaceError::TooLarge { path: path.to_string(), bytes, most });
        }
        Ok(bytes)
    }

    fn move_into_place(
        &self,
        name: &str,
        folder: &OwnedFd,
        path: &StorePath,
        mode: WriteMode,
    ) -> Result<(), WorkspaceError> {
        let (_, leaf) = path.split();
        let moved = match mode {
            WriteMode::Create => beneath::move_new(&self.tmp, name, folder, leaf),
            WriteMode::Overwrite | WriteMode::Append => rustix::fs::renameat(&self.tmp, name, folder, leaf),
        };
        moved.map_err(|error| match error {
            Errno::EXIST => WorkspaceError::Exists { path: path.to_string() },
            Errno::ISDIR => WorkspaceError::NotAFile { path: path.to_string() },
            error => failed("write", path.as_str(), error),
        })
    }

    /// Moves a file or folder out of its place, so that it is gone at once, and removes it there.
    fn discard(&self, folder: impl AsFd, leaf: &str) -> Result<(), Errno> {
        let name = self.temporary_name();
        rustix::fs::renameat(folder, leaf, &self.tmp, &name)?;
        match rustix::fs::unlinkat(&self.tmp, &name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {
                // What is left is out of the workspace, and is removed at the next start.
                fs::remove_dir_all(self.tmp_path.join(&name)).ok();
                Ok(())
            }
            unlinked => unlinked,
        }
    }

    fn remove(&self, id: &WorkspaceId, path: &StorePath) -> Result<(), WorkspaceError> {
        let absent = || WorkspaceError::NotFound { path: path.to_string() };
        let workspace = self.workspace(id)?.ok_or_else(absent)?;
        let folder = beneath::existing_folder(&workspace, path)?.ok_or_else(absent)?;
        self.discard(&folder, path.split().1).map_err(|error| match error {
            Errno::NOENT => absent(),
            error => failed("remove", path.as_str(), error),
        })?;
        // A folder is there as long as it holds a file, as in a bucket.
        for folder in path.folders().rev() {
            let folder = StorePath::parse(folder)?;
            let Some(parent) = beneath::existing_folder(&workspace, &folder)? else { break };
            if rustix::fs::unlinkat(&parent, folder.split().1, AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn remove_all(&self, id: &WorkspaceId) -> Result<(), WorkspaceError> {
        match self.discard(&self.files, id.as_str()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed("remove the workspace", id.as_str(), error)),
        }
    }

    fn mark_used(&self, id: &WorkspaceId, now: Timestamp) -> Result<(), WorkspaceError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let last_modification = Timespec { tv_sec: now.as_second(), tv_nsec: now.subsec_nanosecond().into() };
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        rustix::fs::openat(&self.used, id.as_str(), flags, Mode::RUSR | Mode::WUSR)
            .and_then(|mark| rustix::fs::futimens(&mark, &Timestamps { last_access, last_modification }))
            .map_err(|error| failed("mark the use of", id.as_str(), error))
    }

    fn temporary_name(&self) -> String {
        self.next.fetch_add(1, Ordering::Relaxed).to_string()
    }
}

fn failed(what: &str, path: &str, error: Errno) -> WorkspaceError {
    failed_io(what, path, &error.into())
}

fn failed_io(what: &str, path: &str, error: &io::Error) -> WorkspaceError {
    WorkspaceError::unavailable(format!("could not {what} {path}: {error}"))
}
