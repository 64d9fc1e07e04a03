//! `-o jsonpath=TEMPLATE`: kubectl's templates over a list. Paths are those of RFC 9535, with kubectl's short forms.

use std::{iter::Peekable, str::Chars};

use jsonpath_rust::{JsonPath as _, parser::parse_json_path};
use serde_json::Value;

const EXAMPLE: &str = "write it like {.items[*].name}";

/// A template that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonPathTemplate(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// The values of a path, with blanks between them.
    Path(String),
    /// The parts for each value of a path.
    Range {
        path: String,
        parts: Vec<Part>,
    },
}

impl JsonPathTemplate {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err(format!("the template of jsonpath is empty; {EXAMPLE}"));
        }
        let mut open = vec![(String::new(), Vec::new())];
        for token in tokens(text)? {
            let part = match token {
                Token::Text(text) => Part::Text(text),
                Token::Path(path) => Part::Path(path),
                Token::Range(path) => {
                    open.push((path, Vec::new()));
                    continue;
                }
                Token::End => match (open.pop(), open.is_empty()) {
                    (Some((path, parts)), false) => Part::Range { path, parts },
                    _ => return Err("{end} has no {range} before it".to_owned()),
                },
            };
            if let Some((_, parts)) = open.last_mut() {
                parts.push(part);
            }
        }
        match (open.pop(), open.is_empty()) {
            (Some((_, parts)), true) => Ok(Self(parts)),
            _ => Err("{range} has no {end} after it".to_owned()),
        }
    }

    pub(crate) fn render(&self, value: &Value) -> String {
        render(&self.0, value)
    }
}

fn render(parts: &[Part], value: &Value) -> String {
    // The paths were read before, so that only their absence is left.
    let found = |path: &str| value.query(path).unwrap_or_default();
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Path(path) => found(path).into_iter().map(text_of).collect::<Vec<_>>().join(" "),
        Part::Range { path, parts } => found(path).into_iter().map(|value| render(parts, value)).collect(),
    };
    parts.iter().map(part).collect()
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

enum Token {
    Text(String),
    Path(String),
    Range(String),
    End,
}

/// Text outside of braces stands for itself.
fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        if !before.is_empty() {
            tokens.push(Token::Text(before.to_owned()));
        }
        let end = closing(after).ok_or_else(|| format!("{{{after} has no closing brace; {EXAMPLE}"))?;
        tokens.push(token(after[..end].trim())?);
        rest = &after[end + 1..];
    }
    if !rest.is_empty() {
        tokens.push(Token::Text(rest.to_owned()));
    }
    Ok(tokens)
}

/// The place of the closing brace, which is in no quotes.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (_, '\\') => is_escaped = true,
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '}') => return Some(at),
            _ => {}
        }
        None
    })
}

fn token(text: &str) -> Result<Token, String> {
    if let Some(quoted) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        return Ok(Token::Text(quoted.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"")));
    }
    if text == "end" {
        return Ok(Token::End);
    }
    match text.strip_prefix("range ") {
        Some(path) => Ok(Token::Range(read_path(path.trim())?)),
        None => Ok(Token::Path(read_path(text)?)),
    }
}

/// A path of RFC 9535 from one of kubectl, whose names may hold dashes and escaped dots, and whose root need not be written.
fn read_path(text: &str) -> Result<String, String> {
    let mut path = "$".to_owned();
    let bare = text.strip_prefix(['$', '@']).unwrap_or(text);
    let mut rest = bare.chars().peekable();
    if rest.peek().is_some_and(|c| !matches!(c, '.' | '[')) {
        push_name(&mut path, &mut rest);
    }
    while let Some(c) = rest.next() {
        match c {
            '.' if rest.peek() == Some(&'.') => path.push('.'),
            '.' if rest.peek().is_none() => {}
            '.' => push_name(&mut path, &mut rest),
            c => path.push(c),
        }
        if c == '[' {
            push_bracket(&mut path, &mut rest);
        }
    }
    let problem = |_| format!("{text:?} is no JSONPath; {EXAMPLE}");
    parse_json_path(&path).map(|_| path.clone()).map_err(problem)
}

fn push_name(path: &mut String, rest: &mut Peekable<Chars<'_>>) {
    let mut name = String::new();
    while let Some(c) = rest.next_if(|c| !matches!(c, '.' | '[')) {
        // A backslash lets a dot stand in a name.
        name.push(if c == '\\' { rest.next().unwrap_or(c) } else { c });
    }
    // After two dots a name stands bare.
    match (name.as_str(), path.ends_with('.')) {
        ("*", true) => path.push_str(".*"),
        ("*", false) => path.push_str("[*]"),
        (name, true) => path.extend([".", name]),
        (name, false) => {
            path.extend(["['", &name.replace('\\', "\\\\").replace('\'', "\\'"), "']"]);
        }
    }
}

/// Copies what is within brackets, with those that it holds itself.
fn push_bracket(path: &mut String, rest: &mut Peekable<Chars<'_>>) {
    let (mut depth, mut quote) = (1, None);
    for c in rest.by_ref() {
        path.push(c);
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(template: &str) -> String {
        let list = json!({ "items": [
            { "name": "a", "ready": true, "labels": { "app.kubernetes.io/name": "x", "my-key": 1 } },
            { "name": "b", "ready": false },
        ] });
        JsonPathTemplate::parse(template).unwrap().render(&list)
    }

    #[test]
    fn templates_are_kubectl_s() {
        for (template, expected) in [
            ("{.items[*].name}", "a b"),
            ("{.items[0].name}", "a"),
            ("{items[-1:].name}", "b"),
            ("{$.items[?(@.name==\"b\")].ready}", "false"),
            ("{.items[0].labels.app\\.kubernetes\\.io/name}-{.items[0].labels.my-key}", "x-1"),
            ("{range .items[*]}{.name}{\"\\t\"}{@.ready}{\"\\n\"}{end}done", "a\ttrue\nb\tfalse\ndone"),
            ("{..name}", "a b"),
            ("{.items[0].nothing}", ""),
        ] {
            assert_eq!(rendered(template), expected, "{template}");
        }
    }

    #[test]
    fn a_template_that_is_none_is_refused_with_an_example() {
        for (template, part) in [
            ("", "is empty"),
            ("{.items[}", ".items["),
            ("{.items", "no closing brace"),
            ("{range .items[*]}{.name}", "no {end}"),
            ("{end}", "no {range}"),
        ] {
            let problem = JsonPathTemplate::parse(template).unwrap_err();
            assert!(problem.contains(part), "{template}: {problem}");
        }
    }
}
