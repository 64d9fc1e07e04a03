//! Runs of the caller: those in its own namespace, and those it has made in the namespaces of the platform.

use std::sync::Arc;

use axum::{Json, extract::State};
use futures::TryStreamExt as _;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    error::ApiError,
    executions::Execution,
    rest::{
        execution_view::{ExecutionView, Status},
        openapi::{AuthErrors, NotFoundErrors},
        pagination,
        params::{AuthenticatedCaller, ObjectName, Params},
    },
    service::SkillService,
};

/// A page of runs, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionPage {
    data: Vec<ExecutionView>,
    total: usize,
    page: usize,
    limit: usize,
    total_pages: usize,
}

/// List the caller's runs, newest first.
#[utoipa::path(
    get, path = "/api/skills/executions", tag = "executions", operation_id = "listExecutions",
    params(
        ("skill" = Option<String>, Query, description = "Only runs of this skill."),
        ("status" = Option<Status>, Query, description = "Only runs that stand so."),
        ("namespace" = Option<String>, Query, description = "Only this one of the namespaces looked up for the caller."),
        ("page" = Option<u32>, Query, minimum = 1, description = "Default 1."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "Items on a page, default 50."),
    ),
    responses((status = 200, body = ExecutionPage), AuthErrors)
)]
pub(crate) async fn list(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    mut params: Params,
) -> Result<Json<ExecutionPage>, ApiError> {
    let page = pagination::take(&mut params)?;
    let skill = params.take("skill")?;
    let status = params.take_word("status", &Status::WORDS)?;
    let namespace = params.take("namespace")?;
    params.finish()?;
    let fields = selectors(skill.as_deref(), status);
    let entries =
        service.list_executions(&caller, namespace.as_deref(), skill.as_deref(), fields.as_deref()).await?;
    let total = entries.len();
    let runs = service.executions.read(page.of(entries));
    let mut left = pagination::CONTENT;
    let data = runs.map_ok(|run| ExecutionView::from(&*run).within(&mut left)).try_collect().await?;
    let (number, limit) = (page.number, page.limit);
    Ok(Json(ExecutionPage { data, total, page: number, limit, total_pages: page.total_pages(total) }))
}

/// Returns the field selectors of a list, or none for a text that is no skill's name: commas and signs have a meaning in
/// a selector.
fn selectors(skill: Option<&str>, status: Option<Status>) -> Option<Vec<String>> {
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if skill.is_some_and(|name| !is_name(name)) {
        return None;
    }
    let skill = skill.map(|name| format!("spec.skill={name}"));
    Some(skill.into_iter().chain(status.map(|status| status.field_selector().to_owned())).collect())
}

/// One run of the caller.
#[utoipa::path(
    get, path = "/api/skills/executions/{id}", tag = "executions", operation_id = "getExecution",
    params(
        ("id" = String, Path, description = "Name of the SkillExecution."),
        ("namespace" = Option<String>, Query, description = "One of the namespaces looked up for the caller."),
    ),
    responses((status = 200, body = ExecutionView), AuthErrors, NotFoundErrors)
)]
pub(crate) async fn get(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    ObjectName(id): ObjectName,
    params: Params,
) -> Result<Json<ExecutionView>, ApiError> {
    let execution = find(&service, &caller, &id, params).await?;
    Ok(Json(ExecutionView::from(&*execution)))
}

/// Returns the caller's run of this name. The only query parameter is `namespace`.
pub(crate) async fn find(
    service: &SkillService,
    caller: &Caller,
    id: &str,
    mut params: Params,
) -> Result<Arc<Execution>, ApiError> {
    let namespace = params.take("namespace")?;
    params.finish()?;
    Ok(service.execution(caller, id, namespace.as_deref()).await?)
}

#[cfg(test)]
mod tests;
