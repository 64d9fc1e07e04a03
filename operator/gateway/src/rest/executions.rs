//! Runs of the caller: those in its own namespace, and those it has made in the namespaces of the platform.

use std::sync::Arc;

use axum::{Json, extract::State};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{Api, ResourceExt as _, api::ListParams};
use serde::Serialize;
use skillet_api::{SkillExecution, names};
use utoipa::ToSchema;

use crate::{
    error::ApiError,
    executor::Executor,
    identity::{Caller, Verb},
    rest::{
        Rest,
        execution_view::{ExecutionView, Status},
        look_up,
        openapi::{Missing, Refused},
        page::Page,
        params::{Name, Params, Who},
    },
};

/// Entries of one answer of the API server.
const CHUNK: u32 = 500;
/// Most entries that are read of one namespace; retention keeps far fewer.
const MAX_READ: usize = 20_000;
/// Runs of a page that are read side by side.
const READS: usize = 16;

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
    responses((status = 200, body = ExecutionPage), Refused)
)]
pub(crate) async fn list(
    Who(caller): Who,
    State(rest): State<Rest>,
    mut params: Params,
) -> Result<Json<ExecutionPage>, ApiError> {
    let page = Page::take(&mut params)?;
    let skill = params.take("skill")?;
    let status = params.take_word("status", &Status::WORDS)?;
    let namespace = params.take("namespace")?;
    params.finish()?;
    let among = look_up::namespaces(&rest, &caller, namespace.as_deref())?;
    // Who may run skills there may see what came of it; with rights to some skills only, one has to be named.
    let allowed = look_up::allowed(&rest, &caller, Verb::Execute, among, skill.as_deref()).await?;
    let mut entries = Vec::new();
    for namespace in allowed {
        entries.extend(entries_of(&rest, &caller, &namespace, skill.as_deref(), status).await?);
    }
    // Times are whole seconds: the name decides between equals, so that pages do not overlap.
    entries.sort_unstable_by(|a, b| b.created.cmp(&a.created).then_with(|| a.name.cmp(&b.name)));
    let total = entries.len();
    let reads = stream::iter(page.of(entries)).map(|entry| read(&rest.executor, entry));
    let data = reads.buffered(READS).try_filter_map(async |view| Ok(view)).try_collect().await?;
    let (number, limit) = (page.number, page.limit);
    Ok(Json(ExecutionPage { data, total, page: number, limit, total_pages: page.count(total) }))
}

/// What is known of a run before it is read: its inputs and outputs stay where they are.
struct Entry {
    namespace: Arc<str>,
    name: String,
    created: Option<jiff::Timestamp>,
}

async fn entries_of(
    rest: &Rest,
    caller: &Caller,
    namespace: &Arc<str>,
    skill: Option<&str>,
    status: Option<Status>,
) -> Result<Vec<Entry>, ApiError> {
    // The API server reads commas and signs in a selector: a text that is no name is no skill's.
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if skill.is_some_and(|name| !is_name(name)) {
        return Ok(Vec::new());
    }
    let api: Api<SkillExecution> = Api::namespaced(rest.client.clone(), namespace);
    let fields: Vec<String> = (skill.map(|name| format!("spec.skill={name}")).into_iter())
        .chain(status.map(|status| status.field_selector().to_owned()))
        .collect();
    let mut params = ListParams::default().limit(CHUNK).fields(&fields.join(","));
    if **namespace != *caller.namespace {
        params = params.labels(&format!("{}={}", names::LABEL_CALLER_NAMESPACE, caller.namespace));
    }
    let mut entries = Vec::new();
    loop {
        let chunk = api.list_metadata(&params).await.map_err(|_| {
            ApiError::unavailable(format!("could not list the SkillExecutions of namespace {namespace}"))
        })?;
        params.continue_token = chunk.metadata.continue_.clone().filter(|token| !token.is_empty());
        entries.extend(chunk.items.iter().map(|meta| Entry {
            namespace: namespace.clone(),
            name: meta.name_any(),
            created: meta.creation_timestamp().map(|time| time.0),
        }));
        if params.continue_token.is_none() || entries.len() >= MAX_READ {
            return Ok(entries);
        }
    }
}

/// None where it was deleted in between.
async fn read(executor: &Executor, entry: Entry) -> Result<Option<ExecutionView>, ApiError> {
    let found = executor.find(&entry.namespace, &entry.name).await?;
    Ok(found.map(|execution| ExecutionView::from(&*execution)))
}

/// One run of the caller.
#[utoipa::path(
    get, path = "/api/skills/executions/{id}", tag = "executions", operation_id = "getExecution",
    params(
        ("id" = String, Path, description = "Name of the SkillExecution."),
        ("namespace" = Option<String>, Query, description = "One of the namespaces looked up for the caller."),
    ),
    responses((status = 200, body = ExecutionView), Refused, Missing)
)]
pub(crate) async fn one(
    Who(caller): Who,
    State(rest): State<Rest>,
    Name(id): Name,
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
) -> Result<Arc<SkillExecution>, ApiError> {
    let namespace = params.take("namespace")?;
    params.finish()?;
    for namespace in look_up::namespaces(rest, caller, namespace.as_deref())? {
        let Some(execution) = rest.executor.find(&namespace, id).await? else { continue };
        if !is_of(caller, &namespace, &execution) {
            continue;
        }
        let right = vec![namespace];
        match look_up::allowed(rest, caller, Verb::Execute, right, Some(&execution.spec.skill)).await {
            Ok(_) => return Ok(execution),
            Err(error) if error.status == http::StatusCode::FORBIDDEN => {}
            Err(error) => return Err(error),
        }
    }
    Err(ApiError::not_found(format!("there is no run {id} of this caller")))
}

fn is_of(caller: &Caller, namespace: &str, execution: &SkillExecution) -> bool {
    let made_for = execution.labels().get(names::LABEL_CALLER_NAMESPACE);
    *namespace == *caller.namespace || made_for.is_some_and(|made_for| *made_for == *caller.namespace)
}

#[cfg(test)]
#[path = "executions_tests.rs"]
mod tests;
