//! Finds the instruction files of a project among its paths, and decides between files of one name.
//!
//! Order: files of other products in the working directory and the repository's root, those in directories below, then the
//! folders of skills. The first file of a name wins; among files of one kind in one folder, the last.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    FileKind, SkillDocument,
    document::{FileName, Trigger},
    third_party::ThirdParty,
};

/// Folders of skills, from the first to the last that counts.
const SKILL_FOLDERS: [&str; 3] = [".agents/skills", ".openhands/skills", ".openhands/microagents"];

/// The files of a project by path, each with the path that its links lead to. Both are relative to one root.
pub type ProjectFiles = BTreeMap<String, String>;

/// A file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub path: String,
    /// Name of a skill that names none.
    pub default_name: String,
    /// Directory below the working directory, for a file that counts only there.
    pub scope: Option<String>,
    /// Number of the folder that it stands in; files of earlier folders win.
    folder: usize,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Discovered {
    pub candidate: Candidate,
    pub document: SkillDocument,
}

impl Candidate {
    pub fn file_name(&self) -> FileName<'_> {
        FileName { name: last(&self.path), default_name: &self.default_name }
    }

    /// A file of another product, with the directory for which it counts.
    fn third_party(path: &str, scope: Option<String>, folder: usize) -> Self {
        Self { path: path.to_owned(), default_name: String::new(), scope, folder }
    }

    /// True if the file counts among those that git lists. One for the whole project counts also if git ignores it.
    pub fn counts_in(&self, listed: &ProjectFiles) -> bool {
        self.scope.is_none() || listed.contains_key(&self.path)
    }

    /// A SKILL.md, with its directory's name.
    pub fn skill_md(path: &str, folder: usize) -> Self {
        let default_name = last(parent(path)).to_owned();
        Self { path: path.to_owned(), default_name, scope: None, folder }
    }

    /// A flat file, whose default name is its path without extension.
    pub(crate) fn flat(path: &str, folder: usize) -> Self {
        let default_name = path.rsplit_once('.').map_or(path, |(stem, _)| stem).to_owned();
        Self { path: path.to_owned(), default_name, scope: None, folder }
    }

    /// A rule of another product, whose default name is its file's without dots and extension.
    pub(crate) fn rule(path: &str, folder: usize) -> Self {
        let name = last(path).trim_start_matches('.');
        let default_name = name.split('.').next().unwrap_or(name).to_owned();
        Self { path: path.to_owned(), default_name, scope: None, folder }
    }
}

/// Returns the files to read, by a loader's rules. Directories are relative to the root of the files; the root is empty.
pub fn find(files: &ProjectFiles, working_directory: &str, repository_root: Option<&str>) -> Vec<Candidate> {
    let mut roots = vec![working_directory];
    roots.extend(repository_root.filter(|root| *root != working_directory));
    let mut found = Vec::new();
    for root in &roots {
        let is_here =
            |path: &&String| parent(path) == *root && ThirdParty::of_file_name(last(path)).is_some();
        let mut taken = BTreeSet::new();
        for path in files.keys().filter(is_here).filter(|path| taken.insert(&files[*path])) {
            found.push(Candidate::third_party(path, None, found.len()));
        }
    }
    let mut folder = found.len();
    for (path, scope) in nested(files, working_directory, repository_root.is_some()) {
        found.push(Candidate::third_party(path, Some(scope.to_owned()), folder));
        folder += 1;
    }
    for root in roots {
        for name in SKILL_FOLDERS {
            found.extend(find_in_folder(files, &join(root, name), folder));
            folder += 1;
        }
    }
    found
}

/// Returns the files of other products below a directory, each with its own directory, in the order of these.
///
/// Without a repository, hidden directories and those of packages are left out.
fn nested<'a>(
    files: &'a ProjectFiles,
    working_directory: &str,
    has_repository: bool,
) -> Vec<(&'a String, &'a str)> {
    let mut taken = BTreeSet::new();
    let mut found: Vec<(&String, &str)> = files
        .iter()
        .filter_map(|(path, real)| {
            let scope = below(parent(path), working_directory).filter(|scope| !scope.is_empty())?;
            let is_left_out = scope.split('/').any(|name| name.starts_with('.') || name == "node_modules");
            let is_there = (has_repository || !is_left_out) && ThirdParty::of_file_name(last(path)).is_some();
            (is_there && taken.insert(real)).then_some((path, scope))
        })
        .collect();
    found.sort_by_key(|(_, scope)| *scope);
    found
}

/// Returns every SKILL.md of the files.
pub fn find_skill_md(files: &ProjectFiles) -> Vec<Candidate> {
    let skills = files.keys().filter(|path| is_skill_md(path));
    skills.enumerate().map(|(folder, path)| Candidate::skill_md(path, folder)).collect()
}

/// Orders documents and drops those of a name that an earlier one has. Returns the kept ones, and each dropped one with the path
/// of its winner.
pub fn merge(mut found: Vec<Discovered>) -> (Vec<Discovered>, Vec<(Discovered, String)>) {
    for discovered in &mut found {
        if let Some(scope) = &discovered.candidate.scope {
            discovered.document.name = format!("{}:{scope}", discovered.document.name);
            discovered.document.trigger = Trigger::Path(vec![format!("{scope}/**")]);
            discovered.document.disable_model_invocation = true;
        }
    }
    found.sort_by_key(|discovered| (discovered.candidate.folder, rank(&discovered.document)));
    let mut kept: Vec<Discovered> = Vec::new();
    let mut dropped = Vec::new();
    for discovered in found {
        let Some(winner) = kept.iter_mut().find(|winner| winner.document.name == discovered.document.name)
        else {
            kept.push(discovered);
            continue;
        };
        let order = |of: &Discovered| (of.candidate.folder, rank(&of.document));
        let loser = if order(winner) == order(&discovered) {
            std::mem::replace(winner, discovered)
        } else {
            discovered
        };
        dropped.push((loser, winner.candidate.path.clone()));
    }
    (kept, dropped)
}

/// True for a SKILL.md, in any case.
pub fn is_skill_md(path: &str) -> bool {
    last(path).eq_ignore_ascii_case("SKILL.md")
}

/// The directory of a path; empty for the root.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// A SKILL.md counts in a direct subdirectory; another `.md` file anywhere but inside those.
fn find_in_folder(files: &ProjectFiles, directory: &str, folder: usize) -> Vec<Candidate> {
    let mut inside: Vec<(&String, &str)> =
        files.keys().filter_map(|path| Some((path, below(path, directory)?))).collect();
    inside.sort_by(|(_, a), (_, b)| a.split('/').cmp(b.split('/')));
    let is_skill = |inner: &str| is_skill_md(inner) && inner.matches('/').count() == 1;
    let skills: BTreeSet<&str> =
        inside.iter().filter(|(_, inner)| is_skill(inner)).map(|(_, inner)| parent(inner)).collect();
    let is_flat = |inner: &str| {
        let name = last(inner);
        let is_in_skill = inner.split_once('/').is_some_and(|(first, _)| skills.contains(first));
        is_markdown(name) && name != "README.md" && !is_skill_md(name) && !is_in_skill
    };
    let mut found = Vec::new();
    for (path, inner) in inside {
        if is_skill(inner) {
            found.push(Candidate::skill_md(path, folder));
        } else if is_flat(inner) {
            let default_name = inner.strip_suffix(".md").unwrap_or(inner).to_owned();
            found.push(Candidate { path: path.clone(), default_name, scope: None, folder });
        }
    }
    found
}

/// The loaders know the ending in lower case only.
pub(crate) fn is_markdown(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| ending == "md")
}

/// Always active first, then triggered ones, then SKILL.md files.
fn rank(document: &SkillDocument) -> u8 {
    match (document.kind, &document.trigger) {
        (FileKind::SkillMd, _) => 2,
        (_, Trigger::None) => 0,
        _ => 1,
    }
}

/// The rest of a path below a directory.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    if directory.is_empty() {
        return Some(path);
    }
    path.strip_prefix(directory)?.strip_prefix('/')
}

/// The last name of a path.
pub fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Reading, read};

    fn files(paths: &[&str]) -> ProjectFiles {
        paths.iter().map(|path| ((*path).to_owned(), (*path).to_owned())).collect()
    }

    fn names(files: &ProjectFiles, working_directory: &str, root: Option<&str>) -> Vec<String> {
        let found = find(files, working_directory, root).into_iter().map(|candidate| {
            let document = read(b"text", candidate.file_name(), Reading::LENIENT).unwrap();
            Discovered { candidate, document }
        });
        merge(found.collect())
            .0
            .into_iter()
            .map(|found| format!("{} {}", found.document.name, found.candidate.path))
            .collect()
    }

    #[test]
    fn other_products_files_come_before_nested_ones_and_skills() {
        let files = files(&[
            ".agents/skills/a/SKILL.md",
            ".agents/skills/a/notes.md",
            ".agents/skills/README.md",
            ".agents/skills/x/y.md",
            ".agents/skills/x-y.md",
            ".agents/skills/SKILL.md",
            ".agents/skills/g/in/SKILL.md",
            ".openhands/skills/a/SKILL.md",
            ".openhands/microagents/c.md",
            "AGENTS.md",
            "svc/api/AGENTS.md",
            "svc/CLAUDE.md",
            ".hid/AGENTS.md",
            "node_modules/p/AGENTS.md",
            "docs/x.md",
        ]);
        assert_eq!(
            names(&files, "", None),
            [
                "agents AGENTS.md",
                "claude:svc svc/CLAUDE.md",
                "agents:svc/api svc/api/AGENTS.md",
                "x/y .agents/skills/x/y.md",
                "x-y .agents/skills/x-y.md",
                "a .agents/skills/a/SKILL.md",
                "c .openhands/microagents/c.md",
            ]
        );
    }

    #[test]
    fn the_working_directory_wins_over_the_repository_s_root() {
        let files = files(&["AGENTS.md", "CLAUDE.md", "sub/AGENTS.md", "other/AGENTS.md"]);
        assert_eq!(names(&files, "sub", Some("")), ["agents sub/AGENTS.md", "claude CLAUDE.md"]);
    }

    #[test]
    fn a_link_to_a_file_that_is_taken_is_left_out() {
        let mut linked = files(&["CLAUDE.md", "GEMINI.md"]);
        linked.insert("CLAUDE.md".into(), "GEMINI.md".into());
        assert_eq!(names(&linked, "", None), ["claude CLAUDE.md"]);
        assert_eq!(names(&files(&["AGENT.md", "AGENTS.md", "agents.md"]), "", None), ["agents AGENT.md"]);
    }

    #[test]
    fn nested_files_stand_in_the_order_of_their_directories_and_git_lists_hidden_ones() {
        let paths = ["a-b/AGENTS.md", "a/c/AGENTS.md", "a/AGENTS.md", ".h/AGENTS.md", "sub/AGENTS.md"];
        let mut nested = files(&paths);
        nested.insert("sub/CLAUDE.md".into(), "sub/AGENTS.md".into());
        let first = ["agents:.h .h/AGENTS.md", "agents:a a/AGENTS.md", "agents:a-b a-b/AGENTS.md"];
        let last = ["agents:a/c a/c/AGENTS.md", "agents:sub sub/AGENTS.md"];
        assert_eq!(names(&nested, "", None), [&first[1..], &last[..]].concat());
        assert_eq!(names(&nested, "", Some("")), [&first[..], &last[..]].concat());
    }

    #[test]
    fn the_last_of_one_kind_in_a_folder_has_the_name() {
        let documents = [
            ("a.md", "---\nname: x\n---\n1"),
            ("b.md", "---\nname: x\n---\n2"),
            ("c.md", "---\nname: x\ntriggers: [t]\n---\n3"),
        ];
        let found = documents.map(|(path, text)| {
            let candidate = Candidate::flat(path, 0);
            Discovered {
                document: read(text.as_bytes(), candidate.file_name(), Reading::LENIENT).unwrap(),
                candidate,
            }
        });
        let (kept, dropped) = merge(found.to_vec());
        assert_eq!(kept.iter().map(|one| one.candidate.path.as_str()).collect::<Vec<_>>(), ["b.md"]);
        let dropped: Vec<(&str, &str)> =
            dropped.iter().map(|(one, winner)| (one.candidate.path.as_str(), winner.as_str())).collect();
        assert_eq!(dropped, [("a.md", "b.md"), ("c.md", "b.md")]);
    }

    #[test]
    fn dropped_files_name_their_winner() {
        let files = files(&[".agents/skills/a/SKILL.md", ".openhands/skills/a.md"]);
        let found = find(&files, "", None).into_iter().map(|candidate| {
            let document = read(b"text", candidate.file_name(), Reading::LENIENT).unwrap();
            Discovered { candidate, document }
        });
        let (_, dropped) = merge(found.collect());
        assert_eq!(dropped[0].0.candidate.path, ".openhands/skills/a.md");
        assert_eq!(dropped[0].1, ".agents/skills/a/SKILL.md");
        assert_eq!(find_skill_md(&files).len(), 1);
    }
}
