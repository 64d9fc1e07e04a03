//! Parses a frontmatter. Prose that is no YAML, such as `description: Use when: x`, is put in quotes.

use crate::{
    Code, Diagnostic, Position,
    yaml::{self, YamlDocument, YamlError},
};

/// Most repairs of one file.
const REPAIR_LIMIT: usize = 8;
/// Fields whose value is structure: in quotes it would have another meaning.
const STRUCTURED: [&str; 10] = [
    "allowed-tools",
    "allowed_tools",
    "hooks",
    "inputs",
    "mcp_tools",
    "metadata",
    "paths",
    "trigger",
    "triggers",
    "tags",
];

pub(super) struct Parsed {
    pub(super) document: YamlDocument,
    pub(super) repairs: Vec<Diagnostic>,
}

pub(super) fn parse_frontmatter(
    yaml: &str,
    lines_before: usize,
    is_repairing: bool,
) -> Result<Parsed, Diagnostic> {
    let mut text = yaml.to_owned();
    let mut repairs = Vec::new();
    let mut first_error: Option<Diagnostic> = None;
    loop {
        let error = match yaml::parse(&text) {
            Ok(document) => return Ok(Parsed { document, repairs }),
            Err(error) => error,
        };
        let refused = diagnose(&error, lines_before);
        let repaired = if is_repairing && repairs.len() < REPAIR_LIMIT {
            quote(&text, error.position.line)
        } else {
            None
        };
        let Some((repaired, key, line)) = repaired else { return Err(first_error.unwrap_or(refused)) };
        let position = Position { line, column: key.len() + 2 }.below(lines_before);
        let message = format!("{key} is no YAML ({}); it is read as if in quotes", error.message);
        repairs.push(Diagnostic::warning(Code::Repaired, position, message));
        first_error.get_or_insert(refused);
        text = repaired;
    }
}

fn diagnose(error: &YamlError, lines_before: usize) -> Diagnostic {
    Diagnostic::error(Code::InvalidYaml, error.position.below(lines_before), error.message.clone())
}

/// Quotes the value of the field that holds a line. Returns the text with as many lines, the key and its line.
fn quote(text: &str, line: usize) -> Option<(String, String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    // The parser may see the problem only at the key of the next line.
    let reported = line.clamp(1, lines.len().max(1));
    [reported, reported.saturating_sub(1)].into_iter().find_map(|line| {
        let start = (0..line).rev().find(|at| field(lines[*at]).is_some())?;
        let end = (start + 1..lines.len()).find(|at| is_top(lines[*at])).unwrap_or(lines.len());
        if end < line {
            return None;
        }
        let (key, value) = field(lines[start])?;
        let mut words = vec![value.trim()];
        words.extend(lines[start + 1..end].iter().map(|line| line.trim()));
        let value = words.join(" ");
        let value = value.trim();
        if value.is_empty()
            || value.starts_with(['\'', '|', '>'])
            || is_quoted(value)
            || STRUCTURED.contains(&key)
        {
            return None;
        }
        let quoted = format!("{key}: '{}'", value.replace('\'', "''"));
        let blank = "\n".repeat(end - start - 1);
        let before: String = lines[..start].iter().flat_map(|line| [line, "\n"]).collect();
        let after: String = lines[end..].iter().flat_map(|line| [line, "\n"]).collect();
        Some((format!("{before}{quoted}\n{blank}{after}"), key.to_owned(), start + 1))
    })
}

/// True for a value that quotes enclose already.
fn is_quoted(value: &str) -> bool {
    value.len() > 1 && value.starts_with('"') && value.ends_with('"')
}

/// Splits `key: value` at the start of a line.
fn field(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_key = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    (is_key && (value.is_empty() || value.starts_with([' ', '\t']))).then_some((key, value))
}

/// True for a line that is no continuation.
fn is_top(line: &str) -> bool {
    !line.is_empty() && !line.starts_with([' ', '\t'])
}
