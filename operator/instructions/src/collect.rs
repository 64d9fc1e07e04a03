//! The skills of a tree of files: reads each of them, gives it its files, and says of each file that is no skill why.
//!
//! A SKILL.md counts wherever it stands, except among the resources of another skill. Files of other products and the folders of
//! skills follow [`crate::discovery`]. Flat `.md` files of other folders count only in a tree that has no other skill.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Code, Diagnostic, Position,
    discovery::{self, Candidate, Discovered, ProjectFiles, is_skill_md, parent},
    document::{Reading, read},
    third_party::ThirdParty,
    tree::FileTree,
    without_ignored,
};

/// Directories of a skill whose SKILL.md files are examples and templates.
const RESOURCES: [&str; 6] = ["scripts", "references", "assets", "templates", "examples", "resources"];

/// A skill and its files.
#[derive(Clone, Debug, PartialEq)]
pub struct Collected {
    pub skill: Discovered,
    /// Files of the bundle without the skill's own, by their path in it; each with its path in the tree, behind links.
    pub files: BTreeMap<String, String>,
}

/// A file that was not read.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    pub path: String,
    pub findings: Vec<Diagnostic>,
}

/// The outcome of each file that could be a skill.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collection {
    pub skills: Vec<Collected>,
    /// In the order of their paths.
    pub refused: Vec<Refused>,
}

/// Collects the skills of a tree. One bad file never stops the others.
pub fn collect(tree: &FileTree, reading: Reading) -> Collection {
    let resolved = tree.resolve();
    let mut collection = Collection::default();
    let mut found = Vec::new();
    for candidate in candidates(&without_ignored(&resolved.files, tree), &resolved.files) {
        let Some(content) = resolved.files.get(&candidate.path).and_then(|real| tree.content(real)) else {
            collection.refuse(&candidate.path, Code::Encoding, "is too large for a text");
            continue;
        };
        match read(content, candidate.file_name(), reading) {
            Ok(document) => found.push(Discovered { candidate, document }),
            Err(findings) => collection.refused.push(Refused { path: candidate.path, findings }),
        }
    }
    let (kept, dropped) = discovery::merge(found);
    for (loser, winner) in dropped {
        let message = format!("{winner} has its name, {}, and counts before it", loser.document.name);
        collection.refuse(&loser.candidate.path, Code::Shadowed, &message);
    }
    for (path, reason) in resolved.refused_links {
        collection.refuse(&path, Code::Link, &format!("is a link that {reason}"));
    }
    let roots: BTreeSet<String> =
        kept.iter().filter(|skill| is_skill_md(&skill.candidate.path)).map(directory).collect();
    collection.skills = kept
        .into_iter()
        .map(|skill| Collected { files: bundle(&skill, &roots, &resolved.files), skill })
        .collect();
    collection.refused.sort_by(|a, b| a.path.cmp(&b.path));
    collection
}

impl Collection {
    fn refuse(&mut self, path: &str, code: Code, message: &str) {
        let position = Position { line: 1, column: 1 };
        let findings = vec![Diagnostic::error(code, position, message)];
        self.refused.push(Refused { path: path.to_owned(), findings });
    }
}

/// The files to read. Those that git ignores count only in folders of skills.
fn candidates(listed: &ProjectFiles, files: &ProjectFiles) -> Vec<Candidate> {
    let skill_files = outer_skills(files);
    let is_in_skill = |path: &str| skill_files.iter().any(|skill| is_below(path, parent(skill)));
    let mut found: Vec<Candidate> = discovery::find(files, "", None)
        .into_iter()
        .filter(|candidate| candidate.scope.is_none() || !is_in_skill(&candidate.path))
        .filter(|candidate| candidate.counts_in(listed))
        .filter(|candidate| !is_skill_md(&candidate.path))
        .collect();
    // A skill at the root owns its folder.
    found.retain(|candidate| !skill_files.contains(&"SKILL.md".to_owned()) || !is_in_skill(&candidate.path));
    let mut folder = files.len();
    for path in files.keys() {
        let is_known = found.iter().any(|candidate| candidate.path == *path);
        if !is_known && !is_in_skill(path) && is_third_party_rule(path) {
            found.push(Candidate::rule(path, folder));
            folder += 1;
        }
    }
    for path in &skill_files {
        found.push(Candidate::skill_md(path, folder));
        folder += 1;
    }
    if found.is_empty() {
        let flat =
            files.keys().filter(|path| discovery::is_markdown(path) && discovery::last(path) != "README.md");
        found.extend(flat.map(|path| Candidate::flat(path, folder)));
    }
    found
}

/// Rules of products that only some loaders know.
fn is_third_party_rule(path: &str) -> bool {
    let product = ThirdParty::of_path(path);
    product.is_some() && ThirdParty::of_file_name(discovery::last(path)).is_none()
}

/// Every SKILL.md, without those among the resources of another skill.
fn outer_skills(files: &ProjectFiles) -> Vec<String> {
    let all: Vec<&String> = files.keys().filter(|path| is_skill_md(path)).collect();
    let is_resource = |path: &str| {
        all.iter().any(|outer| {
            let inner = below(path, parent(outer));
            inner.and_then(|inner| inner.split_once('/')).is_some_and(|(first, _)| RESOURCES.contains(&first))
        })
    };
    all.iter().filter(|path| !is_resource(path)).map(|path| (*path).clone()).collect()
}

fn directory(skill: &Discovered) -> String {
    parent(&skill.candidate.path).to_owned()
}

/// The files below a skill's directory that belong to no skill inside it.
fn bundle(skill: &Discovered, roots: &BTreeSet<String>, files: &ProjectFiles) -> BTreeMap<String, String> {
    let path = &skill.candidate.path;
    if !is_skill_md(path) {
        return BTreeMap::new();
    }
    let own = directory(skill);
    // Paths are sorted: those of one directory stand together, and no skill costs a look at the files of all others.
    let prefix = if own.is_empty() { String::new() } else { format!("{own}/") };
    let others: Vec<&String> = roots
        .range(prefix.clone()..)
        .take_while(|root| root.starts_with(&prefix))
        .filter(|root| **root != own)
        .collect();
    files
        .range(prefix.clone()..)
        .take_while(|(file, _)| file.starts_with(&prefix))
        .filter(|(file, _)| *file != path && !others.iter().any(|root| is_below(file, root)))
        .map(|(file, real)| (file[prefix.len()..].to_owned(), real.clone()))
        .collect()
}

fn is_below(path: &str, directory: &str) -> bool {
    below(path, directory).is_some()
}

fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    if directory.is_empty() { Some(path) } else { path.strip_prefix(directory)?.strip_prefix('/') }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], skills: &[&str], refused: &[&str]) -> Collection {
        let mut tree = FileTree::default();
        for (path, text) in files {
            match text.strip_prefix("-> ") {
                Some(target) => tree.add_link(path, target).unwrap(),
                None => tree.add_file(path, text.as_bytes().to_vec()).unwrap(),
            }
        }
        let found = collect(&tree, Reading::LENIENT);
        let names: Vec<String> = found
            .skills
            .iter()
            .map(|found| {
                let files: Vec<&str> = found.files.keys().map(String::as_str).collect();
                format!("{} [{}]", found.skill.document.name, files.join(" "))
            })
            .collect();
        let lines: Vec<String> =
            found.refused.iter().map(|refused| format!("{}:{}", refused.path, refused.findings[0])).collect();
        assert_eq!(
            (names.iter().map(String::as_str).collect::<Vec<_>>(), lines.len()),
            (skills.to_vec(), refused.len()),
            "{lines:?}"
        );
        for (line, expected) in lines.iter().zip(refused) {
            assert!(line.starts_with(expected), "{line}");
        }
        found
    }

    #[test]
    fn a_skill_has_all_files_of_its_directory() {
        check(
            &[("SKILL.md", "x"), ("scripts/a.py", ""), ("AGENTS.md", "x"), (".mcp.json", "{}")],
            &[" [.mcp.json AGENTS.md scripts/a.py]"],
            &[],
        );
        let found = check(
            &[
                ("s/a/SKILL.md", "x"),
                ("s/a/b/c.txt", "y"),
                ("s/d/SKILL.md", "z"),
                ("README.md", "r"),
                ("docs/x.md", ""),
            ],
            &["a [b/c.txt]", "d []"],
            &[],
        );
        assert_eq!(found.skills[0].files["b/c.txt"], "s/a/b/c.txt");
    }

    #[test]
    fn a_skill_inside_another_is_its_own_unless_it_is_a_resource() {
        check(
            &[
                ("a/SKILL.md", "x"),
                ("a/inner/SKILL.md", "y"),
                ("a/inner/z", ""),
                ("a/assets/t/SKILL.md", "t"),
            ],
            &["a [assets/t/SKILL.md]", "inner [z]"],
            &[],
        );
    }

    #[test]
    fn one_bad_file_stops_no_other_and_a_second_of_a_name_is_refused() {
        check(
            &[
                ("p/a/SKILL.md", "x"),
                ("q/a/SKILL.md", "y"),
                ("q/b/SKILL.md", "---\ndescription: 42\n---\n"),
                ("q/c/SKILL.md", "-> /etc/passwd"),
                ("q/d/SKILL.md", "z"),
            ],
            &["a []", "d []"],
            &[
                "q/a/SKILL.md:1:1: p/a/SKILL.md has its name, a, and counts before it",
                "q/b/SKILL.md:2:14: description must be text",
                "q/c/SKILL.md:1:1: is a link that leads out of the folder",
            ],
        );
    }

    #[test]
    fn files_of_other_products_and_folders_of_flat_files_are_found() {
        check(
            &[
                ("AGENTS.md", "a"),
                ("CLAUDE.md", "-> AGENTS.md"),
                ("svc/AGENTS.md", "b"),
                ("gen/AGENTS.md", "c"),
                (".gitignore", "gen/"),
                (".cursor/rules/style.mdc", "d"),
                (".github/copilot-instructions.md", "e"),
                (".agents/skills/f.md", "f"),
            ],
            &["agents []", "agents:svc []", "f []", "style []", "copilot-instructions []"],
            &[],
        );
        check(
            &[("a.md", "a"), ("team/b.md", "b"), ("README.md", "r"), ("x.txt", "")],
            &["a []", "team/b []"],
            &[],
        );
    }
}
