//! Every file of e2e/attacks in a fresh sandbox of each level: what it tries must be refused.
//!
//! The header of a file describes its expected refusal; see the README there. Part of the sandbox lane.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use skillet_protocol::{OperatorMessage, Run, RunOutcome};
use support::bundle::{Level, Sandbox, runc};
use support::{Finished, MARGIN, script_of};

struct Attack {
    name: String,
    content: String,
    /// The ends that show the refusal.
    ends: Vec<RunOutcome>,
    is_for_strict: bool,
}

fn attacks() -> Vec<Attack> {
    let folder = std::env::current_dir().unwrap().join("../../e2e/attacks");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind != "md"));
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Attack {
    let content = std::fs::read_to_string(file).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    let header = |key: &str| {
        let prefix = format!("# {key}: ");
        content.lines().take_while(|line| line.starts_with('#')).find_map(|line| line.strip_prefix(&prefix))
    };
    assert!(header("attack").is_some_and(|line| !line.is_empty()), "{name} does not say what it tries");
    let end = |word: &str| match word {
        "timedOut" => RunOutcome::TimedOut,
        "outOfMemory" => RunOutcome::OutOfMemory,
        other => panic!("{name} ends with {other}, which is not known"),
    };
    let ends = match header("ends") {
        None => vec![RunOutcome::Exited { code: 0 }],
        Some(words) => words.split(" or ").map(end).collect(),
    };
    let is_for_strict = match header("level") {
        None => false,
        Some("strict") => true,
        Some(other) => panic!("{name} is for level {other}, which is not known"),
    };
    Attack { name, content, ends, is_for_strict }
}

fn order(attack: &Attack) -> Run {
    let is_python = Path::new(&attack.name).extension().is_some_and(|kind| kind == "py");
    let interpreter = if is_python { "/usr/bin/python3" } else { "/bin/sh" };
    let mut run = script_of(interpreter, &attack.name, &attack.content);
    if attack.ends.contains(&RunOutcome::TimedOut) {
        run.limits.timeout_ms = 700;
    }
    run
}

fn carry_out(runc: &Path, level: Level, attack: &Attack) -> Result<(), String> {
    // As in the tests on a cluster: an attack on the number of processes has room for all of them.
    let mut sandbox = Sandbox::with_memory(runc, level, 512 << 20);
    let run = order(attack);
    let limit = Duration::from_millis(run.limits.timeout_ms);
    sandbox.session.hello(run.epoch);
    let started = Instant::now();
    sandbox.session.say(&OperatorMessage::Run(Box::new(run)));
    let finished = sandbox.session.finish();
    let took = started.elapsed();
    let left = sandbox.left();
    if left != finished.receipt {
        return Err(format!("the receipts differ: {left:?} and {:?}", finished.receipt));
    }
    if took > limit + MARGIN {
        return Err(format!("took {took:?}"));
    }
    judge(level, attack, &finished)
}

fn judge(level: Level, attack: &Attack, finished: &Finished) -> Result<(), String> {
    let outcome = &finished.receipt.outcome;
    let is_refused = attack.ends.contains(outcome);
    if attack.is_for_strict && level == Level::Compatible {
        // Honest about what it cannot refuse; and an attack that this level refuses too needs no such header.
        return match (finished.receipt.isolation.noexec_scratch, is_refused) {
            (false, false) => Ok(()),
            (claimed, refused) => Err(format!("claims noexecScratch={claimed}, refused={refused}")),
        };
    }
    if is_refused {
        return Ok(());
    }
    Err(format!("{outcome:?}\n{}{}", finished.stdout(), finished.stderr()))
}

fn all(level: Level) {
    let Some(runc) = runc() else { return };
    let attacks = attacks();
    let mut failures = vec![];
    for attack in &attacks {
        if let Err(message) = carry_out(&runc, level, attack) {
            failures.push(format!("{} at {level:?}: {message}", attack.name));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    println!("{} attacks refused at {level:?}", attacks.len());
}

#[test]
fn every_attack_is_refused_at_strict() {
    all(Level::Strict);
}

#[test]
fn every_attack_is_refused_or_admitted_at_compatible() {
    all(Level::Compatible);
}

#[test]
fn every_attack_is_refused_without_the_runtimes_own_filter() {
    all(Level::Unprofiled);
}

#[test]
fn every_attack_says_what_it_tries() {
    assert!(attacks().len() >= 30);
}
