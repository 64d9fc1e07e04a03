//! Orders that the runner obeys or refuses, and its other commands.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::process::Command;

use skillet_protocol::{
    FileContent, Isolation, OperatorMessage, RefusalReason, Run, RunFile, RunOutcome, RunnerMessage,
};
use support::plain::{Plain, RUNNER, hello};
use support::{Folder, Session, script};

#[test]
fn the_runner_waits_for_hello_and_responds_with_the_self_test() {
    let mut plain = Plain::new();
    let ready = plain.session.hello(1);
    assert_eq!(ready.runner, env!("CARGO_PKG_VERSION"));
    assert!(ready.isolation.no_new_privileges && ready.isolation.seccomp, "{:?}", ready.isolation);
    assert!(ready.isolation.network_blocked && ready.isolation.ptrace_refused, "{:?}", ready.isolation);
    assert_ne!(ready.isolation.kernel, "");
    assert_eq!(plain.session.hello(2), ready);
}

#[test]
fn a_sandbox_that_never_runs_leaves_an_unused_receipt() {
    let mut hung_up = Plain::new();
    hung_up.session.hang_up();
    hung_up.is_unused();

    let mut greeted = Plain::new();
    greeted.session.hello(1);
    greeted.session.hang_up();
    greeted.is_unused();

    let mut nonsense = Plain::new();
    nonsense.session.say_bytes(b"GET / HTTP/1.1\r\n\r\n");
    nonsense.is_unused();

    let mut cancelled = Plain::new();
    cancelled.session.say(&OperatorMessage::Cancel);
    cancelled.is_unused();

    let mut terminated = Plain::new();
    terminated.session.hello(1);
    terminated.terminate();
    terminated.is_unused();

    let mut forgotten = Plain::with(&["--idle-limit", "0"]);
    forgotten.is_unused();
}

#[test]
fn a_stale_epoch_is_refused_and_the_sandbox_stays_free() {
    let mut plain = Plain::new();
    plain.session.hello(5);
    plain.session.say(&OperatorMessage::Run(Box::new(script("echo stale"))));
    match plain.session.message() {
        Some(RunnerMessage::Refused(refused)) => assert_eq!(refused.reason, RefusalReason::StaleEpoch),
        other => panic!("{other:?}"),
    }
    let fresh = Run { epoch: 5, ..script("echo fresh") };
    plain.session.say(&OperatorMessage::Run(Box::new(fresh)));
    assert_eq!(plain.session.finish().succeeded().stdout(), "fresh\n");
}

#[test]
fn a_run_without_hello_or_with_a_bad_file_name_is_refused() {
    let mut plain = Plain::new();
    plain.session.say(&OperatorMessage::Run(Box::new(script("echo early"))));
    plain.session.say(&hello());
    for name in ["../escape", "/etc/escape", "a/../../escape"] {
        let mut bad = script("echo bad");
        bad.files.push(RunFile { path: name.into(), content: FileContent::from("x") });
        plain.session.say(&OperatorMessage::Run(Box::new(bad)));
    }
    let mut reasons = vec![];
    for _ in 0..5 {
        match plain.session.message() {
            Some(RunnerMessage::Refused(refused)) => reasons.push(refused.reason),
            Some(RunnerMessage::Ready(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    let invalid = RefusalReason::InvalidRun;
    assert_eq!(reasons, [RefusalReason::NoHello, invalid, invalid, invalid]);
    plain.session.hang_up();
    plain.is_unused();
}

#[test]
fn a_second_run_is_refused_while_the_first_runs() {
    let mut plain = Plain::new();
    plain.session.hello(1);
    plain
        .session
        .say(&OperatorMessage::Run(Box::new(script("echo first; read -r line; while :; do :; done"))));
    plain.session.wait_for_stdout();
    plain.session.say(&OperatorMessage::Run(Box::new(script("echo second"))));
    match plain.session.message() {
        Some(RunnerMessage::Refused(refused)) => assert_eq!(refused.reason, RefusalReason::AlreadyAccepted),
        other => panic!("{other:?}"),
    }
    plain.session.say(&hello());
    plain.session.say(&OperatorMessage::Cancel);
    let finished = plain.session.finish();
    assert_eq!(finished.receipt.outcome, RunOutcome::Cancelled);
    assert_eq!(finished.stdout(), "");
}

fn output(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(RUNNER).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn install_copies_the_runner_and_version_prints_its_version() {
    let folder = Folder::new("/tmp");
    let copy = folder.0.join("bin/runner");
    assert_eq!(output(&["install", copy.to_str().unwrap()]).0, Some(0));
    let version = Command::new(&copy).arg("version").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), env!("CARGO_PKG_VERSION"));
    assert_eq!(std::fs::read_dir(folder.0.join("bin")).unwrap().count(), 1);
}

#[test]
fn self_test_and_bench_spawn_print_json() {
    let folder = Folder::new("/dev/shm");
    let scratch = folder.0.to_str().unwrap();
    let (code, text) = output(&["--scratch", scratch, "self-test"]);
    let isolation: Isolation = serde_json::from_str(&text).unwrap();
    assert!(code == Some(0) && isolation.direct_exec_refused, "{text}");
    assert_eq!(std::fs::read_dir(scratch).unwrap().count(), 0, "it leaves nothing");

    let (code, text) = output(&["--scratch", scratch, "bench-spawn", "3"]);
    let figures: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, figures["rounds"].as_u64()), (Some(0), Some(3)));
    assert!(figures["bareUs"].as_f64().unwrap() > 0.0 && figures["confinedUs"].as_f64().unwrap() > 0.0);
}

#[test]
fn unknown_arguments_are_reported_on_stderr() {
    let output = Command::new(RUNNER).arg("serve").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("unknown argument \"serve\""));
}

#[test]
fn a_sandbox_without_scratch_proves_nothing_of_it_and_starts_nothing() {
    let mut command = Command::new(RUNNER);
    command.args(["--scratch", "/no/such/folder"]);
    let mut session = Session::start(&mut command);
    let ready = session.hello(1);
    assert!(!ready.isolation.direct_exec_refused && !ready.isolation.noexec_scratch);
    session.say(&OperatorMessage::Run(Box::new(script("echo never"))));
    match session.finish().receipt.outcome {
        RunOutcome::StartFailed { message } => assert!(message.contains("/no/such/folder/work"), "{message}"),
        other => panic!("{other:?}"),
    }
}
