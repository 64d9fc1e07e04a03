//! Lint of instructions: the reader's findings, and the rules of the standard, each with line, column and code.

use std::path::{Path, PathBuf};

use skillet_instructions::{
    Code, Diagnostic,
    collect::{Collected, collect},
    discovery::{is_skill_md, last, parent},
    document::{Reading, with_line_feeds},
    lint,
    tree::FileTree,
};

use super::{LintedSkill, Problem};
use crate::folder::{self, FolderError};

/// Lints the instructions of a path. With `is_strict` the rules of the standard are errors.
pub(super) fn lint_path(path: &Path, is_strict: bool) -> Result<Vec<LintedSkill>, FolderError> {
    let tree = folder::read(path)?;
    let collection = collect(&tree, Reading::LENIENT);
    let mut linted: Vec<LintedSkill> =
        collection.skills.iter().map(|found| lint_skill(path, &tree, found, is_strict)).collect();
    linted.extend(collection.refused.into_iter().map(|refused| LintedSkill {
        file: shown(path, &refused.path),
        skill: last(parent(&refused.path)).to_owned(),
        problems: refused.findings.iter().map(problem).collect(),
    }));
    linted.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(linted)
}

fn lint_skill(path: &Path, tree: &FileTree, found: &Collected, is_strict: bool) -> LintedSkill {
    let (candidate, document) = (&found.skill.candidate, &found.skill.document);
    let mut findings = document.warnings.clone();
    if is_skill_md(&candidate.path)
        && let Some(content) = tree.content(&candidate.path)
    {
        let rules = lint::check(content, last(&candidate.path), last(parent(&candidate.path)));
        findings.extend(rules.into_iter().map(|rule| if is_strict { rule } else { rule.into_warning() }));
    }
    let content = tree.content(&candidate.path).unwrap_or_default();
    let text = with_line_feeds(&String::from_utf8_lossy(content));
    findings.extend(lint::commands_not_run(&text, &document.body));
    findings.sort_by_key(|finding| (finding.position.line, finding.position.column));
    // The reader and the standard see the same name.
    let has_rule_of_name = findings.iter().any(|finding| finding.code == Code::DirectoryMismatch);
    findings.retain(|finding| !(has_rule_of_name && finding.code == Code::SkillValidation));
    let problems = findings.iter().map(problem).collect();
    LintedSkill { file: shown(path, &candidate.path), skill: document.name.clone(), problems }
}

fn problem(finding: &Diagnostic) -> Problem {
    let Diagnostic { position, message, code, .. } = finding;
    Problem {
        is_warning: !finding.is_error(),
        field: format!("{}:{}", position.line, position.column),
        message: message.clone(),
        reason: None,
        code: Some(code.as_str()),
    }
}

/// The path of a file as a user can open it. A directory that is a skill is itself the first name of the inner path.
fn shown(path: &Path, inner: &str) -> PathBuf {
    if path.is_file() {
        return path.to_owned();
    }
    let direct = path.join(inner);
    match inner.split_once('/') {
        Some((_, rest)) if direct.symlink_metadata().is_err() => path.join(rest),
        _ => direct,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::lint::text;

    struct Directory(PathBuf);

    impl Directory {
        fn of(test: &str, files: &[(&str, &str)]) -> Self {
            let path = std::env::temp_dir().join(format!("kubectl-skill-lint-{test}-{}", std::process::id()));
            for (name, content) in files {
                let file = path.join(name);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, content).unwrap();
            }
            Self(path)
        }

        fn lint(&self, inner: &str, is_strict: bool) -> String {
            let linted = lint_path(&self.0.join(inner), is_strict).unwrap();
            text(&linted).replace(&format!("{}/", self.0.display()), "")
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    const GOOD: &str = "---\nname: pdf\ndescription: Reads PDF files.\n---\nRead.\n";

    #[test]
    fn a_good_skill_has_no_finding_as_file_and_as_directory() {
        let directory = Directory::of("good", &[("pdf/SKILL.md", GOOD), ("pdf/scripts/a.py", "")]);
        for inner in ["pdf/SKILL.md", "pdf", ""] {
            assert_eq!(directory.lint(inner, true), "Skills: 1 valid, 0 invalid\n", "{inner}");
        }
    }

    #[test]
    fn findings_have_line_column_and_code() {
        let bad = "---\nname: csv\ndescription: Use when: asked\nversion: 1.0.0\n---\nx\n";
        let files =
            [("pdf/SKILL.md", GOOD), ("csv/SKILL.md", bad), ("doc/SKILL.md", "---\ndescription: 42\n---\n")];
        let directory = Directory::of("bad", &files);
        let found = directory.lint("", false);
        assert!(found.contains("csv/SKILL.md: csv: warning: 3:13: description is no YAML"), "{found}");
        assert!(found.contains(" (repaired)\n") && found.contains(" (invalid_yaml)\n"), "{found}");
        assert!(
            found.contains("doc/SKILL.md: doc: 2:14: description must be text, not a number or date; write it in quotes (field_type)\n"),
            "{found}"
        );
        assert!(found.ends_with("Skills: 2 valid, 1 invalid\n"), "{found}");
        assert!(directory.lint("", true).ends_with("Skills: 1 valid, 2 invalid\n"));
    }

    #[test]
    fn commands_that_do_not_run_are_warnings_in_each_kind_of_file() {
        let text = GOOD.replace("Read.", "Of !`date`.");
        let files = [("pdf/SKILL.md", text.as_str()), ("notes.md", "x\n!`id`\n"), ("AGENTS.md", "!`ls`\n")];
        let directory = Directory::of("commands", &files);
        for (inner, place) in [
            ("pdf", "pdf: warning: 5:6: the command `date`"),
            ("notes.md", "notes: warning: 2:3: the command `id`"),
            ("AGENTS.md", "agents: warning: 1:3: the command `ls`"),
        ] {
            let found = directory.lint(inner, true);
            assert!(found.contains(place) && found.ends_with("Skills: 1 valid, 0 invalid\n"), "{found}");
        }
    }

    #[test]
    fn a_flat_file_keeps_only_the_rules_of_the_reader() {
        let directory =
            Directory::of("flat", &[("notes.md", "---\ntriggers: [1]\n---\nx\n"), ("a.md", "x\n")]);
        let found = directory.lint("notes.md", true);
        assert!(found.contains("2:12: triggers must hold text"), "{found}");
        assert_eq!(directory.lint("a.md", true), "Skills: 1 valid, 0 invalid\n");
    }
}
