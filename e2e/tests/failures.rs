//! Programs that end badly by themselves: exit codes, signals, memory, processes, scratch. The sandbox outlives all of
//! it, which its proof of isolation in the status shows: only the runner's receipt has it.

use anyhow::Result;
use serde_json::json;
use skillet_api::{Phase, Reason};
use skillet_e2e::{Ended, SkillDraft, journey};

/// Without this a sandbox that died would look like one that reported.
#[track_caller]
fn reported_by_its_runner(ended: Ended) -> Ended {
    assert!(ended.status.isolation.is_some(), "{}: no receipt", ended.name);
    ended
}

#[tokio::test]
async fn an_exit_code_is_reported_with_the_end_of_standard_error() -> Result<()> {
    journey(async |j| {
        let script = "echo partial\ni=0; while [ $i -lt 400 ]; do echo \"line $i\" >&2; i=$((i+1)); done\necho 'no such table: orders' >&2\nexit 7";
        j.apply(&SkillDraft::shell("query", script)).await?;
        let ended = j.run("query", json!({})).await?.is(Phase::Failed, Reason::ExitCode);
        let status = reported_by_its_runner(ended.says(&["7", "no such table: orders"])).status;
        assert_eq!(status.exit_code, Some(7));
        assert_eq!((status.output, status.truncated), (None, false), "a failed run has no output");
        assert_eq!(status.stdout.map(|s| (s.head, s.bytes)), Some(("partial\n".into(), 8)));
        let stderr = status.stderr.unwrap_or_default();
        assert!(stderr.head.starts_with("line 0\nline 1\n"), "{stderr:?}");
        assert!(stderr.bytes > 3000, "{stderr:?}");
        assert!(!status.message.unwrap_or_default().contains("line 0\n"), "a message quotes only the end");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_signal_is_reported_by_its_number() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("crash", "echo last words >&2; kill -SEGV $$")).await?;
        j.apply(&SkillDraft::shell("killed", "kill -KILL $$")).await?;
        let (crash, killed) = tokio::try_join!(j.run("crash", json!({})), j.run("killed", json!({})))?;
        let crash = crash.is(Phase::Failed, Reason::ExitCode).says(&["11", "last words"]);
        assert_eq!(reported_by_its_runner(crash).status.exit_code, Some(128 + 11));
        // Not for want of memory: nothing but the program itself sent that signal.
        let killed = killed.is(Phase::Failed, Reason::ExitCode).says(&["9"]);
        assert_eq!(reported_by_its_runner(killed).status.exit_code, Some(128 + 9));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_program_that_is_not_there_is_a_start_that_failed() -> Result<()> {
    journey(async |j| {
        let sandbox = json!({ "runtime": "shell", "command": ["no-such-program"] });
        j.apply(&SkillDraft::new("absent", sandbox)).await?;
        let ended = j.run("absent", json!({})).await?.is(Phase::Failed, Reason::StartFailed);
        reported_by_its_runner(ended.says(&["no-such-program"]));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_program_over_its_memory_is_ended_and_the_sandbox_tells_so() -> Result<()> {
    journey(async |j| {
        let greedy = "import sys\nprint('so far', flush=True)\nprint('allocating', file=sys.stderr, flush=True)\nhold = []\nwhile True:\n    hold.append(bytearray(1 << 20))";
        j.apply(&SkillDraft::python("greedy", greedy).limit("memory", "48Mi")).await?;
        // A shell outlives its child, and its own end is the program's.
        let nursing = "dd if=/dev/zero of=/dev/null bs=900M count=1 && exit 1\necho '{\"child\": \"died\"}'";
        j.apply(&SkillDraft::shell("nursing", nursing).limit("memory", "48Mi")).await?;
        let (greedy, nursing) = tokio::try_join!(j.run("greedy", json!({})), j.run("nursing", json!({})))?;
        let greedy = greedy.is(Phase::Failed, Reason::OutOfMemory).says(&["memory", "allocating"]);
        let status = reported_by_its_runner(greedy).status;
        assert_eq!(status.stdout.map(|s| s.head), Some("so far\n".into()), "what was written before is kept");
        assert_eq!(reported_by_its_runner(nursing).output(), json!({ "child": "died" }));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_a_program_does_without_more_processes_is_its_own_end() -> Result<()> {
    journey(async |j| {
        let forking = r#"
import json, os, signal, sys
children, refused = [], None
while len(children) < 100:
    try:
        child = os.fork()
    except OSError as error:
        refused = error.strerror
        break
    if child == 0:
        signal.pause()
    children.append(child)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print(json.dumps({"children": len(children), "refused": refused}))
sys.exit(int(json.load(sys.stdin)["exit"]))
"#;
        j.apply(&SkillDraft::python("forking", forking).limit("processes", 12)).await?;
        let (continues, exits) =
            tokio::try_join!(j.run("forking", json!({ "exit": 0 })), j.run("forking", json!({ "exit": 3 })))?;
        // The program itself is one of the twelve.
        let refused = json!({ "children": 11, "refused": "Resource temporarily unavailable" });
        assert_eq!(reported_by_its_runner(continues).output(), refused);
        let exits = reported_by_its_runner(exits.is(Phase::Failed, Reason::ExitCode)).status;
        assert_eq!(exits.exit_code, Some(3));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_a_program_does_when_scratch_is_full_is_its_own_end() -> Result<()> {
    journey(async |j| {
        let filling = r#"
import json, os, sys
written, refused = 0, None
try:
    with open(os.path.join(os.environ["TMPDIR"], "fill"), "wb", buffering=0) as file:
        while written < 1 << 30:
            written += file.write(bytes(1 << 20))
except OSError as error:
    refused = error.strerror
print(json.dumps({"some": written > 1 << 20, "refused": refused}))
sys.exit(int(json.load(sys.stdin)["exit"]))
"#;
        // More memory than scratch has room, so that it is scratch that ends.
        j.apply(&SkillDraft::python("filling", filling).limit("memory", "256Mi")).await?;
        let (continues, exits) =
            tokio::try_join!(j.run("filling", json!({ "exit": 0 })), j.run("filling", json!({ "exit": 4 })))?;
        let refused = json!({ "some": true, "refused": "No space left on device" });
        assert_eq!(reported_by_its_runner(continues).output(), refused);
        let exits = reported_by_its_runner(exits.is(Phase::Failed, Reason::ExitCode)).status;
        assert_eq!(exits.exit_code, Some(4));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_output_that_breaks_its_schema_fails_and_says_where() -> Result<()> {
    journey(async |j| {
        let schema = json!({ "type": "object", "properties": { "total": { "type": "integer" } } });
        j.apply(&SkillDraft::shell("sum", "echo '{\"total\": \"many\"}'").output_schema(schema)).await?;
        let ended = j.run("sum", json!({})).await?.is(Phase::Failed, Reason::OutputInvalid);
        let status = reported_by_its_runner(ended.says(&["/total", "integer", "many"])).status;
        assert_eq!((status.exit_code, status.output), (Some(0), None));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_failed_program_is_tried_again_only_where_the_skill_says_so() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("once", "exit 1").limit("retries", 1)).await?;
        j.apply(&SkillDraft::shell("twice", "exit 1").limit("retries", 1).limit("retryOn", "Failure"))
            .await?;
        let (once, twice) = tokio::try_join!(j.run("once", json!({})), j.run("twice", json!({})))?;
        assert_eq!(once.is(Phase::Failed, Reason::ExitCode).status.attempts, 1);
        assert_eq!(twice.is(Phase::Failed, Reason::ExitCode).status.attempts, 2);
        Ok(())
    })
    .await
}
