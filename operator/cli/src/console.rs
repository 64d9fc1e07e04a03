//! Output to the user: results on standard output, everything else on standard error, color only on a terminal.

use std::{
    env,
    io::{self, IsTerminal as _},
};

use crate::error::CliError;

/// The properties of the two output streams.
pub(crate) struct Console {
    is_output_terminal: bool,
    is_error_terminal: bool,
    may_color: bool,
}

/// Colors text, or leaves it plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    is_colored: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    Red,
    Green,
    Yellow,
    Bold,
}

impl Console {
    pub(crate) fn detect() -> Self {
        Self {
            is_output_terminal: io::stdout().is_terminal(),
            is_error_terminal: io::stderr().is_terminal(),
            may_color: may_color(env::var("NO_COLOR").ok().as_deref(), env::var("TERM").ok().as_deref()),
        }
    }

    pub(crate) fn is_error_terminal(&self) -> bool {
        self.is_error_terminal
    }

    pub(crate) fn output_style(&self) -> Style {
        Style { is_colored: self.is_output_terminal && self.may_color }
    }

    pub(crate) fn error_style(&self) -> Style {
        Style { is_colored: self.is_error_terminal && self.may_color }
    }

    /// True if one line can be overwritten again and again.
    pub(crate) fn is_live(&self) -> bool {
        self.is_error_terminal && env::var("TERM").is_ok_and(|term| term != "dumb")
    }

    /// Prints a result on standard output: without control characters on a terminal, exactly into a file or pipe.
    pub(crate) fn print(&self, text: &str) -> Result<(), CliError> {
        let shown = if self.is_output_terminal { printable(text) } else { text.to_owned() };
        print_styled(&shown)
    }
}

/// Prints text with this program's own colors on standard output.
pub(crate) fn print_styled(text: &str) -> Result<(), CliError> {
    match write(&mut io::stdout().lock(), text) {
        // A reader that closed its end, such as `head`, has enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|source| CliError::Unwritable { what: "standard output", source }),
    }
}

/// Prints text for people on standard error. It may contain this program's own colors.
pub(crate) fn explain(text: &str) {
    // There is no further stream to report the error on.
    write(&mut io::stderr().lock(), text).ok();
}

fn write(stream: &mut impl io::Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

/// <https://no-color.org>: any value but the empty one forbids color.
fn may_color(no_color: Option<&str>, term: Option<&str>) -> bool {
    no_color.is_none_or(str::is_empty) && term.is_some_and(|term| term != "dumb")
}

impl Style {
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { is_colored: false };
    #[cfg(test)]
    pub(crate) const COLORED: Self = Self { is_colored: true };

    pub(crate) fn paint(self, color: Color, text: &str) -> String {
        let code = match color {
            Color::Red => "31",
            Color::Green => "32",
            Color::Yellow => "33",
            Color::Bold => "1",
        };
        if self.is_colored { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Removes control characters: output of skills must not control the terminal.
pub(crate) fn printable(text: &str) -> String {
    let is_shown = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    text.replace("\r\n", "\n")
        .chars()
        .map(|c| if is_shown(c) { c } else { char::REPLACEMENT_CHARACTER })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_is_for_terminals_that_want_it() {
        assert!(may_color(None, Some("xterm")));
        assert!(may_color(Some(""), Some("xterm")));
        assert!(!may_color(Some("1"), Some("xterm")));
        assert!(!may_color(None, Some("dumb")));
        assert!(!may_color(None, None));
        assert_eq!(Style::PLAIN.paint(Color::Red, "x"), "x");
        assert_eq!(Style::COLORED.paint(Color::Red, "x"), "\x1b[31mx\x1b[0m");
    }

    #[test]
    fn a_skill_s_output_cannot_steer_the_terminal() {
        assert_eq!(printable("a\tb\r\nc\x1b[2J\u{9b}d"), "a\tb\nc\u{fffd}[2J\u{fffd}d");
    }
}
