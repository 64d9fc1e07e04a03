//! Cancelling a run.

use axum::{Json, extract::State};
use http::StatusCode;

use crate::{
    error::ApiError,
    rest::{
        execution_view::ExecutionView,
        operation::{AuthErrors, ExecutionParams, GoneErrors, NotFoundErrors},
        params::{AuthenticatedCaller, ObjectName, Params},
    },
    service::SkillService,
};

/// Cancel a run.
#[utoipa::path(
    post, path = "/api/skills/executions/{execution}/cancel", tag = "executions", operation_id = "cancelExecution",
    params(ExecutionParams),
    responses(
        (status = 200, description = "It had ended; nothing was done.", body = ExecutionView),
        (status = 202, description = "It is being cancelled.", body = ExecutionView),
        AuthErrors, NotFoundErrors, GoneErrors
    )
)]
pub(crate) async fn cancel(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    ObjectName(name): ObjectName,
    params: Params,
) -> Result<(StatusCode, Json<ExecutionView>), ApiError> {
    let namespace = params.take_namespace()?;
    let execution = service.cancel(&caller, &name, namespace.as_deref()).await?;
    let status = if execution.is_ended() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(ExecutionView::from(&*execution))))
}
