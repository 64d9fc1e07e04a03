//! Archives of skills: tar, tar.gz and zip. Entries are read one by one, and what is unpacked is bounded, not only what is kept.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use flate2::read::MultiGzDecoder;
use skillet_instructions::tree::{FILE_SIZE_LIMIT, FileTree, LEFT_OUT, TreeError};

use super::FolderError;

/// Most bytes that an archive may unpack to, with the files that are too large to be kept.
const UNPACKED_LIMIT: u64 = 256 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Tar,
    TarGz,
    Zip,
}

/// The format of an archive by the ending of its name.
pub(super) fn format_of(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let formats = [
        (".tar.gz", Format::TarGz),
        (".tgz", Format::TarGz),
        (".tar", Format::Tar),
        (".zip", Format::Zip),
        (".skill", Format::Zip),
    ];
    formats.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
}

pub(super) fn read(path: &Path, format: Format, tree: &mut FileTree) -> Result<(), FolderError> {
    let file =
        File::open(path).map_err(|source| FolderError::Unreadable { path: path.to_owned(), source })?;
    let added = match format {
        Format::Tar => add_tar(BufReader::new(file), tree),
        Format::TarGz => add_tar(MultiGzDecoder::new(BufReader::new(file)), tree),
        Format::Zip => add_zip(BufReader::new(file), tree),
    };
    added.map_err(|problem| match problem {
        Problem::Tree(source) => FolderError::Refused { path: path.to_owned(), source },
        Problem::Archive(problem) => FolderError::BadArchive { path: path.to_owned(), problem },
    })
}

/// The end of a read archive.
#[derive(Debug)]
enum Problem {
    Tree(TreeError),
    Archive(String),
}

impl From<TreeError> for Problem {
    fn from(error: TreeError) -> Self {
        Self::Tree(error)
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Archive(error.to_string())
    }
}

impl From<zip::result::ZipError> for Problem {
    fn from(error: zip::result::ZipError) -> Self {
        Self::Archive(error.to_string())
    }
}

fn add_tar(reader: impl Read, tree: &mut FileTree) -> Result<(), Problem> {
    let mut archive = tar::Archive::new(Bounded { reader, left: UNPACKED_LIMIT });
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = text(entry.path_bytes().as_ref())?;
        let kind = entry.header().entry_type();
        if is_left_out(&path) {
            continue;
        }
        match kind {
            tar::EntryType::Regular | tar::EntryType::Continuous => add_file(tree, &path, &mut entry)?,
            tar::EntryType::Symlink | tar::EntryType::Link => {
                let target = text(entry.link_name_bytes().unwrap_or_default().as_ref())?;
                // A hard link counts from the root of the archive.
                let up = if kind == tar::EntryType::Link {
                    "../".repeat(path.matches('/').count())
                } else {
                    String::new()
                };
                tree.add_link(&path, &format!("{up}{target}"))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn add_zip(reader: impl Read + io::Seek, tree: &mut FileTree) -> Result<(), Problem> {
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

fn add_file(tree: &mut FileTree, path: &str, reader: &mut impl Read) -> Result<(), Problem> {
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

fn is_left_out(path: &str) -> bool {
    path.split('/').any(|name| LEFT_OUT.contains(&name)) || path.starts_with("__MACOSX/")
}

fn text(bytes: &[u8]) -> Result<String, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|_| Problem::Archive("a path is not UTF-8".to_owned()))?;
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
        let path = std::env::temp_dir().join(format!("skillet-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let mut tree = FileTree::default();
        let read = read(&path, format_of(&path).unwrap(), &mut tree).map_err(|error| error.to_string());
        std::fs::remove_file(&path).unwrap();
        read.map(|()| tree)
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
        assert_eq!(format_of(Path::new("a.md")), None);
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
        assert!(unpack("broken.zip", b"PK").unwrap_err().contains("could not read the archive"));
        assert!(unpack("broken.tgz", b"PK").unwrap_err().contains("could not read the archive"));
    }

    #[test]
    fn a_large_file_of_a_zip_is_not_kept() {
        let zeros = vec![0; FILE_SIZE_LIMIT + 1];
        let tree = unpack("large.zip", &zip_of(&[("a/SKILL.md", b"x"), ("a/big", &zeros)])).unwrap();
        assert_eq!((tree.content("a/big"), tree.content("a/SKILL.md")), (None, Some(b"x".as_slice())));
    }
}
