//! Paths that the `.gitignore` files of a repository leave out.

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::{
    discovery::{ProjectFiles, parent},
    tree::FileTree,
};

/// Returns the files that git would list. A line that is no pattern is left out, as git does.
pub fn without_ignored(files: &ProjectFiles, tree: &FileTree) -> ProjectFiles {
    let matchers: Vec<(&str, Gitignore)> = files
        .iter()
        .filter(|(path, _)| path.rsplit('/').next() == Some(".gitignore"))
        .filter_map(|(path, real)| Some((parent(path), read(tree.content(real)?)?)))
        .collect();
    // The innermost file decides, so that those of longer directories are asked first.
    let verdict = |path: &str, is_directory: bool| {
        matchers.iter().rev().find_map(|(directory, matcher)| {
            let inner =
                if directory.is_empty() { path } else { path.strip_prefix(directory)?.strip_prefix('/')? };
            let verdict = matcher.matched(inner, is_directory);
            (!verdict.is_none()).then(|| verdict.is_ignore())
        })
    };
    // Nothing in an ignored directory comes back, whatever a pattern says of it.
    let is_ignored = |path: &str| {
        let mut directories = path.match_indices('/').map(|(end, _)| &path[..end]);
        directories.any(|directory| verdict(directory, true) == Some(true))
            || verdict(path, false) == Some(true)
    };
    let kept = files.iter().filter(|(path, _)| !is_ignored(path));
    kept.map(|(path, real)| (path.clone(), real.clone())).collect()
}

fn read(content: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(content).lines() {
        builder.add_line(None, line).ok();
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_are_left_out_and_the_innermost_file_decides() {
        let mut tree = FileTree::default();
        for (path, text) in [
            (".gitignore", "ignored/\n!ignored/AGENTS.md\n*.log\n!keep.log\n"),
            ("a/.gitignore", "!a.log\n"),
            ("ignored/AGENTS.md", ""),
            ("kept/AGENTS.md", ""),
            ("x.log", ""),
            ("keep.log", ""),
            ("a/a.log", ""),
            ("a/b.log", ""),
        ] {
            tree.add_file(path, text.as_bytes().to_vec()).unwrap();
        }
        let files = without_ignored(&tree.resolve().files, &tree);
        let paths: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(paths, [".gitignore", "a/.gitignore", "a/a.log", "keep.log", "kept/AGENTS.md"]);
    }
}
