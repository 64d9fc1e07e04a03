//! Ends of a program: by itself, over time, cancelled, without a listening operator.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use skillet_protocol::{OperatorMessage, Receipt, RunOutcome};
use support::plain::{Plain, RUNNER, hello, run};
use support::{Folder, MARGIN, eventually, script};

#[test]
fn exit_codes_and_signals_are_distinguished() {
    let outcome = |content: &str| run(script(content)).receipt.outcome;
    assert_eq!(outcome("exit 0"), RunOutcome::Exited { code: 0 });
    assert_eq!(outcome("exit 3"), RunOutcome::Exited { code: 3 });
    assert_eq!(outcome("exit 137"), RunOutcome::Exited { code: 137 });
    assert_eq!(outcome("kill -ABRT $$"), RunOutcome::Signaled { signal: 6 });
    assert_eq!(outcome("kill -KILL $$"), RunOutcome::Signaled { signal: 9 });
    assert_eq!(outcome("kill -TERM $$"), RunOutcome::Signaled { signal: 15 });
}

/// Runs `content` for half a second; it must be over in time and leave no process behind.
fn over_time(content: &str) -> support::Finished {
    let mut plain = Plain::new();
    let scratch = plain.scratch.0.display().to_string();
    plain.session.hello(1);
    let started = Instant::now();
    let mut order = script(content);
    order.limits.timeout_ms = 500;
    plain.session.say(&OperatorMessage::Run(Box::new(order)));
    let finished = plain.session.finish();
    let took = started.elapsed();
    assert_eq!(finished.receipt.outcome, RunOutcome::TimedOut);
    assert!(took >= Duration::from_millis(500), "{took:?}");
    assert!(took < Duration::from_millis(500) + MARGIN, "{took:?}");
    assert!(plain.session.end().success());
    assert_eq!(left_behind(&scratch), Vec::<String>::new());
    finished
}

/// Processes whose environment or working directory names this scratch folder.
fn left_behind(scratch: &str) -> Vec<String> {
    let mut found = vec![];
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&environment).contains(&format!("HOME={scratch}/work")) {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

#[test]
fn a_program_over_its_time_limit_is_killed_whatever_it_does() {
    over_time("sleep 100");
    over_time("trap '' TERM; while :; do sleep 1; done");
    over_time("exec >&- 2>&- <&-; trap '' TERM; while :; do sleep 1; done");
    over_time("setsid sh -c 'trap \"\" TERM; sleep 100 & sleep 100' & trap '' TERM; wait; sleep 100");
    over_time("(setsid sleep 100 &) ; (setsid sleep 100 &) ; sleep 100");
    let finished = over_time("trap '' TERM; while :; do echo endless; done");
    assert!(finished.receipt.stdout.bytes > 0);
}

#[test]
fn a_program_may_use_its_grace() {
    let finished = over_time("trap 'echo cleaned up; exit 0' TERM; while :; do sleep 0.01; done");
    assert_eq!(finished.stdout(), "cleaned up\n");
}

#[test]
fn the_time_limit_holds_while_nobody_reads_output() {
    let folder = Folder::new("/dev/shm");
    let mut command = Command::new(RUNNER);
    command.arg("--scratch").arg(&folder.0);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut order = script("trap '' TERM; while :; do echo endless; done");
    order.limits.timeout_ms = 500;
    order.limits.output_bytes = u64::MAX;
    let orders =
        [hello().encode().unwrap(), OperatorMessage::Run(Box::new(order)).encode().unwrap()].concat();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), &orders).unwrap();
    let scratch = folder.0.display().to_string();
    eventually("the program runs", || !left_behind(&scratch).is_empty());
    let started = Instant::now();
    eventually("the program is gone", || left_behind(&scratch).is_empty());
    assert!(started.elapsed() < Duration::from_millis(500) + MARGIN);
    drop(child.stdout.take());
    eventually("the runner ends", || child.try_wait().unwrap().is_some());
}

#[test]
fn a_run_ends_with_the_program_itself_and_its_children_are_killed() {
    let mut plain = Plain::new();
    let scratch = plain.scratch.0.display().to_string();
    let started = Instant::now();
    let finished = plain.session.run(script("(setsid sleep 100 &); sleep 100 & echo done")).succeeded();
    assert_eq!(finished.stdout(), "done\n");
    assert!(started.elapsed() < Duration::from_secs(10), "it did not wait for the pipes");
    assert!(plain.session.end().success());
    assert_eq!(left_behind(&scratch), Vec::<String>::new());
}

#[test]
fn cancel_and_termination_end_a_program() {
    let endless =
        || OperatorMessage::Run(Box::new(script("trap '' TERM; echo running; while :; do sleep 1; done")));
    let mut cancelled = Plain::new();
    cancelled.session.hello(1);
    cancelled.session.say(&endless());
    assert_eq!(cancelled.session.wait_for_stdout(), b"running\n", "seen while it runs");
    let started = Instant::now();
    cancelled.session.say(&OperatorMessage::Cancel);
    assert_eq!(cancelled.session.finish().receipt.outcome, RunOutcome::Cancelled);
    assert!(started.elapsed() < MARGIN);

    let mut terminated = Plain::new();
    terminated.session.hello(1);
    terminated.session.say(&endless());
    terminated.session.wait_for_stdout();
    terminated.terminate();
    assert_eq!(terminated.session.finish().receipt.outcome, RunOutcome::Cancelled);
    assert_eq!(terminated.left().outcome, RunOutcome::Cancelled);
}

#[test]
fn a_cancel_right_behind_the_run_is_not_lost() {
    let mut plain = Plain::new();
    let orders = [hello(), OperatorMessage::Run(Box::new(script("sleep 100"))), OperatorMessage::Cancel];
    let bytes: Vec<u8> = orders.iter().flat_map(|order| order.encode().unwrap()).collect();
    plain.session.say_bytes(&bytes);
    assert_eq!(plain.session.finish().receipt.outcome, RunOutcome::Cancelled);
}

#[test]
fn a_program_continues_without_its_operator() {
    let mut plain = Plain::new();
    plain.session.hello(1);
    plain.session.say(&OperatorMessage::Run(Box::new(script("echo one; read -r line; echo two; exit 4"))));
    plain.session.wait_for_stdout();
    plain.session.hang_up();
    let finished = plain.session.finish();
    assert_eq!(finished.receipt.outcome, RunOutcome::Exited { code: 4 });
    assert_eq!(finished.receipt.stdout.bytes, 8);
    assert_eq!(plain.left(), finished.receipt);
}

#[test]
fn invalid_frames_after_the_run_count_as_a_closed_connection() {
    let mut plain = Plain::new();
    plain.session.hello(1);
    plain.session.say(&OperatorMessage::Run(Box::new(script("echo one; sleep 0.2; exit 4"))));
    plain.session.wait_for_stdout();
    plain.session.say_bytes(b"\xff\xff\xff");
    assert_eq!(plain.session.finish().receipt.outcome, RunOutcome::Exited { code: 4 });
}

#[test]
fn without_a_reader_the_receipt_is_in_the_termination_message() {
    let (scratch, folder) = (Folder::new("/dev/shm"), Folder::new("/tmp"));
    let log = folder.0.join("termination-log");
    std::fs::write(&log, "x".repeat(10_000)).unwrap();
    let mut command = Command::new(RUNNER);
    command.arg("--scratch").arg(&scratch.0).arg("--termination-log").arg(&log);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let run = OperatorMessage::Run(Box::new(script("echo unheard; exit 5")));
    let orders = [hello().encode().unwrap(), run.encode().unwrap()].concat();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), &orders).unwrap();
    eventually("the runner ends", || child.try_wait().unwrap().is_some());
    let receipt: Receipt = serde_json::from_str(&std::fs::read_to_string(&log).unwrap()).unwrap();
    assert_eq!(receipt.outcome, RunOutcome::Exited { code: 5 });
    assert_eq!(receipt.stdout.bytes, 8);
}
