//! The four tools that manage skills. They act under the rights of the caller, and no argument names an owner.

use futures::TryStreamExt as _;
use rmcp::model::CallToolResult;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use skillet_api::{Reason, skill::Invocation};
use skillet_core::rest::Search;
use thiserror::Error;

use super::{
    call::{self, CallContext, SkillCall},
    management_tool::ManagementTool,
    tool_result,
    tools::ToolList,
};
use crate::{
    auth::{AuthError, Verb},
    executions::ExecutionError,
    resolve::ResolvedSkill,
    rest::{ExecutionView, Mode, SkillUpdate},
    service::ServiceError,
};

/// Most skills that one answer lists.
const MAX_SKILLS: usize = 500;
/// Executions that one answer lists, unless asked otherwise, and at most.
const EXECUTIONS: usize = 20;
const MAX_EXECUTIONS: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    name: Option<String>,
    enabled: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnableArguments {
    name: String,
    enabled: Option<bool>,
    mode: Option<Mode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExecuteArguments {
    skill: String,
    version: Option<String>,
    input: Option<Value>,
    session_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecutionsArguments {
    limit: Option<usize>,
}

/// The reason why a management tool did nothing.
#[derive(Debug, Error)]
enum ManagementError {
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Arguments(#[from] serde_json::Error),
    #[error("give enabled, mode or both")]
    EmptyUpdate,
    #[error("the skill is run by people only, with kubectl or the REST API")]
    ManualOnly,
}

impl From<AuthError> for ManagementError {
    fn from(error: AuthError) -> Self {
        Self::Service(error.into())
    }
}

impl From<ExecutionError> for ManagementError {
    fn from(error: ExecutionError) -> Self {
        Self::Service(error.into())
    }
}

/// Calls a management tool. Fails only if the cluster could not be asked about the caller's rights.
pub(super) async fn call(
    tool: ManagementTool,
    arguments: Value,
    session: Option<String>,
    call: CallContext<'_>,
) -> Result<CallToolResult, AuthError> {
    let result = match tool {
        ManagementTool::List => list(arguments, &call).await,
        ManagementTool::Enable => enable(arguments, &call).await,
        ManagementTool::Execute => execute(arguments, session, call).await,
        ManagementTool::Executions => executions(arguments, &call).await,
    };
    let error = match result {
        Ok(result) => return Ok(result),
        Err(error) => error,
    };
    let reason = match &error {
        ManagementError::Service(ServiceError::Auth(
            error @ (AuthError::Missing | AuthError::Unknown | AuthError::Unreachable(_)),
        )) => return Err(error.clone()),
        ManagementError::Service(error) => return Ok(tool_result::service_error(error)),
        ManagementError::Arguments(_) | ManagementError::EmptyUpdate => Reason::InputInvalid.as_str(),
        ManagementError::ManualOnly => "ManualOnly",
    };
    Ok(tool_result::failed(reason, &error.to_string()))
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, ManagementError> {
    Ok(serde_json::from_value(arguments)?)
}

async fn list(arguments: Value, call: &CallContext<'_>) -> Result<CallToolResult, ManagementError> {
    let ListArguments { name, enabled } = read(arguments)?;
    let tools = ToolList::of(call.service.lookup(call.caller)).await?;
    let search = Search::new(name.as_deref().unwrap_or_default());
    let mut skills = call.service.list(call.caller, None).await?;
    skills.retain(|skill| {
        skill.shadowed_by.is_none()
            && search.is_in(skill.name())
            && enabled.is_none_or(|enabled| skill.entry.skill.spec.enabled == enabled)
    });
    skills.sort_by(|a, b| a.name().cmp(b.name()));
    let views: Vec<Value> = skills.iter().take(MAX_SKILLS).map(|skill| skill_view(skill, &tools)).collect();
    Ok(tool_result::done(json!({ "skills": views, "total": skills.len() })))
}

fn skill_view(skill: &ResolvedSkill, tools: &ToolList) -> Value {
    let spec = &skill.entry.skill.spec;
    let version = skill.entry.current().map(|version| &version.spec);
    json!({
        "name": **skill.name(),
        "namespace": *skill.namespace,
        "description": **version.map_or(&spec.description, |version| &version.description),
        "version": version.map(|version| &*version.version),
        "enabled": spec.enabled,
        "mode": spec.mode,
        "invocation": spec.invocation,
        "tags": *spec.tags,
        "tool": tools.name_of(skill).map(|name| &**name),
    })
}

async fn enable(arguments: Value, call: &CallContext<'_>) -> Result<CallToolResult, ManagementError> {
    let EnableArguments { name, enabled, mode } = read(arguments)?;
    let update = SkillUpdate { enabled, mode };
    if update.is_empty() {
        return Err(ManagementError::EmptyUpdate);
    }
    let skill = call.service.update(call.caller, &name, None, &update).await?;
    let spec = &skill.entry.skill.spec;
    Ok(tool_result::done(json!({
        "name": name,
        "namespace": *skill.namespace,
        "enabled": spec.enabled,
        "mode": spec.mode,
    })))
}

async fn execute(
    arguments: Value,
    session: Option<String>,
    call: CallContext<'_>,
) -> Result<CallToolResult, ManagementError> {
    let ExecuteArguments { skill: name, version, input, session_id } = read(arguments)?;
    let skill = call.service.get(call.caller, &name, None).await?;
    call.service.auth.authorize(call.caller, Verb::Execute, &skill.namespace, Some(&name)).await?;
    match skill.entry.skill.spec.invocation {
        Invocation::Auto | Invocation::Hybrid => {}
        // As a rule a model calls a tool here, and nothing shows when it is not a model.
        Invocation::Manual => return Err(ManagementError::ManualOnly),
    }
    let input = input.unwrap_or_else(|| json!({}));
    let session = session_id.or(session);
    Ok(call::run(SkillCall { skill, version, input, script: None, session, ignore_version: false }, call)
        .await)
}

/// Lists runs without their inputs and outputs, which a model has no use for by the hundred.
async fn executions(arguments: Value, call: &CallContext<'_>) -> Result<CallToolResult, ManagementError> {
    let ExecutionsArguments { limit } = read(arguments)?;
    let limit = limit.unwrap_or(EXECUTIONS).min(MAX_EXECUTIONS);
    let entries = call.service.list_executions(call.caller, None, None, Some(&[])).await?;
    let total = entries.len();
    let runs = call.service.executions.read(entries.into_iter().take(limit));
    let views = runs.map_ok(|run| ExecutionView::from(&*run).without_content());
    let views: Vec<ExecutionView> = views.try_collect().await?;
    Ok(tool_result::done(json!({ "executions": views, "total": total })))
}
