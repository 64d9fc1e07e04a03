//! Conclusions from the outcomes of attempts, for content that passed the real validation.

use serde_json::json;
use skillet_api::{SkillPolicySpec, SkillSpec};
use skillet_core::skill::validate_content;
use skillet_protocol::{Isolation, RunOutcome as Ran};

use super::*;

fn content(extra: &str) -> ValidContent {
    let yaml = format!(
        "version: 1.0.0\nrun: {{sandbox: {{runtime: shell, script: cat}}}}\nlimits: {{timeout: 7s}}\n{extra}"
    );
    let spec: SkillSpec = serde_saphyr::from_str(&yaml).unwrap();
    validate_content(&spec, &SkillPolicySpec::default()).unwrap()
}

fn summary(bytes: &[u8], in_all: u64) -> StreamSummary {
    StreamSummary { bytes: in_all, sent: bytes.len() as u64, sha256: "d".repeat(64) }
}

fn ran(outcome: Ran, stdout: &[u8], stderr: &[u8]) -> AttemptOutcome {
    cut(outcome, (stdout, stdout.len() as u64), stderr)
}

fn cut(outcome: Ran, (stdout, in_all): (&[u8], u64), stderr: &[u8]) -> AttemptOutcome {
    let receipt = Receipt {
        outcome,
        duration_ms: 12,
        stdout: summary(stdout, in_all),
        stderr: summary(stderr, stderr.len() as u64),
        ..Receipt::unused(Isolation { network_blocked: true, kernel: "6.1".into(), ..Isolation::default() })
    };
    let captured = Captured { stdout: stdout.to_vec(), stderr: stderr.to_vec(), ..Captured::default() };
    AttemptOutcome::Ran { receipt: Box::new(receipt), captured }
}

fn check(end: AttemptOutcome, phase: Phase, reason: Reason, message: &str) -> Conclusion {
    let conclusion = conclude(end, &content(""), Duration::from_secs(7));
    assert_eq!((conclusion.phase, conclusion.reason), (phase, Some(reason)));
    let text = conclusion.message.clone().unwrap_or_default();
    assert!(text.contains(message), "{text:?} does not contain {message:?}");
    conclusion
}

#[test]
fn a_success_has_its_output_once() {
    let end = ran(Ran::Exited { code: 0 }, b"{\"a\": 1}", b"");
    let done = check(end, Phase::Succeeded, Reason::Succeeded, "");
    assert_eq!(done.output, Some(json!({"a": 1})));
    assert_eq!(done.stdout.as_ref().map(|s| (s.head.as_str(), s.bytes)), Some(("", 8)));
    assert_eq!(done.stderr, None);
    assert_eq!((done.exit_code, done.duration_ms, done.truncated), (Some(0), Some(12), false));
    let isolation = done.isolation.unwrap();
    assert!(isolation.network_blocked && !isolation.user_namespace);
    assert_eq!(isolation.kernel, "6.1");
}

#[test]
fn a_failed_program_has_its_code_and_the_end_of_its_standard_error() {
    let end = ran(Ran::Exited { code: 3 }, b"half", b"no such column: x\n");
    let failed = check(end, Phase::Failed, Reason::ExitCode, "no such column: x");
    assert_eq!(failed.exit_code, Some(3));
    assert_eq!(failed.output, None);
    assert_eq!(failed.stdout.unwrap().head, "half");
    assert_eq!(failed.stderr.unwrap().head, "no such column: x\n");
}

#[test]
fn a_signal_is_128_and_its_number() {
    let failed = check(ran(Ran::Signaled { signal: 11 }, b"", b""), Phase::Failed, Reason::ExitCode, "11");
    assert_eq!(failed.exit_code, Some(139));
}

#[test]
fn a_cut_output_is_text_with_the_size_of_the_whole() {
    let end = cut(Ran::Exited { code: 0 }, (b"[1, 2, 3", 5_000), b"");
    let done = check(end, Phase::Succeeded, Reason::Succeeded, "");
    assert!(done.truncated);
    assert_eq!(done.output, Some(json!({"output": "[1, 2, 3"})));
    assert_eq!(done.stdout.unwrap().bytes, 5_000);
}

#[test]
fn an_output_that_no_status_holds_is_cut_and_says_so() {
    let printed = format!("\"{}\"", "\\u0001".repeat(120_000));
    let done =
        check(ran(Ran::Exited { code: 0 }, printed.as_bytes(), b""), Phase::Succeeded, Reason::Succeeded, "");
    assert!(done.truncated && done.output.unwrap()["output"].is_string());
}

#[test]
fn ends_of_every_kind_have_their_phase_and_reason() {
    check(ran(Ran::TimedOut, b"", b""), Phase::TimedOut, Reason::TimedOut, "7s");
    check(ran(Ran::Cancelled, b"", b""), Phase::Cancelled, Reason::Cancelled, "");
    check(ran(Ran::OutOfMemory, b"", b""), Phase::Failed, Reason::OutOfMemory, "memory");
    let no_file = Ran::StartFailed { message: "no such file: jq".into() };
    check(ran(no_file, b"", b""), Phase::Failed, Reason::StartFailed, "no such file: jq");
    check(ran(Ran::Unused, b"", b""), Phase::Failed, Reason::SandboxUnavailable, "ran nothing");
    check(AttemptOutcome::OutOfMemory, Phase::Failed, Reason::OutOfMemory, "memory");
    check(AttemptOutcome::TimedOut, Phase::TimedOut, Reason::TimedOut, "7s");
    check(AttemptOutcome::Cancelled, Phase::Cancelled, Reason::Cancelled, "");
    let unused = AttemptOutcome::Unused { message: "gone".into() };
    check(unused, Phase::Failed, Reason::SandboxUnavailable, "gone");
    let unusable =
        AttemptOutcome::Unusable { reason: Reason::ImageUnavailable, message: "no such image".into() };
    check(unusable, Phase::Failed, Reason::ImageUnavailable, "no such image");
}

#[test]
fn a_lost_result_keeps_what_the_receipt_knows() {
    let receipt =
        Receipt { duration_ms: 9, stdout: summary(b"", 70), ..Receipt::unused(Isolation::default()) };
    let lost = AttemptOutcome::Lost {
        reason: Reason::ResultLost,
        message: "torn".into(),
        receipt: Some(Box::new(receipt)),
    };
    let known = check(lost, Phase::Failed, Reason::ResultLost, "torn");
    assert_eq!((known.duration_ms, known.stdout.map(|s| s.bytes)), (Some(9), Some(70)));
    let lost = AttemptOutcome::Lost { reason: Reason::SandboxLost, message: "deleted".into(), receipt: None };
    check(lost, Phase::Failed, Reason::SandboxLost, "deleted");
}

#[test]
fn an_output_that_breaks_its_schema_is_a_failure_that_still_shows_it() {
    let content = content("tool: {outputSchema: {type: object, required: [total]}}");
    let wrong = conclude(ran(Ran::Exited { code: 0 }, b"{}", b""), &content, Duration::from_secs(7));
    assert_eq!((wrong.phase, wrong.reason), (Phase::Failed, Some(Reason::OutputInvalid)));
    assert!(wrong.message.unwrap().contains("total"));
    let right =
        conclude(ran(Ran::Exited { code: 0 }, b"{\"total\": 1}", b""), &content, Duration::from_secs(7));
    assert_eq!(right.phase, Phase::Succeeded);
}

#[test]
fn a_long_stream_keeps_its_head_and_its_end() {
    let long = [vec![b'a'; HEAD_BYTES], vec![b'b'; HEAD_BYTES], b"the end".to_vec()].concat();
    let failed = check(ran(Ran::Exited { code: 1 }, b"", &long), Phase::Failed, Reason::ExitCode, "the end");
    let stderr = failed.stderr.unwrap();
    assert!(stderr.head.len() <= HEAD_BYTES && stderr.tail.ends_with("the end"));
    assert_eq!(stderr.bytes, long.len() as u64);
}

#[test]
fn a_program_started_no_later_than_its_end_less_its_duration() {
    let now = Timestamp::from_second(1_000).unwrap();
    let before = |ms| Some(now - SignedDuration::from_millis(ms));
    // The operator sent the run a second before the end, and the program ran for 900 ms.
    assert_eq!(started_at(before(1_000), Some(900), now), before(1_000));
    // The operator found the acceptance in the log when the program had ended.
    assert_eq!(started_at(before(0), Some(900), now), before(900));
    assert_eq!(started_at(None, Some(900), now), before(900));
    assert_eq!(started_at(before(1_000), None, now), before(1_000));
    assert_eq!(started_at(None, None, now), None);
}
