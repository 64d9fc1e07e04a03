//! A run followed by server-sent events: `status` with every change, `end` with the result, `error` if it vanishes or
//! there is no memory to tell of it.
//!
//! Output of a running program stays between its sandbox and the operator; the result contains it.

use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::State,
    response::{
        Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::{Stream, StreamExt as _, stream};
use serde::Serialize;
use skillet_api::{Phase, Reason};
use utoipa::ToSchema;

use crate::{
    error::{ApiError, ErrorResponse},
    executions::{Execution, ExecutionWatch},
    memory::{MemoryPool, MemoryReservation},
    rest::{
        execution_view::ExecutionView,
        operation::{AuthErrors, ExecutionParams, NotFoundErrors},
        params::{AuthenticatedCaller, ObjectName, Params},
    },
    service::SkillService,
};

/// Follow a run: events `status`, then one `end` or `error`, each with JSON.
#[utoipa::path(
    get, path = "/api/skills/executions/{execution}/events", tag = "executions", operation_id = "followExecution",
    params(ExecutionParams),
    responses(
        (status = 200, description = "Server-sent events; `status` and `end` carry an Execution, `error` an ErrorResponse.",
            body = ExecutionEvent, content_type = "text/event-stream"),
        AuthErrors, NotFoundErrors
    )
)]
pub(crate) async fn events(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    ObjectName(name): ObjectName,
    params: Params,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let execution = service.execution(&caller, &name, params.take_namespace()?.as_deref()).await?;
    let watch = service.executions.watch(&execution);
    let source = EventSource { memory: service.memory.clone(), tenant: caller.namespace.clone(), watch };
    // The client reconnects to another replica, and gets the state that the run has then.
    let stream =
        stream::unfold(Next::Send(execution, source), next).take_until(service.stop.cancelled_owned());
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// One server-sent event.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is used: axum writes events")]
pub(crate) struct ExecutionEvent {
    /// `status` with every change, `end` with the result, `error` if the run is gone or there is no memory for its event.
    event: String,
    /// JSON: an Execution, with `error` an ErrorResponse.
    data: String,
}

/// Follows the run for one client, which may read its events slowly.
struct EventSource {
    memory: Arc<MemoryPool>,
    tenant: Arc<str>,
    watch: ExecutionWatch,
}

/// The next step of the stream. An event holds its memory until the client has read the event.
enum Next {
    Send(Arc<Execution>, EventSource),
    /// Wait for a state that differs from that of the last event.
    Wait(Facts, EventSource, MemoryReservation),
    Close(Option<MemoryReservation>),
}

async fn next(next: Next) -> Option<(Result<Event, Infallible>, Next)> {
    let (sent, mut source) = match next {
        Next::Close(memory) => {
            drop(memory);
            return None;
        }
        Next::Send(execution, source) => return Some(render(&execution, source).await),
        Next::Wait(sent, source, memory) => {
            drop(memory);
            (sent, source)
        }
    };
    loop {
        match source.watch.next().await {
            Ok(execution) if execution.is_ended() || facts(&execution) != sent => {
                return Some(render(&execution, source).await);
            }
            Ok(_) => {}
            Err(error) => return Some(end_with_error(error.into())),
        }
    }
}

async fn render(execution: &Execution, source: EventSource) -> (Result<Event, Infallible>, Next) {
    let memory = match source.memory.reserve(&source.tenant, execution.content()).await {
        Ok(memory) => memory,
        Err(error) => return end_with_error(error),
    };
    let view = ExecutionView::from(execution);
    if execution.is_ended() {
        (Ok(event("end", &view)), Next::Close(Some(memory)))
    } else {
        (Ok(event("status", &view)), Next::Wait(facts(execution), source, memory))
    }
}

fn end_with_error(error: ApiError) -> (Result<Event, Infallible>, Next) {
    (Ok(event("error", &ErrorResponse { error })), Next::Close(None))
}

/// The fields whose change makes a new event.
type Facts = Option<(Phase, Option<Reason>, u32, Option<String>)>;

fn facts(execution: &Execution) -> Facts {
    let status = execution.status.as_ref()?;
    Some((status.phase, status.reason, status.attempts, status.resolved_version.clone()))
}

fn event(name: &str, data: &impl Serialize) -> Event {
    let event = Event::default().event(name);
    // These types have no map with keys that are not text, which is all that JSON cannot write.
    event.json_data(data).unwrap_or_else(|_| Event::default().event(name))
}
