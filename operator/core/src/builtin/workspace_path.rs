//! The path of a file in a workspace, by the rules of OmniRoute's file tools.
//!
//! It differs in two: a name that only begins with two dots stays inside, and a NUL is refused. Links are the store's to refuse.

use std::fmt;

/// Names that no part of a path may have, in any case.
const RESTRICTED: [&str; 6] = [".env", ".git", ".ssh", ".omniroute", ".codex", "secrets"];
const SEPARATORS: [char; 2] = ['/', '\\'];

/// A path below the root of a workspace: without empty parts, `.` and `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkspacePath(String);

/// The reason why a text is no path of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathRefusal {
    #[error("Skill file paths must be relative to the skill workspace")]
    Absolute,
    #[error("Skill file path contains a restricted segment")]
    Restricted,
    #[error("Skill file path escapes the skill workspace")]
    Escapes,
    #[error("Skill file path contains a NUL character")]
    Nul,
}

impl WorkspacePath {
    /// Reads a path of `/`. A `\` is a character of a name, but restricted names and a leading `..` are found before it, too.
    pub fn parse(text: &str) -> Result<Self, PathRefusal> {
        if text.starts_with('/') {
            return Err(PathRefusal::Absolute);
        }
        if text.split(SEPARATORS).any(|part| RESTRICTED.contains(&part.to_lowercase().as_str())) {
            return Err(PathRefusal::Restricted);
        }
        let mut parts = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop().ok_or(PathRefusal::Escapes)?),
                part => parts.push(part),
            }
        }
        let first = parts.first().ok_or(PathRefusal::Escapes)?;
        if first.split('\\').next() == Some("..") {
            return Err(PathRefusal::Escapes);
        }
        if text.contains('\0') {
            return Err(PathRefusal::Nul);
        }
        Ok(Self(parts.join("/")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the owner of the workspace that executions of a namespace have for a caller, as they name it. Who may create
/// executions in a namespace reaches no workspace of another one, whatever caller these name.
pub fn workspace_owner(namespace: &str, caller: Option<&str>) -> String {
    format!("{namespace}/{}", caller.filter(|caller| !caller.is_empty()).unwrap_or("anonymous"))
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(text: &str, expected: &str) {
        assert_eq!(
            WorkspacePath::parse(text).map(|path| path.to_string()),
            Ok(expected.to_owned()),
            "{text:?}"
        );
    }

    fn refuse(text: &str, expected: PathRefusal) {
        assert_eq!(WorkspacePath::parse(text), Err(expected), "{text:?}");
    }

    #[test]
    fn a_path_is_resolved_below_the_root() {
        accept("a.txt", "a.txt");
        accept("a/../b.txt", "b.txt");
        accept("./a//b/./c/", "a/b/c");
        accept("~/x", "~/x");
        accept(" ", " ");
        accept("a\\..\\..\\x", "a\\..\\..\\x");
        accept("\\x", "\\x");
        accept("C:\\x", "C:\\x");
    }

    #[test]
    fn a_name_that_only_begins_with_two_dots_stays_inside() {
        for path in ["..foo/x", ".../x", "...", "..foo", "..."] {
            accept(path, path);
        }
        accept("a/../..b", "..b");
    }

    #[test]
    fn absolute_paths_are_refused_first() {
        refuse("/etc/passwd", PathRefusal::Absolute);
        refuse("/.git", PathRefusal::Absolute);
        refuse("//a", PathRefusal::Absolute);
    }

    #[test]
    fn whole_parts_with_restricted_names_are_refused_in_any_case() {
        for path in [
            ".env",
            "repo/.git/HEAD",
            "a/SECRETS/b",
            "a\\.env",
            ".Ssh/id",
            ".omniroute",
            ".codex/x",
            "../.git",
            ".git/../a",
            "secrets",
        ] {
            refuse(path, PathRefusal::Restricted);
        }
        for path in [".env.local", ".gitignore", " .env", "my-secrets/a", "secrets.txt", ".git "] {
            accept(path, path);
        }
    }

    #[test]
    fn the_root_and_paths_above_it_are_refused() {
        for path in [
            "",
            ".",
            "./",
            "a/..",
            "..",
            "../a",
            "a/../../a",
            "a/../..",
            "..\\x",
            "b/../..\\x",
            "a/../../ws/a",
        ] {
            refuse(path, PathRefusal::Escapes);
        }
    }

    #[test]
    fn an_owner_is_a_caller_in_a_namespace() {
        assert_eq!(workspace_owner("team", Some("team/agent")), "team/team/agent");
        assert_eq!(workspace_owner("team", None), "team/anonymous");
        assert_eq!(workspace_owner("team", Some("")), "team/anonymous");
    }

    #[test]
    fn a_nul_is_refused() {
        refuse("a\0b", PathRefusal::Nul);
        refuse("../a\0", PathRefusal::Escapes);
    }
}
