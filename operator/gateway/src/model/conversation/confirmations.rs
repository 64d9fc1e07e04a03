//! Confirmations in a request: each confirmed call is started or found, and its result replaces the client's.
//!
//! The code of a confirmation is the idempotency key of its run. The same confirmation in a later request, on another
//! replica or after a restart finds the same execution. A confirmation starts a run only until the model has answered to
//! it: after that, a deleted execution is not run again. A transient error does not use up a confirmation.

use std::{collections::HashSet, sync::Arc};

use futures::FutureExt as _;
use serde_json::Value;
use skillet_api::skill::Invocation;
use skillet_llm::{
    confirmation::{
        ConfirmationError, Confirmed,
        reply::{Reply, read_replies},
    },
    history::{HistoryCall, ResultLocation},
};
use tokio::time::Instant;

use super::{
    Conversation, Progress,
    called_tool::SkillCall,
    confirmation_prompt,
    tool_calls::{self, Denied},
    tool_result::{self, CallOutcome, failed},
};
use crate::{
    error::ApiError,
    executions::{Execution, ExecutionError, ExecutionRequest},
    model::{instructions, offered_tools::Target, search_tools::read_run},
};

/// Most confirmed calls of one request that are looked for: each is a question to the API server. The newest count.
const LIMIT: usize = 64;

/// A result that is not left as the client sent it.
struct PendingResult {
    place: ResultLocation,
    id: String,
    name: String,
    /// The model has not read it yet.
    is_newest: bool,
    resolution: Resolution,
}

enum Resolution {
    Run(Box<Run>),
    /// The result is an error with this reason.
    Refuse {
        reason: &'static str,
        message: String,
    },
}

/// A call that a person has confirmed.
struct Run {
    call: SkillCall,
    key: String,
    /// If set, no run is started: an existing one is only looked for.
    too_late: Option<TooLate>,
}

#[derive(Clone, Copy)]
enum TooLate {
    /// The model has answered to an earlier request with this confirmation.
    Earlier,
    Expired,
}

pub(super) async fn resolve(
    conversation: &Conversation,
    request: &mut Value,
    progress: &mut Progress,
) -> Result<bool, ApiError> {
    let settled = plan(conversation, request);
    let deadline = progress.confirmations_by;
    let running = settled.iter().map(|settled| outcome(conversation, &settled.resolution, deadline).boxed());
    let outcomes = tool_calls::run_parallel(conversation.limits.parallel, running.collect()).await?;
    // In the order of the request, so that a later one cuts the same results at the same place.
    for (settled, outcome) in settled.iter().zip(&outcomes) {
        if settled.resolution.begins() && outcome.is_run {
            progress.ran.push(settled.name.as_str().into());
        }
        let budget = if settled.is_newest { &mut progress.budget } else { &mut progress.earlier };
        let result = outcome.to_result(budget, &settled.id, &settled.name);
        conversation.dialect().replace_result(request, settled.place, &result);
    }
    let is_mended = conversation.dialect().repair_history(request);
    Ok(is_mended || !settled.is_empty())
}

/// Decides about each result of a call of a hybrid skill.
fn plan(conversation: &Conversation, request: &Value) -> Vec<PendingResult> {
    let targets = &conversation.offered.targets;
    let names = conversation.dialect().client_tool_names(request);
    let own: HashSet<&str> = names.into_iter().filter(|name| !targets.contains_key(*name)).collect();
    let caller = confirmation_prompt::caller(&conversation.caller);
    let (key, now) = (conversation.gateway.confirmation.as_deref(), confirmation_prompt::now());
    let mut calls = conversation.dialect().history_calls(request);
    calls.retain(|call| !own.contains(call.name));
    let words = read_replies(key, &caller, &calls, &conversation.confirmations, now);
    // The policy may have left mode `Search` since a person was asked.
    let run_tool = &conversation.gateway.catalog.policy().gateway.offer.search_tools.run_with_confirmation;
    let mut settled = Vec::new();
    for (word, call) in words.into_iter().zip(&calls) {
        let is_asked = conversation.offered.target(call.name).is_some_and(|tool| tool.needs_confirmation());
        let form = if is_script(conversation, call.name) {
            CallForm::Script
        } else if call.name == run_tool || conversation.offered.is_search(call.name) {
            CallForm::Named
        } else {
            CallForm::Input
        };
        if let Some(resolution) = resolution(word, call, is_asked, form) {
            let (id, name) = (call.id.to_owned(), call.name.to_owned());
            settled.push(PendingResult {
                place: call.location,
                id,
                name,
                is_newest: call.is_newest,
                resolution,
            });
        }
    }
    forget_oldest(&mut settled);
    settled
}

/// The meaning of a call's arguments.
#[derive(Clone, Copy)]
enum CallForm {
    Input,
    /// They name the skill, and have its input.
    Named,
    /// They name the skill and a script of its bundle.
    Script,
}

/// Returns true for a tool that runs scripts, also if it is not offered any more since a person was asked.
fn is_script(conversation: &Conversation, name: &str) -> bool {
    let is_known = conversation.offered.targets.contains_key(name);
    conversation.offered.is_script(name)
        || (!is_known && name.starts_with(instructions::RUN_SCRIPT_WITH_CONFIRMATION))
}

/// None where the result is none of ours.
fn resolution(word: Reply, call: &HistoryCall<'_>, is_asked: bool, form: CallForm) -> Option<Resolution> {
    let refuse = |message: String| {
        Some(Resolution::Refuse {
            reason: "NotConfirmed",
            message: format!("{message}; the skill was not run"),
        })
    };
    match word {
        Reply::Confirmed(confirmed) => {
            let Confirmed { namespace, skill, version, code, is_expired } = confirmed;
            let too_late = match (call.is_newest, is_expired) {
                (false, _) => Some(TooLate::Earlier),
                (true, true) => Some(TooLate::Expired),
                (true, false) => None,
            };
            let arguments = call.arguments().unwrap_or_default();
            let target = Target { namespace, skill, version, confirm: true };
            let Some(call) = confirmed_call(target, arguments, form) else {
                return refuse("the confirmed call names another skill".to_owned());
            };
            Some(Resolution::Run(Box::new(Run { call, key: format!("confirmed/{code}"), too_late })))
        }
        Reply::Refused => refuse("a person refused this call".to_owned()),
        Reply::Invalid(error) => refuse(error.to_string()),
        Reply::Unclear if is_asked => refuse(ConfirmationError::Malformed.to_string()),
        Reply::Missing if is_asked => refuse("nobody confirmed this call".to_owned()),
        Reply::NotTried if is_asked => Some(too_many()),
        Reply::Unclear | Reply::Missing | Reply::NotTried => None,
    }
}

/// Returns the call that a person saw; `None` if its arguments name no script of that skill.
fn confirmed_call(target: Target, arguments: Value, form: CallForm) -> Option<SkillCall> {
    match form {
        CallForm::Input => Some(SkillCall::new(target, arguments)),
        CallForm::Named => {
            let input = match read_run(&arguments) {
                Ok((named, input)) if named == target.skill => input,
                Ok(_) | Err(_) => arguments,
            };
            Some(SkillCall::new(target, input))
        }
        CallForm::Script => {
            let (named, script) = instructions::read_script(&arguments).ok()?;
            (named == target.skill).then(|| SkillCall::of_script(target, script))
        }
    }
}

fn forget_oldest(settled: &mut [PendingResult]) {
    let runs = settled.iter_mut().rev().filter(|settled| matches!(settled.resolution, Resolution::Run(_)));
    for settled in runs.skip(LIMIT) {
        settled.resolution = too_many();
    }
}

fn too_many() -> Resolution {
    let message = format!("a request may hold {LIMIT} confirmed calls; this one was not looked for");
    Resolution::Refuse { reason: "LimitReached", message }
}

impl Resolution {
    fn begins(&self) -> bool {
        match self {
            Self::Run(run) => run.too_late.is_none(),
            Self::Refuse { .. } => false,
        }
    }
}

/// An error where the same request may do better the next time.
async fn outcome(
    conversation: &Conversation,
    resolution: &Resolution,
    deadline: Instant,
) -> Result<CallOutcome, ApiError> {
    let run = match resolution {
        Resolution::Run(run) => run,
        Resolution::Refuse { reason, message } => return Ok(failed(reason, message)),
    };
    let Run { call, key, too_late } = &**run;
    let target = &call.target;
    match tool_calls::allow(conversation, target).await {
        Ok(()) => {}
        Err(Denied::Refused(refused)) => return Ok(refused),
        Err(Denied::Unavailable(error)) => return Err(error),
    }
    let order = tool_calls::order(conversation, call, Some(key.clone()));
    if let Some(too_late) = too_late {
        return attach_to_running(conversation, &order, *too_late, deadline).await;
    }
    if conversation.invocation(target) == Some(Invocation::Manual) {
        return Ok(failed("ManualOnly", tool_calls::MANUAL));
    }
    let started = Instant::now();
    let outcome = start(conversation, &order, deadline).await;
    let is_error = outcome.as_ref().map_or(true, |outcome| outcome.is_error);
    conversation.gateway.metrics.called(is_error, started.elapsed());
    outcome
}

async fn start(
    conversation: &Conversation,
    order: &ExecutionRequest,
    deadline: Instant,
) -> Result<CallOutcome, ApiError> {
    let limit = deadline.saturating_duration_since(Instant::now());
    if limit.is_zero() {
        let message = "the time of this request was over before a confirmed call could begin; send it again";
        return Err(ApiError::unavailable(message));
    }
    into_result(conversation, conversation.gateway.executions.run(order, limit).await)
}

/// Waits for the run that an earlier request started, if it still exists.
async fn attach_to_running(
    conversation: &Conversation,
    order: &ExecutionRequest,
    too_late: TooLate,
    deadline: Instant,
) -> Result<CallOutcome, ApiError> {
    let executor = &conversation.gateway.executions;
    match (executor.find_by_key(order, &order.namespace).await, too_late) {
        (Ok(Some(execution)), TooLate::Earlier) if !execution.is_ended() => {
            // Waited for in every request of the conversation, it would take the time of each.
            Ok(failed("StillRunning", "the skill still runs; a later request has its result"))
        }
        (Ok(Some(execution)), _) => {
            let limit = deadline.saturating_duration_since(Instant::now());
            into_result(conversation, executor.wait(&execution, limit).await)
        }
        (Ok(None), TooLate::Expired) => {
            Ok(failed("NotConfirmed", "the confirmation came too late; the skill was not run"))
        }
        (Ok(None), TooLate::Earlier) => Ok(failed(
            "ResultGone",
            "this confirmed call was not begun, or its result is not kept any more; it is not run again",
        )),
        (Err(error), _) => into_result(conversation, Err(error)),
    }
}

/// A transient error is no result: it would use up the confirmation.
fn into_result(
    conversation: &Conversation,
    run: Result<Arc<Execution>, ExecutionError>,
) -> Result<CallOutcome, ApiError> {
    match run {
        Err(error) if tool_result::is_passing(&error) => {
            tool_result::log(&error);
            Err(error.into())
        }
        run => Ok(tool_result::end(run, conversation.limits.result_bytes)),
    }
}

#[cfg(test)]
mod tests;
