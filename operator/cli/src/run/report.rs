//! Texts about an ended execution: its output, or the reason for a missing one. Pure.

use std::{borrow::Cow, time::Duration};

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

/// Renders the output for standard output.
pub(crate) fn output(value: &Value, format: OutputFormat) -> Result<String, CliError> {
    match plain(value) {
        Some(Value::String(text)) => format.render(value, || with_line_feed(text)),
        Some(scalar) => format.render(value, || with_line_feed(&scalar.to_string())),
        None if format == OutputFormat::Text => OutputFormat::Json.render(value, String::new),
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
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: &Value, format: OutputFormat, expected: &str) {
        assert_eq!(output(value, format).unwrap(), expected);
    }

    #[test]
    fn text_and_scalars_are_printed_bare_and_other_json_indent() {
        check(&json!({ "output": "three words here" }), OutputFormat::Text, "three words here\n");
        check(&json!({ "output": "ends already\n" }), OutputFormat::Text, "ends already\n");
        check(&json!({ "output": "" }), OutputFormat::Text, "");
        check(&json!({ "value": 3 }), OutputFormat::Text, "3\n");
        check(&json!({ "value": "a" }), OutputFormat::Text, "a\n");
        check(&json!({ "value": null }), OutputFormat::Text, "null\n");
        check(&json!({ "count": 3 }), OutputFormat::Text, "{\n  \"count\": 3\n}\n");
        check(&json!([1]), OutputFormat::Text, "[\n  1\n]\n");
    }

    #[test]
    fn an_object_of_the_program_s_own_is_not_taken_apart() {
        check(&json!({ "output": 3 }), OutputFormat::Text, "{\n  \"output\": 3\n}\n");
        check(&json!({ "value": [1] }), OutputFormat::Text, "{\n  \"value\": [\n    1\n  ]\n}\n");
        check(
            &json!({ "output": "a", "b": 1 }),
            OutputFormat::Text,
            "{\n  \"b\": 1,\n  \"output\": \"a\"\n}\n",
        );
    }

    #[test]
    fn machine_forms_have_the_whole_value() {
        check(&json!({ "output": "a" }), OutputFormat::Json, "{\n  \"output\": \"a\"\n}\n");
        check(&json!({ "value": 3 }), OutputFormat::Yaml, "value: 3\n");
    }

    fn summarize(status: Value) -> String {
        let execution: SkillExecution = serde_json::from_value(json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution",
            "metadata": { "name": "word-count-x", "namespace": "team-a" },
            "spec": { "skill": "word-count" },
        }))
        .unwrap();
        let status: SkillExecutionStatus = serde_json::from_value(status).unwrap();
        summary(&execution, &status, Duration::from_millis(650), Style::PLAIN)
    }

    fn stream(head: &str, tail: &str, bytes: usize) -> Value {
        json!({ "head": head, "tail": tail, "bytes": bytes, "sha256": "ab" })
    }

    #[test]
    fn a_success_is_one_line() {
        assert_eq!(
            summarize(
                json!({ "phase": "Succeeded", "reason": "Succeeded", "resolvedVersion": "1.0.0", "node": "n1", "durationMs": 45, "attempts": 1 })
            ),
            "word-count-x: Succeeded: word-count 1.0.0 on node n1, ran 45ms of 650ms\n"
        );
    }

    #[test]
    fn a_success_shows_warnings_of_the_program_and_what_was_cut() {
        assert_eq!(
            summarize(json!({ "phase": "Succeeded", "truncated": true, "attempts": 2,
                "stdout": stream("", "", 5000), "stderr": stream("warning: slow\n", "", 14) })),
            "standard error:\n  warning: slow\n\
             only the beginning of the output of 5000 bytes (sha256 ab) was kept\n\
             word-count-x: Succeeded: word-count, after 650ms, 2 attempts\n"
        );
    }

    #[test]
    fn a_failure_has_reason_message_end_of_standard_error_and_what_to_do() {
        assert_eq!(
            summarize(
                json!({ "phase": "Failed", "reason": "ExitCode", "message": "the program exited with 3",
                "exitCode": 3, "durationMs": 12, "stderr": stream("a\nb\x1b[2J\n", "", 5) })
            ),
            "word-count-x: Failed (ExitCode): word-count, ran 12ms of 650ms\n  the program exited with 3\n\
             standard error:\n  a\n  b\u{fffd}[2J\n\
             What to do: the program itself failed; kubectl get skill word-count -n team-a -o yaml shows it\n"
        );
    }

    #[test]
    fn a_failure_shows_the_beginning_of_standard_output() {
        let failed = |bytes| {
            summarize(json!({ "phase": "Failed", "reason": "ExitCode", "message": "exit code 3",
                "stdout": stream("row 1\nrow 2\n", "", bytes) }))
        };
        assert!(failed(12).contains("\nstandard output:\n  row 1\n  row 2\n"), "{}", failed(12));
        let cut = "\nstandard output, its beginning (99 bytes in all):\n  row 1\n";
        assert!(failed(99).contains(cut), "{}", failed(99));
    }

    #[test]
    fn standard_error_quoted_by_the_message_is_shown_once() {
        assert_eq!(
            summarize(
                json!({ "phase": "Failed", "reason": "ExitCode", "message": "exit code 3: row 7: no price",
                "stderr": stream("reading\nrow 7: no price\n", "", 24) })
            ),
            "word-count-x: Failed (ExitCode): word-count, after 650ms\n  exit code 3\n\
             standard error:\n  reading\n  row 7: no price\n\
             What to do: the program itself failed; kubectl get skill word-count -n team-a -o yaml shows it\n"
        );
    }

    #[test]
    fn a_message_that_quotes_nothing_stays_as_it_is() {
        assert_eq!(
            without_quote("breaks the schema: /count: must be 3", "other"),
            "breaks the schema: /count: must be 3"
        );
        assert_eq!(without_quote("exit code 3", "exit code 3"), "exit code 3");
        assert_eq!(without_quote("exit code 3: end of it", "the end of it\n"), "exit code 3");
    }

    #[test]
    fn of_long_standard_error_the_end_is_shown() {
        let lines = (1..=30).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
        let stderr: StreamStatus = serde_json::from_value(stream("start\n", &lines, 9_000)).unwrap();
        let text = standard_error(&stderr, &kept_end(&stderr));
        assert!(text.starts_with("standard error, its end (9000 bytes in all):\n  line 11\n"), "{text}");
        assert!(text.ends_with("  line 30\n"), "{text}");
    }

    #[test]
    fn head_and_tail_are_joined_where_they_are_the_whole() {
        let end = |bytes| {
            let stderr: StreamStatus = serde_json::from_value(stream("one ", "two", bytes)).unwrap();
            kept_end(&stderr).into_owned()
        };
        assert_eq!(end(7), "one two");
        assert_eq!(end(8), "two");
    }

    #[test]
    fn a_reason_that_equals_the_phase_is_shown_once() {
        let text = summarize(
            json!({ "phase": "TimedOut", "reason": "TimedOut", "message": "over its limit of 1s" }),
        );
        assert!(
            text.starts_with("word-count-x: TimedOut: word-count, after 650ms\n  over its limit of 1s\n"),
            "{text}"
        );
    }
}
