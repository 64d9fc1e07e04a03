//! Archives of skills: tar, tar.gz and zip. Entries are read one by one, and what is unpacked is bounded, not only what is kept.

use std::{
    fmt,
    io::{self, Read},
};

use flate2::read::MultiGzDecoder;

use crate::tree::{FILE_SIZE_LIMIT, FileTree, LEFT_OUT, TreeError};

/// Most bytes that an archive may unpack to, with the files that are too large to be kept.
const UNPACKED_LIMIT: u64 = 256 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Tar,
    TarGz,
    Zip,
}

/// The reason why an archive was not read.
#[derive(Debug)]
pub enum ArchiveError {
    Tree(TreeError),
    /// It is no archive, ends early, or unpacks to too much.
    Broken(String),
}

/// An entry of a tar archive.
pub enum Entry<'a> {
    File(&'a mut dyn Read),
    /// A symbolic link with its target.
    Link(String),
    /// Another name of the file of this path, which counts from the root of the archive.
    HardLink(String),
    Directory,
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tree(error) => error.fmt(f),
            Self::Broken(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for ArchiveError {}

impl From<TreeError> for ArchiveError {
    fn from(error: TreeError) -> Self {
        Self::Tree(error)
    }
}

impl From<io::Error> for ArchiveError {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<zip::result::ZipError> for ArchiveError {
    fn from(error: zip::result::ZipError) -> Self {
        Self::Broken(error.to_string())
    }
}

/// Returns the format of an archive by the ending of its name.
pub fn format_of(name: &str) -> Option<Format> {
    let name = name.to_ascii_lowercase();
    let formats = [
        (".tar.gz", Format::TarGz),
        (".tgz", Format::TarGz),
        (".tar", Format::Tar),
        (".zip", Format::Zip),
        (".skill", Format::Zip),
    ];
    formats.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
}

/// Adds the files of an archive to a tree. Directories of tools are left out.
pub fn read(reader: impl Read + io::Seek, format: Format, tree: &mut FileTree) -> Result<(), ArchiveError> {
    match format {
        Format::Tar => add_tar(reader, tree),
        Format::TarGz => add_tar(MultiGzDecoder::new(reader), tree),
        Format::Zip => add_zip(reader, tree),
    }
}

/// Passes each entry of a tar archive, compressed by gzip or not, with its path.
pub fn walk_tar<E: From<ArchiveError>>(
    reader: impl Read,
    is_gzip: bool,
    visit: impl FnMut(&str, Entry<'_>) -> Result<(), E>,
) -> Result<(), E> {
    if is_gzip { walk(MultiGzDecoder::new(reader), visit) } else { walk(reader, visit) }
}

fn walk<E: From<ArchiveError>>(
    reader: impl Read,
    mut visit: impl FnMut(&str, Entry<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut archive = tar::Archive::new(Bounded { reader, left: UNPACKED_LIMIT });
    for entry in archive.entries().map_err(ArchiveError::from)? {
        let mut entry = entry.map_err(ArchiveError::from)?;
        let path = text(entry.path_bytes().as_ref())?;
        let target = |entry: &tar::Entry<'_, _>| text(entry.link_name_bytes().unwrap_or_default().as_ref());
        match entry.header().entry_type() {
            tar::EntryType::Regular | tar::EntryType::Continuous => visit(&path, Entry::File(&mut entry))?,
            tar::EntryType::Symlink => visit(&path, Entry::Link(target(&entry)?))?,
            tar::EntryType::Link => visit(&path, Entry::HardLink(target(&entry)?))?,
            tar::EntryType::Directory => visit(&path, Entry::Directory)?,
            _ => {}
        }
    }
    Ok(())
}

fn add_tar(reader: impl Read, tree: &mut FileTree) -> Result<(), ArchiveError> {
    walk(reader, |path, entry| match entry {
        _ if is_left_out(path) => Ok(()),
        Entry::File(reader) => add_file(tree, path, reader),
        Entry::Link(target) => Ok(tree.add_link(path, &target)?),
        Entry::HardLink(target) => Ok(tree.add_link(path, &from_root(path, &target))?),
        Entry::Directory => Ok(()),
    })
}

/// Returns the target of a symbolic link at `path` that leads to a path from the root.
pub fn from_root(path: &str, target: &str) -> String {
    format!("{}{target}", "../".repeat(path.trim_start_matches("./").matches('/').count()))
}

fn add_zip(reader: impl Read + io::Seek, tree: &mut FileTree) -> Result<(), ArchiveError> {
    let mut archive = zip::ZipArchive::new(reader)?;
    let mut left = UNPACKED_LIMIT;
    for index in 0..archive.len() {
        let entry = archive.by_index(index)?;
        let path = text(entry.name_raw())?;
        if entry.is_dir() || is_left_out(&path) {
            continue;
        }
        let is_link = entry.is_symlink();
        let mut entry = Bounded { reader: entry, left };
        if is_link {
            let mut target = Vec::new();
            entry.by_ref().take(4096).read_to_end(&mut target)?;
            tree.add_link(&path, &text(&target)?)?;
        } else {
            add_file(tree, &path, &mut entry)?;
        }
        left = entry.left;
    }
    Ok(())
}

/// Adds a file to a tree; one that is too large without its content.
pub fn add_file(tree: &mut FileTree, path: &str, reader: impl Read) -> Result<(), ArchiveError> {
    let mut content = Vec::new();
    let limit = u64::try_from(FILE_SIZE_LIMIT).unwrap_or(u64::MAX) + 1;
    reader.take(limit).read_to_end(&mut content)?;
    if content.len() > FILE_SIZE_LIMIT {
        tree.add_large_file(path)?;
    } else {
        tree.add_file(path, content)?;
    }
    Ok(())
}

/// True for a file of a tool.
fn is_left_out(path: &str) -> bool {
    path.split('/').any(|name| LEFT_OUT.contains(&name)) || path.starts_with("__MACOSX/")
}

fn text(bytes: &[u8]) -> Result<String, ArchiveError> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| ArchiveError::Broken("a path is not UTF-8".to_owned()))?;
    Ok(text.to_owned())
}

/// A reader that fails beyond a number of bytes, so that a small archive cannot unpack to a large one.
struct Bounded<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        let problem = || io::Error::other(format!("it unpacks to more than {} MiB", UNPACKED_LIMIT >> 20));
        self.left = self.left.checked_sub(count as u64).ok_or_else(problem)?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn tar_of(entries: &[(&str, &[u8])], links: &[(&str, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, content) in entries {
            let mut header = tar::Header::new_old();
            // The builder's own functions refuse the paths that a foreign archive may have.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, *content).unwrap();
        }
        for (path, target) in links {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            builder.append_link(&mut header, path, target).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        for (path, content) in entries {
            writer.start_file(*path, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpack(name: &str, bytes: &[u8]) -> Result<FileTree, String> {
        let mut tree = FileTree::default();
        let read = read(io::Cursor::new(bytes), format_of(name).unwrap(), &mut tree);
        read.map(|()| tree).map_err(|error| error.to_string())
    }

    #[test]
    fn each_format_gives_its_files_and_leaves_out_those_of_tools() {
        let files: [(&str, &[u8]); 3] =
            [("pdf/SKILL.md", b"x"), ("pdf/a/b.txt", b"y"), ("pdf/.git/HEAD", b"z")];
        let tar = tar_of(&files, &[("pdf/l", "a/b.txt")]);
        for (name, bytes) in [("f.tar", tar.clone()), ("f.tar.gz", gzip(&tar)), ("f.zip", zip_of(&files))] {
            let tree = unpack(name, &bytes).unwrap();
            assert_eq!(tree.content("pdf/a/b.txt"), Some(b"y".as_slice()), "{name}");
            let files = tree.resolve().files;
            assert!(!files.keys().any(|path| path.contains(".git")), "{name}");
            assert_eq!(files.contains_key("pdf/l"), name != "f.zip");
        }
        assert_eq!(format_of("a.md"), None);
    }

    #[test]
    fn paths_out_of_the_archive_are_refused() {
        for path in ["../etc/passwd", "/etc/passwd", "a/../../b"] {
            let error = unpack("bad.tar", &tar_of(&[(path, b"x")], &[])).unwrap_err();
            assert!(error.contains("is no path inside the folder"), "{error}");
            let error = unpack("bad.zip", &zip_of(&[(path, b"x")])).unwrap_err();
            assert!(error.contains("is no path inside the folder"), "{error}");
        }
    }

    #[test]
    fn bombs_many_files_and_broken_archives_are_refused() {
        let zeros = vec![0; 8 << 20];
        let bomb: Vec<(&str, &[u8])> = (0..33).map(|_| ("zeros", zeros.as_slice())).collect();
        let error = unpack("bomb.tgz", &gzip(&tar_of(&bomb, &[]))).unwrap_err();
        assert!(error.contains("unpacks to more than 256 MiB"), "{error}");
        let names: Vec<String> = (0..10_000).map(|n| format!("f{n}")).collect();
        let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
        let error = unpack("many.zip", &zip_of(&many)).unwrap_err();
        assert!(error.contains("more than 9999 files"), "{error}");
        for name in ["broken.zip", "broken.tgz"] {
            assert!(unpack(name, b"PK").is_err(), "{name}");
        }
    }

    #[test]
    fn a_large_file_of_a_zip_is_not_kept() {
        let zeros = vec![0; FILE_SIZE_LIMIT + 1];
        let tree = unpack("large.zip", &zip_of(&[("a/SKILL.md", b"x"), ("a/big", &zeros)])).unwrap();
        assert_eq!((tree.content("a/big"), tree.content("a/SKILL.md")), (None, Some(b"x".as_slice())));
    }
}
