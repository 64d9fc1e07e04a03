//! The skill calls of one response: they run in parallel, each result is bounded, each failure is a result.

use std::convert::Infallible;

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, future::BoxFuture, stream};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use skillet_api::{gateway::AllowedTools, skill::Invocation};
use skillet_llm::{ToolCall, ToolResult, result_budget::ResultBudget};
use tokio::time::Instant;
use tracing::warn;

use super::{
    Conversation, Progress,
    called_tool::{CallRefusal, CalledTool, SkillCall},
    tool_result::{CallOutcome, end, failed, found},
};
use crate::{
    auth::{AuthError, Verb},
    commands::CommandCaller,
    error::ApiError,
    executions::{ExecutionRequest, McpPart},
    model::{
        instructions::{self, ReadAction, ReadRequest, RestrictingSkill},
        offered_tools::{SearchAction, Target},
        server_tools::ServerTarget,
    },
};

pub(super) const MANUAL: &str = "models may not call this skill any more; it was not run";
/// The calls of a stream are taken as they were offered when it began: nobody was asked about this one.
const UNASKED: &str =
    "calls of this skill wait for a person's word by now; it was not run, call it again in the next request";

/// Most calls of skills in one request, over all its rounds.
const MAX_CALLS: usize = 128;

/// Reasons not to make a call.
pub(super) enum Denied {
    /// For a lasting reason, which becomes the result.
    Refused(CallOutcome),
    /// The check of the caller's right failed; a later try may succeed.
    Unavailable(ApiError),
}

/// Runs them; one result for each, in their order.
pub(super) async fn run(
    conversation: &Conversation,
    calls: &[ToolCall],
    progress: &mut Progress,
) -> Vec<ToolResult> {
    let left = MAX_CALLS.saturating_sub(progress.calls).min(calls.len());
    progress.calls += left;
    let (calls, refused) = calls.split_at_checked(left).unwrap_or((calls, &[]));
    let message = format!("one request may call skills {MAX_CALLS} times; the skill was not run");
    let mut results = run_all(conversation, calls, progress).await;
    results.extend(refused.iter().map(|call| refusal(call, "LimitReached", &message)));
    results
}

async fn run_all(
    conversation: &Conversation,
    calls: &[ToolCall],
    progress: &mut Progress,
) -> Vec<ToolResult> {
    let deadline = progress.deadline;
    let keys: Vec<Option<String>> = calls.iter().map(|call| key(conversation, call, progress)).collect();
    let restricting: Vec<&RestrictingSkill> =
        conversation.offered.restrictions.skills.iter().chain(&progress.read).collect();
    let running = calls.iter().zip(keys);
    let running =
        running.map(|(call, key)| one(conversation, call, key, (&restricting, deadline)).map(Ok).boxed());
    let Ok::<_, Infallible>(outcomes) = run_parallel(conversation.limits.parallel, running.collect()).await;
    let results = calls.iter().zip(outcomes).map(|(call, outcome)| {
        if !outcome.is_error {
            progress.read.extend(conversation.read_restriction(call));
        }
        if outcome.is_run {
            progress.ran.push(conversation.shown_name(call));
        }
        if outcome.execution.is_some() {
            progress.last_run.clone_from(&outcome.execution);
        }
        outcome.to_result(&mut progress.budget, &call.id, &call.name)
    });
    results.collect()
}

/// Runs at most this many at one time, and returns their outcomes in order, or the first error.
pub(super) async fn run_parallel<T: Send, E: Send>(
    parallel: usize,
    running: Vec<BoxFuture<'_, Result<T, E>>>,
) -> Result<Vec<T>, E> {
    let placed: Vec<_> = running.into_iter().enumerate().map(|(place, one)| in_place(place, one)).collect();
    let ended = stream::iter(placed).buffer_unordered(parallel.max(1));
    let mut ended: Vec<(usize, T)> = ended.try_collect().await?;
    ended.sort_unstable_by_key(|(place, _)| *place);
    Ok(ended.into_iter().map(|(_, ended)| ended).collect())
}

async fn in_place<T, E>(place: usize, one: BoxFuture<'_, Result<T, E>>) -> Result<(usize, T), E> {
    Ok((place, one.await?))
}

async fn one(
    conversation: &Conversation,
    call: &ToolCall,
    key: Option<String>,
    limits: (&[&RestrictingSkill], Instant),
) -> CallOutcome {
    let started = Instant::now();
    let outcome = called(conversation, call, key, limits).await;
    if !conversation.offered.is_reading(&call.name) {
        conversation.gateway.metrics.called(outcome.is_error, started.elapsed());
    }
    outcome
}

async fn called(
    conversation: &Conversation,
    call: &ToolCall,
    key: Option<String>,
    (restricting, deadline): (&[&RestrictingSkill], Instant),
) -> CallOutcome {
    conversation.prepare_search(call).await;
    let called = match conversation.called_tool(call) {
        Ok(CalledTool::Skill(called)) => called,
        Ok(CalledTool::Reading(request)) => return read(conversation, request, deadline).await,
        Ok(CalledTool::Found(skills)) => return found(&skills, conversation.limits.result_bytes),
        Err(CallRefusal { reason, message }) => return failed(&reason, &message),
    };
    let skill = &called.target;
    match allow(conversation, skill).await {
        Ok(()) => {}
        Err(Denied::Refused(refused)) => return refused,
        Err(Denied::Unavailable(error)) => return failed("ApiError", &error.message),
    }
    if let Some(refused) = check_restrictions(conversation, call, &called, restricting) {
        return refused;
    }
    match conversation.invocation(skill) {
        Some(Invocation::Manual) => return failed("ManualOnly", MANUAL),
        Some(Invocation::Hybrid) => return failed("NotConfirmed", &unconfirmed(conversation, call)),
        Some(Invocation::Auto) | None => {}
    }
    let order = ExecutionRequest { ignore_version: true, ..order(conversation, &called, key) };
    let outcome = execute(conversation, &order, called.server.as_ref(), deadline).await;
    if let Some(lesson) = &conversation.offered.lesson
        && outcome.is_run
        && !outcome.is_error
    {
        conversation.gateway.learning.add_call(
            &conversation.caller.namespace,
            lesson,
            (&skill.namespace, &skill.skill),
        );
    }
    outcome
}

/// Refuses a call that the instructions of a skill in the conversation do not allow, or counts it if the policy advises.
fn check_restrictions(
    conversation: &Conversation,
    call: &ToolCall,
    called: &SkillCall,
    restricting: &[&RestrictingSkill],
) -> Option<CallOutcome> {
    let is_script = called.script.is_some();
    let message =
        restricting.iter().find_map(|skill| skill.refusal(&call.name, &called.target, is_script))?;
    let metrics = &conversation.gateway.metrics;
    match conversation.gateway.catalog.policy().gateway.conversation.allowed_tools {
        AllowedTools::Enforce => {
            metrics.disallowed("refused");
            Some(failed("ToolNotAllowed", &message))
        }
        AllowedTools::Advise => {
            metrics.disallowed("reported");
            None
        }
    }
}

/// Reads instructions or a file, if the caller may run the skill: models get no more of a skill than its callers.
async fn read(conversation: &Conversation, request: ReadRequest, deadline: Instant) -> CallOutcome {
    let ReadRequest { target, action } = request;
    match allow(conversation, &target).await {
        Ok(()) => {}
        Err(Denied::Refused(refused)) => return refused,
        Err(Denied::Unavailable(error)) => return failed("ApiError", &error.message),
    }
    let most = conversation.limits.result_bytes;
    let result = match action {
        ReadAction::Text(text) => Ok(text),
        ReadAction::Body(body) => {
            let Conversation { caller, request_id, gateway, command_budget: budget, .. } = conversation;
            let (request_id, deadline) = (request_id.as_deref(), Some(deadline));
            let outputs = gateway.commands.most_output(std::slice::from_ref(&body));
            match gateway.memory.reserve(&caller.namespace, outputs).await {
                Ok(_reserved) => {
                    let caller = CommandCaller { caller, request_id, deadline, budget };
                    instructions::read_body(&body, &gateway.commands.run(caller, &body).await, most)
                }
                Err(error) => Err(("ApiError", error.message)),
            }
        }
        ReadAction::File { path, offset } => {
            let Target { namespace, skill, version, confirm: _ } = &target;
            match conversation.gateway.bundles.file(namespace, skill, version, &path).await {
                Ok(bytes) => instructions::read_file(&path, bytes, offset, most),
                Err(error) => {
                    warn!(%error, namespace, skill, "File of a skill could not be read");
                    Err(("ApiError", "the file could not be read now; call the tool again".to_owned()))
                }
            }
        }
    };
    match result {
        Ok(result) => found(&result, most),
        Err((reason, message)) => failed(reason, &message),
    }
}

/// The message about a call that a person would have to confirm.
fn unconfirmed(conversation: &Conversation, call: &ToolCall) -> String {
    match conversation.offered.search_tool(SearchAction::RunWithConfirmation) {
        Some(tool) if conversation.offered.is_search(&call.name) => {
            format!("a person confirms calls of this skill; it was not run, call {tool} instead")
        }
        Some(_) | None => UNASKED.to_owned(),
    }
}

/// Checks that the caller may run the skill now.
pub(super) async fn allow(conversation: &Conversation, skill: &Target) -> Result<(), Denied> {
    // A client of `intercept` names the targets itself, so the namespace is checked too.
    let namespaces = conversation.gateway.catalog.namespaces(&conversation.caller);
    if !namespaces.iter().any(|namespace| **namespace == *skill.namespace) {
        let refused = failed("Forbidden", "the skill is in a namespace that the caller does not look into");
        return Err(Denied::Refused(refused));
    }
    // The caller's rights count at the time of the call, not at that of the offer.
    let checked = conversation
        .gateway
        .auth
        .authorize(&conversation.caller, Verb::Execute, &skill.namespace, Some(&skill.skill))
        .await;
    checked.map_err(|error| match &error {
        AuthError::Forbidden { .. } => Denied::Refused(failed("Forbidden", &error.to_string())),
        AuthError::Missing
        | AuthError::Unknown
        | AuthError::Mistyped
        | AuthError::OtherAudience
        | AuthError::Expired { .. }
        | AuthError::Revoked { .. }
        | AuthError::SharedHash
        | AuthError::Unreachable(_) => Denied::Unavailable(error.into()),
    })
}

/// Returns the idempotency key of a call, if the client gave one: by what is called with what, and how often that was
/// called before in this conversation. Ids and order change when a model is asked again; these do not. Neither does the
/// version enter, of which there may be a newer one by then.
fn key(conversation: &Conversation, call: &ToolCall, progress: &mut Progress) -> Option<String> {
    let key = conversation.idempotency.as_ref()?;
    let SkillCall { target, input, script, server } = conversation.skill_call(call)?;
    let Target { namespace, skill, version: _, confirm: _ } = target;
    let given = match (&script, &server) {
        (None, None) => input.to_string(),
        (Some(script), _) => format!("script {}", json!(script)),
        (None, Some(server)) => format!("tool {}", json!([server.mcp_server, server.mcp_tool, input])),
    };
    let digest = Sha256::digest(format!("{namespace}/{skill}/{given}"));
    let called = format!("{digest:x}");
    let before = progress.occurrences.entry(called.clone()).or_default();
    *before += 1;
    // A router tells the round of each answer, since none of the earlier ones is known here.
    Some(format!("{key}/{}/{called}/{before}", progress.start))
}

pub(super) fn order(
    conversation: &Conversation,
    SkillCall { target, input, script, server }: &SkillCall,
    idempotency: Option<String>,
) -> ExecutionRequest {
    ExecutionRequest {
        caller: conversation.caller.clone(),
        namespace: target.namespace.as_str().into(),
        skill: target.skill.as_str().into(),
        // The version that was offered is the version that is run.
        version: Some(target.version.clone()),
        input: input.clone(),
        script: script.clone(),
        command: None,
        mcp: server.as_ref().map(|server| McpPart::Call(server.call())),
        session: conversation.session.clone(),
        timeout: None,
        request_id: conversation.request_id.clone(),
        // A client that gave a key may come back for what it has begun.
        cancel_when_dropped: idempotency.is_none(),
        idempotency,
        ignore_version: false,
    }
}

/// Makes the run and waits for its end.
pub(super) async fn execute(
    conversation: &Conversation,
    order: &ExecutionRequest,
    server: Option<&ServerTarget>,
    deadline: Instant,
) -> CallOutcome {
    let limit = deadline.saturating_duration_since(Instant::now());
    if limit.is_zero() {
        // Nobody would wait for it.
        return failed("TimedOut", "the time for this request is over; the skill was not run");
    }
    let gateway = &conversation.gateway;
    let ended = match server {
        None => gateway.executions.run(order, limit).await,
        Some(ServerTarget { mcp_server, mcp_session, .. }) => {
            gateway.mcp_servers.call(order, mcp_session, mcp_server, limit).await
        }
    };
    end(ended, conversation.limits.result_bytes)
}

/// The result of a call that was not made.
pub(super) fn refusal(call: &ToolCall, reason: &str, message: &str) -> ToolResult {
    failed(reason, message).to_result(&mut ResultBudget::default(), &call.id, &call.name)
}

#[cfg(test)]
mod tests;
