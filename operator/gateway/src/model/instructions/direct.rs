//! The tools for instructions without a model request around them, as clients of MCP have them. Nothing is triggered there, and
//! the listing stands in the description of the tool that reads.

use std::sync::Arc;

use serde_json::Value;
use skillet_api::{execution::BundleScript, gateway::OfferPolicy};
use skillet_instructions::listing::Listing;
use skillet_llm::ToolDefinition;
use skillet_offer::SkillFilter;

pub(crate) use super::calls::{read_body, read_file};
use super::{
    GuideScope, ReadAction, ReadRequest, VisibleGuide,
    calls::Refused,
    listing::{READ_FILE, definitions, list},
    read_bundle_file, read_instructions, script_of,
    scripts::{self, RUN_SCRIPT, RUN_SCRIPT_WITH_CONFIRMATION},
    visible,
};
use crate::{
    catalog::Namespace,
    commands::BodyText,
    model::offered_tools::{InstructionsAction, Target},
};

/// The reading tool. A tool's name with a `_` is no name of a Skill, so every Skill keeps its own.
const READ: &str = "read_skill";

static ALL: SkillFilter = SkillFilter::All;

/// A call of one of the tools.
#[derive(Debug)]
pub(crate) enum DirectCall {
    /// The result is complete.
    Text(Value),
    /// Commands of the body are to run first.
    Body {
        body: BodyText,
    },
    File {
        target: Target,
        path: String,
        offset: usize,
    },
    Script {
        target: Target,
        script: BundleScript,
    },
}

/// The name of each tool, whether or not there is a skill for it.
pub(crate) const NAMES: [(&str, InstructionsAction); 4] = [
    (READ, InstructionsAction::Read),
    (READ_FILE, InstructionsAction::ReadFile),
    (RUN_SCRIPT, InstructionsAction::RunScript),
    (RUN_SCRIPT_WITH_CONFIRMATION, InstructionsAction::RunScriptWithConfirmation),
];

/// Returns the tools for the listed skills of these namespaces, the nearest first.
pub(crate) fn tool_definitions(
    policy: &OfferPolicy,
    namespaces: &[Arc<Namespace>],
) -> Vec<(ToolDefinition, InstructionsAction)> {
    let listed: Vec<VisibleGuide<'_>> =
        visible(namespaces, &ALL).filter(|guide| guide.instructions.is_listed()).collect();
    let Listing { text, dropped } = list(policy, READ, &listed);
    let named: Vec<&VisibleGuide<'_>> =
        listed.iter().filter(|guide| !dropped.iter().any(|name| name == guide.name())).collect();
    let mut tools = definitions(&READ.into(), &READ_FILE.into(), &named, &named);
    if let Some((tool, InstructionsAction::Read)) = tools.first_mut() {
        tool.description = format!("{}\n\n{text}", tool.description).into();
    }
    let running = NAMES.into_iter().filter(|(_, action)| action.runs_script());
    let scripts = running
        .filter_map(|(name, action)| Some((scripts::definition(&name.into(), &named, action)?, action)));
    tools.extend(scripts);
    tools
}

/// Reads a call. The result of a text is limited to these bytes.
pub(crate) fn read_call(
    action: InstructionsAction,
    arguments: &Value,
    namespaces: &[Arc<Namespace>],
    max_bytes: usize,
) -> Result<DirectCall, Refused> {
    let scope = GuideScope { namespaces, filter: &ALL, present: &[] };
    match action {
        InstructionsAction::Read => Ok(reading(read_instructions(arguments, scope)?)),
        InstructionsAction::ReadFile => Ok(reading(read_bundle_file(arguments, scope, max_bytes)?)),
        InstructionsAction::RunScript | InstructionsAction::RunScriptWithConfirmation => {
            let (target, script) = script_of(arguments, scope)?;
            if target.confirm && action == InstructionsAction::RunScript {
                let message = format!(
                    "a person confirms scripts of this skill; call {RUN_SCRIPT_WITH_CONFIRMATION} instead"
                );
                return Err(("NotConfirmed", message));
            }
            Ok(DirectCall::Script { target, script })
        }
    }
}

fn reading(ReadRequest { target, action }: ReadRequest) -> DirectCall {
    match action {
        ReadAction::Text(text) => DirectCall::Text(text),
        ReadAction::Body(body) => DirectCall::Body { body },
        ReadAction::File { path, offset } => DirectCall::File { target, path, offset },
    }
}
