//! One run for one tool call: started, told of while it goes on, cancelled when the client says so.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use rmcp::{
    RoleServer,
    model::{CallToolResult, ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use serde_json::Value;
use skillet_api::{Phase, SkillExecution};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tracing::warn;

use super::{Pace, answer, backend::Backend, look_up::Found};
use crate::{
    executor::{ExecutorError, Order},
    identity::Caller,
};

/// Key of a request's `_meta`: the same text is the same run, whatever is retried.
const IDEMPOTENCY: &str = "skillet.dev/idempotencyKey";

/// What a call asks for.
pub(super) struct Wish {
    pub(super) found: Found,
    pub(super) version: Option<String>,
    pub(super) input: Value,
    pub(super) session: Option<String>,
}

/// Runs a skill and answers with its result. Rights are checked before.
pub(super) async fn run<B: Backend>(
    backend: &B,
    pace: &Pace,
    caller: &Caller,
    wish: Wish,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    let order = order(caller, wish, context);
    let execution = match backend.start(&order).await {
        Ok(execution) => execution,
        Err(error) => return refused(&error),
    };
    let mut progress = Progress::of(context);
    match follow(backend, pace, &execution, context, &mut progress).await {
        End::Ended(execution) => answer::ended(&execution),
        End::Lost(error) => refused(&error),
        End::Unwanted => {
            if let Err(error) = backend.cancel(&execution).await {
                warn!(%error, "Execution of a cancelled call goes on");
            }
            answer::failed("Cancelled", "the call was cancelled")
        }
        End::TooLate => answer::failed(
            "TooLate",
            &format!(
                "the run {} goes on, but has not ended within {:?}; skillet_executions tells how it ends",
                execution.metadata.name.as_deref().unwrap_or_default(),
                pace.call
            ),
        ),
    }
}

fn order(caller: &Caller, wish: Wish, context: &RequestContext<RoleServer>) -> Order {
    let Wish { found, version, input, session } = wish;
    let key = context.meta.0.0.get(IDEMPOTENCY).and_then(Value::as_str);
    Order {
        caller: caller.clone(),
        namespace: found.namespace,
        skill: found.name,
        version,
        input,
        session,
        timeout: None,
        idempotency: key.map(str::to_owned),
        cancel_when_dropped: false,
    }
}

/// How the waiting ended.
enum End {
    Ended(Arc<SkillExecution>),
    Lost(ExecutorError),
    /// The client does not want the result any more.
    Unwanted,
    TooLate,
}

async fn follow<B: Backend>(
    backend: &B,
    pace: &Pace,
    execution: &Arc<SkillExecution>,
    context: &RequestContext<RoleServer>,
    progress: &mut Option<Progress>,
) -> End {
    let mut states = backend.states(execution).fuse();
    let mut latest = execution.clone();
    let mut tick = interval_at(Instant::now() + pace.progress, pace.progress);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut too_late = std::pin::pin!(sleep(pace.call));
    loop {
        if phase(&latest).is_terminal() {
            return End::Ended(latest);
        }
        if let Some(progress) = progress {
            progress.tell(phase(&latest)).await;
        }
        // Until something is worth telling.
        loop {
            tokio::select! {
                biased;
                () = context.ct.cancelled() => return End::Unwanted,
                state = states.next() => match state {
                    Some(Ok(state)) => {
                        let is_new = phase(&state) != phase(&latest);
                        latest = state;
                        if is_new {
                            break;
                        }
                    }
                    Some(Err(error)) => return End::Lost(error),
                    None => return End::Lost(gone(&latest, pace.call)),
                },
                _ = tick.tick(), if progress.is_some() => break,
                () = &mut too_late => return End::TooLate,
            }
        }
    }
}

fn phase(execution: &SkillExecution) -> Phase {
    execution.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

fn gone(execution: &SkillExecution, limit: Duration) -> ExecutorError {
    let of = |text: &Option<String>| text.clone().unwrap_or_default();
    let metadata = &execution.metadata;
    ExecutorError::TooLate { namespace: of(&metadata.namespace), name: of(&metadata.name), limit }
}

fn refused(error: &ExecutorError) -> CallToolResult {
    warn!(error = ?error, "Skill was not run for a tool call");
    answer::failed("ApiError", &error.to_string())
}

/// Notices of one run, for a client that asked for them.
struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    told: u32,
}

impl Progress {
    fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let token = context.meta.get_progress_token()?;
        Some(Self { peer: context.peer.clone(), token, told: 0 })
    }

    /// How much is left nobody knows, so the number only counts the notices.
    async fn tell(&mut self, phase: Phase) {
        let message = match phase {
            Phase::Pending => "queued",
            Phase::Running => "running",
            Phase::Succeeded | Phase::Failed | Phase::TimedOut | Phase::Cancelled => return,
        };
        let notice = ProgressNotificationParam::new(self.token.clone(), f64::from(self.told));
        self.told += 1;
        // A client that is gone is told of by the cancellation of its request.
        self.peer.notify_progress(notice.with_message(message)).await.ok();
    }
}
