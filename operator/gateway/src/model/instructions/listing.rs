//! The listing of a request and the tools for what is listed.

use std::sync::Arc;

use serde_json::json;
use skillet_api::gateway::OfferPolicy;
use skillet_instructions::listing::{Listed, Listing, render_for, summarize};
use skillet_llm::{ToolDefinition, history::HistoryCall};
use skillet_offer::SkillFilter;

use super::{
    VisibleGuide, restrictions,
    scripts::{self, RUN_SCRIPT, RUN_SCRIPT_WITH_CONFIRMATION},
    triggered::{self, Texts},
    visible,
};
use crate::{
    catalog::Namespace,
    model::{
        offered_tools::{InstructionsAction, OfferedTool, OfferedTools, SearchScope},
        search_tools::free_name,
    },
};

/// Names of the tools, unless the client or another tool has them.
pub(super) const READ: &str = "skill";
pub(super) const READ_FILE: &str = "read_skill_file";

/// Bytes of a body beyond which its text needs more than one call.
const LONG_BODY: usize = 16 << 10;

/// A request, as far as its instructions are concerned.
#[derive(Clone, Copy)]
pub(in crate::model) struct InstructionsRequest<'a> {
    pub(in crate::model) filter: &'a SkillFilter,
    pub(in crate::model) client_tools: &'a [&'a str],
    /// Most tools beside the client's.
    pub(in crate::model) max_tools: Option<usize>,
    /// The texts of each turn of the user.
    pub(in crate::model) turns: &'a [Vec<&'a str>],
    /// Calls of earlier turns. Empty if no skill asks for them.
    pub(in crate::model) calls: &'a [HistoryCall<'a>],
    /// True if the gateway can ask a person to confirm calls.
    pub(in crate::model) can_confirm: bool,
}

/// Adds to an offer the listing, the tools that read it, and the texts that are always there or triggered.
pub(in crate::model) fn add_offer(
    policy: &OfferPolicy,
    namespaces: &[Arc<Namespace>],
    request: &InstructionsRequest<'_>,
    offered: &mut OfferedTools,
) {
    if namespaces.iter().all(|namespace| namespace.guides().is_empty()) {
        return;
    }
    let guides: Vec<VisibleGuide<'_>> = visible(namespaces, request.filter).collect();
    let listed: Vec<VisibleGuide<'_>> =
        guides.iter().copied().filter(|guide| guide.instructions.is_listed()).collect();
    let Texts { system, turns, results, mut pending, skills } =
        triggered::texts(namespaces, &guides, request);
    add_listing(policy, (&listed, &skills), request, offered);
    // The listing stands before the texts.
    pending.iter_mut().for_each(|pending| pending.place.move_system(offered.texts.system.len()));
    offered.texts.pending = pending;
    offered.texts.system.extend(system);
    offered.texts.turns = turns;
    offered.texts.results = results;
    offered.restrictions = restrictions::restrictions(&guides, &skills, request, &offered.targets);
    if !offered.targets.is_empty() {
        offered.scope = SearchScope {
            namespaces: namespaces.iter().map(|namespace| namespace.name().clone()).collect(),
            filter: request.filter.clone(),
        };
    }
}

fn add_listing(
    policy: &OfferPolicy,
    (listed, present): (&[VisibleGuide<'_>], &[VisibleGuide<'_>]),
    request: &InstructionsRequest<'_>,
    offered: &mut OfferedTools,
) {
    let taken: Vec<&str> =
        request.client_tools.iter().copied().chain(offered.targets.keys().map(|name| &**name)).collect();
    let read = free_name(READ, &taken);
    let Listing { text, dropped } = list(policy, &read, listed);
    let named: Vec<&VisibleGuide<'_>> =
        listed.iter().filter(|guide| !dropped.iter().any(|name| name == guide.name())).collect();
    // Files and scripts of a text that the model has got are for it, also if the skill is not listed.
    let is_unlisted = |guide: &&VisibleGuide<'_>| !named.iter().any(|it| it.name() == guide.name());
    let with_present: Vec<&VisibleGuide<'_>> =
        named.iter().copied().chain(present.iter().filter(is_unlisted)).collect();
    let mut tools = definitions(&read, &free_name(READ_FILE, &taken), &named, &with_present);
    for (name, action, can_run) in [
        (RUN_SCRIPT, InstructionsAction::RunScript, true),
        (RUN_SCRIPT_WITH_CONFIRMATION, InstructionsAction::RunScriptWithConfirmation, request.can_confirm),
    ] {
        if can_run {
            let tool = scripts::definition(&free_name(name, &taken), &with_present, action);
            tools.extend(tool.map(|tool| (tool, action)));
        }
    }
    let room = request.max_tools.map(|most| most.saturating_sub(offered.tools.len()));
    if room.is_some_and(|room| room < tools.len()) {
        return;
    }
    for (tool, action) in tools.drain(..) {
        offered.targets.insert(tool.name.clone(), OfferedTool::Instructions { instructions: action });
        offered.tools.push(tool);
    }
    if !named.is_empty() {
        offered.texts.system.push(text);
    }
}

/// Renders the listing under the policy's token budget, which bounds the definitions of tools too.
pub(super) fn list(policy: &OfferPolicy, tool: &str, listed: &[VisibleGuide<'_>]) -> Listing {
    let summary = |guide: &VisibleGuide<'_>| {
        let description = Some(&*guide.version.spec.description).filter(|text| !text.trim().is_empty());
        summarize(description, &guide.instructions.body).text
    };
    let summaries: Vec<String> = listed.iter().map(summary).collect();
    let lines: Vec<Listed<'_>> = listed
        .iter()
        .zip(&summaries)
        .map(|(guide, description)| Listed { name: guide.name(), description })
        .collect();
    render_for(tool, &lines, usize::try_from(policy.token_budget).unwrap_or(usize::MAX))
}

pub(super) fn definitions(
    read: &Arc<str>,
    read_file: &Arc<str>,
    listed: &[&VisibleGuide<'_>],
    guides: &[&VisibleGuide<'_>],
) -> Vec<(ToolDefinition, InstructionsAction)> {
    let names = |guides: &[&VisibleGuide<'_>]| -> Vec<String> {
        guides.iter().map(|guide| guide.name().to_owned()).collect()
    };
    let parameters = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "enum": names(listed), "description": "The name of a listed skill." },
            "arguments": { "type": "string", "description": "Values for the instructions: words, or name=value." },
        },
        "required": ["name"],
    });
    let text = "Returns the instructions of a listed skill. Read them before you do the work that the skill describes.";
    let mut tools = Vec::new();
    if !listed.is_empty() {
        tools.push((definition(read, text, parameters), InstructionsAction::Read));
    }
    let has_files = |guide: &VisibleGuide<'_>| {
        !guide.instructions.files.is_empty() || guide.instructions.body.len() > LONG_BODY
    };
    let with_files: Vec<&VisibleGuide<'_>> =
        guides.iter().copied().filter(|guide| has_files(guide)).collect();
    if !with_files.is_empty() {
        let parameters = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "enum": names(&with_files), "description": "The name of the skill." },
                "path": { "type": "string", "description": "The path of one of the skill's files." },
                "offset": { "type": "integer", "description": "The byte to begin with, if an earlier result named one." },
            },
            "required": ["name", "path"],
        });
        let text = "Returns the text of a file that belongs to a skill.";
        tools.push((definition(read_file, text, parameters), InstructionsAction::ReadFile));
    }
    tools
}

fn definition(name: &Arc<str>, description: &str, parameters: serde_json::Value) -> ToolDefinition {
    ToolDefinition { name: name.clone(), description: description.into(), parameters: Arc::new(parameters) }
}
