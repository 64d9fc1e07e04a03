//! Running a skill and, unless asked not to, waiting for its end.

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header::LOCATION};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use skillet_api::{Phase, Reason, duration::SkillDuration, execution::BundleScript};
use skillet_core::rest::{http_status, split_name};
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    error::ApiError,
    executions::{Execution, ExecutionError, ExecutionRequest},
    idempotency, request_id,
    rest::{
        body::Body,
        execution_view::ExecutionView,
        operation::{AuthErrors, BodyErrors, ConflictErrors, GoneErrors, NotFoundErrors, ValidationErrors},
        params::{AuthenticatedCaller, Params},
        skills::constraint,
    },
    service::SkillService,
};

const DEFAULT_WAIT: u32 = 60;
const MAX_WAIT: u32 = 600;

/// A run to create. One of `skill` and `skillName` is needed.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct RunRequest {
    /// Name of the skill, or name and version constraint as in `word-count@^1.0.0`.
    skill: Option<String>,
    /// The same as `skill`.
    skill_name: Option<String>,
    /// Version constraint. Without it the version in the Skill's spec runs.
    #[schema(max_length = 256)]
    version: Option<String>,
    /// Any JSON that satisfies the skill's input schema. Default `{}`.
    input: Option<Value>,
    /// Script of the skill's bundle to run instead of its program. Not together with `input`.
    script: Option<ScriptView>,
    /// Conversation this run belongs to.
    #[schema(max_length = 256)]
    session_id: Option<String>,
    /// Time limit such as `10s`; it can only lower the skill's own.
    #[schema(value_type = Option<String>, min_length = 2, max_length = 32, pattern = "^([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$")]
    timeout: Option<SkillDuration>,
    /// One of the namespaces looked up for the caller; the nearest that has the skill where there is none.
    namespace: Option<String>,
    /// If true, the response waits for the end. Default true.
    wait: Option<bool>,
    /// Longest time in seconds that the answer waits. Default 60.
    #[schema(maximum = 600)]
    wait_seconds: Option<u32>,
}

/// A script of a bundle, its arguments and its standard input.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = BundleScript)]
pub(crate) struct ScriptView {
    /// Path of the script in the bundle.
    #[schema(min_length = 1, max_length = 256)]
    path: String,
    /// At most 64 arguments.
    #[serde(default)]
    #[schema(max_items = 64)]
    args: Vec<String>,
    /// Text on standard input. Default empty.
    #[serde(default)]
    #[schema(max_length = 262_144)]
    stdin: String,
}

impl From<ScriptView> for BundleScript {
    fn from(ScriptView { path, args, stdin }: ScriptView) -> Self {
        Self { path, args, stdin }
    }
}

/// Run a skill. A run that fails by itself is a 200 whose phase says so; a refusal is an error.
#[utoipa::path(
    post, path = "/api/skills/executions", tag = "executions", operation_id = "startExecution",
    params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255,
        description = "The same key with the same request is the same run, however often it is sent.")),
    request_body = RunRequest,
    responses(
        (status = 200, description = "It has ended.", body = ExecutionView),
        (status = 202, description = "It runs on; `Location` says where to ask.", body = ExecutionView),
        AuthErrors, NotFoundErrors, ConflictErrors, GoneErrors, BodyErrors, ValidationErrors
    )
)]
pub(crate) async fn create(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    params: Params,
    headers: HeaderMap,
    Body(request, _memory): Body<RunRequest>,
) -> Result<Response, ApiError> {
    params.finish()?;
    let wait = wait(&request)?;
    let chosen = request.namespace.clone();
    let run = execution_request(caller, request, &headers)?;
    let started = service.start_or_find(run, chosen.as_deref()).await;
    let execution = started.map_err(|error| in_body(error.into()))?;
    let Some(limit) = wait else { return Ok(accepted(&execution)) };
    let end = tokio::select! {
        biased;
        end = service.executions.wait(&execution, limit) => end,
        // The gateway ends before such a wait may: the client asks again, and another replica tells it.
        () = service.stop.cancelled() => return Ok(accepted(&execution)),
    };
    match end {
        Ok(ended) => ended_response(&ended),
        Err(ExecutionError::TooLate { .. }) => Ok(accepted(&execution)),
        Err(error) => Err(error.into()),
    }
}

/// Returns the time to wait; `None` if the response does not wait.
fn wait(request: &RunRequest) -> Result<Option<Duration>, ApiError> {
    let seconds = request.wait_seconds.unwrap_or(DEFAULT_WAIT);
    if seconds > MAX_WAIT {
        let message = format!("waitSeconds must be at most {MAX_WAIT}");
        return Err(ApiError::bad_request(message).at("/waitSeconds"));
    }
    let is_waiting = request.wait.unwrap_or(true);
    Ok(is_waiting.then(|| Duration::from_secs(seconds.into())))
}

/// The order, all but its namespace, which is looked up.
fn execution_request(
    caller: Caller,
    request: RunRequest,
    headers: &HeaderMap,
) -> Result<ExecutionRequest, ApiError> {
    let RunRequest { skill, skill_name, version, input, script, session_id, timeout, .. } = request;
    if script.is_some() && input.is_some() {
        return Err(ApiError::bad_request("give input or script, not both").at("/script"));
    }
    let text = match (skill, skill_name) {
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => return Err(ApiError::bad_request("name the skill to run").at("/skill")),
        (Some(_), Some(_)) => {
            return Err(ApiError::bad_request("give skill or skillName, not both").at("/skillName"));
        }
    };
    let (name, in_name) = split_name(&text);
    let (version, field) = match (in_name, version) {
        (Some(_), Some(_)) => {
            let message = "the version is given with the skill's name and by itself";
            return Err(ApiError::bad_request(message).at("/version"));
        }
        (Some(version), None) => (Some(version.to_owned()), "/skill"),
        (None, version) => (version, "/version"),
    };
    if let Some(text) = &version {
        constraint(text, field)?;
    }

    Ok(ExecutionRequest {
        version,
        input: input.unwrap_or_default(),
        script: script.map(Into::into),
        session: session_id,
        timeout: timeout.map(|timeout| timeout.0),
        request_id: request_id::get(headers),
        idempotency: idempotency::key(headers)?,
        ..ExecutionRequest::new(caller, "", name)
    })
}

/// Names the namespace of the body, where other requests have a query parameter.
fn in_body(error: ApiError) -> ApiError {
    if error.field.as_deref() == Some("namespace") { error.at("/namespace") } else { error }
}

fn accepted(execution: &Execution) -> Response {
    let view = ExecutionView::from(execution);
    let location = format!("/api/skills/executions/{}?namespace={}", view.name, view.namespace);
    let mut response = (StatusCode::ACCEPTED, Json(view)).into_response();
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// The record of a run that took place, or why there was none.
fn ended_response(ended: &Execution) -> Result<Response, ApiError> {
    match refusal(ended) {
        Some(error) => Err(error),
        None => Ok(Json(ExecutionView::from(ended)).into_response()),
    }
}

fn refusal(ended: &Execution) -> Option<ApiError> {
    let status = ended.status.as_ref()?;
    let is_refused = status.phase == Phase::Failed && status.attempts == 0;
    let reason = status.reason.filter(|_| is_refused)?;
    let code = StatusCode::from_u16(http_status(reason)).ok().filter(|code| !code.is_success())?;
    let error = ApiError::new(code, reason.as_str(), status.message.clone().unwrap_or_default());
    // The other reasons are the skill's or the cluster's own: no field of the request changes them.
    let at_fault = [
        (Reason::InputInvalid, "/input"),
        (Reason::FileNotFound, "/script/path"),
        (Reason::NoInterpreter, "/script/path"),
        (Reason::ConstraintInvalid, "/version"),
        (Reason::VersionNotFound, "/version"),
    ];
    Some(match at_fault.into_iter().find(|(fault, _)| *fault == reason) {
        Some((_, field)) => error.at(field),
        None => error,
    })
}

#[cfg(test)]
mod tests;
