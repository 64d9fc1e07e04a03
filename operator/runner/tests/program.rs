//! The start of a program, its environment and limits, and its output.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::process::Command;

use skillet_protocol::{FileContent, OperatorMessage, Program, RunFile, RunOutcome};
use support::plain::{Plain, RUNNER, run};
use support::{Folder, Session, script};

#[test]
fn a_script_gets_its_input_files_environment_and_nothing_else() {
    let mut order = script("cat; echo; cat deep/data.txt; pwd; env | grep -v '^_=\\|^SHLVL=\\|^PWD=' | sort");
    order.input = r#"{"n":1}"#.into();
    order.files.push(RunFile { path: "deep/data.txt".into(), content: FileContent::from("data\n") });
    order.env = [("MODE".to_owned(), "fast".to_owned())].into();
    let mut plain = Plain::new();
    let scratch = plain.scratch.0.display().to_string();
    let finished = plain.session.run(order).succeeded();
    let expected = format!(
        "{{\"n\":1}}\ndata\n{scratch}/work\nHOME={scratch}/work\nLANG=C.UTF-8\nMODE=fast\n\
         PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nTMPDIR={scratch}/tmp\n"
    );
    assert_eq!(finished.stdout(), expected);
    let receipt = plain.left();
    assert_eq!(receipt, finished.receipt);
    assert_eq!((receipt.execution_uid.as_str(), receipt.attempt), ("execution-1", 1));
    assert_eq!(receipt.stdout.bytes, expected.len() as u64);
    assert_eq!(receipt.digest.len(), 64);
}

#[test]
fn a_program_of_the_image_is_found_by_its_name() {
    let mut order = script("");
    order.program = Program::Command { argv: vec!["cat".into()] };
    order.input = "as it is".into();
    assert_eq!(run(order).succeeded().stdout(), "as it is");
}

#[test]
fn a_program_that_cannot_start_is_reported_by_name() {
    for name in ["/no/such/program", "no-such-program", "/etc/passwd"] {
        let mut order = script("");
        order.program = Program::Command { argv: vec![name.into()] };
        let finished = run(order);
        match finished.receipt.outcome {
            RunOutcome::StartFailed { message } => assert!(message.contains(name), "{message}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(finished.receipt.stdout.bytes, 0);
    }
}

#[test]
fn a_program_has_three_descriptors_its_own_session_and_default_signals() {
    let mut order = script("exec ls /proc/self/fd");
    assert_eq!(run(order).succeeded().stdout(), "0\n1\n2\n3\n", "the fourth is the listing's own");
    order =
        script("read -r pid name state parent group session rest </proc/self/stat; echo $((session - pid))");
    assert_eq!(run(order).succeeded().stdout(), "0\n");
}

#[test]
fn no_signal_is_blocked_or_ignored_whatever_the_runtime_does() {
    let scratch = Folder::new("/dev/shm");
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "trap '' HUP INT TERM CHLD USR1; exec \"$@\"", "sh", RUNNER, "--scratch"])
        .arg(&scratch.0);
    let order = script("sed -n 's/^Sig\\(Blk\\|Ign\\):\\t//p' /proc/self/status");
    let finished = Session::start(&mut command).run(order).succeeded();
    for mask in finished.stdout().lines() {
        // Two signals are the C library's own, and it ignores them in what it starts.
        assert_eq!(u64::from_str_radix(mask, 16).unwrap() & !0x1_8000_0000, 0, "{mask}");
    }
    assert_eq!(finished.stdout().lines().count(), 2);
}

#[test]
fn the_kernel_kills_the_program_before_the_runner_if_memory_runs_out() {
    assert_eq!(run(script("cat /proc/self/oom_score_adj")).succeeded().stdout(), "1000\n");
}

#[test]
fn the_runner_has_priority_over_the_program_on_the_processor() {
    // On top of the priority of this test itself.
    let expected = (rustix::process::getpriority_process(None).unwrap() + 10).min(19);
    let niceness = run(script("cut -d' ' -f19 /proc/self/stat")).succeeded().stdout();
    assert_eq!(niceness, format!("{expected}\n"));
}

#[test]
fn limits_of_files_and_core_dumps_hold() {
    let mut order = script("ulimit -n; ulimit -c; ulimit -Hc");
    order.limits.open_files = 99;
    assert_eq!(run(order).succeeded().stdout(), "99\n0\n0\n");
    let mut order = script("head -c 100000 /dev/zero > large; echo $?; wc -c < large");
    order.limits.file_bytes = 65536;
    let finished = run(order).succeeded();
    assert!(finished.stdout().ends_with("\n65536\n") && !finished.stdout().starts_with("0\n"));
}

#[test]
fn output_is_bytes_of_any_kind_from_both_streams() {
    let finished = run(script("printf '\\377\\000\\n'; printf 'e\\376' >&2")).succeeded();
    assert_eq!((finished.stdout.as_slice(), finished.stderr.as_slice()), (&b"\xff\x00\n"[..], &b"e\xfe"[..]));
    let quiet = run(script(":")).succeeded();
    assert_eq!(quiet.receipt.stdout.bytes, 0);
    assert_eq!(
        quiet.receipt.stdout.sha256,
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
}

#[test]
fn output_over_the_cap_is_reported_by_size_digest_and_tail() {
    let mut order = script(
        "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done | tee copy; sha256sum copy >&2",
    );
    order.limits.output_bytes = 10_000;
    let finished = run(order).succeeded();
    let summary = &finished.receipt.stdout;
    assert_eq!((finished.stdout.len(), summary.sent, summary.bytes), (10_000, 10_000, 208_890));
    assert!(finished.stdout().starts_with("line 0\nline 1\n"));
    assert_eq!(finished.stdout_tail.len(), 4096);
    assert!(finished.stdout_tail.ends_with(b"line 19998\nline 19999\n"));
    assert!(finished.stderr().starts_with(&summary.sha256));
    assert!(summary.is_truncated() && finished.stderr_tail.is_empty());
}

#[test]
fn large_input_reaches_the_program_and_can_be_ignored() {
    let mut order = script("wc -c");
    order.input = "x".repeat(5_000_000);
    assert_eq!(run(order.clone()).succeeded().stdout().trim(), "5000000");
    order.files = script("echo not interested").files;
    assert_eq!(run(order.clone()).succeeded().stdout(), "not interested\n");
    order.files = script("exec <&-; echo closed").files;
    assert_eq!(run(order.clone()).succeeded().stdout(), "closed\n");
    order.files = script("cat").files;
    order.limits.output_bytes = u64::MAX;
    assert_eq!(run(order).succeeded().stdout.len(), 5_000_000);
}

#[test]
fn secrets_are_in_the_environment_and_in_no_output() {
    let mut order = script(
        "printf '%s|' \"$TOKEN\" \"${TOKEN%??????}\"; printf hunt; sleep 0.05; printf 'er2-42'; echo \"$TOKEN\" >&2",
    );
    order.secret_env = [("TOKEN".to_owned(), "hunter2-42".to_owned())].into();
    let finished = run(order).succeeded();
    assert_eq!(finished.stdout(), "***|hunt|***");
    assert_eq!(finished.stderr(), "***\n");
    assert_eq!(finished.receipt.stdout.bytes, 12);
}

#[test]
fn a_program_whose_input_stays_open_answers_until_it_is_closed() {
    let mut order = script("while read -r line; do echo \"got $line\"; done; echo end");
    (order.input, order.keeps_input_open) = ("one\n".into(), true);
    let mut plain = Plain::new();
    plain.session.hello(1);
    plain.session.say(&OperatorMessage::Run(Box::new(order.clone())));
    assert_eq!(plain.session.wait_for_stdout(), b"got one\n");
    plain.session.say(&OperatorMessage::Input(b"two\nth".to_vec()));
    assert_eq!(plain.session.wait_for_stdout(), b"got two\n");
    plain.session.say(&OperatorMessage::Input(b"ree\n".to_vec()));
    assert_eq!(plain.session.wait_for_stdout(), b"got three\n");
    plain.session.say(&OperatorMessage::Input(Vec::new()));
    assert!(plain.session.finish().succeeded().stdout().ends_with("end\n"));

    // Without its operator it gets no more, so it ends.
    let mut left = Plain::new();
    left.session.hello(1);
    left.session.say(&OperatorMessage::Run(Box::new(order.clone())));
    left.session.wait_for_stdout();
    left.session.hang_up();
    assert!(left.session.finish().succeeded().stdout().ends_with("end\n"));

    order.keeps_input_open = false;
    let mut closed = Plain::new();
    closed.session.hello(1);
    closed.session.say(&OperatorMessage::Run(Box::new(order)));
    closed.session.say(&OperatorMessage::Input(b"two\n".to_vec()));
    assert_eq!(closed.session.finish().succeeded().stdout(), "got one\nend\n");
}
