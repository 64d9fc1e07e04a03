//! One run for one tool call: starts it, reports its progress, and cancels it if the client cancels the call.

use std::{sync::Arc, time::Duration};

use futures::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, ready},
};
use http::request::Parts;
use rmcp::{
    RoleServer,
    model::{CallToolResult, ProgressNotificationParam},
    service::RequestContext,
};
use serde_json::Value;
use skillet_api::{Phase, Reason};
use thiserror::Error;
use tokio::{
    sync::Mutex,
    time::{Instant, MissedTickBehavior, interval_at, sleep},
};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{Timing, backend::Backend, idempotent_calls::IdempotentCalls, tool_result};
use crate::{
    auth::{AuthError, Caller},
    executions::{Execution, ExecutionError, ExecutionRequest, Metadata},
    memory::MemoryReservation,
    request_id,
    resolve::{ResolvedSkill, other_namespaces},
};

/// Key of a request's `_meta`: the same text is the same run, whatever is retried.
const IDEMPOTENCY: &str = "skillet.dev/idempotencyKey";

/// The skill, version and input of a call.
pub(super) struct Wish {
    pub(super) seen: ResolvedSkill,
    pub(super) version: Option<String>,
    pub(super) input: Value,
    pub(super) session: Option<String>,
    /// The version is not the client's own word: with a key, a run of another is the same call.
    pub(super) ignore_version: bool,
}

/// The request that a call came in.
pub(super) struct CallContext<'a> {
    pub(super) context: &'a RequestContext<RoleServer>,
    pub(super) timing: &'a Timing,
    /// Calls with a key of the same session.
    pub(super) keyed: &'a IdempotentCalls,
    /// The memory reservation of the request; `None` once it has ended.
    pub(super) room: Option<Arc<Mutex<MemoryReservation>>>,
}

/// Runs a skill and answers with its result. Rights are checked before.
pub(super) async fn run<B: Backend>(
    backend: &B,
    caller: &Caller,
    wish: Wish,
    asking: CallContext<'_>,
) -> CallToolResult {
    let CallContext { context, timing, keyed, room } = asking;
    let order = order(caller, wish, context);
    let has_key = order.idempotency.is_some();
    if has_key {
        keyed.begin(&context.id);
    }
    let result = match followed(backend, timing, &order, context).await {
        Ok((execution, End::Unwanted)) => {
            // A client that is gone may come back with its key; one that has said so does not want the result.
            if !has_key || keyed.leave(&context.id, &execution.metadata) {
                backend.cancel_unless_wanted(&execution.metadata).await;
            }
            return cancelled();
        }
        Ok((execution, end)) => {
            // With its input; the answer takes its place.
            drop(order);
            result_of(backend, caller, &execution, end, timing, room).await
        }
        Err(NotBegun::Unwanted) => cancelled(),
        Err(NotBegun::ExecutionClient(error)) => refused(&error),
        Err(NotBegun::Rights(error)) => tool_result::failed(Reason::ApiError.as_str(), &error.to_string()),
    };
    keyed.end(&context.id);
    result
}

async fn followed<B: Backend>(
    backend: &B,
    timing: &Timing,
    order: &ExecutionRequest,
    context: &RequestContext<RoleServer>,
) -> Result<(Arc<Execution>, End), NotBegun> {
    if context.ct.is_cancelled() {
        return Err(NotBegun::Unwanted);
    }
    let execution = begun(backend, order).await?;
    let end = follow(backend, timing, &execution, &context.ct, notices(context)).await;
    Ok((execution, end))
}

async fn result_of<B: Backend>(
    backend: &B,
    caller: &Caller,
    execution: &Execution,
    end: End,
    timing: &Timing,
    room: Option<Arc<Mutex<MemoryReservation>>>,
) -> CallToolResult {
    match end {
        End::Ended(execution) => ended(backend, caller, &execution, room).await,
        End::Lost(error) => refused(&error),
        End::Unwanted => cancelled(),
        End::TooLate => tool_result::failed(
            "TooLate",
            &format!(
                "the run {} continues, but has not ended within {:?}; skillet_executions shows how it ends",
                execution.metadata.name, timing.call
            ),
        ),
    }
}

/// The answer is made of an output of any size, and takes the room that the request had. Where the request has ended, as
/// that of a client who comes back for the answer, it has room while it is made.
async fn ended<B: Backend>(
    backend: &B,
    caller: &Caller,
    execution: &Execution,
    room: Option<Arc<Mutex<MemoryReservation>>>,
) -> CallToolResult {
    let needed = tool_result::needed(execution);
    let held = match room {
        Some(room) => room.lock().await.resize(needed).await.map(|()| None),
        None => backend.memory().reserve(&caller.namespace, needed).await.map(Some),
    };
    match held {
        Ok(_held) => tool_result::ended(execution),
        Err(error) => {
            let name = &execution.metadata.name;
            let message =
                format!("{}; the run has ended, and the SkillExecution {name} has its output", error.message);
            tool_result::failed(&error.code, &message)
        }
    }
}

fn cancelled() -> CallToolResult {
    tool_result::failed("Cancelled", "the call was cancelled")
}

fn order(caller: &Caller, wish: Wish, context: &RequestContext<RoleServer>) -> ExecutionRequest {
    let Wish { seen, version, input, session, ignore_version } = wish;
    let key = context.meta.0.0.get(IDEMPOTENCY).and_then(Value::as_str);
    ExecutionRequest {
        version,
        input,
        session,
        request_id: context.extensions.get::<Parts>().and_then(|parts| request_id::of(&parts.headers)),
        idempotency: key.map(str::to_owned),
        ignore_version,
        ..ExecutionRequest::new(caller.clone(), seen.namespace.clone(), seen.name().clone())
    }
}

/// The run that the order's key has made while the name meant the skill of another namespace, or a new one. In the
/// nearest the execution's name itself tells.
async fn begun<B: Backend>(backend: &B, order: &ExecutionRequest) -> Result<Arc<Execution>, NotBegun> {
    if order.idempotency.is_some() {
        for namespace in
            other_namespaces(backend, &order.caller, &order.skill, Some(&order.namespace)).await?
        {
            if let Some(made) = backend.made(order, &namespace).await? {
                return Ok(made);
            }
        }
    }
    Ok(backend.start(order).await?)
}

/// The reason why a call has no run.
#[derive(Debug, Error)]
enum NotBegun {
    #[error("the request has ended before anything was made")]
    Unwanted,
    #[error(transparent)]
    Rights(#[from] AuthError),
    #[error(transparent)]
    ExecutionClient(#[from] ExecutionError),
}

/// The end of a wait for a run.
#[derive(Debug)]
pub(super) enum End {
    Ended(Arc<Execution>),
    Lost(ExecutionError),
    /// The client does not want the result any more.
    Unwanted,
    TooLate,
}

/// A notice on its way to the client.
type Notice = BoxFuture<'static, ()>;

/// Waits for the end of a run. A client that takes no notifications gets none, and delays nothing.
pub(super) async fn follow<B: Backend>(
    backend: &B,
    timing: &Timing,
    execution: &Arc<Execution>,
    unwanted: &CancellationToken,
    mut notices: Option<impl FnMut(Phase) -> Notice + Send>,
) -> End {
    let mut states = backend.states(execution).fuse();
    let mut latest = execution.clone();
    let mut tick = interval_at(Instant::now() + timing.progress, timing.progress);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut too_late = std::pin::pin!(sleep(timing.call));
    let mut notice = None;
    let mut is_news = true;
    loop {
        if phase(&latest).is_terminal() {
            return End::Ended(latest);
        }
        if let Some(tell) = notices.as_mut().filter(|_| is_news && notice.is_none()) {
            notice = Some(tell(phase(&latest)));
            is_news = false;
        }
        tokio::select! {
            biased;
            () = unwanted.cancelled() => return End::Unwanted,
            () = &mut too_late => return End::TooLate,
            () = async { if let Some(notice) = &mut notice { notice.await } }, if notice.is_some() => notice = None,
            state = states.next() => match state {
                Some(Ok(state)) => {
                    is_news |= phase(&state) != phase(&latest);
                    latest = state;
                }
                Some(Err(error)) => return End::Lost(error),
                None => return End::Lost(gone(&latest, timing.call)),
            },
            _ = tick.tick(), if notices.is_some() => is_news = true,
        }
    }
}

fn phase(execution: &Execution) -> Phase {
    execution.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

fn gone(execution: &Execution, limit: Duration) -> ExecutionError {
    let Metadata { namespace, name, .. } = execution.metadata.clone();
    ExecutionError::TooLate { namespace, name, limit }
}

fn refused(error: &ExecutionError) -> CallToolResult {
    warn!(error = ?error, "Skill was not run for a tool call");
    tool_result::failed(error.reason(), &error.to_string())
}

/// Makes notices of one run, for a client that asked for them.
fn notices(context: &RequestContext<RoleServer>) -> Option<impl FnMut(Phase) -> Notice + Send> {
    let (token, peer) = (context.meta.get_progress_token()?, context.peer.clone());
    let mut count = 0_u32;
    Some(move |phase| {
        let message = match phase {
            Phase::Pending => "queued",
            Phase::Running => "running",
            // The answer tells of the end.
            Phase::Succeeded | Phase::Failed | Phase::TimedOut | Phase::Cancelled => {
                return ready(()).boxed();
            }
        };
        // How much is left nobody knows, so the number only counts the notices.
        let notice = ProgressNotificationParam::new(token.clone(), f64::from(count)).with_message(message);
        count += 1;
        let peer = peer.clone();
        // If the client is gone, its request is cancelled, so an error here needs no handling.
        async move { drop(peer.notify_progress(notice).await) }.boxed()
    })
}
