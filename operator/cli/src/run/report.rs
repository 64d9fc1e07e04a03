//! Texts about an ended execution: its output, or the reason for a missing one. Pure.

use std::{borrow::Cow, time::Duration};

use serde::Serialize;
use serde_json::Value;
use skillet_api::{Phase, Reason, SkillExecution, SkillExecutionStatus, execution::StreamStatus};

use super::advice::advice;
use crate::{
    console::{Color, Style, printable},
    error::CliError,
    humanize,
    output_format::OutputFormat,
};

/// Number of shown lines of standard output and of standard error.
const STREAM_LINES: usize = 20;

/// The result of a run that did not succeed, for programs.
#[derive(Serialize)]
struct FailedRun<'a> {
    namespace: Option<&'a str>,
    name: Option<&'a str>,
    status: &'a SkillExecutionStatus,
}

/// Renders what standard output gets of an execution that has ended: the output of a success. A program that reads a format
/// gets the status of a failure, too.
pub(crate) fn result(
    ended: &SkillExecution,
    status: &SkillExecutionStatus,
    format: &OutputFormat,
) -> Result<String, CliError> {
    match (&status.output, format) {
        (Some(value), _) if status.phase == Phase::Succeeded => output(value, format),
        (None, _) if status.phase == Phase::Succeeded => Ok(String::new()),
        (_, OutputFormat::Text) => Ok(String::new()),
        (_, OutputFormat::Json | OutputFormat::Yaml | OutputFormat::JsonPath(_)) => {
            let failed = FailedRun {
                namespace: ended.metadata.namespace.as_deref(),
                name: ended.metadata.name.as_deref(),
                status,
            };
            format.render(&failed, String::new)
        }
    }
}

/// Renders the output for standard output.
pub(crate) fn output(value: &Value, format: &OutputFormat) -> Result<String, CliError> {
    match plain(value) {
        Some(Value::String(text)) => format.render(value, || with_line_feed(text)),
        Some(scalar) => format.render(value, || with_line_feed(&scalar.to_string())),
        None if *format == OutputFormat::Text => OutputFormat::Json.render(value, String::new),
        None => format.render(value, String::new),
    }
}

/// Unwraps output that was no JSON object or list: text under `output`, a scalar under `value`.
fn plain(value: &Value) -> Option<&Value> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    match object.iter().next()? {
        (key, inner @ Value::String(_)) if key == "output" => Some(inner),
        (key, inner) if key == "value" && !inner.is_object() && !inner.is_array() => Some(inner),
        _ => None,
    }
}

fn with_line_feed(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// Renders the summary for standard error: the phase, the end of the program's standard error, and the advice.
pub(crate) fn summary(
    execution: &SkillExecution,
    status: &SkillExecutionStatus,
    elapsed: Duration,
    style: Style,
) -> String {
    if status.phase == Phase::Succeeded {
        return success(execution, status, elapsed, style);
    }
    let name = execution.metadata.name.as_deref().unwrap_or_default();
    let namespace = execution.metadata.namespace.as_deref().unwrap_or_default();
    let phase = style.paint(Color::Red, status.phase.as_str());
    // TimedOut and Cancelled are phase and reason at once.
    let reason = status.reason.map(Reason::as_str).filter(|reason| *reason != status.phase.as_str());
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let stderr = status.stderr.as_ref().map(|stderr| (stderr, kept_end(stderr)));
    let message = status.message.as_deref().unwrap_or_default();
    let message = stderr.as_ref().map_or(message, |(_, end)| without_quote(message, end));
    let stderr = stderr.map(|(stderr, end)| standard_error(stderr, &end)).unwrap_or_default();
    let stdout = status.stdout.as_ref().map(standard_output).unwrap_or_default();
    let title = style.paint(Color::Bold, "What to do:");
    let advice = status.reason.and_then(|reason| advice(reason, &execution.spec.skill, namespace));
    let advice = advice.map(|advice| format!("{title} {advice}\n")).unwrap_or_default();
    let place = place(execution, status, elapsed);
    format!("{name}: {phase}{reason}{place}\n{}{stdout}{stderr}{advice}", indent(message))
}

fn success(
    execution: &SkillExecution,
    status: &SkillExecutionStatus,
    elapsed: Duration,
    style: Style,
) -> String {
    let name = execution.metadata.name.as_deref().unwrap_or_default();
    let stderr = status.stderr.as_ref().map(|stderr| standard_error(stderr, &kept_end(stderr)));
    let stderr = stderr.unwrap_or_default();
    let cut = if status.truncated { truncation(status) } else { String::new() };
    let phase = style.paint(Color::Green, Phase::Succeeded.as_str());
    format!("{stderr}{cut}{name}: {phase}{}\n", place(execution, status, elapsed))
}

/// `: word-count 1.0.0 on node n1, 45ms of 0.6s`.
fn place(execution: &SkillExecution, status: &SkillExecutionStatus, elapsed: Duration) -> String {
    let version = status.resolved_version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let node = status.node.as_ref().map(|node| format!(" on node {node}")).unwrap_or_default();
    let whole = humanize::duration(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
    let took = match status.duration_ms {
        Some(millis) => format!("ran {} of {whole}", humanize::duration(millis)),
        None => format!("after {whole}"),
    };
    let attempts =
        if status.attempts > 1 { format!(", {} attempts", status.attempts) } else { String::new() };
    format!(": {}{version}{node}, {took}{attempts}", execution.spec.skill)
}

/// Returns the known end of a stream: its tail, or the whole stream if head and tail are contiguous.
fn kept_end(stream: &StreamStatus) -> Cow<'_, str> {
    let StreamStatus { head, tail, bytes, sha256: _ } = stream;
    let is_whole = u64::try_from(head.len() + tail.len()).is_ok_and(|kept| kept == *bytes);
    match (head.as_str(), tail.as_str()) {
        (head, "") => head.into(),
        (head, tail) if is_whole => format!("{head}{tail}").into(),
        (_, tail) => tail.into(),
    }
}

/// Removes the quote of standard error from a message, because the summary shows standard error itself.
fn without_quote<'a>(message: &'a str, stderr_end: &str) -> &'a str {
    let is_quote = |at: &usize| {
        let rest = message[at + 2..].trim();
        !rest.is_empty() && stderr_end.trim_end().ends_with(rest)
    };
    let quote = message.match_indices(": ").map(|(at, _)| at).find(is_quote);
    quote.map_or(message, |at| &message[..at])
}

/// The last lines of a program's standard error, with a title.
fn standard_error(stderr: &StreamStatus, end: &str) -> String {
    let lines: Vec<&str> = end.trim_end().lines().collect();
    if lines.iter().all(|line| line.trim().is_empty()) {
        return String::new();
    }
    let skipped = lines.len().saturating_sub(STREAM_LINES);
    let kept = u64::try_from(end.len()).unwrap_or(u64::MAX);
    let title = if skipped > 0 || kept < stderr.bytes {
        format!("standard error, its end ({} bytes in all):\n", stderr.bytes)
    } else {
        "standard error:\n".to_owned()
    };
    title + &indent(&lines[skipped..].join("\n"))
}

/// The first lines that a program printed before it failed, with a title.
fn standard_output(stdout: &StreamStatus) -> String {
    let lines: Vec<&str> = stdout.head.trim_end().lines().collect();
    if lines.iter().all(|line| line.trim().is_empty()) {
        return String::new();
    }
    let shown = &lines[..lines.len().min(STREAM_LINES)];
    let is_whole = shown.len() == lines.len() && u64::try_from(stdout.head.len()) == Ok(stdout.bytes);
    let title = if is_whole {
        "standard output:\n".to_owned()
    } else {
        format!("standard output, its beginning ({} bytes in all):\n", stdout.bytes)
    };
    title + &indent(&shown.join("\n"))
}

fn truncation(status: &SkillExecutionStatus) -> String {
    let whole = status.stdout.as_ref().filter(|stdout| stdout.bytes > 0);
    let size = whole.map(|stdout| format!(" of {} bytes (sha256 {})", stdout.bytes, stdout.sha256));
    format!("only the beginning of the output{} was kept\n", size.unwrap_or_default())
}

fn indent(text: &str) -> String {
    printable(text.trim_end()).lines().flat_map(|line| ["  ", line, "\n"]).collect()
}

#[cfg(test)]
mod tests;
