//! Programs over their time, also those that resist: ended within two seconds, and nothing of them is left running.

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use serde_json::json;
use skillet_api::{Phase, Reason, SkillExecutionSpec};
use skillet_e2e::{Ended, Journey, SkillDraft, eventually, execute::spec, journey, sandbox};

const LIMIT: Duration = Duration::from_secs(2);
/// The promised margin on top of the limit.
const MARGIN: Duration = Duration::from_secs(2);

const IGNORES_SIGTERM: &str = "trap '' TERM INT HUP; while :; do sleep 1; done";
const CLOSES_ITS_OUTPUTS: &str = "exec </dev/null >/dev/null 2>&1; while :; do sleep 1; done";
const BUSY: &str = "while :; do :; done";
/// Ends itself at once and leaves a child in a session of its own that holds nothing of the program but its outputs.
const LEAVES_A_DAEMON: &str = r#"
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    while True:
        time.sleep(1)
os.wait()
if sys.argv[2] == "stays":
    while True:
        time.sleep(1)
print("left a daemon")
"#;

/// Asserts that it ended in time, by the times in its status and by the sandbox's own clock.
fn ended_in_time(ended: &Ended) -> Result<()> {
    let took = ended.took().context("no times in the status")?;
    assert!(took <= LIMIT + MARGIN, "{} took {took:?}", ended.name);
    assert!(
        ended.ran() >= LIMIT && ended.ran() <= LIMIT + MARGIN,
        "{} ran for {:?}",
        ended.name,
        ended.ran()
    );
    assert_eq!(ended.status.attempts, 1, "what ran over time is not tried again unasked");
    Ok(())
}

/// A word for the command lines of one journey's programs, to find them among all processes.
fn marker(j: &Journey, skill: &str) -> String {
    format!("{}-{skill}", j.namespace)
}

async fn no_process_has(word: &str) -> Result<()> {
    eventually(&format!("no process has {word}"), Duration::from_secs(10), async || {
        Ok(sandbox::processes_with(word).is_empty().then_some(()))
    })
    .await
}

#[tokio::test]
async fn a_program_over_its_time_is_ended_whatever_it_does() -> Result<()> {
    journey(async |j| {
        let shell = |name: &str, script: &str| SkillDraft::shell(name, script).limit("cpu", "200m");
        let skills = [
            ("sleeping", shell("sleeping", "echo begun; echo waiting >&2; sleep 60")),
            ("stubborn", shell("stubborn", IGNORES_SIGTERM)),
            ("silent", shell("silent", CLOSES_ITS_OUTPUTS)),
            ("busy", shell("busy", BUSY)),
            ("demonic", SkillDraft::python("demonic", LEAVES_A_DAEMON)),
        ];
        let runs = skills.map(async |(name, skill)| {
            let marker = marker(j, name);
            j.apply(&skill.limit("timeout", "2s").sandbox("args", json!([marker, "stays"]))).await?;
            let ended = j.run(name, json!({})).await?.is(Phase::TimedOut, Reason::TimedOut).says(&["2s"]);
            ended_in_time(&ended)?;
            assert!(ended.status.isolation.is_some(), "the runner of {name} reported it itself");
            j.nothing_left(&ended).await?;
            no_process_has(&marker).await?;
            anyhow::Ok(ended)
        });
        let ended = try_join_all(runs).await?;
        let sleeping = &ended[0].status;
        assert_eq!(
            sleeping.stdout.as_ref().map(|s| s.head.as_str()),
            Some("begun\n"),
            "what it wrote is kept"
        );
        assert!(
            sleeping.message.as_deref().unwrap_or_default().contains("waiting"),
            "{:?}",
            sleeping.message
        );
        assert_eq!(sleeping.output, None);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_daemon_that_is_left_behind_ends_with_its_program() -> Result<()> {
    journey(async |j| {
        let marker = marker(j, "leaving");
        let skill = SkillDraft::python("leaving", LEAVES_A_DAEMON).limit("timeout", "20s");
        j.apply(&skill.sandbox("args", json!([marker, "goes"]))).await?;
        let ended = j.run("leaving", json!({})).await?;
        assert!(ended.ran() < Duration::from_secs(5), "the end of the program is its end: {:?}", ended.ran());
        j.nothing_left(&ended).await?;
        no_process_has(&marker).await?;
        assert_eq!(ended.output(), json!({ "output": "left a daemon" }));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_execution_can_lower_its_time_and_never_raise_it() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("slow", "sleep 60").limit("timeout", "2s")).await?;
        let with = |timeout: u64| SkillExecutionSpec {
            timeout: Some(skillet_api::duration::SkillDuration(Duration::from_millis(timeout))),
            ..spec("slow")
        };
        let (lower, higher) = (j.start_with(with(700)).await?, j.start_with(with(50_000)).await?);
        let (lower, higher) = tokio::try_join!(j.ended(&lower), j.ended(&higher))?;
        let lower = lower.is(Phase::TimedOut, Reason::TimedOut).says(&["700ms"]);
        assert!(lower.ran() < Duration::from_millis(1900), "{:?}", lower.ran());
        ended_in_time(&higher.is(Phase::TimedOut, Reason::TimedOut).says(&["2s"]))
    })
    .await
}

#[tokio::test]
async fn a_program_that_heeds_sigterm_ends_before_it_is_killed() -> Result<()> {
    journey(async |j| {
        let script = "trap 'echo cleaned up; exit 0' TERM\nsleep 60 & wait $!";
        j.apply(&SkillDraft::shell("tidy", script).limit("timeout", "1s")).await?;
        let ended = j.run("tidy", json!({})).await?.is(Phase::TimedOut, Reason::TimedOut);
        assert!(ended.ran() < Duration::from_millis(1900), "not at the end of its grace: {:?}", ended.ran());
        assert_eq!(ended.status.stdout.map(|s| s.head), Some("cleaned up\n".into()));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_times_of_a_status_agree_with_each_other() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("steady", "sleep 1.5")).await?;
        let ended = j.run("steady", json!({})).await?.is(Phase::Succeeded, Reason::Succeeded);
        let took = ended.took().context("no times in the status")?;
        assert!(ended.ran() >= Duration::from_millis(1500), "{:?}", ended.ran());
        // From the program's start to the end of its run is not less than the program itself took.
        assert!(took + Duration::from_millis(50) >= ended.ran(), "{took:?} is less than {:?}", ended.ran());
        Ok(())
    })
    .await
}
