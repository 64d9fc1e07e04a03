//! A tree of files in memory, as a directory or an archive holds them. Paths are checked, sizes bounded and links resolved inside.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::discovery::ProjectFiles;

/// Most files and links of a tree.
pub const FILE_LIMIT: usize = 9_999;
/// Largest file whose content is kept, in bytes.
pub const FILE_SIZE_LIMIT: usize = 1024 * 1024;
/// Most bytes of a tree.
pub const SIZE_LIMIT: usize = 64 * 1024 * 1024;
/// Directories that hold no part of a skill.
pub const LEFT_OUT: [&str; 3] = [".git", "node_modules", "__pycache__"];
/// Most links that follow each other.
const CHAIN_LIMIT: usize = 16;
const DEPTH_LIMIT: usize = 32;

/// Files and links by their path from the root, with slashes.
#[derive(Clone, Debug, Default)]
pub struct FileTree {
    entries: BTreeMap<String, Entry>,
    size: usize,
}

#[derive(Clone, Debug)]
enum Entry {
    File(Vec<u8>),
    /// A file whose content is not kept.
    LargeFile,
    Link(String),
}

/// A file or link that a tree does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeError {
    /// The path is absolute, leads out of the root or is no path.
    BadPath(String),
    TooManyFiles,
    TooLarge,
}

/// The files of a tree behind its links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedFiles {
    pub files: ProjectFiles,
    /// Links that lead nowhere, out of the root or in a circle, each with the reason.
    pub refused_links: Vec<(String, &'static str)>,
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadPath(path) => {
                write!(f, "{path:?} is no path inside the folder; paths are relative, without `..`")
            }
            Self::TooManyFiles => {
                write!(f, "there are more than {FILE_LIMIT} files; import a folder below")
            }
            Self::TooLarge => {
                write!(f, "the files have more than {} MiB; import a folder below", SIZE_LIMIT >> 20)
            }
        }
    }
}

impl std::error::Error for TreeError {}

impl FileTree {
    pub fn add_file(&mut self, path: &str, content: Vec<u8>) -> Result<(), TreeError> {
        if content.len() > FILE_SIZE_LIMIT {
            return self.add(path, Entry::LargeFile);
        }
        self.size += content.len();
        if self.size > SIZE_LIMIT {
            return Err(TreeError::TooLarge);
        }
        self.add(path, Entry::File(content))
    }

    /// Adds a file beyond [`FILE_SIZE_LIMIT`] without its content.
    pub fn add_large_file(&mut self, path: &str) -> Result<(), TreeError> {
        self.add(path, Entry::LargeFile)
    }

    /// Adds a symbolic link with its target, which may be any text.
    pub fn add_link(&mut self, path: &str, target: &str) -> Result<(), TreeError> {
        self.add(path, Entry::Link(target.to_owned()))
    }

    /// Returns the content of a file that is no link; `None` if it is absent or too large.
    pub fn content(&self, path: &str) -> Option<&[u8]> {
        match self.entries.get(path)? {
            Entry::File(content) => Some(content),
            Entry::LargeFile | Entry::Link(_) => None,
        }
    }

    /// Returns the same files in a directory, for a skill at the root that takes the directory's name.
    #[must_use]
    pub fn within(self, directory: &str) -> Self {
        let entries = self.entries.into_iter().map(|(path, entry)| (join(directory, &path), entry));
        Self { entries: entries.collect(), size: self.size }
    }

    /// True if a SKILL.md stands at the root.
    pub fn is_skill(&self) -> bool {
        self.entries.keys().any(|path| path.eq_ignore_ascii_case("SKILL.md"))
    }

    /// Follows the links.
    pub fn resolve(&self) -> ResolvedFiles {
        let mut children: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for path in self.entries.keys() {
            let mut rest = path.as_str();
            while let Some((parent, name)) = rest.rsplit_once('/') {
                children.entry(parent).or_default().insert(name);
                rest = parent;
            }
            children.entry("").or_default().insert(rest);
        }
        let mut resolver = Resolver { tree: self, children, found: ResolvedFiles::default(), steps: 0 };
        resolver.walk("", "", &mut vec![String::new()]);
        resolver.found
    }

    fn add(&mut self, path: &str, entry: Entry) -> Result<(), TreeError> {
        let path = path.strip_prefix("./").unwrap_or(path);
        let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['\0', '\\']);
        if !path.split('/').all(is_name) {
            return Err(TreeError::BadPath(path.to_owned()));
        }
        self.entries.insert(path.to_owned(), entry);
        if self.entries.len() > FILE_LIMIT { Err(TreeError::TooManyFiles) } else { Ok(()) }
    }
}

struct Resolver<'a> {
    tree: &'a FileTree,
    /// Names in each directory.
    children: BTreeMap<&'a str, BTreeSet<&'a str>>,
    found: ResolvedFiles,
    /// Files and links so far; links to directories could multiply them.
    steps: usize,
}

impl Resolver<'_> {
    /// Adds what is below a directory, which is known under another path. `above` are the directories around it.
    fn walk(&mut self, path: &str, real: &str, above: &mut Vec<String>) {
        let names: Vec<String> =
            self.children.get(real).into_iter().flatten().map(|name| (*name).to_owned()).collect();
        for name in names {
            self.steps += 1;
            if self.steps > FILE_LIMIT || above.len() > DEPTH_LIMIT {
                self.found
                    .refused_links
                    .push((join(path, &name), "lies too deep or has too many links above"));
                return;
            }
            let here = join(path, &name);
            match self.target(&join(real, &name)) {
                Err(reason) => self.found.refused_links.push((here, reason)),
                Ok(real) if self.children.contains_key(real.as_str()) => {
                    if above.contains(&real) {
                        self.found.refused_links.push((here, "leads in a circle"));
                    } else {
                        above.push(real.clone());
                        self.walk(&here, &real, above);
                        above.pop();
                    }
                }
                Ok(real) => {
                    self.found.files.insert(here, real);
                }
            }
        }
    }

    /// Returns the path of the file or directory behind all links.
    fn target(&self, path: &str) -> Result<String, &'static str> {
        let mut rest: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut real = String::new();
        let mut links = 0;
        while let Some(name) = rest.pop() {
            match name.as_str() {
                "" | "." => continue,
                ".." if real.is_empty() => return Err("leads out of the folder"),
                ".." => {
                    real.truncate(real.rfind('/').unwrap_or(0));
                    continue;
                }
                _ => {}
            }
            let next = join(&real, &name);
            let Some(Entry::Link(target)) = self.tree.entries.get(&next) else {
                real = next;
                continue;
            };
            links += 1;
            if links > CHAIN_LIMIT {
                return Err("leads in a circle");
            }
            if target.starts_with('/') {
                return Err("leads out of the folder");
            }
            rest.extend(target.split('/').rev().map(str::to_owned));
        }
        let is_there = self.tree.entries.contains_key(&real) || self.children.contains_key(real.as_str());
        if is_there { Ok(real) } else { Err("leads to no file") }
    }
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str], links: &[(&str, &str)]) -> FileTree {
        let mut tree = FileTree::default();
        for path in files {
            tree.add_file(path, path.as_bytes().to_vec()).unwrap();
        }
        for (path, target) in links {
            tree.add_link(path, target).unwrap();
        }
        tree
    }

    fn check(tree: &FileTree, files: &[(&str, &str)], refused: &[(&str, &str)]) {
        let found = tree.resolve();
        let found_files: Vec<(&str, &str)> =
            found.files.iter().map(|(path, real)| (path.as_str(), real.as_str())).collect();
        let found_links: Vec<(&str, &str)> =
            found.refused_links.iter().map(|(path, reason)| (path.as_str(), *reason)).collect();
        assert_eq!((found_files.as_slice(), found_links.as_slice()), (files, refused));
    }

    #[test]
    fn links_lead_to_files_and_directories_inside() {
        let tree = tree(&["shared/a/SKILL.md", "x"], &[("skills/a", "../shared/a"), ("skills/y", "../x")]);
        check(
            &tree,
            &[
                ("shared/a/SKILL.md", "shared/a/SKILL.md"),
                ("skills/a/SKILL.md", "shared/a/SKILL.md"),
                ("skills/y", "x"),
                ("x", "x"),
            ],
            &[],
        );
        assert_eq!(tree.content("x"), Some(b"x".as_slice()));
    }

    #[test]
    fn links_out_of_the_root_to_nothing_and_in_circles_are_refused() {
        let links =
            [("a", "../etc"), ("b", "/etc/passwd"), ("c", "nowhere"), ("d", "e"), ("e", "d"), ("f/up", "..")];
        check(
            &tree(&["f/x"], &links),
            &[("f/x", "f/x")],
            &[
                ("a", "leads out of the folder"),
                ("b", "leads out of the folder"),
                ("c", "leads to no file"),
                ("d", "leads in a circle"),
                ("e", "leads in a circle"),
                ("f/up", "leads in a circle"),
            ],
        );
    }

    #[test]
    fn a_skill_at_the_root_moves_into_a_directory() {
        let tree = tree(&["skill.md", "a/x"], &[("y", "a/x")]);
        assert!(tree.is_skill() && !FileTree::default().is_skill());
        let files = [("pdf/a/x", "pdf/a/x"), ("pdf/skill.md", "pdf/skill.md"), ("pdf/y", "pdf/a/x")];
        check(&tree.within("pdf"), &files, &[]);
    }

    #[test]
    fn links_cannot_multiply_files_without_bound() {
        let mut tree = tree(&["d0/x"], &[]);
        for depth in 1..30 {
            for name in ["a", "b", "c"] {
                tree.add_link(&format!("d{depth}/{name}"), &format!("../d{}", depth - 1)).unwrap();
            }
        }
        let found = tree.resolve();
        assert!(found.files.len() <= FILE_LIMIT && !found.refused_links.is_empty());
    }

    #[test]
    fn paths_sizes_and_numbers_are_bounded() {
        let mut tree = FileTree::default();
        for path in ["/etc/passwd", "../x", "a/../../x", "a//b", "", "a\0b", "a\\b", "."] {
            assert!(matches!(tree.add_file(path, Vec::new()), Err(TreeError::BadPath(_))), "{path}");
        }
        tree.add_file("large", vec![0; FILE_SIZE_LIMIT + 1]).unwrap();
        assert_eq!(tree.content("large"), None);
        for n in 1..FILE_LIMIT {
            tree.add_file(&n.to_string(), Vec::new()).unwrap();
        }
        let error = tree.add_file("one-more", Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "there are more than 9999 files; import a folder below");
        let mut tree = FileTree::default();
        let full = (0..=64).try_for_each(|n| tree.add_file(&n.to_string(), vec![0; FILE_SIZE_LIMIT]));
        assert_eq!(full, Err(TreeError::TooLarge));
    }
}
