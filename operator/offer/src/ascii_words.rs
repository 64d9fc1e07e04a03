//! Words as OmniRoute splits them: runs of ASCII letters and digits of at least three characters, in lower case.
//!
//! Other letters end a run: `café` gives `caf`. `unicode_words` has the words of every script.

use std::collections::HashSet;

/// Shorter runs are rejected.
const MIN_LENGTH: usize = 3;

/// Returns the distinct words of a text, in the order of their first occurrence.
pub fn text_words(text: &str) -> Vec<String> {
    distinct(runs(&text.to_lowercase()))
}

/// Returns the distinct words of a skill's name. A capital after a small letter or a digit also begins a word.
pub fn name_words(name: &str) -> Vec<String> {
    text_words(&split_camel_case(name))
}

/// Returns all words of a text that is in lower case, repeats included.
pub(crate) fn runs(lower: &str) -> impl Iterator<Item = &str> {
    lower
        .split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit()))
        .filter(|run| run.len() >= MIN_LENGTH)
}

/// Inserts a blank between a small ASCII letter or digit and a capital after it.
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

/// Also inserts a blank before the last of several capitals if a small letter follows: `URLParser` is url and parser.
pub(crate) fn split_capitals(name: &str) -> String {
    let mut split = String::with_capacity(name.len() + 4);
    let mut before = None;
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        let begins_word = c.is_uppercase()
            && before.is_some_and(|before: char| {
                let ends_capitals =
                    before.is_uppercase() && rest.peek().is_some_and(|next| next.is_lowercase());
                before.is_lowercase() || before.is_ascii_digit() || ends_capitals
            });
        if begins_word {
            split.push(' ');
        }
        before = Some(c);
        split.push(c);
    }
    split
}

pub(crate) fn distinct<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = HashSet::new();
    words.filter(|word| seen.insert(*word)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gives_each_run_of_three_or_more_characters_once() {
        let check = |text: &str, expected: &[&str]| assert_eq!(text_words(text), expected, "{text}");
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
        let check = |name: &str, expected: &[&str]| assert_eq!(name_words(name), expected, "{name}");
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
