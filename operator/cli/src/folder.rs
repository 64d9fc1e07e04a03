//! Files of instructions on disk: a file, directory or archive becomes a tree in memory. Directories of tools are left out.

use std::{
    fs::{self, File},
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use skillet_instructions::{
    archive::{self, ArchiveError, Format},
    tree::{FILE_SIZE_LIMIT, FileTree, LEFT_OUT, TreeError},
};
use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum FolderError {
    #[error("could not read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("could not take {}: {source}", path.display())]
    Refused { path: PathBuf, source: TreeError },
    #[error("could not read the archive {}: {problem}", path.display())]
    BadArchive { path: PathBuf, problem: String },
}

/// True for a file that holds instructions by its name.
pub(crate) fn is_instructions(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let is_text = path.extension().is_some_and(|ending| ending == "md" || ending == "mdc");
    is_text || matches!(name, ".cursorrules" | ".windsurfrules" | ".clinerules")
}

/// Reads a directory, an archive, or a file as the only one of a tree. A SKILL.md at the root gets the name of its directory.
pub(crate) fn read(path: &Path) -> Result<FileTree, FolderError> {
    let mut tree = FileTree::default();
    let mut root = path;
    if path.is_dir() {
        add_directory(&mut tree, path, "")?;
    } else if let Some(format) = archive_format(path) {
        add_archive(&mut tree, path, format)?;
        // The first dot ends the name, as in `pdf.tar.gz`.
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        return Ok(if tree.is_skill() { tree.within(name.split('.').next().unwrap_or(&name)) } else { tree });
    } else {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        add_file(&mut tree, path, &name)?;
        root = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    }
    Ok(if tree.is_skill() { tree.within(&directory_name(root)?) } else { tree })
}

fn archive_format(path: &Path) -> Option<Format> {
    archive::format_of(path.file_name()?.to_str()?)
}

fn add_archive(tree: &mut FileTree, path: &Path, format: Format) -> Result<(), FolderError> {
    let file =
        File::open(path).map_err(|source| FolderError::Unreadable { path: path.to_owned(), source })?;
    archive::read(BufReader::new(file), format, tree).map_err(|error| match error {
        ArchiveError::Tree(source) => FolderError::Refused { path: path.to_owned(), source },
        ArchiveError::Broken(problem) => FolderError::BadArchive { path: path.to_owned(), problem },
    })
}

fn add_directory(tree: &mut FileTree, directory: &Path, inner: &str) -> Result<(), FolderError> {
    let unreadable = |source| FolderError::Unreadable { path: directory.to_owned(), source };
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let inner = join(inner, &name);
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_symlink() {
            let target = fs::read_link(&path).map_err(unreadable)?;
            let target = target.to_string_lossy();
            tree.add_link(&inner, &target).map_err(|source| FolderError::Refused { path, source })?;
        } else if kind.is_dir() && !LEFT_OUT.contains(&name.as_str()) {
            add_directory(tree, &path, &inner)?;
        } else if kind.is_file() {
            add_file(tree, &path, &inner)?;
        }
    }
    Ok(())
}

fn add_file(tree: &mut FileTree, path: &Path, inner: &str) -> Result<(), FolderError> {
    let unreadable = |source| FolderError::Unreadable { path: path.to_owned(), source };
    let size = fs::metadata(path).map_err(unreadable)?.len();
    let added = if usize::try_from(size).is_ok_and(|size| size <= FILE_SIZE_LIMIT) {
        tree.add_file(inner, fs::read(path).map_err(unreadable)?)
    } else {
        tree.add_large_file(inner)
    };
    added.map_err(|source| FolderError::Refused { path: path.to_owned(), source })
}

/// The name of a directory, also of one written as `.`.
fn directory_name(directory: &Path) -> Result<String, FolderError> {
    let unreadable = |source| FolderError::Unreadable { path: directory.to_owned(), source };
    let whole = directory.canonicalize().map_err(unreadable)?;
    Ok(whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}
