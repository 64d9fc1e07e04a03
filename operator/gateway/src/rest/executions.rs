//! Runs of the caller: those in its own namespace, and those it has made in the namespaces of the platform.

use axum::{Json, extract::State};
use futures::TryStreamExt as _;
use serde::Serialize;
use skillet_api::Phase;
use utoipa::ToSchema;

use crate::{
    error::ApiError,
    rest::{
        execution_view::ExecutionView,
        operation::{AuthErrors, ExecutionParams, ListParams, NotFoundErrors, PhaseParams},
        pagination,
        params::{AuthenticatedCaller, ObjectName, Params},
    },
    service::SkillService,
};

/// A page of runs, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionPage {
    /// Those of this page.
    data: Vec<ExecutionView>,
    /// Number of all, on every page.
    total: usize,
    /// Number of this page; the first is 1.
    page: usize,
    /// Most on one page.
    limit: usize,
    /// Number of pages.
    total_pages: usize,
}

/// List the caller's runs, newest first.
#[utoipa::path(
    get, path = "/api/skills/executions", tag = "executions", operation_id = "listExecutions",
    params(
        ("skill" = Option<String>, Query, description = "Only runs of this skill."),
        PhaseParams,
        ListParams,
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
    let phase: Option<Phase> = params.take_word("phase")?;
    let namespace = params.take_namespace()?;
    let fields = selectors(skill.as_deref(), phase);
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
fn selectors(skill: Option<&str>, phase: Option<Phase>) -> Option<Vec<String>> {
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if skill.is_some_and(|name| !is_name(name)) {
        return None;
    }
    let skill = skill.map(|name| format!("spec.skill={name}"));
    Some(skill.into_iter().chain(phase.map(phase_selector)).collect())
}

/// Returns the field selector of a phase. Pending is also a run without a status, so its selector excludes all others.
fn phase_selector(phase: Phase) -> String {
    if phase != Phase::Pending {
        return format!("status.phase={phase:?}");
    }
    let others = Phase::ALL.into_iter().filter(|other| *other != phase);
    others.map(|other| format!("status.phase!={other:?}")).collect::<Vec<_>>().join(",")
}

/// One run of the caller.
#[utoipa::path(
    get, path = "/api/skills/executions/{execution}", tag = "executions", operation_id = "getExecution",
    params(ExecutionParams),
    responses((status = 200, body = ExecutionView), AuthErrors, NotFoundErrors)
)]
pub(crate) async fn get(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    ObjectName(name): ObjectName,
    params: Params,
) -> Result<Json<ExecutionView>, ApiError> {
    let execution = service.execution(&caller, &name, params.take_namespace()?.as_deref()).await?;
    Ok(Json(ExecutionView::from(&*execution)))
}

#[cfg(test)]
mod tests;
