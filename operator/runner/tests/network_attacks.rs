//! Every file of e2e/attacks/network in a sandbox with named egress, and every one of e2e/attacks there too.
//!
//! Part of the sandbox lane. The broker of the test fails the attack if it gets a request for a host that no rule allows.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use skillet_protocol::{HostRule, OperatorMessage, Run, RunNetwork, RunOutcome};
use support::bundle::{Level, Sandbox, runc};
use support::servers::{PYTHON, echo};
use support::{Finished, script_of};

/// Far more than an attack takes, and less than the limit of a run: a runner that hangs is noticed.
const LIMIT: Duration = Duration::from_secs(25);
const MEMORY: u64 = 512 << 20;
/// Attempts that the files make in sum, at least.
const ATTEMPTS: usize = 80;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = std::env::current_dir().unwrap().join("../../e2e/attacks").join(folder);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "py"));
    files.sort();
    files
}

fn networked(file: &Path) -> Run {
    let content = std::fs::read_to_string(file).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let rule = |name: &str, port| HostRule { name: name.into(), ports: vec![port] };
    let hosts = vec![rule("allowed.example", 80), rule("*.wild.example", 80), rule("silent.example", 81)];
    let mut run = script_of(PYTHON, name, &content);
    run.network = Some(RunNetwork { hosts, connections: 32 });
    run
}

/// Runs an attack and returns what it left, or how the runner failed.
fn carry_out(runc: &Path, level: Level, file: &Path) -> Result<Finished, String> {
    let mut sandbox = Sandbox::with(runc, level, MEMORY, &["--network"]);
    sandbox.session.with_hosts(&[("allowed.example", 80, echo())]);
    sandbox.session.broker.as_mut().unwrap().silent_port = Some(81);
    let ready = sandbox.session.hello(1);
    assert_eq!(ready.isolation.named_egress, Some(true), "{:?}", ready.isolation.notes);
    let started = Instant::now();
    sandbox.session.say(&OperatorMessage::Run(Box::new(networked(file))));
    let finished = sandbox.session.finish();
    if started.elapsed() > LIMIT {
        return Err(format!("took {:?}", started.elapsed()));
    }
    let broker = sandbox.session.broker.take().unwrap();
    let is_allowed = |(host, port): &&(String, u16)| {
        let is_name = host == "allowed.example" || host.ends_with(".wild.example");
        (is_name && *port == 80) || (host == "silent.example" && *port == 81)
    };
    if let Some(opened) = broker.opened.iter().find(|opened| !is_allowed(opened)) {
        return Err(format!("the broker was asked for {opened:?}"));
    }
    if broker.refused.len() > 64 {
        return Err(format!("{} refusals were recorded", broker.refused.len()));
    }
    let left = sandbox.left();
    if left != finished.receipt {
        return Err(format!("the receipts differ: {left:?} and {:?}", finished.receipt));
    }
    Ok(finished)
}

fn attempts(finished: &Finished) -> Option<usize> {
    let text = finished.stdout();
    text.lines().last()?.strip_suffix(" attempts")?.parse().ok()
}

fn all(level: Level) {
    let Some(runc) = runc() else { return };
    let (mut failures, mut count) = (vec![], 0);
    for file in files("network") {
        let name = file.file_name().unwrap().display().to_string();
        match carry_out(&runc, level, &file) {
            Err(message) => failures.push(format!("{name} at {level:?}: {message}")),
            Ok(finished) => match (&finished.receipt.outcome, attempts(&finished)) {
                (RunOutcome::Exited { code: 0 }, Some(attempts)) => {
                    println!("{name}: {attempts} attempts in {} ms", finished.receipt.duration_ms);
                    count += attempts;
                }
                (outcome, _) => {
                    let (stdout, stderr) = (finished.stdout(), finished.stderr());
                    let end = stderr.len().saturating_sub(2000);
                    failures.push(format!("{name} at {level:?}: {outcome:?}\n{stdout}{}", &stderr[end..]));
                }
            },
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    println!("{count} attempts refused at {level:?}");
    assert!(count >= ATTEMPTS, "{count} attempts at {level:?}");
}

#[test]
fn every_attack_is_refused_at_strict() {
    all(Level::Strict);
}

#[test]
fn every_attack_is_refused_at_compatible() {
    all(Level::Compatible);
}

#[test]
fn every_attack_is_refused_without_the_runtimes_own_filter() {
    all(Level::Unprofiled);
}

/// Those that need another end than their own success, or other limits, are `attacks`' matter.
#[test]
fn attacks_on_a_sandbox_without_hosts_are_refused_with_them_too() {
    let Some(runc) = runc() else { return };
    let mut failures = vec![];
    for file in files("") {
        let content = std::fs::read_to_string(&file).unwrap();
        // The first makes inet sockets, which are made here; `families` and `addresses` stand for it.
        if file.ends_with("sockets.py") || content.contains("\n# ends: ") {
            continue;
        }
        match carry_out(&runc, Level::Strict, &file) {
            Ok(finished) if finished.receipt.outcome == (RunOutcome::Exited { code: 0 }) => {}
            Ok(finished) => {
                let (stdout, stderr) = (finished.stdout(), finished.stderr());
                failures.push(format!(
                    "{}: {:?}\n{stdout}{stderr}",
                    file.display(),
                    finished.receipt.outcome
                ));
            }
            Err(message) => failures.push(format!("{}: {message}", file.display())),
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
