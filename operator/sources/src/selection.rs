//! The files of a repository that a source reads, by lines of a .gitignore file.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use skillet_instructions::tree::LEFT_OUT;

/// `spec.include` and `spec.exclude` of a source.
#[derive(Debug)]
pub(crate) struct Selection {
    /// `None` includes every file.
    include: Option<Gitignore>,
    exclude: Gitignore,
}

impl Selection {
    /// A line that is no pattern has no effect, as in git.
    pub(crate) fn new(include: &[String], exclude: &[String]) -> Self {
        Self { include: (!include.is_empty()).then(|| matcher(include)), exclude: matcher(exclude) }
    }

    /// True if the file is read.
    pub(crate) fn has_file(&self, path: &str) -> bool {
        let is_included = self
            .include
            .as_ref()
            .is_none_or(|include| include.matched_path_or_any_parents(path, false).is_ignore());
        is_included && !self.exclude.matched_path_or_any_parents(path, false).is_ignore()
    }

    /// False if no file of the directory is read.
    pub(crate) fn has_directory(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        // Without a negative line, what is below an excluded directory is excluded.
        let is_excluded = self.exclude.num_whitelists() == 0
            && self.exclude.matched_path_or_any_parents(path, true).is_ignore();
        !LEFT_OUT.contains(&name) && !is_excluded
    }
}

fn matcher(lines: &[String]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    for line in lines {
        builder.add_line(None, line).ok();
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(include: &[&str], exclude: &[&str]) -> Selection {
        let lines = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
        Selection::new(&lines(include), &lines(exclude))
    }

    #[test]
    fn lines_select_files_as_in_a_gitignore_file() {
        let all = selection(&[], &[]);
        assert!(all.has_file("a/b") && all.has_directory("a"));
        assert!(!all.has_directory("a/node_modules"));
        let some = selection(&["pdf/", "*.md"], &["drafts/", "*.png"]);
        for (path, is_read) in [
            ("pdf/SKILL.md", true),
            ("pdf/scripts/a.py", true),
            ("pdf/a.png", false),
            ("csv/SKILL.md", true),
            ("csv/a.py", false),
            ("drafts/SKILL.md", false),
            ("x/drafts/SKILL.md", false),
        ] {
            assert_eq!(some.has_file(path), is_read, "{path}");
        }
        assert!(!some.has_directory("drafts") && some.has_directory("csv"));
    }

    #[test]
    fn a_negative_line_brings_files_back() {
        let some = selection(&[], &["drafts/*", "!drafts/good"]);
        assert!(some.has_directory("drafts/good") && some.has_file("drafts/good/SKILL.md"));
        assert!(!some.has_file("drafts/bad/SKILL.md"));
        assert!(selection(&[], &["[", "a"]).has_file("b"));
    }
}
