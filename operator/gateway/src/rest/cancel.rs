//! Cancelling a run.

use axum::{Json, extract::State};
use http::StatusCode;

use crate::{
    auth::Caller,
    error::ApiError,
    rest::{
        Rest,
        execution_view::ExecutionView,
        executions,
        openapi::{AuthErrors, GoneErrors, NotFoundErrors},
        params::{AuthenticatedCaller, ObjectName, Params},
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
        AuthErrors, NotFoundErrors, GoneErrors
    )
)]
pub(crate) async fn delete(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(rest): State<Rest>,
    ObjectName(id): ObjectName,
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
        AuthErrors, NotFoundErrors, GoneErrors
    )
)]
pub(crate) async fn cancel(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(rest): State<Rest>,
    ObjectName(id): ObjectName,
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
