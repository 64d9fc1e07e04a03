//! The calls of one answer: run side by side, each result bounded, each failure told to the model as a result.

use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use skillet_api::{Phase, SkillExecution};
use skillet_core::dialect::{Arguments, ToolCall, ToolResult};
use tokio::time::Instant;

use super::{Conversation, Progress};
use crate::{
    executor::{ExecutorError, Order},
    identity::Verb,
    offering::Target,
};

/// What a call came to, before it is bounded.
pub(super) struct Outcome {
    pub(super) content: Value,
    pub(super) is_error: bool,
    /// Whether the skill was run, whatever came of it.
    pub(super) is_run: bool,
}

/// Runs them; one result for each, in their order.
pub(super) async fn run(
    conversation: &Conversation,
    calls: &[ToolCall],
    progress: &mut Progress,
) -> Vec<ToolResult> {
    let deadline = progress.deadline;
    let keys: Vec<Option<String>> = calls.iter().map(|call| key(conversation, call, progress)).collect();
    let running: Vec<BoxFuture<'_, Outcome>> =
        calls.iter().zip(keys).map(|(call, key)| one(conversation, call, key, deadline).boxed()).collect();
    let outcomes = side_by_side(conversation, running).await;
    let told = calls.iter().zip(outcomes).map(|(call, outcome)| {
        if outcome.is_run {
            progress.ran.push(call.name.as_str().into());
        }
        outcome.told(progress, &call.id, &call.name)
    });
    told.collect()
}

/// As many at one time as the limits let; their outcomes in order.
pub(super) async fn side_by_side(
    conversation: &Conversation,
    running: Vec<BoxFuture<'_, Outcome>>,
) -> Vec<Outcome> {
    stream::iter(running).buffered(conversation.limits.parallel.max(1)).collect().await
}

impl Outcome {
    /// As the model reads it, as far as the bytes that are left for results let it.
    pub(super) fn told(&self, progress: &mut Progress, id: &str, name: &str) -> ToolResult {
        let content = progress.budget.take(&self.content).text;
        ToolResult { id: id.to_owned(), name: name.to_owned(), content, is_error: self.is_error }
    }
}

async fn one(
    conversation: &Conversation,
    call: &ToolCall,
    key: Option<String>,
    deadline: Instant,
) -> Outcome {
    let started = Instant::now();
    let outcome = called(conversation, call, key, deadline).await;
    conversation.gateway.metrics.called(outcome.is_error, started.elapsed());
    outcome
}

async fn called(
    conversation: &Conversation,
    call: &ToolCall,
    key: Option<String>,
    deadline: Instant,
) -> Outcome {
    let Some(skill) = conversation.offering.targets.get(call.name.as_str()) else {
        return failed("SkillNotFound", "this request was not offered such a tool");
    };
    let input = match &call.arguments {
        Arguments::Json(input) => input.clone(),
        Arguments::Broken(_) => {
            return failed(
                "InputInvalid",
                "the arguments are not JSON; call the tool again with a JSON object",
            );
        }
    };
    if let Err(refused) = allow(conversation, skill).await {
        return refused;
    }
    let order = order(conversation, skill, input, key);
    execute(conversation, &order, deadline).await
}

/// Whether the caller may run the skill now.
pub(super) async fn allow(conversation: &Conversation, skill: &Target) -> Result<(), Outcome> {
    // What was offered may be told by the client itself, and a namespace it does not look into is not its own.
    let namespaces = conversation.gateway.skills.namespaces(&conversation.caller);
    if !namespaces.iter().any(|namespace| **namespace == *skill.namespace) {
        return Err(failed("Forbidden", "the skill is in a namespace that the caller does not look into"));
    }
    // The caller's rights count at the time of the call, not at that of the offer.
    let checked = conversation
        .gateway
        .identity
        .check(&conversation.caller, Verb::Execute, &skill.namespace, Some(&skill.skill))
        .await;
    checked.map_err(|error| failed("Forbidden", &error.to_string()))
}

/// What came of a run, as the model reads it.
pub(super) fn end(run: Result<Arc<SkillExecution>, ExecutorError>) -> Outcome {
    match run {
        Ok(execution) => told(&execution),
        Err(error) => Outcome { is_run: is_begun(&error), ..failed(reason(&error), &error.to_string()) },
    }
}

/// Whether there was an execution before the error.
fn is_begun(error: &ExecutorError) -> bool {
    match error {
        ExecutorError::Gone { .. } | ExecutorError::TooLate { .. } => true,
        ExecutorError::Create { .. }
        | ExecutorError::Read { .. }
        | ExecutorError::List { .. }
        | ExecutorError::Cancel { .. }
        | ExecutorError::Forbidden { .. }
        | ExecutorError::NoPlace { .. }
        | ExecutorError::Invalid { .. }
        | ExecutorError::Conflict
        | ExecutorError::Stopping => false,
    }
}

/// Under which key a call runs once, where the client gave one: by what is called with what, and how often that was
/// called before in this conversation. Ids and order change when a model is asked again; these do not.
fn key(conversation: &Conversation, call: &ToolCall, progress: &mut Progress) -> Option<String> {
    let key = conversation.idempotency.as_ref()?;
    let Target { namespace, skill, version, confirm: _ } =
        conversation.offering.targets.get(call.name.as_str())?;
    let Arguments::Json(input) = &call.arguments else { return None };
    let digest = Sha256::digest(format!("{namespace}/{skill}/{version}/{input}"));
    let called = format!("{digest:x}");
    let before = progress.keyed.entry(called.clone()).or_default();
    *before += 1;
    Some(format!("{key}/{called}/{before}"))
}

pub(super) fn order(
    conversation: &Conversation,
    target: &Target,
    input: Value,
    idempotency: Option<String>,
) -> Order {
    Order {
        caller: conversation.caller.clone(),
        namespace: target.namespace.as_str().into(),
        skill: target.skill.as_str().into(),
        // The version that was offered is the version that is run.
        version: Some(target.version.clone()),
        input,
        session: conversation.session.clone(),
        timeout: None,
        // A client that gave a key may come back for what it has begun.
        cancel_when_dropped: idempotency.is_none(),
        idempotency,
        takes_any_version: false,
    }
}

/// Makes the run and waits for its end.
pub(super) async fn execute(conversation: &Conversation, order: &Order, deadline: Instant) -> Outcome {
    let limit = deadline.saturating_duration_since(Instant::now());
    if limit.is_zero() {
        // Nobody would wait for it.
        return failed("TimedOut", "the time for this request is over; the skill was not run");
    }
    end(conversation.gateway.executor.run(order, limit).await)
}

fn reason(error: &ExecutorError) -> &'static str {
    match error {
        ExecutorError::Create { .. }
        | ExecutorError::Read { .. }
        | ExecutorError::List { .. }
        | ExecutorError::Cancel { .. }
        | ExecutorError::Stopping => "ApiError",
        ExecutorError::Forbidden { .. } => "Forbidden",
        ExecutorError::NoPlace { .. } => "SkillNotFound",
        ExecutorError::Invalid { .. } => "InputInvalid",
        ExecutorError::Conflict => "Conflict",
        ExecutorError::Gone { .. } => "SandboxLost",
        ExecutorError::TooLate { .. } => "TimedOut",
    }
}

/// An execution's end as the model reads it.
fn told(execution: &SkillExecution) -> Outcome {
    let Some(status) = &execution.status else { return failed("ApiError", "the execution has no status") };
    // What the operator refuses ends without an attempt.
    let is_run = status.attempts > 0;
    match status.phase {
        Phase::Succeeded => {
            Outcome { content: status.output.clone().unwrap_or(Value::Null), is_error: false, is_run }
        }
        Phase::Pending | Phase::Running | Phase::Failed | Phase::TimedOut | Phase::Cancelled => {
            let reason = status.reason.map_or("ApiError", skillet_api::Reason::as_str);
            Outcome { is_run, ..failed(reason, status.message.as_deref().unwrap_or("the skill failed")) }
        }
    }
}

/// The outcome of a call whose skill was not run.
pub(super) fn failed(reason: &str, message: &str) -> Outcome {
    let content = json!({ "error": { "reason": reason, "message": message } });
    Outcome { content, is_error: true, is_run: false }
}

/// The result of a call that was not made.
pub(super) fn refusal(call: &ToolCall, reason: &str, message: &str) -> ToolResult {
    let content = failed(reason, message).content.to_string();
    ToolResult { id: call.id.clone(), name: call.name.clone(), content, is_error: true }
}

#[cfg(test)]
mod tests {
    use skillet_api::{Reason, SkillExecutionSpec, SkillExecutionStatus};

    use super::*;

    fn ended(phase: Phase, reason: Reason, attempts: u32) -> Outcome {
        let mut execution = SkillExecution::new("e", SkillExecutionSpec::default());
        execution.status = Some(SkillExecutionStatus {
            phase,
            reason: Some(reason),
            message: Some("the end of stderr".into()),
            output: (phase == Phase::Succeeded).then(|| json!({ "n": 1 })),
            attempts,
            ..SkillExecutionStatus::default()
        });
        told(&execution)
    }

    #[test]
    fn a_success_is_its_output_and_a_failure_says_why() {
        let succeeded = ended(Phase::Succeeded, Reason::Succeeded, 1);
        assert_eq!((succeeded.content, succeeded.is_error), (json!({ "n": 1 }), false));
        for (phase, reason) in [
            (Phase::Failed, Reason::ExitCode),
            (Phase::TimedOut, Reason::TimedOut),
            (Phase::Cancelled, Reason::Cancelled),
        ] {
            let outcome = ended(phase, reason, 1);
            let error = json!({ "error": { "reason": reason.as_str(), "message": "the end of stderr" } });
            assert_eq!((outcome.content, outcome.is_error), (error, true));
        }
    }

    #[test]
    fn only_what_was_begun_is_a_run() {
        assert!(ended(Phase::Succeeded, Reason::Succeeded, 1).is_run);
        assert!(ended(Phase::Failed, Reason::ExitCode, 2).is_run);
        assert!(!ended(Phase::Failed, Reason::InputInvalid, 0).is_run, "the operator refused it");
        assert!(!failed("Forbidden", "").is_run);
        let (namespace, name) = (String::new(), String::new());
        assert!(!is_begun(&ExecutorError::Conflict));
        assert!(is_begun(&ExecutorError::TooLate { namespace, name, limit: std::time::Duration::ZERO }));
    }

    #[test]
    fn a_call_that_is_not_made_is_answered_too() {
        let call = ToolCall { id: "c".into(), name: "a".into(), arguments: Arguments::Json(Value::Null) };
        let result = refusal(&call, "LimitReached", "no more");
        assert!(result.is_error && result.content.contains("\"LimitReached\""));
        assert_eq!((result.id, result.name), ("c".into(), "a".into()));
    }
}
