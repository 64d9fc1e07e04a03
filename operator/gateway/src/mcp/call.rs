//! One run for one tool call: starts it, reports its progress, and cancels it if the client cancels the call.

use std::sync::Arc;

use futures::{
    FutureExt as _,
    future::{BoxFuture, ready},
};
use http::request::Parts;
use rmcp::{
    RoleServer,
    model::{CallToolResult, ProgressNotificationParam},
    service::RequestContext,
};
use serde_json::Value;
use skillet_api::{Phase, execution::BundleScript};
use skillet_core::skill::{MAX_BODY_BYTES, MAX_BUNDLE_BYTES};
use tokio::{
    sync::Mutex,
    time::{Instant, MissedTickBehavior, interval_at, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{Timing, idempotent_calls::IdempotentCalls, tool_result};
use crate::{
    auth::Caller,
    error::ApiError,
    executions::{Execution, ExecutionClient, ExecutionError, ExecutionRequest},
    memory::MemoryReservation,
    request_id,
    resolve::ResolvedSkill,
    service::SkillService,
};

/// Key of a request's `_meta`: the same text is the same run, whatever is retried.
const IDEMPOTENCY: &str = "skillet.dev/idempotencyKey";

/// Memory that the read of a file takes: a sealed version as text and as a document, and the file as text and in the answer.
pub(super) const READ_BYTES: usize = 4 * (MAX_BUNDLE_BYTES + MAX_BODY_BYTES);

/// The skill, version and input of a call.
pub(super) struct SkillCall {
    pub(super) skill: ResolvedSkill,
    pub(super) version: Option<String>,
    /// Null beside a script.
    pub(super) input: Value,
    /// A script of the skill's bundle to run instead of its program.
    pub(super) script: Option<BundleScript>,
    pub(super) session: Option<String>,
    /// The client did not choose the version: with a key, a run of another version is the same call.
    pub(super) ignore_version: bool,
}

/// The request that a call came in, and the services that serve it.
pub(super) struct CallContext<'a> {
    pub(super) service: &'a SkillService,
    pub(super) caller: &'a Caller,
    pub(super) request: &'a RequestContext<RoleServer>,
    pub(super) timing: &'a Timing,
    /// The calls of the same session that have an idempotency key.
    pub(super) idempotent_calls: &'a IdempotentCalls,
    /// The memory reservation of the request; `None` once it has ended.
    pub(super) memory: Option<Arc<Mutex<MemoryReservation>>>,
}

/// Runs a skill and returns its result. The caller's rights are checked before.
pub(super) async fn run(skill_call: SkillCall, call: CallContext<'_>) -> CallToolResult {
    let CallContext { service, request, idempotent_calls, .. } = call;
    let run = execution_request(call.caller, skill_call, request);
    let has_key = run.idempotency.is_some();
    if has_key {
        idempotent_calls.begin(&request.id);
    }
    if request.ct.is_cancelled() {
        idempotent_calls.end(&request.id);
        return cancelled();
    }
    let result = match service.start_resolved(&run).await {
        Ok(execution) => {
            let notify = progress_notifier(request);
            match follow(&service.executions, call.timing, &execution, &request.ct, notify).await {
                End::Cancelled => {
                    // A client that is gone may come back with its key; a client that cancels does not want the result.
                    if !has_key || idempotent_calls.leave(&request.id, &execution.metadata) {
                        service.executions.cancel_unless_wanted(&execution.metadata).await;
                    }
                    return cancelled();
                }
                end => {
                    // The result takes the place of the input.
                    drop(run);
                    render_end(&call, &execution, end).await
                }
            }
        }
        Err(error) => tool_result::service_error(&error),
    };
    idempotent_calls.end(&request.id);
    result
}

async fn render_end(call: &CallContext<'_>, execution: &Execution, end: End) -> CallToolResult {
    match end {
        End::Ended(execution) => render(call, &execution).await,
        End::Lost(error) => tool_result::service_error(&error.into()),
        End::Cancelled => cancelled(),
        End::TooLate => tool_result::failed(
            "TooLate",
            &format!(
                "the run {} continues, but has not ended within {:?}; skillet_executions shows how it ends",
                execution.metadata.name, call.timing.call
            ),
        ),
    }
}

/// Renders an execution that has ended, within the request's memory reservation. If the request itself has ended, the
/// result has a reservation of its own while it is rendered.
async fn render(call: &CallContext<'_>, execution: &Execution) -> CallToolResult {
    let needed = tool_result::needed(execution);
    match reserve(call.service, call.caller, call.memory.as_ref(), needed).await {
        Ok(_reservation) => tool_result::render(execution),
        Err(error) => {
            let name = &execution.metadata.name;
            let message =
                format!("{}; the run has ended, and the SkillExecution {name} has its output", error.message);
            tool_result::failed(&error.code, &message)
        }
    }
}

/// Reserves memory for a result: in the reservation of the request or, if the request has ended, in one of its own.
pub(super) async fn reserve(
    service: &SkillService,
    caller: &Caller,
    memory: Option<&Arc<Mutex<MemoryReservation>>>,
    needed: usize,
) -> Result<Option<MemoryReservation>, ApiError> {
    match memory {
        Some(memory) => memory.lock().await.resize(needed).await.map(|()| None),
        None => service.memory.reserve(&caller.namespace, needed).await.map(Some),
    }
}

fn cancelled() -> CallToolResult {
    tool_result::failed("Cancelled", "the call was cancelled")
}

fn execution_request(
    caller: &Caller,
    call: SkillCall,
    context: &RequestContext<RoleServer>,
) -> ExecutionRequest {
    let SkillCall { skill, version, input, script, session, ignore_version } = call;
    let key = context.meta.0.0.get(IDEMPOTENCY).and_then(Value::as_str);
    ExecutionRequest {
        version,
        input,
        script,
        session,
        request_id: request_id(context),
        idempotency: key.map(str::to_owned),
        ignore_version,
        ..ExecutionRequest::new(caller.clone(), skill.namespace.clone(), skill.name().clone())
    }
}

/// Returns the id of the HTTP request that a call came in.
pub(super) fn request_id(context: &RequestContext<RoleServer>) -> Option<String> {
    context.extensions.get::<Parts>().and_then(|parts| request_id::get(&parts.headers))
}

/// The end of a wait for a run.
#[derive(Debug)]
pub(super) enum End {
    Ended(Arc<Execution>),
    Lost(ExecutionError),
    /// The client does not want the result any more.
    Cancelled,
    TooLate,
}

/// A notification on its way to the client.
type Notification = BoxFuture<'static, ()>;

/// Waits for the end of a run. A client that reads no notifications gets none, and delays nothing.
pub(super) async fn follow(
    executions: &ExecutionClient,
    timing: &Timing,
    execution: &Arc<Execution>,
    cancelled: &CancellationToken,
    mut notify: Option<impl FnMut(Phase) -> Notification + Send>,
) -> End {
    let mut watch = executions.watch(execution);
    let mut latest = execution.clone();
    let mut tick = interval_at(Instant::now() + timing.progress, timing.progress);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut too_late = std::pin::pin!(sleep(timing.call));
    let mut sending = None;
    let mut is_due = true;
    loop {
        if phase(&latest).is_terminal() {
            return End::Ended(latest);
        }
        if let Some(notify) = notify.as_mut()
            && is_due
            && sending.is_none()
        {
            sending = Some(notify(phase(&latest)));
            is_due = false;
        }
        tokio::select! {
            biased;
            () = cancelled.cancelled() => return End::Cancelled,
            () = &mut too_late => return End::TooLate,
            () = async { if let Some(sending) = &mut sending { sending.await } }, if sending.is_some() => sending = None,
            state = watch.next() => match state {
                Ok(state) => {
                    is_due |= phase(&state) != phase(&latest);
                    latest = state;
                }
                Err(error) => return End::Lost(error),
            },
            _ = tick.tick(), if notify.is_some() => is_due = true,
        }
    }
}

fn phase(execution: &Execution) -> Phase {
    execution.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

/// Returns a function that notifies the client of one run's progress, if the client has asked for it.
fn progress_notifier(
    context: &RequestContext<RoleServer>,
) -> Option<impl FnMut(Phase) -> Notification + Send> {
    let (token, peer) = (context.meta.get_progress_token()?, context.peer.clone());
    let mut count = 0_u32;
    Some(move |phase| {
        let message = match phase {
            Phase::Pending => "queued",
            Phase::Running => "running",
            // The result reports the end.
            Phase::Succeeded | Phase::Failed | Phase::TimedOut | Phase::Cancelled => {
                return ready(()).boxed();
            }
        };
        // Nobody knows how much is left, so the number only counts the notifications.
        let progress = ProgressNotificationParam::new(token.clone(), f64::from(count)).with_message(message);
        count += 1;
        let peer = peer.clone();
        // If the client is gone, its request is cancelled, so an error here needs no handling.
        async move { drop(peer.notify_progress(progress).await) }.boxed()
    })
}
