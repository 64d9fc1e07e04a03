//! The ends of commands: what an execution says of one, and those of the present window in memory.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use serde::Deserialize;
use skillet_api::{Phase, Reason, execution::StreamStatus};
use skillet_core::text::truncate;
use skillet_instructions::dynamic::{CommandEnd, OUTPUT_LIMIT, TRUNCATED};
use skillet_kube::lock;

use crate::executions::Execution;

/// Most bytes of all ends in memory.
const MAX_BYTES: usize = 16 << 20;
/// Bytes of an end beside its texts.
const FRAME_BYTES: usize = 256;
/// Most bytes of a reason, and of standard error.
pub(super) const MESSAGE_BYTES: usize = 4096;

/// Ends of commands, by the name of their execution. Those of earlier windows are dropped.
#[derive(Debug, Default)]
pub(super) struct EndedCommands(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    window: i64,
    ends: HashMap<String, CommandEnd>,
    bytes: usize,
}

impl EndedCommands {
    pub(super) fn get(&self, window: i64, key: &str) -> Option<CommandEnd> {
        let state = lock(&self.0);
        (state.window == window).then(|| state.ends.get(key).cloned()).flatten()
    }

    /// Keeps an end. If there is no room, all others go: their executions still have them.
    pub(super) fn put(&self, window: i64, key: String, end: CommandEnd) {
        let bytes = FRAME_BYTES + key.len() + size(&end);
        let mut state = lock(&self.0);
        if state.window != window || state.bytes + bytes > MAX_BYTES {
            *state = State { window, ..State::default() };
        }
        if state.ends.insert(key, end).is_none() {
            state.bytes += bytes;
        }
    }
}

/// The output of a command, which is text whatever it looks like.
#[derive(Deserialize)]
struct TextOutput {
    output: String,
}

/// Returns the bytes of an end.
pub(super) fn size(end: &CommandEnd) -> usize {
    match end {
        CommandEnd::Exited { code: _, stdout, stderr } => stdout.len() + stderr.len(),
        CommandEnd::TimedOut { limit: _ } => 0,
        CommandEnd::Failed { reason } => reason.len(),
    }
}

/// Returns true for an end of the program, and false for one of the cluster, which another attempt may not have.
pub(super) fn was_run(execution: &Execution) -> bool {
    let Some(status) = &execution.status else { return false };
    match status.phase {
        Phase::Succeeded | Phase::TimedOut => true,
        Phase::Failed => matches!(
            status.reason,
            Some(Reason::ExitCode | Reason::OutOfMemory | Reason::StartFailed | Reason::OutputTooLarge)
        ),
        Phase::Cancelled | Phase::Pending | Phase::Running => false,
    }
}

/// Returns the end of a command from its execution, which has ended. `limit` is the time limit of the command.
pub(super) fn end_of(execution: &Execution, limit: Duration) -> CommandEnd {
    let status = execution.status.clone().unwrap_or_default();
    let exited = |code: i32| {
        let head =
            |stream: &Option<StreamStatus>| stream.as_ref().map_or_else(String::new, |it| it.head.clone());
        let stderr = head(&status.stderr);
        let output = status.output.as_ref().and_then(|output| serde_json::from_str(output.get()).ok());
        let mut stdout = output.map_or_else(|| head(&status.stdout), |TextOutput { output }| output);
        if stdout.len() > OUTPUT_LIMIT {
            // A character more than is shown, so that the text says that it was cut.
            let kept = truncate(&stdout, OUTPUT_LIMIT + 4).0.len();
            stdout.truncate(kept);
        } else if status.truncated {
            stdout.push_str(TRUNCATED);
        }
        let stderr = truncate(&stderr, MESSAGE_BYTES).0.to_owned();
        CommandEnd::Exited { code, stdout: stdout.into_bytes(), stderr }
    };
    match (status.phase, status.exit_code) {
        (Phase::Succeeded, _) => exited(0),
        (Phase::TimedOut, _) => CommandEnd::TimedOut { limit },
        (Phase::Failed, Some(code)) if status.reason == Some(Reason::ExitCode) => exited(code),
        (Phase::Failed | Phase::Cancelled | Phase::Pending | Phase::Running, _) => {
            let reason = status.reason.map_or("ApiError", Reason::as_str);
            let message = status.message.as_deref().unwrap_or_default();
            let reason = format!("{reason}: {message}");
            CommandEnd::Failed { reason: truncate(&reason, MESSAGE_BYTES).0.to_owned() }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn end(status: &Value) -> CommandEnd {
        let execution = json!({ "metadata": {}, "spec": {}, "status": status });
        end_of(&serde_json::from_value(execution).unwrap(), Duration::from_secs(7))
    }

    fn exited(code: i32, stdout: &str, stderr: &str) -> CommandEnd {
        CommandEnd::Exited { code, stdout: stdout.into(), stderr: stderr.into() }
    }

    #[test]
    fn each_end_of_an_execution_is_one_of_a_command() {
        let text = |text: &str| json!({ "head": text, "bytes": 1, "sha256": "" });
        for (status, expected) in [
            (json!({ "phase": "Succeeded", "output": { "output": "v1" } }), exited(0, "v1", "")),
            (json!({ "phase": "Succeeded" }), exited(0, "", "")),
            (
                json!({ "phase": "Succeeded", "truncated": true, "stdout": text("begin") }),
                exited(0, "begin\n... [output truncated]", ""),
            ),
            (
                json!({ "phase": "Failed", "reason": "ExitCode", "exitCode": 2, "stderr": text("why\n") }),
                exited(2, "", "why\n"),
            ),
            (json!({ "phase": "TimedOut" }), CommandEnd::TimedOut { limit: Duration::from_secs(7) }),
            (
                json!({ "phase": "Failed", "reason": "OutOfMemory", "exitCode": 137, "message": "too much" }),
                CommandEnd::Failed { reason: "OutOfMemory: too much".into() },
            ),
            (
                json!({ "phase": "Cancelled", "reason": "Cancelled" }),
                CommandEnd::Failed { reason: "Cancelled: ".into() },
            ),
        ] {
            assert_eq!(end(&status), expected, "{status}");
        }
        let long = json!({ "phase": "Succeeded", "output": { "output": "é".repeat(OUTPUT_LIMIT) } });
        let CommandEnd::Exited { stdout, .. } = end(&long) else { panic!() };
        assert_eq!(stdout.len(), OUTPUT_LIMIT + 4);
    }

    #[test]
    fn ends_are_kept_for_one_window_and_within_a_bound() {
        let ended = EndedCommands::default();
        ended.put(1, "a".into(), exited(0, "x", ""));
        assert_eq!(ended.get(1, "a"), Some(exited(0, "x", "")));
        assert_eq!((ended.get(2, "a"), ended.get(1, "b")), (None, None));
        ended.put(2, "b".into(), exited(0, "y", ""));
        assert_eq!((ended.get(1, "a"), ended.get(2, "b")), (None, Some(exited(0, "y", ""))));
        for n in 0..1000 {
            ended.put(2, n.to_string(), exited(0, &"z".repeat(50_000), ""));
            assert!(lock(&ended.0).bytes <= MAX_BYTES);
        }
        assert!(ended.get(2, "999").is_some() && ended.get(2, "b").is_none());
    }
}
