//! The files that layers hold together, read from the last layer to the first: a path counts where it is met first, and what
//! a later layer removed or replaced is not kept.

use std::{
    collections::BTreeMap,
    io::Read,
    sync::atomic::{AtomicBool, Ordering},
};

use skillet_instructions::{
    archive::{self, ArchiveError, Entry},
    tree::FileTree,
};

use crate::{failure::Failure, fetch::Files, selection::Selection};

/// Most entries of all layers, and most bytes of their paths.
const ENTRY_LIMIT: usize = 100_000;
const PATHS_LIMIT: usize = 16 << 20;
/// Beginning of the name of a file that removes another, and the one that removes all of a directory.
const WHITEOUT: &str = ".wh.";
const OPAQUE: &str = ".wh..wh..opq";

/// Effect of a path of a later layer on earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shadow {
    /// Files of its own path are hidden.
    Itself,
    /// Files of its own path and those below are hidden.
    Below,
}

/// The files of the layers so far.
pub(super) struct Overlay<'a> {
    directory: &'a str,
    selection: &'a Selection,
    interrupted: &'a AtomicBool,
    files: Files,
    /// Paths of the layers after the present one.
    shadows: BTreeMap<String, Shadow>,
    entries: usize,
    path_bytes: usize,
    has_directory: bool,
}

impl<'a> Overlay<'a> {
    /// Reads what is below a directory; an empty one is the root.
    pub(super) fn new(directory: &'a str, selection: &'a Selection, interrupted: &'a AtomicBool) -> Self {
        let files =
            Files { revision: String::new(), tree: FileTree::default(), image: None, refused: Vec::new() };
        let has_directory = directory.is_empty();
        let shadows = BTreeMap::new();
        Self { directory, selection, interrupted, files, shadows, entries: 0, path_bytes: 0, has_directory }
    }

    /// Adds a layer that is one file.
    pub(super) fn add_file(&mut self, path: &str, mut content: impl Read) -> Result<(), Failure> {
        let mut own = Vec::new();
        self.add(path, Entry::File(&mut content), &mut own)?;
        self.shadow(own);
        Ok(())
    }

    /// Adds a layer that is an archive.
    pub(super) fn add_archive(&mut self, content: impl Read, is_gzip: bool) -> Result<(), Failure> {
        let mut own = Vec::new();
        archive::walk_tar(content, is_gzip, |path, entry| self.add(path, entry, &mut own))?;
        self.shadow(own);
        Ok(())
    }

    /// Returns the files of all layers.
    pub(super) fn files(self, revision: String) -> Result<Files, Failure> {
        if !self.has_directory {
            return Err(Failure::PathNotFound { revision, path: self.directory.to_owned() });
        }
        Ok(Files { revision, ..self.files })
    }

    fn add(&mut self, path: &str, entry: Entry<'_>, own: &mut Vec<(String, Shadow)>) -> Result<(), Failure> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Failure::TimedOut);
        }
        let path = path.strip_prefix("./").unwrap_or(path);
        let path = if matches!(entry, Entry::Directory) { path.trim_end_matches('/') } else { path };
        self.entries += 1;
        self.path_bytes += path.len();
        if self.entries > ENTRY_LIMIT || self.path_bytes > PATHS_LIMIT {
            let message =
                format!("the layers have more than {ENTRY_LIMIT} files and directories, or very long names");
            return Err(Failure::TooLarge(format!("{message}; push an artifact with fewer")));
        }
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name == OPAQUE {
            own.push((parent.to_owned(), Shadow::Below));
            return Ok(());
        }
        if let Some(removed) = name.strip_prefix(WHITEOUT) {
            own.push((join(parent, removed), Shadow::Below));
            return Ok(());
        }
        let is_directory = matches!(entry, Entry::Directory);
        own.push((path.to_owned(), if is_directory { Shadow::Itself } else { Shadow::Below }));
        let Some(inner) = self.inner(path, is_directory) else { return Ok(()) };
        if self.is_hidden(path) || is_directory || !self.is_selected(inner) {
            return Ok(());
        }
        let inner = inner.to_owned();
        let added = match entry {
            Entry::File(content) => archive::add_file(&mut self.files.tree, &inner, content),
            Entry::Link(target) => self.files.tree.add_link(&inner, &target).map_err(ArchiveError::from),
            Entry::HardLink(target) => {
                let target = self.hard_link(&inner, &target);
                self.files.tree.add_link(&inner, &target).map_err(ArchiveError::from)
            }
            Entry::Directory => Ok(()),
        };
        match added {
            Err(ArchiveError::Tree(error)) => self.files.keep(&inner, Err(error)),
            other => Ok(other?),
        }
    }

    /// The part of a path below the directory that is read.
    fn inner<'p>(&mut self, path: &'p str, is_directory: bool) -> Option<&'p str> {
        if self.directory.is_empty() {
            return Some(path);
        }
        let rest = path.strip_prefix(self.directory)?;
        let inner = rest.strip_prefix('/');
        self.has_directory |= inner.is_some() || (is_directory && rest.is_empty());
        inner
    }

    fn is_hidden(&self, path: &str) -> bool {
        let shadow = |path: &str| self.shadows.get(path).copied();
        let mut above = parents(path).any(|parent| shadow(parent) == Some(Shadow::Below));
        above |= shadow("") == Some(Shadow::Below);
        above || shadow(path).is_some()
    }

    fn is_selected(&self, inner: &str) -> bool {
        parents(inner).all(|parent| self.selection.has_directory(parent)) && self.selection.has_file(inner)
    }

    /// The target of a symbolic link that leads where a hard link does: from the root of the layer.
    fn hard_link(&self, inner: &str, target: &str) -> String {
        let target = target.strip_prefix("./").unwrap_or(target);
        let below = if self.directory.is_empty() {
            Some(target)
        } else {
            target.strip_prefix(self.directory).and_then(|rest| rest.strip_prefix('/'))
        };
        below.map_or_else(|| format!("/{target}"), |below| archive::from_root(inner, below))
    }

    /// Hides the paths of a layer from those before it.
    fn shadow(&mut self, own: Vec<(String, Shadow)>) {
        for (path, shadow) in own {
            for parent in parents(&path) {
                self.shadows.entry(parent.to_owned()).or_insert(Shadow::Itself);
            }
            let known = self.shadows.entry(path).or_insert(shadow);
            if shadow == Shadow::Below {
                *known = shadow;
            }
        }
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Tree(error) => error.into(),
            ArchiveError::Broken(problem) => Self::Invalid(format!("a layer cannot be read: {problem}")),
        }
    }
}

/// The directories around a path, without the root.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry of a layer: a name that ends in `/` is a directory, and a text `-> x` a link.
    fn layer(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, text) in entries {
            let mut header = tar::Header::new_old();
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            let mut content = text.as_bytes();
            if path.ends_with('/') {
                header.set_entry_type(tar::EntryType::Directory);
            } else if let Some((kind, target)) = text.split_once("> ") {
                let is_hard = kind == "=";
                header.set_entry_type(if is_hard { tar::EntryType::Link } else { tar::EntryType::Symlink });
                header.set_link_name(target).unwrap();
                content = b"";
            }
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn read(directory: &str, exclude: &[&str], layers: &[&[(&str, &str)]]) -> Result<Files, Failure> {
        let exclude: Vec<String> = exclude.iter().map(ToString::to_string).collect();
        let (selection, interrupted) = (Selection::new(&[], &exclude), AtomicBool::new(false));
        let mut overlay = Overlay::new(directory, &selection, &interrupted);
        for entries in layers.iter().rev() {
            overlay.add_archive(layer(entries).as_slice(), false)?;
        }
        overlay.files("v1".to_owned())
    }

    fn check(directory: &str, layers: &[&[(&str, &str)]], expected: &[(&str, &str)]) {
        let files = read(directory, &[], layers).unwrap();
        let resolved = files.tree.resolve().files;
        let text = |real: &String| String::from_utf8_lossy(files.tree.content(real).unwrap()).into_owned();
        let found: Vec<(&str, String)> =
            resolved.iter().map(|(path, real)| (path.as_str(), text(real))).collect();
        let expected: Vec<(&str, String)> =
            expected.iter().map(|(path, text)| (*path, (*text).to_owned())).collect();
        assert_eq!(found, expected, "{layers:?}");
    }

    #[test]
    fn a_later_layer_replaces_files_and_directories() {
        check("", &[&[("a", "1"), ("b/c", "2")], &[("./a", "3")]], &[("a", "3"), ("b/c", "2")]);
        check("", &[&[("a/b", "1"), ("a/c", "2")], &[("a", "file")]], &[("a", "file")]);
        check("", &[&[("a", "file")], &[("a/b", "1")]], &[("a/b", "1")]);
        check("", &[&[("a", "file")], &[("a/", "")]], &[]);
        check("", &[&[("a/b", "1")], &[("a/", ""), ("a/c", "2")]], &[("a/b", "1"), ("a/c", "2")]);
        check("", &[&[("d/x", "1"), ("l", "-> d")], &[("l/y", "2")]], &[("d/x", "1"), ("l/y", "2")]);
    }

    #[test]
    fn whiteouts_remove_what_is_before_them_and_nothing_of_their_own_layer() {
        let first: &[(&str, &str)] = &[("a/x", "1"), ("a/y", "2"), ("b", "3")];
        check("", &[first, &[("a/.wh.x", "")]], &[("a/y", "2"), ("b", "3")]);
        check("", &[first, &[(".wh.a", ""), ("a/z", "4")]], &[("a/z", "4"), ("b", "3")]);
        check("", &[first, &[("a/z", "4"), ("a/.wh..wh..opq", "")]], &[("a/z", "4"), ("b", "3")]);
        check("", &[first, &[(".wh..wh..opq", "")]], &[]);
        check("", &[first, &[(".wh.a", "")], &[("a/x", "5")]], &[("a/x", "5"), ("b", "3")]);
    }

    #[test]
    fn only_the_directory_and_the_selection_are_read() {
        let layers: &[&[(&str, &str)]] =
            &[&[("s/a/SKILL.md", "a"), ("s/b/SKILL.md", "b"), ("t/x", "t"), ("s/a/h", "=> s/a/SKILL.md")]];
        check("s", layers, &[("a/SKILL.md", "a"), ("a/h", "a"), ("b/SKILL.md", "b")]);
        let some = read("s", &["b/"], layers).unwrap();
        assert_eq!(some.tree.resolve().files.into_keys().collect::<Vec<_>>(), ["a/SKILL.md", "a/h"]);
        let missing = Failure::PathNotFound { revision: "v1".to_owned(), path: "u".to_owned() };
        assert_eq!(read("u", &[], layers).unwrap_err(), missing);
        check("e", &[&[("e/", "")]], &[]);
    }

    #[test]
    fn bad_paths_cost_their_file_and_links_out_are_refused() {
        let files = read(
            "",
            &[],
            &[&[
                ("ok", "1"),
                ("../up", "2"),
                ("/root", "3"),
                ("l", "-> /etc/passwd"),
                ("h", "=> ../../etc/passwd"),
            ]],
        );
        let files = files.unwrap();
        let refused: Vec<&str> = files.refused.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(refused, ["../up", "/root"]);
        let resolved = files.tree.resolve();
        assert_eq!(resolved.files.into_keys().collect::<Vec<_>>(), ["ok"]);
        assert_eq!(resolved.refused_links.len(), 2);
        let outside = read("s", &[], &[&[("s/h", "=> t/secret"), ("t/secret", "x")]]).unwrap();
        assert_eq!(outside.tree.resolve().refused_links[0].1, "leads out of the folder");
    }

    #[test]
    fn many_entries_are_refused_and_an_interrupt_ends_the_walk() {
        let (selection, interrupted) = (Selection::new(&[], &["x/".to_owned()]), AtomicBool::new(false));
        let mut overlay = Overlay::new("", &selection, &interrupted);
        let mut own = Vec::new();
        let mut add = |n: usize| overlay.add(&format!("x/{n}"), Entry::Directory, &mut own);
        (0..ENTRY_LIMIT).try_for_each(&mut add).unwrap();
        assert!(matches!(add(0), Err(Failure::TooLarge(_))));
        let mut overlay = Overlay::new("", &selection, &interrupted);
        interrupted.store(true, Ordering::Relaxed);
        assert_eq!(overlay.add_file("a", b"".as_slice()), Err(Failure::TimedOut));
    }
}
