//! The tools that read instructions and files of skills, and run their scripts.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use rmcp::model::{CallToolResult, Tool, ToolAnnotations};
use serde_json::Value;
use skillet_api::execution::BundleScript;
use skillet_llm::ToolDefinition;
use tracing::warn;

use super::{
    call::{self, CallContext, READ_BYTES, SkillCall},
    tool_result, tools,
};
use crate::{
    auth::AuthError,
    bundles::BundleReader,
    catalog::{Namespace, SkillCatalog},
    commands::{CommandBudget, CommandCaller},
    model::{
        InstructionsAction, Target,
        instruction_tools::{DirectCall, NAMES, read_body, read_call, read_file, tool_definitions},
    },
    resolve::{self, Lookup},
};

/// Names that no tool of a skill has.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().map(|(name, _)| name)
}

pub(super) fn of(name: &str) -> Option<InstructionsAction> {
    NAMES.into_iter().find(|(own, _)| *own == name).map(|(_, action)| action)
}

/// The tools that there are skills for.
pub(super) async fn list(lookup: Lookup<'_>) -> Result<Vec<Tool>, AuthError> {
    let namespaces = tools::namespaces(lookup).await?;
    let definitions = definitions(lookup.catalog, &namespaces);
    Ok(definitions.into_iter().map(|(definition, action)| tool(definition, action)).collect())
}

/// Changes with everything that these tools show.
pub(super) fn fingerprint(catalog: &SkillCatalog, namespaces: &[Arc<str>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (ToolDefinition { name, description, parameters }, _) in definitions(catalog, namespaces) {
        (name, description, parameters.to_string()).hash(&mut hasher);
    }
    hasher.finish()
}

fn definitions(catalog: &SkillCatalog, namespaces: &[Arc<str>]) -> Vec<(ToolDefinition, InstructionsAction)> {
    tool_definitions(&catalog.policy().gateway.offer, &snapshots(catalog, namespaces))
}

fn snapshots(catalog: &SkillCatalog, namespaces: &[Arc<str>]) -> Vec<Arc<Namespace>> {
    let found = namespaces.iter().filter_map(|name| catalog.namespace(name));
    found.map(|namespace| Arc::clone(&namespace)).collect()
}

fn tool(definition: ToolDefinition, action: InstructionsAction) -> Tool {
    let ToolDefinition { name, description, parameters } = definition;
    let asks = action == InstructionsAction::RunScriptWithConfirmation;
    let schema = parameters.as_object().cloned().unwrap_or_default();
    let hints = ToolAnnotations::new().read_only(!asks).destructive(asks).open_world(false);
    Tool::new(name.to_string(), description.to_string(), Arc::new(schema)).with_annotations(hints)
}

/// Calls one of the tools. Fails only if the cluster could not be asked about the caller's rights.
pub(super) async fn call(
    action: InstructionsAction,
    arguments: Value,
    session: Option<String>,
    bundles: &BundleReader,
    call: CallContext<'_>,
) -> Result<CallToolResult, AuthError> {
    let catalog = &call.service.catalog;
    let namespaces = tools::namespaces(call.service.lookup(call.caller)).await?;
    let reserved = call::reserve(call.service, call.caller, call.memory.as_ref(), READ_BYTES).await;
    let _reservation = match reserved {
        Ok(reservation) => reservation,
        Err(error) => return Ok(tool_result::failed(&error.code, &error.message)),
    };
    let most = catalog.policy().gateway.conversation.result_bytes;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    Ok(match read_call(action, &arguments, &snapshots(catalog, &namespaces), most) {
        Err((reason, message)) => tool_result::failed(reason, &message),
        Ok(DirectCall::Text(text)) => tool_result::done(text),
        Ok(DirectCall::Body { body }) => {
            let request_id = call::request_id(call.request);
            let (caller, request_id) = (call.caller, request_id.as_deref());
            let budget = CommandBudget::default();
            let caller = CommandCaller { caller, request_id, deadline: None, budget: &budget };
            let ends = call.service.commands.run(caller, &body).await;
            match read_body(&body, &ends, most) {
                Ok(text) => tool_result::done(text),
                Err((reason, message)) => tool_result::failed(reason, &message),
            }
        }
        Ok(DirectCall::File { target, path, offset }) => read(bundles, &target, &path, offset, most).await,
        Ok(DirectCall::Script { target, script }) => run(&namespaces, target, script, session, call).await,
    })
}

async fn read(
    bundles: &BundleReader,
    target: &Target,
    path: &str,
    offset: usize,
    most: usize,
) -> CallToolResult {
    let Target { namespace, skill, version, confirm: _ } = target;
    match bundles.file(namespace, skill, version, path).await {
        Ok(bytes) => match read_file(path, bytes, offset, most) {
            Ok(text) => tool_result::done(text),
            Err((reason, message)) => tool_result::failed(reason, &message),
        },
        Err(error) => {
            warn!(%error, namespace, skill, "File of a skill could not be read");
            tool_result::failed("ApiError", "the file could not be read now; call the tool again")
        }
    }
}

async fn run(
    namespaces: &[Arc<str>],
    target: Target,
    script: BundleScript,
    session: Option<String>,
    call: CallContext<'_>,
) -> CallToolResult {
    let found = resolve::resolve_in(&call.service.catalog, namespaces, &target.skill);
    let Some(skill) = found.filter(|skill| *skill.namespace == *target.namespace) else {
        return tool_result::failed("SkillNotFound", "the skill was changed meanwhile; call the tool again");
    };
    let (version, script) = (Some(target.version), Some(script));
    let skill_call = SkillCall { skill, version, input: Value::Null, script, session, ignore_version: true };
    call::run(skill_call, call).await
}
