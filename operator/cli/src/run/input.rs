//! The input of a run: reads it from its source, and marks the place of a JSON error.

use std::{
    io::{self, Read as _},
    path::PathBuf,
};

use serde_json::Value;
use skillet_core::exact_json::find_inexact;
use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum InputError {
    #[error("could not read the input from {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("could not read the input from standard input: {source}")]
    Stdin { source: io::Error },
    #[error("the input from {place} is empty; leave --input out to pass {{}}")]
    Empty { place: String },
    #[error("the input from {place} is not JSON: {problem}\n{excerpt}")]
    NotJson { place: String, problem: String, excerpt: String },
    #[error("the text from {place} is not UTF-8; pass it to the script in another form, such as base64")]
    NotText { place: String },
    #[error("the input from {place} would reach the skill changed: {problem}")]
    Inexact { place: String, problem: String },
    #[error("{} is no SkillExecution: {problem}", path.display())]
    NoExecution { path: PathBuf, problem: String },
    #[error("--set {path}: {path} is not an object, so that no field of it can be set")]
    NotAnObject { path: String },
    #[error("the input has {bytes} bytes; at most {MAX_INPUT_BYTES} can be sent")]
    TooLarge { bytes: usize },
    #[error("{0:?} has a version and --version gives another; use one of them")]
    TwoVersions(String),
    #[error("in {text:?}, the text after @ is no version: {problem}")]
    Version { text: String, problem: String },
}

/// Largest input in bytes of JSON. An object in etcd has at most 1.5 MiB, of which the result needs a part.
const MAX_INPUT_BYTES: usize = 1 << 20;

/// Refuses an input that no object can hold, before it is sent.
pub(super) fn check_size(input: Option<&Value>) -> Result<(), InputError> {
    let bytes = input.map_or(0, |input| input.to_string().len());
    if bytes > MAX_INPUT_BYTES { Err(InputError::TooLarge { bytes }) } else { Ok(()) }
}

/// The source of the input.
#[derive(Debug, PartialEq, Eq)]
enum InputSource<'a> {
    Argument(&'a str),
    Stdin,
    File(PathBuf),
}

fn source(argument: &str) -> InputSource<'_> {
    match argument {
        "-" | "@-" => InputSource::Stdin,
        _ => match argument.strip_prefix('@') {
            Some(path) => InputSource::File(path.into()),
            None => InputSource::Argument(argument),
        },
    }
}

/// Reads and parses what `--input` names.
pub(crate) fn read(argument: &str) -> Result<Value, InputError> {
    let (text, place) = read_source(argument, "--input")?;
    parse(&text, &place)
}

/// Reads the text that `--stdin` names.
pub(super) fn read_text(argument: &str) -> Result<String, InputError> {
    let (text, place) = read_source(argument, "--stdin")?;
    String::from_utf8(text).map_err(|_| InputError::NotText { place })
}

/// Returns the bytes that the argument of a flag names, and their place.
fn read_source(argument: &str, flag: &str) -> Result<(Vec<u8>, String), InputError> {
    match source(argument) {
        InputSource::Argument(text) => Ok((text.as_bytes().to_vec(), flag.to_owned())),
        InputSource::Stdin => {
            let mut text = Vec::new();
            io::stdin().lock().read_to_end(&mut text).map_err(|source| InputError::Stdin { source })?;
            Ok((text, "standard input".to_owned()))
        }
        InputSource::File(path) => {
            let read = std::fs::read(&path);
            let text = read.map_err(|source| InputError::File { path: path.clone(), source })?;
            Ok((text, path.display().to_string()))
        }
    }
}

fn parse(text: &[u8], place: &str) -> Result<Value, InputError> {
    if text.trim_ascii().is_empty() {
        return Err(InputError::Empty { place: place.to_owned() });
    }
    let value = serde_json::from_slice(text).map_err(|error| InputError::NotJson {
        place: place.to_owned(),
        problem: error.to_string(),
        excerpt: excerpt(text, error.line(), error.column()),
    })?;
    match find_inexact(&String::from_utf8_lossy(text)) {
        Some(inexact) => Err(InputError::Inexact { place: place.to_owned(), problem: inexact.to_string() }),
        None => Ok(value),
    }
}

/// Returns the line of the error with a mark below its place. `column` counts bytes from 1, like the parser.
fn excerpt(text: &[u8], line: usize, column: usize) -> String {
    /// Characters shown on either side: both lines must fit a terminal.
    const AROUND: usize = 35;
    let whole = text.split(|byte| *byte == b'\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let at = column.saturating_sub(1).min(whole.len());
    let before = String::from_utf8_lossy(&whole[..at]);
    let after = String::from_utf8_lossy(&whole[at..]);
    let skipped = before.chars().count().saturating_sub(AROUND);
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let before: String = before.chars().skip(skipped).map(visible).collect();
    let after: String = after.chars().take(AROUND).map(visible).collect();
    let mark = " ".repeat(before.chars().count());
    format!("  {before}{after}\n  {mark}^")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(text: &str) -> String {
        parse(text.as_bytes(), "--input").unwrap_err().to_string()
    }

    #[test]
    fn an_argument_is_json_a_dash_or_a_file() {
        assert_eq!(source("-"), InputSource::Stdin);
        assert_eq!(source("@-"), InputSource::Stdin);
        assert_eq!(source("@a/b.json"), InputSource::File("a/b.json".into()));
        assert_eq!(source("-5"), InputSource::Argument("-5"));
        assert_eq!(source("{}"), InputSource::Argument("{}"));
    }

    #[test]
    fn any_json_is_an_input() {
        for (text, expected) in
            [("{}", json!({})), (" [1] \n", json!([1])), ("\"a\"", json!("a")), ("null", json!(null))]
        {
            assert_eq!(parse(text.as_bytes(), "--input").unwrap(), expected);
        }
    }

    #[test]
    fn invalid_json_is_refused_with_its_place() {
        assert_eq!(
            refused("{\"text\": hello}"),
            "the input from --input is not JSON: expected value at line 1 column 10\n  {\"text\": hello}\n           ^"
        );
    }

    #[test]
    fn the_mark_is_below_the_place_in_long_lines_and_beside_other_letters() {
        assert_eq!(
            refused(&format!("{{\n  \"{}ü\" 1}}", "x".repeat(80))),
            format!(
                "the input from --input is not JSON: expected `:` at line 2 column 88\n  {}ü\" 1}}\n  {}^",
                "x".repeat(32),
                " ".repeat(35)
            )
        );
    }

    #[test]
    fn an_input_that_ends_too_soon_is_marked_at_its_end() {
        let message = refused("{\"a\": 1");
        assert!(message.contains("EOF while parsing an object at line 1 column 7"), "{message}");
    }

    #[test]
    fn an_empty_input_is_refused() {
        assert_eq!(refused(" \n"), "the input from --input is empty; leave --input out to pass {}");
    }

    #[test]
    fn an_input_that_kubernetes_would_change_is_refused_with_its_place() {
        assert_eq!(
            refused("{\"id\": 12345678901234567890123}"),
            "the input from --input would reach the skill changed: /id: the integer 12345678901234567890123 has more \
             than 64 bits and would be rounded; write it as a string"
        );
        assert!(refused("{\"a\": 1, \"a\": 2}").contains("stands twice"));
    }

    #[test]
    fn an_input_above_the_limit_is_refused_with_its_size() {
        let of = |bytes: usize| check_size(Some(&json!("x".repeat(bytes - 2))));
        of(MAX_INPUT_BYTES).unwrap();
        let error = of(MAX_INPUT_BYTES + 1).unwrap_err().to_string();
        assert_eq!(error, "the input has 1048577 bytes; at most 1048576 can be sent");
    }

    #[test]
    fn the_text_for_a_script_is_taken_as_it_is() {
        assert_eq!(read_text("{a: 1} ").unwrap(), "{a: 1} ");
        let path = std::env::temp_dir().join(format!("kubectl-skill-stdin-{}", std::process::id()));
        std::fs::write(&path, [0xff]).unwrap();
        let error = read_text(&format!("@{}", path.display())).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(
            error.ends_with("is not UTF-8; pass it to the script in another form, such as base64"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = read("@/nowhere.json").unwrap_err().to_string();
        assert!(error.starts_with("could not read the input from /nowhere.json: "), "{error}");
    }
}
