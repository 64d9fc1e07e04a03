//! Cancelling a run.

use axum::{Json, extract::State};
use http::StatusCode;

use crate::{
    error::ApiError,
    identity::Caller,
    rest::{
        Rest,
        execution_view::ExecutionView,
        executions,
        openapi::{Missing, Refused, Vanished},
        params::{Name, Params, Who},
    },
};

type Answer = Result<(StatusCode, Json<ExecutionView>), ApiError>;

/// Cancel a run; the same as `POST .../cancel`. The record of the run stays.
#[utoipa::path(
    delete, path = "/api/skills/executions/{id}", tag = "executions", operation_id = "deleteExecution",
    params(
        ("id" = String, Path, description = "Name of the SkillExecution."),
        ("namespace" = Option<String>, Query, description = "One of the namespaces looked up for the caller."),
    ),
    responses(
        (status = 200, description = "It had ended; nothing was done.", body = ExecutionView),
        (status = 202, description = "It is being cancelled.", body = ExecutionView),
        Refused, Missing, Vanished
    )
)]
pub(crate) async fn delete(
    Who(caller): Who,
    State(rest): State<Rest>,
    Name(id): Name,
    params: Params,
) -> Answer {
    end(&rest, &caller, &id, params).await
}

/// Cancel a run.
#[utoipa::path(
    post, path = "/api/skills/executions/{id}/cancel", tag = "executions", operation_id = "cancelExecution",
    params(
        ("id" = String, Path, description = "Name of the SkillExecution."),
        ("namespace" = Option<String>, Query, description = "One of the namespaces looked up for the caller."),
    ),
    responses(
        (status = 200, description = "It had ended; nothing was done.", body = ExecutionView),
        (status = 202, description = "It is being cancelled.", body = ExecutionView),
        Refused, Missing, Vanished
    )
)]
pub(crate) async fn cancel(
    Who(caller): Who,
    State(rest): State<Rest>,
    Name(id): Name,
    params: Params,
) -> Answer {
    end(&rest, &caller, &id, params).await
}

async fn end(rest: &Rest, caller: &Caller, id: &str, params: Params) -> Answer {
    let execution = executions::find(rest, caller, id, params).await?;
    let view = Json(ExecutionView::from(&*execution));
    if execution.is_ended() {
        return Ok((StatusCode::OK, view));
    }
    rest.executor.cancel(&execution.metadata).await?;
    Ok((StatusCode::ACCEPTED, view))
}
