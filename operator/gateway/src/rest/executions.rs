//! Runs of the caller: those in its own namespace, and those it has made in the namespaces of the platform.

use std::sync::Arc;

use axum::{Json, extract::State};
use futures::TryStreamExt as _;
use serde::Serialize;
use skillet_api::names;
use utoipa::ToSchema;

use crate::{
    auth::{Caller, Verb},
    error::ApiError,
    executions::Execution,
    rest::{
        Rest,
        execution_view::{ExecutionView, Status},
        openapi::{AuthErrors, NotFoundErrors},
        pagination,
        params::{AuthenticatedCaller, ObjectName, Params},
        resolve,
    },
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
    State(rest): State<Rest>,
    mut params: Params,
) -> Result<Json<ExecutionPage>, ApiError> {
    let page = pagination::take(&mut params)?;
    let skill = params.take("skill")?;
    let status = params.take_word("status", &Status::WORDS)?;
    let namespace = params.take("namespace")?;
    params.finish()?;
    let among = resolve::namespaces(&rest, &caller, namespace.as_deref())?;
    // Who may run skills there may see what came of it; with rights to some skills only, one has to be named.
    let allowed = resolve::allowed(&rest, &caller, Verb::Execute, among, skill.as_deref()).await?;
    let entries = match selectors(skill.as_deref(), status) {
        Some(fields) => rest.executor.list(&caller, &allowed, &fields).await?,
        None => Vec::new(),
    };
    let total = entries.len();
    let runs = rest.executor.read(page.of(entries));
    let mut left = pagination::CONTENT;
    let data = runs.map_ok(|run| ExecutionView::from(&*run).within(&mut left)).try_collect().await?;
    let (number, limit) = (page.number, page.limit);
    Ok(Json(ExecutionPage { data, total, page: number, limit, total_pages: page.total_pages(total) }))
}

/// What the API server is asked for. None for a text that is no skill's name: it reads commas and signs in a selector.
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
    State(rest): State<Rest>,
    ObjectName(id): ObjectName,
    params: Params,
) -> Result<Json<ExecutionView>, ApiError> {
    let execution = find(&rest, &caller, &id, params).await?;
    Ok(Json(ExecutionView::from(&*execution)))
}

/// The caller's run of that name, nearest namespace first. What is not the caller's is not there.
pub(crate) async fn find(
    rest: &Rest,
    caller: &Caller,
    id: &str,
    mut params: Params,
) -> Result<Arc<Execution>, ApiError> {
    let namespace = params.take("namespace")?;
    params.finish()?;
    for namespace in resolve::namespaces(rest, caller, namespace.as_deref())? {
        let Some(execution) = rest.executor.find(&namespace, id).await? else { continue };
        if !is_of(caller, &namespace, &execution) {
            continue;
        }
        let right = vec![namespace];
        match resolve::allowed(rest, caller, Verb::Execute, right, Some(&execution.spec.skill)).await {
            Ok(_) => return Ok(execution),
            Err(error) if error.status == http::StatusCode::FORBIDDEN => {}
            Err(error) => return Err(error),
        }
    }
    Err(ApiError::not_found(format!("there is no run {id} of this caller")))
}

fn is_of(caller: &Caller, namespace: &str, execution: &Execution) -> bool {
    let made_for = execution.metadata.labels.get(names::LABEL_CALLER_NAMESPACE);
    *namespace == *caller.namespace || made_for.is_some_and(|made_for| *made_for == *caller.namespace)
}

#[cfg(test)]
mod tests;
