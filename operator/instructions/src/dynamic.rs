//! Commands in a body: `` !`command` `` stands for the output of the command.
//!
//! Code protects itself: nothing inside a fence, an indented block, a longer code span or an HTML comment is a command, by the
//! rules of CommonMark. `` \!`command` `` is text. This module finds commands and places their output; it runs nothing.

use std::time::Duration;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// Most bytes of one command's output.
pub const OUTPUT_LIMIT: usize = 51_200;

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyPart<'a> {
    Text(&'a str),
    Command(&'a str),
}

/// The end of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    Exited { code: i32, stdout: Vec<u8>, stderr: String },
    TimedOut { limit: Duration },
    Failed { reason: String },
}

/// Splits a body into text and commands.
pub fn split(body: &str) -> Vec<BodyPart<'_>> {
    let mut parts = Vec::new();
    let mut done = 0;
    let mut is_code = false;
    for (event, range) in Parser::new(body).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            // An open run of three is a fence that its author forgot to close: nothing behind it runs.
            Event::Text(text) if !is_code && text.contains("```") => break,
            Event::Code(_) if range.start >= done => {
                let before = &body[done..range.start];
                let span = &body[range.clone()];
                let Some(text) = before.strip_suffix('!').filter(|_| is_single(span)) else { continue };
                if let Some(text) = text.strip_suffix('\\') {
                    parts.push(BodyPart::Text(text));
                    parts.push(BodyPart::Text(&body[range.start - 1..range.end]));
                } else {
                    parts.push(BodyPart::Text(text));
                    parts.push(BodyPart::Command(&span[1..span.len() - 1]));
                }
                done = range.end;
            }
            _ => {}
        }
    }
    parts.push(BodyPart::Text(&body[done..]));
    parts.retain(|part| *part != BodyPart::Text(""));
    parts
}

/// Puts the output of each command in its place. Output is text: it is not searched for commands.
pub fn render(body: &str, mut run: impl FnMut(&str) -> CommandEnd) -> String {
    let parts = split(body).into_iter().map(|part| match part {
        BodyPart::Text(text) => text.to_owned(),
        BodyPart::Command(command) => output(command, run(command)),
    });
    parts.collect()
}

/// Returns the text that stands for a command.
pub fn output(command: &str, end: CommandEnd) -> String {
    match end {
        CommandEnd::Exited { code: 0, stdout, .. } => cut(String::from_utf8_lossy(&stdout).trim()),
        CommandEnd::Exited { code, stderr, .. } => {
            format!("[Error: Command `{command}` exited with code {code}: {stderr}]")
        }
        CommandEnd::TimedOut { limit } => {
            format!("[Error: Command `{command}` timed out after {:?}s]", limit.as_secs_f64())
        }
        CommandEnd::Failed { reason } => format!("[Error: Failed to execute command `{command}`: {reason}]"),
    }
}

fn cut(text: &str) -> String {
    if text.len() <= OUTPUT_LIMIT {
        return text.to_owned();
    }
    let end = (0..=OUTPUT_LIMIT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}\n... [output truncated]", &text[..end])
}

/// True for a code span between single backticks.
fn is_single(span: &str) -> bool {
    span.len() > 2 && !span.starts_with("``")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders with commands that answer with their own text in angle brackets.
    fn check(body: &str, expected: &str) {
        let found = render(body, |command| CommandEnd::Exited {
            code: 0,
            stdout: format!(" <{command}>\n").into_bytes(),
            stderr: "noise".into(),
        });
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn commands_are_replaced_by_their_output() {
        check("Branch: !`git branch`.", "Branch: <git branch>.");
        check("!`a`!`b` `x`!`y` !!`z`", "<a><b> `x`<y> !<z>");
        check("!`echo a\necho b`", "<echo a\necho b>");
        check("- item !`a`\n\n> quote !`b`\n\n# Head !`c`\n", "- item <a>\n\n> quote <b>\n\n# Head <c>\n");
        check("[!``] [!`a`]", "[!``] [<a>]");
    }

    #[test]
    fn code_comments_and_escapes_protect_commands() {
        for body in [
            "```\n!`a`\n```",
            "~~~sh\n!`a`\n~~~",
            "````\n```\n!`a`\n```\n````",
            "text\n\n    !`a`\n",
            "<!-- !`a` -->",
            "> ```\n> !`a`\n> ```",
            "``see !`a` ``",
            "a ` b !`a` c",
            "open ``` and !`a`",
            "`!` and `a`",
        ] {
            check(body, body);
        }
        check("!`yes`\n```\n!`no`\n", "<yes>\n```\n!`no`\n");
        check("\\!`no` !`yes` \\\\!`no`", "!`no` <yes> \\!`no`");
        check("1. a\n   ~~~\n   !`no`\n   ~~~\n   !`yes`", "1. a\n   ~~~\n   !`no`\n   ~~~\n   <yes>");
    }

    #[test]
    fn output_is_not_searched_for_commands() {
        let mut commands = Vec::new();
        let found = render("!`a` !`b`", |command| {
            commands.push(command.to_owned());
            CommandEnd::Exited { code: 0, stdout: b"!`rm`".to_vec(), stderr: String::new() }
        });
        assert_eq!((found.as_str(), commands.len()), ("!`rm` !`rm`", 2));
    }

    #[test]
    fn failures_stand_in_the_place_of_the_output() {
        let failed = CommandEnd::Exited { code: 1, stdout: b"partial".to_vec(), stderr: "why\n".into() };
        assert_eq!(output("x", failed), "[Error: Command `x` exited with code 1: why\n]");
        let timed_out = CommandEnd::TimedOut { limit: Duration::from_secs(10) };
        assert_eq!(output("x", timed_out), "[Error: Command `x` timed out after 10.0s]");
        let not_run = CommandEnd::Failed { reason: "no sandbox".into() };
        assert_eq!(output("x", not_run), "[Error: Failed to execute command `x`: no sandbox]");
    }

    #[test]
    fn long_output_is_cut_between_characters() {
        let end =
            |text: String| CommandEnd::Exited { code: 0, stdout: text.into_bytes(), stderr: String::new() };
        let cut = output("x", end(format!("{}é", "x".repeat(OUTPUT_LIMIT - 1))));
        assert_eq!(cut, format!("{}\n... [output truncated]", "x".repeat(OUTPUT_LIMIT - 1)));
        assert_eq!(output("x", end("y".repeat(OUTPUT_LIMIT))).len(), OUTPUT_LIMIT);
    }
}
