//! The sandbox lane: the runner as PID 1 under a restricted OCI config, by real runc, at each level.
//!
//! The files of e2e/attacks try the forbidden things; here are the guarantees and the everyday programs.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::time::Instant;

use skillet_protocol::{Level as Policy, OperatorMessage, Run, RunOutcome};
use support::bundle::{Level, Sandbox, runc};
use support::{MARGIN, script, script_of};

const LEVELS: [Level; 3] = [Level::Strict, Level::Compatible, Level::Unprofiled];

fn python(content: &str) -> Run {
    script_of("/usr/bin/python3", "main.py", content)
}

#[test]
fn each_level_proves_the_properties_that_its_policy_requires() {
    let Some(runc) = runc() else { return };
    for level in LEVELS {
        let isolation = Sandbox::start(&runc, level).session.hello(1).isolation;
        let missing = match level {
            Level::Strict | Level::Unprofiled => vec![],
            Level::Compatible => vec!["noexecScratch", "ownProcessLimit", "userNamespace"],
        };
        assert_eq!(isolation.missing(Policy::Strict), missing, "{level:?} {:?}", isolation.notes);
        assert!(isolation.missing(Policy::Compatible).is_empty(), "{level:?} {:?}", isolation.notes);
        assert_eq!(isolation.notes.is_empty(), level != Level::Compatible, "{:?}", isolation.notes);
    }
}

#[test]
fn everyday_programs_work_at_each_level() {
    let Some(runc) = runc() else { return };
    let content = r#"
import json, multiprocessing, os, socket, sqlite3, subprocess, sys, tempfile, threading
given = json.load(sys.stdin)
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("kept"); file.seek(0); kept = file.read()
thread = threading.Thread(target=lambda: None); thread.start(); thread.join()
lock = multiprocessing.Lock()
database = sqlite3.connect("data.db"); database.execute("create table t (n)"); database.execute("insert into t values (7)")
left, right = socket.socketpair(); left.send(b"x")
os.rename("data.db", os.environ["TMPDIR"] + "/moved.db")
words = subprocess.run(["sh", "-c", "echo a b | tr a-z A-Z"], capture_output=True, text=True, check=True).stdout
print(json.dumps({"n": given["n"] + 1, "kept": kept, "words": words.strip(), "sql": database.execute("select n from t").fetchone()[0]}))
"#;
    for level in LEVELS {
        let run = Run { input: r#"{"n":1}"#.into(), ..python(content) };
        let finished = Sandbox::start(&runc, level).session.run(run).succeeded();
        let expected = r#"{"n": 2, "kept": "kept", "words": "A B", "sql": 7}"#;
        assert_eq!(finished.stdout().trim(), expected, "{level:?}");
    }
}

#[test]
fn node_works() {
    let Some(runc) = runc() else { return };
    assert!(std::path::Path::new("/usr/bin/node").exists(), "the sandbox lane installs nodejs");
    let content = r#"
const fs = require("fs"), { execFileSync } = require("child_process"), { Worker } = require("worker_threads");
const given = JSON.parse(fs.readFileSync(0, "utf8"));
fs.writeFileSync("note.txt", "kept");
fs.promises.readFile("note.txt", "utf8").then(kept => {
  const worker = new Worker("require('worker_threads').parentPort.postMessage(6 * 7)", { eval: true });
  worker.on("message", n => console.log(JSON.stringify({ kept, n, given: given.n, sum: execFileSync("expr", ["1", "+", "1"], { encoding: "utf8" }).trim() })));
});
"#;
    for level in LEVELS {
        let run = Run { input: r#"{"n":1}"#.into(), ..script_of("/usr/bin/node", "main.js", content) };
        let finished = Sandbox::start(&runc, level).session.run(run).succeeded();
        assert_eq!(finished.stdout().trim(), r#"{"kept":"kept","n":42,"given":1,"sum":"2"}"#, "{level:?}");
    }
}

/// As many processes as the kernel allows, itself included.
const COUNT_PROCESSES: &str = r#"
import os, signal, sys
count = 1
try:
    while True:
        if os.fork() == 0:
            signal.pause()
        count += 1
except BlockingIOError:
    pass
print(count, flush=True)
if sys.stdin.read() == "hold":
    signal.pause()
"#;

#[test]
fn the_process_limit_is_exactly_the_programs_own() {
    let Some(runc) = runc() else { return };
    for level in LEVELS {
        for limit in [2, 20] {
            let mut run = python(COUNT_PROCESSES);
            run.limits.processes = limit;
            let finished = Sandbox::start(&runc, level).session.run(run).succeeded();
            assert_eq!(finished.stdout(), format!("{limit}\n"), "{level:?}");
        }
    }
}

#[test]
fn a_sandbox_that_uses_all_its_processes_takes_none_from_another() {
    let Some(runc) = runc() else { return };
    for level in [Level::Strict, Level::Compatible] {
        let mut greedy = Sandbox::start(&runc, level);
        greedy.session.hello(1);
        let run = Run { input: "hold".into(), ..python(COUNT_PROCESSES) };
        greedy.session.say(&OperatorMessage::Run(Box::new(run)));
        assert_eq!(greedy.session.wait_for_stdout(), b"32\n");
        let finished = Sandbox::start(&runc, level).session.run(python(COUNT_PROCESSES)).succeeded();
        assert_eq!(finished.stdout(), "32\n", "{level:?}");
        greedy.session.say(&OperatorMessage::Cancel);
        assert_eq!(greedy.session.finish().receipt.outcome, RunOutcome::Cancelled);
    }
}

#[test]
fn files_that_fill_the_memory_do_not_kill_the_runner() {
    let Some(runc) = runc() else { return };
    for level in [Level::Strict, Level::Compatible] {
        // Scratch could hold more than the sandbox may use.
        let mut sandbox = Sandbox::with_memory(&runc, level, 40 << 20);
        let mut run = script("head -c 60000000 /dev/zero >fill; exit $?");
        run.limits.file_bytes = 1 << 30;
        let finished = sandbox.session.run(run);
        assert_eq!(finished.receipt.outcome, RunOutcome::OutOfMemory, "{level:?}");
        assert_eq!(sandbox.left(), finished.receipt);

        let mut sandbox = Sandbox::with_memory(&runc, level, 40 << 20);
        let mut run = script("while :; do head -c 8000000 /dev/zero >>fill; done");
        run.limits.file_bytes = 1 << 30;
        run.limits.timeout_ms = 3000;
        let finished = sandbox.session.run(run);
        // The kernel chooses the first process to kill; it must not be the runner.
        let outcome = &finished.receipt.outcome;
        assert!(matches!(outcome, RunOutcome::OutOfMemory | RunOutcome::TimedOut), "{level:?} {outcome:?}");
        assert_eq!(sandbox.left(), finished.receipt);
    }
}

#[test]
fn only_the_outside_can_end_a_sandbox() {
    let Some(runc) = runc() else { return };
    let mut idle = Sandbox::start(&runc, Level::Strict);
    idle.session.hello(1);
    idle.terminate();
    assert_eq!(idle.left().outcome, RunOutcome::Unused);

    for level in LEVELS {
        let mut running = Sandbox::start(&runc, level);
        running.session.hello(1);
        let run = script("kill -TERM 1; kill -KILL 1; trap '' TERM; echo on; while :; do sleep 1; done");
        running.session.say(&OperatorMessage::Run(Box::new(run)));
        while running.session.wait_for_stdout() != b"on\n" {}
        let started = Instant::now();
        running.terminate();
        assert_eq!(running.session.finish().receipt.outcome, RunOutcome::Cancelled, "{level:?}");
        assert!(started.elapsed() < MARGIN);
        assert_eq!(running.left().outcome, RunOutcome::Cancelled);
    }
}

#[test]
fn a_program_over_time_leaves_no_process_in_the_sandbox() {
    let Some(runc) = runc() else { return };
    let content = "trap '' TERM; (setsid sleep 1000 &); (setsid sh -c 'trap \"\" TERM; sleep 1000' &); echo on; sleep 1000";
    for level in LEVELS {
        let mut sandbox = Sandbox::start(&runc, level);
        sandbox.session.hello(1);
        let mut run = script(content);
        run.limits.timeout_ms = 500;
        let started = Instant::now();
        sandbox.session.say(&OperatorMessage::Run(Box::new(run)));
        assert_eq!(sandbox.session.finish().receipt.outcome, RunOutcome::TimedOut, "{level:?}");
        assert!(started.elapsed() < MARGIN, "{:?}", started.elapsed());
        // PID 1 has ended, and with it the namespace and all that was in it.
        assert_eq!(sandbox.left().outcome, RunOutcome::TimedOut);
    }
}

#[test]
fn secrets_reach_the_program_alone() {
    let Some(runc) = runc() else { return };
    let mut sandbox = Sandbox::start(&runc, Level::Strict);
    let mut run = script(
        "env | grep -c FROM_THE_POD; echo \"$TOKEN\"; cat /proc/1/environ /proc/1/cmdline 2>&1 | tr '\\0' ' '",
    );
    run.secret_env = [("TOKEN".to_owned(), "hunter2-42".to_owned())].into();
    let finished = sandbox.session.run(run).succeeded();
    let text = finished.stdout();
    assert!(text.starts_with("0\n***\n") && text.contains("/proc/1/environ: Permission denied"), "{text}");
    assert!(!std::fs::read_to_string(sandbox.log()).unwrap().contains("hunter2"));
}
