//! The texts about ended executions, and what programs read of them.

use serde_json::json;

use super::*;
use crate::output_format::Format as _;

fn check(value: &Value, format: &OutputFormat, expected: &str) {
    assert_eq!(output(value, format).unwrap(), expected);
}

fn execution() -> SkillExecution {
    serde_json::from_value(json!({
        "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution",
        "metadata": { "name": "word-count-x", "namespace": "team-a" },
        "spec": { "skill": "word-count" },
    }))
    .unwrap()
}

#[test]
fn a_program_that_reads_a_format_gets_the_status_of_a_failure() {
    let printed = |status: Value, format: &str| {
        let status: SkillExecutionStatus = serde_json::from_value(status).unwrap();
        result(&execution(), &status, &OutputFormat::parse(format).unwrap()).unwrap()
    };
    let failed = json!({ "phase": "Failed", "reason": "ExitCode", "message": "exit code 3", "exitCode": 3, "output": { "a": 1 } });
    let read: Value = serde_json::from_str(&printed(failed.clone(), "json")).unwrap();
    assert_eq!((&read["name"], &read["namespace"]), (&json!("word-count-x"), &json!("team-a")));
    assert_eq!((&read["status"]["reason"], &read["status"]["exitCode"]), (&json!("ExitCode"), &json!(3)));
    assert_eq!(printed(failed.clone(), "jsonpath={.status.message}"), "exit code 3");
    assert!(printed(failed.clone(), "yaml").contains("reason: ExitCode\n"));
    assert_eq!(printed(failed, "text"), "");
    let succeeded = json!({ "phase": "Succeeded", "output": { "words": 3 } });
    assert_eq!(printed(succeeded.clone(), "jsonpath={.words}"), "3");
    assert_eq!(printed(succeeded, "text"), "{\n  \"words\": 3\n}\n");
    assert_eq!(printed(json!({ "phase": "Succeeded" }), "json"), "");
}

#[test]
fn text_and_scalars_are_printed_bare_and_other_json_indent() {
    check(&json!({ "output": "three words here" }), &OutputFormat::Text, "three words here\n");
    check(&json!({ "output": "ends already\n" }), &OutputFormat::Text, "ends already\n");
    check(&json!({ "output": "" }), &OutputFormat::Text, "");
    check(&json!({ "value": 3 }), &OutputFormat::Text, "3\n");
    check(&json!({ "value": "a" }), &OutputFormat::Text, "a\n");
    check(&json!({ "value": null }), &OutputFormat::Text, "null\n");
    check(&json!({ "count": 3 }), &OutputFormat::Text, "{\n  \"count\": 3\n}\n");
    check(&json!([1]), &OutputFormat::Text, "[\n  1\n]\n");
}

#[test]
fn an_object_of_the_program_s_own_is_not_taken_apart() {
    check(&json!({ "output": 3 }), &OutputFormat::Text, "{\n  \"output\": 3\n}\n");
    check(&json!({ "value": [1] }), &OutputFormat::Text, "{\n  \"value\": [\n    1\n  ]\n}\n");
    check(&json!({ "output": "a", "b": 1 }), &OutputFormat::Text, "{\n  \"b\": 1,\n  \"output\": \"a\"\n}\n");
}

#[test]
fn machine_forms_have_the_whole_value() {
    check(&json!({ "output": "a" }), &OutputFormat::Json, "{\n  \"output\": \"a\"\n}\n");
    check(&json!({ "value": 3 }), &OutputFormat::Yaml, "value: 3\n");
}

fn summarize(status: Value) -> String {
    let status: SkillExecutionStatus = serde_json::from_value(status).unwrap();
    summary(&execution(), &status, Duration::from_millis(650), Style::PLAIN)
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
        summarize(json!({ "phase": "Failed", "reason": "ExitCode", "message": "the program exited with 3",
            "exitCode": 3, "durationMs": 12, "stderr": stream("a\nb\x1b[2J\n", "", 5) })),
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
    let text =
        summarize(json!({ "phase": "TimedOut", "reason": "TimedOut", "message": "over its limit of 1s" }));
    assert!(
        text.starts_with("word-count-x: TimedOut: word-count, after 650ms\n  over its limit of 1s\n"),
        "{text}"
    );
}
