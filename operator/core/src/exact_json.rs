//! Finds the parts of a JSON text that the API server would change without a word.
//!
//! Kubernetes keeps an integer as 64 bits with a sign, rounds a longer one, and keeps the last of two equal names. The order
//! of an object's names has no meaning in JSON, and Kubernetes does not keep it.

use std::{collections::HashSet, fmt};

/// Most digits that a message shows.
const MAX_SHOWN: usize = 40;

/// A part of a JSON text that Kubernetes would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InexactJson {
    /// JSON pointer to the part. Empty for the whole document.
    pub pointer: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    /// The digits of an integer.
    Rounded(String),
    /// A name that stands twice in one object.
    Repeated(String),
}

impl fmt::Display for InexactJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "(root)" } else { &self.pointer };
        match &self.problem {
            Problem::Rounded(digits) => {
                write!(
                    f,
                    "{place}: the integer {digits} has more than 64 bits and would be rounded; write it as a string"
                )
            }
            Problem::Repeated(name) => {
                write!(f, "{place}: the name {name:?} stands twice in one object; keep one of them")
            }
        }
    }
}

/// An object or a list around the current place.
enum Level<'a> {
    Object { names: HashSet<&'a str>, name: &'a str },
    List { index: usize },
}

/// Returns the first part that Kubernetes would change. A text that is no JSON may have none.
pub fn find_inexact(json: &str) -> Option<InexactJson> {
    let bytes = json.as_bytes();
    let mut levels: Vec<Level<'_>> = Vec::new();
    let (mut at, mut is_name) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'{' => levels.push(Level::Object { names: HashSet::new(), name: "" }),
            b'[' => levels.push(Level::List { index: 0 }),
            b'}' | b']' => drop(levels.pop()),
            b',' => {
                if let Some(Level::List { index }) = levels.last_mut() {
                    *index += 1;
                }
            }
            b'"' => {
                at = end_of_string(bytes, at);
                let text = json.get(start + 1..at.saturating_sub(1)).unwrap_or_default();
                if is_name && let Some(Level::Object { names, name }) = levels.last_mut() {
                    *name = text;
                    if !names.insert(text) {
                        return Some(inexact(&levels, Problem::Repeated(unescape(text))));
                    }
                }
            }
            b'-' | b'0'..=b'9' => {
                while bytes
                    .get(at)
                    .is_some_and(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
                {
                    at += 1;
                }
                let number = &json[start..at];
                if !number.contains(['.', 'e', 'E']) && number.parse::<i64>().is_err() {
                    let digits = number.chars().take(MAX_SHOWN).collect();
                    return Some(inexact(&levels, Problem::Rounded(digits)));
                }
            }
            _ => continue,
        }
        is_name = matches!(byte, b'{' | b',') && matches!(levels.last(), Some(Level::Object { .. }));
    }
    None
}

/// Returns the place after the closing quote.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    bytes.len()
}

fn unescape(text: &str) -> String {
    serde_json::from_str(&format!("\"{text}\"")).unwrap_or_else(|_| text.to_owned())
}

fn inexact(levels: &[Level<'_>], problem: Problem) -> InexactJson {
    let segment = |level: &Level<'_>| match level {
        Level::Object { name, .. } => format!("/{}", unescape(name).replace('~', "~0").replace('/', "~1")),
        Level::List { index } => format!("/{index}"),
    };
    InexactJson { pointer: levels.iter().map(segment).collect(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Option<&str>) {
        let found = find_inexact(json).map(|found| found.to_string());
        match (&found, expected) {
            (None, None) => {}
            (Some(found), Some(expected)) => assert!(found.starts_with(expected), "{json}: {found}"),
            _ => panic!("{json}: {found:?}"),
        }
    }

    #[test]
    fn an_integer_beyond_64_bits_is_found_with_its_pointer() {
        check("9223372036854775808", Some("(root): the integer 9223372036854775808 has more than 64 bits"));
        check(
            r#"{"a": {"b~/c": [1, {}, -9223372036854775809]}}"#,
            Some("/a/b~0~1c/2: the integer -9223372036854775809"),
        );
        check(
            r#"[{"a": 1}, 123456789012345678901234567890]"#,
            Some("/1: the integer 123456789012345678901234567890 "),
        );
        check(&format!("[{}]", "1".repeat(5000)), Some(&format!("/0: the integer {} has", "1".repeat(40))));
    }

    #[test]
    fn numbers_that_kubernetes_keeps_are_not_found() {
        for json in [
            "9223372036854775807",
            "-9223372036854775808",
            "1e300",
            "0.1",
            "123456789012345678901234567890.5",
            "[]",
        ] {
            check(json, None);
        }
        check(r#"{"a": "12345678901234567890", "b\"": "\\", "c": [true, null]}"#, None);
    }

    #[test]
    fn a_name_that_stands_twice_in_one_object_is_found() {
        check(r#"{"a": 1, "b": {"a": 2, "c": 1, "a": [3]}}"#, Some(r#"/b/a: the name "a" stands twice"#));
        check(r#"{"a": ["a", "a"], "b": {"a": 1}, "c": {"a": 1}}"#, None);
    }

    #[test]
    fn a_broken_text_ends_the_search() {
        for json in ["", "{", "\"", "[1,", r#"{"a"#, r#""\"#, "}]"] {
            check(json, None);
        }
    }
}
