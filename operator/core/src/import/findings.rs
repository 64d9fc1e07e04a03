//! Findings in the file of a Skill, kept in an annotation of the Skill, so that its status can name them.

use std::{collections::BTreeMap, fmt::Display};

use super::manifest::{FILE_ANNOTATION, FINDINGS_ANNOTATION};
use crate::text::truncate;

/// Findings that the annotation keeps.
const MOST: usize = 20;
/// Longest finding, and longest path of a file, in bytes. Anybody who may write a Skill may write its annotations.
const LONGEST: usize = 500;

/// Returns the annotation for the findings of a file; `None` without findings.
pub(super) fn annotation(findings: &[impl Display]) -> Option<String> {
    let shown = findings.iter().take(MOST).map(|finding| one_line(&finding.to_string()));
    let mut lines: Vec<String> = shown.collect();
    if findings.len() > MOST {
        lines.push(format!("and {} more; kubectl skill lint shows all", findings.len() - MOST));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns the findings that the annotations of a Skill have, each with file, line and column.
pub fn findings(annotations: &BTreeMap<String, String>) -> Vec<String> {
    let Some(lines) = annotations.get(FINDINGS_ANNOTATION) else { return Vec::new() };
    let file = annotations.get(FILE_ANNOTATION).map_or("SKILL.md", String::as_str);
    let file = one_line(file);
    let lines = lines.lines().filter(|line| !line.trim().is_empty()).take(MOST + 1);
    lines.map(|line| format!("{file}:{}", one_line(line))).collect()
}

fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    truncate(&text, LONGEST).0.to_owned()
}

#[cfg(test)]
mod tests {
    use skillet_instructions::{
        Diagnostic,
        document::{FileName, Reading},
        read,
    };

    use super::*;

    fn warnings(text: &str) -> Vec<Diagnostic> {
        let file = FileName { name: "SKILL.md", default_name: "csv" };
        read(text.as_bytes(), file, Reading::LENIENT).unwrap().warnings
    }

    fn annotations(values: &[(&str, &str)]) -> BTreeMap<String, String> {
        values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn findings_come_back_with_file_line_and_column() {
        let text = "---\nname: csv\ndescription: Use when: asked\n---\nx\n";
        let warnings = warnings(text);
        let kept = annotation(&warnings).unwrap();
        let all = annotations(&[(FILE_ANNOTATION, "csv/SKILL.md"), (FINDINGS_ANNOTATION, &kept)]);
        let found = findings(&all);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("csv/SKILL.md:3:13: warning: description is no YAML"), "{found:?}");
        assert!(found[0].ends_with("(repaired)"), "{found:?}");
        assert_eq!(annotation(&[] as &[Diagnostic]), None);
        assert!(findings(&annotations(&[(FILE_ANNOTATION, "a")])).is_empty());
    }

    #[test]
    fn many_and_long_findings_are_cut() {
        let text = format!("---\n{}---\nx\n", "a: 1\n".repeat(40));
        let warnings = warnings(&text);
        let kept = annotation(&warnings).unwrap();
        assert_eq!(kept.lines().count(), MOST + 1);
        assert!(kept.ends_with(" more; kubectl skill lint shows all"), "{kept}");
        let written = "x".repeat(10_000) + "\u{7}\n \n" + &"y\n".repeat(100);
        let found = findings(&annotations(&[(FINDINGS_ANNOTATION, &written)]));
        assert_eq!((found.len(), found[0].len()), (MOST + 1, "SKILL.md:".len() + LONGEST));
        assert!(found.iter().all(|line| !line.chars().any(char::is_control)));
    }
}
