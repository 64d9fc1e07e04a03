//! A run followed by server-sent events: `status` with every change, `end` with the result, `error` if it vanishes.
//!
//! What the program prints while it runs stays between its sandbox and the operator; it is in the result.

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
use utoipa::ToSchema;

use crate::{
    error::{ApiError, ErrorAnswer},
    executor::{Execution, Following},
    rest::{
        Rest,
        execution_view::ExecutionView,
        executions,
        openapi::{Missing, Refused},
        params::{Name, Params, Who},
    },
};

/// Follow a run: events `status`, then one `end` or `error`, each with JSON.
#[utoipa::path(
    get, path = "/api/skills/executions/{id}/events", tag = "executions", operation_id = "followExecution",
    params(
        ("id" = String, Path, description = "Name of the SkillExecution."),
        ("namespace" = Option<String>, Query, description = "One of the namespaces looked up for the caller."),
    ),
    responses(
        (status = 200, description = "Server-sent events; `status` and `end` carry an Execution, `error` an ErrorAnswer.",
            body = Told, content_type = "text/event-stream"),
        Refused, Missing
    )
)]
pub(crate) async fn events(
    Who(caller): Who,
    State(rest): State<Rest>,
    Name(id): Name,
    params: Params,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let execution = executions::find(&rest, &caller, &id, params).await?;
    // It is told with every change, and may be followed for long.
    let room = rest.room.hold(&caller.namespace, 2 * execution.content()).await?;
    let following = rest.executor.follow(&execution);
    // A client that is let go asks again, and is told how the run is then.
    let stream = stream::unfold(Next::Tell(execution, following), next)
        .take_until(rest.stop.cancelled_owned())
        .inspect(move |_| {
            let _held = &room;
        });
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// One server-sent event.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is used: axum writes events")]
pub(crate) struct Told {
    /// `status` with every change, `end` with the result, `error` where the run is gone.
    event: String,
    /// JSON: an Execution, with `error` an ErrorAnswer.
    data: String,
}

/// What the stream does next.
enum Next {
    Tell(Arc<Execution>, Following),
    /// Wait for something else than was told last.
    Wait(Arc<Execution>, Following),
    Close,
}

async fn next(next: Next) -> Option<(Result<Event, Infallible>, Next)> {
    let (told, mut following) = match next {
        Next::Close => return None,
        Next::Tell(execution, following) => return Some(tell(execution, following)),
        Next::Wait(told, following) => (told, following),
    };
    loop {
        match following.next().await {
            Ok(execution) if is_news(&told, &execution) => return Some(tell(execution, following)),
            Ok(_) => {}
            Err(error) => {
                let answer = ErrorAnswer { error: error.into() };
                return Some((Ok(event("error", &answer)), Next::Close));
            }
        }
    }
}

fn tell(execution: Arc<Execution>, following: Following) -> (Result<Event, Infallible>, Next) {
    let view = ExecutionView::from(&*execution);
    if execution.is_ended() {
        (Ok(event("end", &view)), Next::Close)
    } else {
        (Ok(event("status", &view)), Next::Wait(execution, following))
    }
}

fn is_news(told: &Execution, seen: &Execution) -> bool {
    let facts = |execution: &Execution| {
        let status = execution.status.as_ref();
        status.map(|status| (status.phase, status.reason, status.attempts, status.resolved_version.clone()))
    };
    seen.is_ended() || facts(told) != facts(seen)
}

fn event(name: &str, data: &impl Serialize) -> Event {
    let event = Event::default().event(name);
    // These types have no map with keys that are not text, which is all that JSON cannot write.
    event.json_data(data).unwrap_or_else(|_| Event::default().event(name))
}
