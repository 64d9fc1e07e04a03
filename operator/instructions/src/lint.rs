//! The standard's own rules for a SKILL.md, as its reference validator applies them: six fields, and a plain subset of YAML.
//!
//! Clients of the standard refuse what breaks them. Skillet reads such files all the same; see [`crate::document`].

use unicode_normalization::UnicodeNormalization as _;

use crate::{
    Code, Diagnostic, Position,
    document::{DESCRIPTION_LIMIT, decode},
    dynamic::commands,
    names,
    yaml::{self, YamlNode, YamlValue},
};

const FIELDS: [&str; 6] = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
const COMPATIBILITY_LIMIT: usize = 500;
/// Characters of a command in a finding.
const LONGEST_SHOWN: usize = 60;
const START: Position = Position { line: 1, column: 1 };

/// Returns the rules that a file breaks, by their place in it.
pub fn check(bytes: &[u8], file_name: &str, directory: &str) -> Vec<Diagnostic> {
    if file_name != "SKILL.md" && file_name != "skill.md" {
        return vec![missing_skill_md()];
    }
    let text = match decode(bytes) {
        Ok(text) => text,
        Err(error) => return vec![error],
    };
    let Some(rest) = text.strip_prefix("---") else {
        return vec![Diagnostic::error(Code::NoFrontmatter, START, "the file does not begin with ---")];
    };
    // Readers of the standard end the frontmatter at the next ---, wherever it stands.
    let Some((yaml, _)) = rest.split_once("---") else {
        return vec![Diagnostic::error(Code::UnclosedFrontmatter, START, "no --- ends the frontmatter")];
    };
    let first_line = yaml.lines().next().unwrap_or_default();
    let mut found = match parse(yaml) {
        Ok(entries) => check_fields(&entries, directory),
        Err(error) => vec![error],
    };
    for diagnostic in found.iter_mut().filter(|finding| finding.position.line == 1 && !first_line.is_empty())
    {
        // The dashes stand before the first line.
        diagnostic.position.column += 3;
    }
    found.sort_by_key(|diagnostic| (diagnostic.position.line, diagnostic.position.column));
    found
}

/// Returns a finding for each command of a body, which the format runs and a Skill shows. `text` is the file with the body.
pub fn commands_not_run(text: &str, body: &str) -> Vec<Diagnostic> {
    // A body that was changed has places of its own.
    let (text, before) = text.rfind(body).map_or((body, 0), |at| (text, at));
    let found = commands(body).into_iter().map(|command| {
        let at = before + (command.as_ptr().addr() - body.as_ptr().addr());
        let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let position = Position {
            line: text[..at].matches('\n').count() + 1,
            column: text[line_start..at].chars().count() + 1,
        };
        let shown: String = command.chars().take(LONGEST_SHOWN).collect();
        let message = format!(
            "the command `{shown}` is shown as it is written; spec.instructions.dynamic of the Skill and spec.dynamicContent of the SkillPolicy let commands run"
        );
        Diagnostic::warning(Code::CommandNotRun, position, message)
    });
    found.collect()
}

/// The finding for a directory without a SKILL.md.
pub fn missing_skill_md() -> Diagnostic {
    Diagnostic::error(Code::MissingSkillMd, START, "there is no SKILL.md")
}

/// Parses the subset, in which there are no brackets, anchors, tags and repeated keys.
fn parse(yaml: &str) -> Result<Vec<(String, YamlNode)>, Diagnostic> {
    let invalid = |position, message: String| Diagnostic::error(Code::InvalidYaml, position, message);
    let document = yaml::parse_texts(yaml).map_err(|error| invalid(error.position, error.message))?;
    if let Some((position, what)) = document.beyond_subset.first() {
        return Err(invalid(*position, format!("{what} is not in the standard's YAML")));
    }
    if let Some((position, key)) = document.repeated_keys.first() {
        return Err(invalid(*position, format!("{key} is there twice")));
    }
    match document.root.value {
        YamlValue::Map(entries) => Ok(entries),
        _ => {
            Err(Diagnostic::error(Code::NotAMapping, document.root.position, "the frontmatter is not a map"))
        }
    }
}

fn check_fields(entries: &[(String, YamlNode)], directory: &str) -> Vec<Diagnostic> {
    let find = |key: &str| entries.iter().find(|(name, _)| name == key).map(|(_, node)| node);
    let mut found = Vec::new();
    let unexpected: Vec<&(String, YamlNode)> =
        entries.iter().filter(|(key, _)| !FIELDS.contains(&key.as_str())).collect();
    if let Some((_, first)) = unexpected.first() {
        let keys: Vec<&str> = unexpected.iter().map(|(key, _)| key.as_str()).collect();
        let message = format!("the standard has no field {}", keys.join(", "));
        found.push(Diagnostic::error(Code::UnexpectedFields, first.position, message));
    }
    match find("name") {
        None => found.push(Diagnostic::error(Code::MissingName, START, "there is no name")),
        Some(node) => found.extend(check_name(node, directory)),
    }
    match find("description") {
        None => found.push(Diagnostic::error(Code::MissingDescription, START, "there is no description")),
        Some(node) => found.extend(check_description(node)),
    }
    found.extend(find("compatibility").and_then(check_compatibility));
    found
}

fn check_name(node: &YamlNode, directory: &str) -> Vec<Diagnostic> {
    let error = |code, message: &str| Diagnostic::error(code, node.position, message);
    let name: String = node.scalar_text().unwrap_or_default().trim().nfkc().collect();
    if name.is_empty() {
        return vec![error(Code::EmptyName, "name is empty")];
    }
    let rules = [
        (name.chars().count() > names::LENGTH_LIMIT, Code::NameTooLong, "name is longer than 64 characters"),
        (name.to_lowercase() != name, Code::NameNotLowercase, "name has capital letters"),
        (
            name.starts_with('-') || name.ends_with('-'),
            Code::NameEdgeHyphen,
            "name begins or ends with a hyphen",
        ),
        (name.contains("--"), Code::NameDoubleHyphen, "name has two hyphens in a row"),
        (
            !name.chars().all(|c| c.is_alphanumeric() || c == '-'),
            Code::NameBadCharacters,
            "name has other characters than letters, digits and hyphens",
        ),
        (
            directory.nfkc().collect::<String>() != name,
            Code::DirectoryMismatch,
            "name differs from its directory's",
        ),
    ];
    rules
        .into_iter()
        .filter(|(is_broken, ..)| *is_broken)
        .map(|(_, code, message)| error(code, message))
        .collect()
}

fn check_description(node: &YamlNode) -> Option<Diagnostic> {
    let description = node.scalar_text().unwrap_or_default();
    if description.trim().is_empty() {
        return Some(Diagnostic::error(Code::EmptyDescription, node.position, "description is empty"));
    }
    let length = description.chars().count();
    (length > DESCRIPTION_LIMIT).then(|| {
        let message = format!("description has {length} characters; at most {DESCRIPTION_LIMIT} are allowed");
        Diagnostic::error(Code::DescriptionTooLong, node.position, message)
    })
}

fn check_compatibility(node: &YamlNode) -> Option<Diagnostic> {
    let length = match &node.value {
        YamlValue::List(_) | YamlValue::Map(_) => {
            let message = format!("compatibility must be text, not {}", node.type_name());
            return Some(Diagnostic::error(Code::CompatibilityNotString, node.position, message));
        }
        _ => node.scalar_text().unwrap_or_default().chars().count(),
    };
    let message = format!("compatibility has {length} characters; at most {COMPATIBILITY_LIMIT} are allowed");
    (length > COMPATIBILITY_LIMIT)
        .then(|| Diagnostic::error(Code::CompatibilityTooLong, node.position, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontmatter;

    fn check_text(text: &str, expected: &[&str]) {
        let found: Vec<&str> =
            check(text.as_bytes(), "SKILL.md", "log-triage").iter().map(|d| d.code.as_str()).collect();
        assert_eq!(found, expected, "{text}");
    }

    fn check_front(fields: &str, expected: &[&str]) {
        check_text(&format!("---\n{fields}\n---\nbody\n"), expected);
    }

    #[test]
    fn a_file_of_the_six_fields_is_valid() {
        let fields = "license: MIT\ncompatibility: x\nmetadata:\n  - a\nallowed-tools: Read";
        check_front(&format!("name: log-triage\ndescription: Triage logs.\n{fields}"), &[]);
        check_front("name: log-triage\ndescription: Use yes.\ncompatibility: ''", &[]);
    }

    #[test]
    fn each_rule_has_a_code() {
        let valid = "name: log-triage\ndescription: d";
        check_front(&format!("{valid}\nversion: 1.0.0\nmodel: x"), &["unexpected_fields"]);
        check_front(&format!("{valid}\nallowed-tools: [Read]"), &["invalid_yaml"]);
        check_front(&format!("{valid}\ndescription: e"), &["invalid_yaml"]);
        check_front(&format!("{valid}\ncompatibility: [a]"), &["invalid_yaml"]);
        check_front(&format!("{valid}\ncompatibility:\n  - a"), &["compatibility_not_string"]);
        check_front(&format!("{valid}\ncompatibility: {}", "c".repeat(501)), &["compatibility_too_long"]);
        check_front("description: d", &["missing_name"]);
        check_front("name: log-triage", &["missing_description"]);
        check_front("name: log-triage\ndescription:", &["empty_description"]);
        check_front("name: '  '\ndescription: d", &["empty_name"]);
        check_front(
            &format!("name: log-triage\ndescription: {}", "d".repeat(1025)),
            &["description_too_long"],
        );
        check_front("- a", &["not_a_mapping"]);
        check_front("name: log-triage\ndescription: null", &[]);
        check_front("name: No\ndescription: d", &["name_not_lowercase", "directory_mismatch"]);
    }

    #[test]
    fn names_may_have_any_script_but_no_capitals_and_punctuation() {
        let codes = |name: &str| -> Vec<&str> {
            let text = format!("---\nname: \"{name}\"\ndescription: d\n---\n");
            check(text.as_bytes(), "SKILL.md", name).iter().map(|d| d.code.as_str()).collect()
        };
        assert_eq!(codes("größe"), [""; 0]);
        assert_eq!(codes("技能"), [""; 0]);
        assert_eq!(codes("Größe"), ["name_not_lowercase"]);
        assert_eq!(codes("_ctx"), ["name_bad_characters"]);
        assert_eq!(codes("-a--b"), ["name_edge_hyphen", "name_double_hyphen"]);
        assert_eq!(codes(&"a".repeat(65)), ["name_too_long"]);
    }

    #[test]
    fn the_frontmatter_begins_at_the_first_byte_and_ends() {
        check_text("# T\n", &["no_frontmatter"]);
        check_text("", &["no_frontmatter"]);
        check_text("\n---\nname: x\n---\n", &["no_frontmatter"]);
        check_text("\u{feff}---\nname: x\n---\n", &["no_frontmatter"]);
        check_text("---\nname: x\n", &["unclosed_frontmatter"]);
        check_text("----\nname: log-triage\ndescription: d\n----\n", &["invalid_yaml"]);
        check_text("------", &["not_a_mapping"]);
        check_text("---\nname: log-triage\ndescription: Logs---", &[]);
        check_front("name: log-triage\ndescription: 'a --- b'", &["invalid_yaml"]);
        check_front("name: log-triage\ndescription: ---", &["empty_description"]);
        check_front("name: log-triage\ndescription: a\tb", &["invalid_yaml"]);
        check_front("name: log-triage\ndescription: ~", &[]);
        assert_eq!(check(b"---name:\tx\n---", "SKILL.md", "a")[0].position, Position { line: 1, column: 9 });
        check_text("---\rname: log-triage\rdescription: d\r---\rx", &[]);
        assert_eq!(check(b"", "Skill.md", "a")[0].code, Code::MissingSkillMd);
        assert_eq!(check(b"---\nname: a\ndescription: Use: x\n---", "SKILL.md", "a")[0].position.line, 3);
    }

    #[test]
    fn each_command_of_a_body_is_found_with_its_place() {
        let text = "---\nname: a\n---\n\nLog: é !`git log`\n```\n!`no`\n```\n- !`b` !`git log`\n";
        let body = frontmatter::split(text).body.trim();
        let found: Vec<String> = commands_not_run(text, body).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("5:10: warning: the command `git log` is shown"), "{found:?}");
        assert!(found[0].ends_with("(command_not_run)") && found[1].starts_with("9:5: "), "{found:?}");
        assert_eq!(commands_not_run("Text.", "Text."), []);
        assert!(
            commands_not_run("x", "!`a`")[0].message.contains("`a`"),
            "a body of another text has places of its own"
        );
    }
}
