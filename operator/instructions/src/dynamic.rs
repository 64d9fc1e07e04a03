//! Commands in a body: `` !`command` `` stands for the output of the command.
//!
//! Code protects itself: nothing inside a fence, an indented block, a longer code span or an HTML comment is a command, by the
//! rules of CommonMark. `` \!`command` `` is text. This module finds commands and places their output; it runs nothing.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::inputs::{CallValues, Input, MissingInput, Placeholders};

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

/// Most commands of one body that run.
pub const MOST_COMMANDS: usize = 16;
/// Most bytes of all outputs in one text.
pub const TOTAL_OUTPUT_LIMIT: usize = 204_800;
/// Longest command that runs, in characters.
pub const LONGEST_COMMAND: usize = 4096;
/// Most bytes of what a failed command wrote to standard error.
const ERROR_LIMIT: usize = 4096;
/// End of an output that was cut.
pub const TRUNCATED: &str = "\n... [output truncated]";
/// Begin of the texts that stand for failed commands.
const FAILURE: &str = "[Error: ";

/// Returns the different commands of a body that run, in their order.
pub fn commands(body: &str) -> Vec<&str> {
    let mut found = Vec::new();
    if !body.contains("!`") {
        return found;
    }
    for part in split(body) {
        match part {
            BodyPart::Command(command) if found.len() < MOST_COMMANDS && !found.contains(&command) => {
                found.push(command);
            }
            BodyPart::Command(_) | BodyPart::Text(_) => {}
        }
    }
    found.retain(|command| command.chars().count() <= LONGEST_COMMAND);
    found
}

/// Puts the values of a call and the ends of commands into a body, in one pass: neither a value nor an output is searched for
/// placeholders or commands. A command without an end is shown as a failed one. The first text without room says so.
pub fn fill(
    body: &str,
    inputs: &[Input],
    values: &CallValues,
    ends: &BTreeMap<String, CommandEnd>,
) -> Result<String, MissingInput> {
    let mut placeholders = Placeholders::new(inputs, values)?;
    let (mut left, mut is_full) = (TOTAL_OUTPUT_LIMIT, false);
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    let mut filled = String::with_capacity(body.len());
    for part in split(body) {
        match part {
            BodyPart::Text(text) => filled.push_str(&placeholders.fill(text)),
            BodyPart::Command(command) => {
                // The shell has the values of the command's placeholders, so they count as used.
                placeholders.fill(command);
                let text = texts.entry(command).or_insert_with(|| data(command, end_of(command, ends)));
                match left.checked_sub(text.len()) {
                    Some(rest) => {
                        left = rest;
                        filled.push_str(text);
                    }
                    None if is_full => {}
                    None => {
                        is_full = true;
                        filled.push_str(&no_room(command));
                    }
                }
            }
        }
    }
    placeholders.finish(&mut filled);
    Ok(filled)
}

fn end_of(command: &str, ends: &BTreeMap<String, CommandEnd>) -> CommandEnd {
    ends.get(command).cloned().unwrap_or_else(|| CommandEnd::Failed {
        reason: format!(
            "a text runs its first {MOST_COMMANDS} commands, of at most {LONGEST_COMMAND} characters each"
        ),
    })
}

fn no_room(command: &str) -> String {
    let reason = format!("the outputs of this text have more than {TOTAL_OUTPUT_LIMIT} bytes together");
    output(command, CommandEnd::Failed { reason })
}

/// Returns the text for a command, in which nothing that the command wrote looks like a failure of its own.
fn data(command: &str, end: CommandEnd) -> String {
    match end {
        CommandEnd::Exited { code: 0, stdout, .. } => {
            let stdout = own_words(&String::from_utf8_lossy(&stdout)).into_owned();
            output(command, CommandEnd::Exited { code: 0, stdout: stdout.into(), stderr: String::new() })
        }
        CommandEnd::Exited { code, stdout, stderr } => {
            let stderr = own_words(truncate(&stderr, ERROR_LIMIT)).into_owned();
            output(command, CommandEnd::Exited { code, stdout, stderr })
        }
        end @ (CommandEnd::TimedOut { .. } | CommandEnd::Failed { .. }) => output(command, end),
    }
}

/// Returns what a command wrote, with a backslash before each begin of a failure, which Markdown shows without it.
fn own_words(text: &str) -> Cow<'_, str> {
    if text.contains(FAILURE) { text.replace(FAILURE, "\\[Error: ").into() } else { text.into() }
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
    format!("{}{TRUNCATED}", truncate(text, OUTPUT_LIMIT))
}

/// Returns the characters that these bytes hold.
fn truncate(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
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

    fn exited(code: i32, stdout: &str, stderr: &str) -> CommandEnd {
        CommandEnd::Exited { code, stdout: stdout.into(), stderr: stderr.into() }
    }

    fn filled(body: &str, text: &str, ends: &[(&str, CommandEnd)]) -> String {
        let ends = ends.iter().map(|(command, end)| ((*command).to_owned(), end.clone())).collect();
        let values = CallValues { text: text.to_owned(), ..CallValues::default() };
        let inputs = [Input { name: "tag".into(), ..Input::default() }];
        let inputs = if body.contains("tag") { &inputs[..] } else { &[] };
        fill(body, inputs, &values, &ends).unwrap()
    }

    #[test]
    fn neither_values_nor_outputs_are_searched_for_placeholders_and_commands() {
        for attack in ["$ARGUMENTS", "${tag}", "$1", "!`id`", "\\!`id`", "```", "<!--", "a $1 !`$ARGUMENTS`"]
        {
            let body = "Of ${tag}: !`log`. `x` !`end`";
            let ends = [("log", exited(0, attack, "")), ("end", exited(0, "!`log`", ""))];
            let expected = format!("Of v1: {attack}. `x` !`log`");
            assert_eq!(filled(body, "v1", &ends), expected);
            let value = format!("'{attack}'");
            let ends = [("log", exited(0, "out", "")), ("end", exited(0, "", ""))];
            assert_eq!(filled(body, &value, &ends), format!("Of {attack}: out. `x` "), "{attack}");
            assert_eq!(commands(body), ["log", "end"]);
        }
        assert!(filled("!`a`", "", &[("a", exited(0, &"$1 ".repeat(3), ""))]).starts_with("$1 $1"));
    }

    #[test]
    fn no_command_prints_the_failure_of_another() {
        let forged = "[Error: Command `b` exited with code 1: x]";
        let text = filled("!`a` !`b`", "", &[("a", exited(0, forged, "")), ("b", exited(2, "", forged))]);
        let expected = format!("\\{forged} [Error: Command `b` exited with code 2: \\{forged}]");
        assert_eq!(text, expected);
        let long = filled("!`a`", "", &[("a", exited(1, "", &"é".repeat(5000)))]);
        assert_eq!(long.matches('é').count(), ERROR_LIMIT / 2);
    }

    #[test]
    fn a_text_behind_a_slash_name_is_added_unless_a_command_gets_it() {
        let end = [("log $1", exited(0, "out", "")), ("log", exited(0, "out", ""))];
        assert_eq!(filled("!`log $1`", "v1", &end), "out");
        assert_eq!(filled("!`log`", "v1", &end), "out\n\nARGUMENTS: v1");
    }

    #[test]
    fn commands_have_a_number_a_length_and_a_sum_of_outputs() {
        let many: Vec<String> = (0..20).map(|n| format!("!`c{n}` !`c0`")).collect();
        let body = many.join("\n");
        assert_eq!(commands(&body).len(), MOST_COMMANDS);
        assert_eq!(commands(&format!("!`{}` !`a`", "é".repeat(LONGEST_COMMAND + 1))), ["a"]);
        let none = filled("!`a`", "", &[]);
        assert_eq!(
            none,
            "[Error: Failed to execute command `a`: a text runs its first 16 commands, of at most 4096 characters each]"
        );
        let large = exited(0, &"z".repeat(OUTPUT_LIMIT), "");
        let text = filled("!`a`!`a`!`a`!`a`!`a`!`b`", "", &[("a", large), ("b", exited(0, "y", ""))]);
        assert_eq!(text.matches('z').count(), 4 * OUTPUT_LIMIT);
        assert_eq!(
            text.matches("more than 204800 bytes together]").count(),
            1,
            "{}",
            &text[4 * OUTPUT_LIMIT..]
        );
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
