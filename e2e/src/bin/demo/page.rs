//! Layout of the demo's page: its width, words at the left, marks and colours.

use std::{
    env,
    io::{IsTerminal as _, stdout},
};

const WIDTH: usize = 98;
/// Room for the words at the left: `input`, `output`, `sandbox`.
pub(crate) const INDENT: usize = 10;
/// A value longer than this many lines is cut.
const LINES: usize = 6;

/// `text` in lines that fit, after `word` and below each other.
pub(crate) fn lines(word: &str, text: &str, indent: usize) -> String {
    let room = WIDTH - indent - 2;
    let mut rows: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut rest: Vec<char> = paragraph.chars().collect();
        while rest.len() > room {
            let is_gap = |c: &char| *c == ' ' || *c == ',';
            let end = rest[..room].iter().rposition(is_gap).map_or(room, |at| at + 1);
            rows.push(rest.drain(..end).collect::<String>().trim_end().to_owned());
        }
        rows.push(rest.into_iter().collect());
    }
    if rows.len() > LINES {
        rows.truncate(LINES);
        rows.push("…".into());
    }
    let first = format!("  {word:indent$}");
    let margin = " ".repeat(indent + 2);
    let joined = rows.join(&format!("\n{margin}"));
    format!("{first}{joined}")
}

/// Colours, where somebody looks.
pub(crate) struct Paint {
    is_on: bool,
}

impl Paint {
    pub(crate) fn new() -> Self {
        Self { is_on: stdout().is_terminal() && env::var_os("NO_COLOR").is_none() }
    }

    fn with(&self, code: &str, text: &str) -> String {
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn green(&self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn red(&self, text: &str) -> String {
        self.with("31", text)
    }

    pub(crate) fn yellow(&self, text: &str) -> String {
        self.with("33", text)
    }

    /// The first line of what was tried: whether it is right, what it is, and at the right how it ended.
    pub(crate) fn heading(&self, is_right: bool, title: &str, (has_succeeded, end): (bool, &str)) -> String {
        let gap = WIDTH.saturating_sub(title.len() + end.len() + 2).max(1);
        let mark = if is_right { self.green("✓") } else { self.red("✗") };
        let end = if has_succeeded { end.to_owned() } else { self.yellow(end) };
        format!("{mark} {}{}{end}", self.bold(title), " ".repeat(gap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_laid_in_lines_that_fit() {
        let text = lines("input", &format!("{{\"a\":\"{}\"}}", "word, ".repeat(60)), INDENT);
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.starts_with("  input     {\"a\""), "{text}");
        assert!(lines("output", &"x".repeat(5000), INDENT).ends_with('…'));
    }
}
