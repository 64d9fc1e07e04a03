//! The four tools that management skills. They do what the caller may do itself, and name no owner.

mod schema;

use futures::TryStreamExt as _;
use rmcp::model::CallToolResult;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use skillet_api::{
    Reason,
    skill::{Invocation, Mode},
};
use skillet_core::rest::Search;
use tracing::warn;

pub(super) use self::schema::{ManagementTool, tools};
use super::{
    backend::{Backend, Runs, Switch},
    call::{self, CallContext, Wish},
    tool_result,
    tools::ToolList,
};
use crate::{
    auth::{AuthError, Caller, Verb, is_allowed},
    executions::{Execution, ExecutionError, Status},
    resolve::{self, ResolvedSkill},
    service::ServiceError,
};

/// Most skills that one answer lists.
const MAX_SKILLS: usize = 500;
/// Executions that one answer lists, unless asked otherwise, and at most.
const EXECUTIONS: usize = 20;
const MAX_EXECUTIONS: usize = 100;

/// By whom, and in which request.
pub(super) struct ManagementCall<'a> {
    pub(super) caller: &'a Caller,
    pub(super) session: Option<String>,
    pub(super) request: CallContext<'a>,
}

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

/// Calls a management tool. An error only where it could not be found out what the caller may do.
pub(super) async fn call<B: Backend>(
    backend: &B,
    tool: ManagementTool,
    arguments: Value,
    asked: ManagementCall<'_>,
) -> Result<CallToolResult, AuthError> {
    match tool {
        ManagementTool::List => match read(arguments) {
            Ok(arguments) => list(backend, asked.caller, &arguments).await,
            Err(unreadable) => Ok(*unreadable),
        },
        ManagementTool::Enable => match read(arguments) {
            Ok(arguments) => enable(backend, asked.caller, &arguments).await,
            Err(unreadable) => Ok(*unreadable),
        },
        ManagementTool::Execute => match read(arguments) {
            Ok(arguments) => execute(backend, arguments, asked).await,
            Err(unreadable) => Ok(*unreadable),
        },
        ManagementTool::Executions => match read(arguments) {
            Ok(arguments) => executions(backend, asked.caller, &arguments).await,
            Err(unreadable) => Ok(*unreadable),
        },
    }
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, Box<CallToolResult>> {
    serde_json::from_value(arguments)
        .map_err(|error| Box::new(tool_result::failed(Reason::InputInvalid.as_str(), &error.to_string())))
}

async fn list<B: Backend>(
    backend: &B,
    caller: &Caller,
    wanted: &ListArguments,
) -> Result<CallToolResult, AuthError> {
    let catalogue = ToolList::of(backend, caller).await?;
    let search = Search::new(wanted.name.as_deref().unwrap_or_default());
    let namespaces = resolve::allowed_namespaces(backend, caller, &[Verb::Get]).await?;
    let mut found = resolve::list(backend, &namespaces);
    found.retain(|seen| {
        seen.shadowed_by.is_none()
            && search.is_in(seen.name())
            && wanted.enabled.is_none_or(|wanted| seen.known.skill.spec.enabled == wanted)
    });
    found.sort_by(|a, b| a.name().cmp(b.name()));
    let skills: Vec<Value> = found.iter().take(MAX_SKILLS).map(|seen| shown(seen, &catalogue)).collect();
    Ok(tool_result::done(json!({ "skills": skills, "total": found.len() })))
}

fn shown(seen: &ResolvedSkill, catalogue: &ToolList) -> Value {
    let spec = &seen.known.skill.spec;
    let version = seen.known.newest().map(|version| &version.spec);
    json!({
        "name": **seen.name(),
        "namespace": *seen.namespace,
        "description": **version.map_or(&spec.description, |version| &version.description),
        "version": version.map(|version| &*version.version),
        "enabled": spec.enabled,
        "mode": spec.mode,
        "invocation": spec.invocation,
        "tags": *spec.tags,
        "tool": catalogue.name_of(seen).map(|name| &**name),
    })
}

async fn enable<B: Backend>(
    backend: &B,
    caller: &Caller,
    wanted: &EnableArguments,
) -> Result<CallToolResult, AuthError> {
    let EnableArguments { name, enabled, mode } = wanted;
    let switch = Switch { enabled: *enabled, mode: *mode };
    if switch == (Switch { enabled: None, mode: None }) {
        return Ok(tool_result::failed(Reason::InputInvalid.as_str(), "give enabled, mode or both"));
    }
    let Some(seen) = resolve::resolve(backend, caller, name, None).await? else { return Ok(unknown(name)) };
    if let Some(forbidden) = forbidden(backend, caller, Verb::Patch, &seen).await? {
        return Ok(forbidden);
    }
    Ok(match backend.switch(&seen.known.skill, switch).await {
        Ok(skill) => tool_result::done(json!({
            "name": name,
            "namespace": *seen.namespace,
            "enabled": skill.spec.enabled,
            "mode": skill.spec.mode,
        })),
        Err(error) => failed(&error),
    })
}

async fn execute<B: Backend>(
    backend: &B,
    wanted: ExecuteArguments,
    asked: ManagementCall<'_>,
) -> Result<CallToolResult, AuthError> {
    let ManagementCall { caller, session, request } = asked;
    let Some(seen) = resolve::resolve(backend, caller, &wanted.skill, None).await? else {
        return Ok(unknown(&wanted.skill));
    };
    if let Some(forbidden) = forbidden(backend, caller, Verb::Execute, &seen).await? {
        return Ok(forbidden);
    }
    match seen.known.skill.spec.invocation {
        Invocation::Auto | Invocation::Hybrid => {}
        // Who calls a tool here is a model as a rule, and nobody can tell when it is not.
        Invocation::Manual => {
            return Ok(tool_result::failed(
                "ManualOnly",
                "the skill is run by people only, with kubectl or the REST API",
            ));
        }
    }
    let wish = Wish {
        seen,
        version: wanted.version,
        input: wanted.input.unwrap_or_else(|| json!({})),
        session: wanted.session_id.or(session),
        ignore_version: false,
    };
    Ok(call::run(backend, caller, wish, request).await)
}

async fn executions<B: Backend>(
    backend: &B,
    caller: &Caller,
    wanted: &ExecutionsArguments,
) -> Result<CallToolResult, AuthError> {
    let namespaces = resolve::allowed_namespaces(backend, caller, &[Verb::Execute]).await?;
    let limit = wanted.limit.unwrap_or(EXECUTIONS).min(MAX_EXECUTIONS);
    let Runs { total, newest } = match backend.executions(caller, &namespaces, limit).await {
        Ok(runs) => runs,
        Err(error) => return Ok(failed(&error)),
    };
    let executions: Result<Vec<Value>, ExecutionError> =
        newest.map_ok(|execution| run(&execution)).try_collect().await;
    Ok(match executions {
        Ok(executions) => tool_result::done(json!({ "executions": executions, "total": total })),
        Err(error) => failed(&error.into()),
    })
}

fn run(execution: &Execution) -> Value {
    let Execution { metadata, spec, status } = execution;
    let unknown = Status::default();
    let status = status.as_ref().unwrap_or(&unknown);
    json!({
        "name": metadata.name,
        "namespace": metadata.namespace,
        "skill": spec.skill,
        "version": status.resolved_version,
        "sessionId": spec.session_id,
        "phase": status.phase,
        "reason": status.reason,
        "message": status.message,
        "createdAt": metadata.creation_timestamp,
        "finishedAt": status.finished_at,
        "durationMs": status.duration_ms,
    })
}

/// The answer where the caller may not do this with the skill.
async fn forbidden<B: Backend>(
    backend: &B,
    caller: &Caller,
    verb: Verb,
    seen: &ResolvedSkill,
) -> Result<Option<CallToolResult>, AuthError> {
    let checked = backend.check(caller, verb, &seen.namespace, Some(seen.name())).await;
    let message = checked.as_ref().err().map(ToString::to_string);
    let is_allowed = is_allowed(checked)?;
    Ok(message.filter(|_| !is_allowed).map(|message| tool_result::failed("Forbidden", &message)))
}

fn unknown(name: &str) -> CallToolResult {
    tool_result::failed(
        Reason::SkillNotFound.as_str(),
        &format!("there is no skill {name} that the caller may see"),
    )
}

fn failed(error: &ServiceError) -> CallToolResult {
    warn!(error = ?error, "Management tool failed");
    let (reason, message) = match error {
        ServiceError::Auth(_) => ("Forbidden", error.to_string()),
        ServiceError::Execution(error) => (error.reason(), error.to_string()),
        ServiceError::Update { source, .. } => match &**source {
            kube::Error::Api(status) => (refusal(status.code), format!("{error}: {}", status.message)),
            _ => (Reason::ApiError.as_str(), error.to_string()),
        },
        ServiceError::UnknownNamespace(_)
        | ServiceError::SkillNotFound { .. }
        | ServiceError::SkillNotFoundIn { .. }
        | ServiceError::ExecutionNotFound(_) => (Reason::SkillNotFound.as_str(), error.to_string()),
    };
    tool_result::failed(reason, &message)
}

/// Describes the API server's refusal of a change.
fn refusal(code: u16) -> &'static str {
    match code {
        403 => "Forbidden",
        404 => Reason::SkillNotFound.as_str(),
        409 => "Conflict",
        400 | 422 => Reason::InputInvalid.as_str(),
        _ => Reason::ApiError.as_str(),
    }
}
