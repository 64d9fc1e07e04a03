//! The HTTP interface under `/api`, for people and programs that use skills without a model.
//!
//! Every request acts under the rights of its caller, and what it does has the same effect as through kubectl. The
//! token alone identifies the caller, never a path, a parameter or a body.

pub(crate) mod body;
mod cancel;
mod create_execution;
mod docs;
mod events;
mod execution_view;
mod executions;
mod openapi;
mod openapi_others;
mod operation;
mod pagination;
mod params;
mod skill_view;
mod skills;
mod update_skill;
mod workspace;

use axum::{
    Router,
    response::Redirect,
    routing::{get, post},
};
use http::{Method, StatusCode};

pub(crate) use self::{execution_view::ExecutionView, skill_view::Mode, update_skill::SkillUpdate};
use crate::{
    error::ApiError,
    service::{ServiceError, SkillService},
};

impl From<ServiceError> for ApiError {
    fn from(error: ServiceError) -> Self {
        let message = error.to_string();
        match error {
            ServiceError::Auth(error) => error.into(),
            ServiceError::Execution(error) => error.into(),
            ServiceError::UnknownNamespace(_) => Self::forbidden(message).at("namespace"),
            ServiceError::SkillNotFound { .. } | ServiceError::SkillNotFoundIn { .. } => {
                Self::new(StatusCode::NOT_FOUND, "SkillNotFound", message)
            }
            ServiceError::ExecutionNotFound(_) => Self::not_found(message),
            ServiceError::File(error) => error.into(),
            ServiceError::Update { source, .. } => match *source {
                kube::Error::Api(status) => update_error(&message, &status),
                _ => Self::unavailable(message),
            },
        }
    }
}

fn update_error(text: &str, status: &kube::core::Status) -> ApiError {
    let message = format!("{text}: {}", status.message);
    match status.code {
        403 => ApiError::forbidden(message),
        404 => ApiError::not_found(message),
        409 => ApiError::new(StatusCode::CONFLICT, "Conflict", message),
        400 | 422 => ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message),
        _ => ApiError::unavailable(text),
    }
}

/// `/api/skills`, `/api/workspace`, `/openapi.json` and `/docs`.
pub fn routes() -> Router<SkillService> {
    // A path with fixed words goes before one with a name, whatever the order here.
    Router::new()
        .route("/api/skills", get(skills::list))
        .route("/api/skills/{name}", get(skills::get).put(update_skill::update).patch(update_skill::update))
        .route("/api/skills/{name}/versions", get(skills::versions))
        .route("/api/skills/{name}/resolve", get(skills::resolve))
        .route("/api/skills/executions", get(executions::list).post(create_execution::create))
        .route("/api/skills/executions/{execution}", get(executions::get).delete(cancel::cancel))
        .route("/api/skills/executions/{execution}/cancel", post(cancel::cancel))
        .route("/api/skills/executions/{execution}/events", get(events::events))
        .route("/api/workspace", get(workspace::list))
        .route("/api/workspace/file", get(workspace::read).put(workspace::write).delete(workspace::remove))
        .route("/openapi.json", get(docs::openapi))
        .route("/docs", get(docs::page))
        .route("/", get(async || Redirect::temporary("/docs")))
        .method_not_allowed_fallback(async |method: Method| ApiError::method_not_allowed(&method))
}
