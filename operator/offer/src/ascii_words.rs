//! Tokens as the reference makes them: runs of ASCII letters and digits of at least three characters, lower case.
//!
//! Other letters end a run: `café` gives `caf`. What is better for people is in `words`.

use std::collections::HashSet;

/// Shorter runs are rejected.
const MIN_LENGTH: usize = 3;

/// The distinct tokens of a text, in the order of their first occurrence.
pub fn context_tokens(text: &str) -> Vec<String> {
    distinct(runs(&text.to_lowercase()))
}

/// The distinct tokens of a skill's name: as of a text, but a capital after a small letter or a digit begins a new one.
pub fn name_tokens(name: &str) -> Vec<String> {
    context_tokens(&split_camel_case(name))
}

/// All tokens of a text that is in lower case already, repeats included.
pub(crate) fn runs(lower: &str) -> impl Iterator<Item = &str> {
    lower
        .split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit()))
        .filter(|run| run.len() >= MIN_LENGTH)
}

/// Puts a blank between a small ASCII letter or digit and a capital after it.
pub(crate) fn split_camel_case(name: &str) -> String {
    let mut split = String::with_capacity(name.len() + 4);
    let mut was_small = false;
    for c in name.chars() {
        if was_small && c.is_ascii_uppercase() {
            split.push(' ');
        }
        was_small = c.is_ascii_lowercase() || c.is_ascii_digit();
        split.push(c);
    }
    split
}

pub(crate) fn distinct<'a>(tokens: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = HashSet::new();
    tokens.filter(|token| seen.insert(*token)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gives_runs_of_three_and_more_once_each() {
        let check = |text: &str, expected: &[&str]| assert_eq!(context_tokens(text), expected, "{text}");
        check("a to go run it", &["run"]);
        check("foo_bar-baz.qux/quux@corge", &["foo", "bar", "baz", "qux", "quux", "corge"]);
        check("Web search, WEB", &["web", "search"]);
        check("café 网页搜索 über123", &["caf", "ber123"]);
        check("issueSearch", &["issuesearch"]);
        check("", &[]);
        // The Kelvin sign is a small k once it is in lower case.
        check("\u{212a}ubernetes", &["kubernetes"]);
    }

    #[test]
    fn a_name_is_also_split_before_capitals() {
        let check = |name: &str, expected: &[&str]| assert_eq!(name_tokens(name), expected, "{name}");
        check("webSearchV2", &["web", "search"]);
        check("getURLParser", &["get", "urlparser"]);
        check("HTTPServer", &["httpserver"]);
        check("iOSBuild", &["osbuild"]);
        check("PDFToText", &["pdfto", "text"]);
        check("search2Web", &["search2", "web"]);
        check("@org/x.y_code-review", &["org", "code", "review"]);
        check("ab", &[]);
    }
}
