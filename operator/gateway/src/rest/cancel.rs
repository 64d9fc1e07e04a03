//! Cancelling a run.

use axum::{Json, extract::State};
use http::StatusCode;

use crate::{
    auth::Caller,
    error::ApiError,
    rest::{
        execution_view::ExecutionView,
        openapi::{AuthErrors, GoneErrors, NotFoundErrors},
        params::{AuthenticatedCaller, ObjectName, Params},
    },
    service::SkillService,
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
    State(service): State<SkillService>,
    ObjectName(id): ObjectName,
    params: Params,
) -> Answer {
    end(&service, &caller, &id, params).await
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
    State(service): State<SkillService>,
    ObjectName(id): ObjectName,
    params: Params,
) -> Answer {
    end(&service, &caller, &id, params).await
}

async fn end(service: &SkillService, caller: &Caller, id: &str, mut params: Params) -> Answer {
    let namespace = params.take("namespace")?;
    params.finish()?;
    let execution = service.cancel(caller, id, namespace.as_deref()).await?;
    let status = if execution.is_ended() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(ExecutionView::from(&*execution))))
}
