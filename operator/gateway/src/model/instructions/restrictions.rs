//! Skills in a conversation that restrict tools, and the calls that they do not allow.
//!
//! A skill restricts while its text is in the conversation: it is always there, a turn of the user has it, or the model has
//! read it. The gateway can refuse the calls that it answers itself, and tells of the client's.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use skillet_instructions::tool_rules::{ToolRules, ToolUse, is_shell};
use skillet_llm::history::HistoryCall;
use skillet_offer::SkillFilter;

use super::{VisibleGuide, find, listing::InstructionsRequest, scripts::RUN_SCRIPT, triggered, visible};
use crate::{
    catalog::Namespace,
    mcp_servers::SkillServer,
    model::offered_tools::{InstructionsAction, OfferedTool, Target},
};

/// The skills whose text is in a conversation, and the tools that they allow.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct Restrictions {
    /// Names of those whose text stands in the request.
    pub(in crate::model) present: Vec<Arc<str>>,
    pub(in crate::model) skills: Vec<RestrictingSkill>,
    /// MCP servers of the skills whose text the conversation has.
    pub(in crate::model) servers: Vec<SkillServer>,
    /// Names of the client's tools that the model's last turn called although a skill does not allow it.
    pub(in crate::model) disallowed: Vec<String>,
}

/// A skill that allows some tools alone.
#[derive(Clone, Debug)]
pub(in crate::model) struct RestrictingSkill {
    namespace: Arc<str>,
    name: Arc<str>,
    rules: Arc<ToolRules>,
    allowed: String,
}

impl RestrictingSkill {
    fn of(guide: &VisibleGuide<'_>) -> Option<Self> {
        Some(Self {
            namespace: guide.namespace.clone(),
            name: guide.entry.skill.name.clone(),
            rules: guide.instructions.rules.clone()?,
            allowed: guide.instructions.allowed_tools.join(", "),
        })
    }

    pub(super) fn is(&self, guide: &VisibleGuide<'_>) -> bool {
        *self.name == *guide.name() && self.namespace == *guide.namespace
    }

    /// Returns true if the skill allows a call of the client's own tool.
    fn allows(&self, call: &HistoryCall<'_>) -> bool {
        let command = is_shell(call.name).then(|| command(&call.arguments().unwrap_or_default())).flatten();
        self.rules.allows(&ToolUse { tool: call.name, skill: None, command: command.as_deref() })
    }

    /// Returns the reason against a call that runs a skill, as a message for the model. A skill may run what belongs to
    /// itself, unless it denies that.
    pub(in crate::model) fn refusal(&self, tool: &str, target: &Target, is_script: bool) -> Option<String> {
        let tool = if is_script { RUN_SCRIPT } else { tool };
        let skill = (!is_script).then_some(target.skill.as_str());
        let call = ToolUse { tool, skill, command: None };
        let is_own = *self.name == *target.skill && *self.namespace == *target.namespace;
        if self.rules.denies(&call) {
            Some(format!("the instructions of skill {} deny {tool}; it was not run", self.name))
        } else if is_own || self.rules.allows(&call) {
            None
        } else {
            let Self { name, allowed, .. } = self;
            Some(format!("the instructions of skill {name} allow {allowed} alone; {tool} was not run"))
        }
    }
}

/// Returns the skill that a call has read, if it restricts tools.
pub(in crate::model) fn read_restriction(
    namespaces: &[Arc<Namespace>],
    filter: &SkillFilter,
    arguments: &Value,
) -> Option<RestrictingSkill> {
    RestrictingSkill::of(&find(namespaces, filter, arguments["name"].as_str()?)?)
}

/// Returns the MCP servers of the skill that a call has read.
pub(in crate::model) fn read_servers(
    namespaces: &[Arc<Namespace>],
    filter: &SkillFilter,
    arguments: &Value,
) -> Vec<SkillServer> {
    let guide = arguments["name"].as_str().and_then(|name| find(namespaces, filter, name));
    guide.map(|guide| guide.servers().collect()).unwrap_or_default()
}

/// Returns the restrictions in a request whose tools are known.
pub(in crate::model) fn find_restrictions(
    namespaces: &[Arc<Namespace>],
    request: &InstructionsRequest<'_>,
    targets: &HashMap<Arc<str>, OfferedTool>,
) -> Restrictions {
    let guides: Vec<VisibleGuide<'_>> = visible(namespaces, request.filter).collect();
    let texts = triggered::texts(namespaces, &guides, request);
    restrictions(&guides, &texts.skills, request, targets)
}

/// Returns the restrictions by those skills whose text is present, or was read.
pub(super) fn restrictions(
    guides: &[VisibleGuide<'_>],
    present: &[VisibleGuide<'_>],
    request: &InstructionsRequest<'_>,
    targets: &HashMap<Arc<str>, OfferedTool>,
) -> Restrictions {
    let is_read_call = |call: &&HistoryCall<'_>| {
        let read = OfferedTool::Instructions { instructions: InstructionsAction::Read };
        targets.get(call.name) == Some(&read)
    };
    let read: Vec<String> = request.calls.iter().filter(is_read_call).filter_map(named_skill).collect();
    let is_active = |guide: &&VisibleGuide<'_>| {
        read.iter().any(|name| name == guide.name()) || present.iter().any(|it| it.name() == guide.name())
    };
    let skills: Vec<RestrictingSkill> =
        guides.iter().filter(is_active).filter_map(RestrictingSkill::of).collect();
    let servers = guides.iter().filter(is_active).flat_map(VisibleGuide::servers).collect();
    let is_own = |call: &&HistoryCall<'_>| {
        call.is_newest && request.client_tools.contains(&call.name) && !targets.contains_key(call.name)
    };
    let own: Vec<&HistoryCall<'_>> = request.calls.iter().filter(is_own).collect();
    let is_disallowed = |call: &&&HistoryCall<'_>| skills.iter().any(|skill| !skill.allows(call));
    let disallowed = own.iter().filter(is_disallowed).map(|call| call.name.to_owned()).collect();
    let present = present.iter().map(|guide| guide.entry.skill.name.clone()).collect();
    Restrictions { present, skills, servers, disallowed }
}

fn named_skill(call: &HistoryCall<'_>) -> Option<String> {
    call.arguments()?["name"].as_str().map(ToOwned::to_owned)
}

/// Reads the command of a shell tool: a text, or a list of words such as `["bash", "-lc", "git log"]`.
fn command(arguments: &Value) -> Option<String> {
    let command = ["command", "cmd", "script"].iter().find_map(|field| arguments.get(field))?;
    let Value::Array(words) = command else { return command.as_str().map(ToOwned::to_owned) };
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    match words.as_slice() {
        [shell, "-c" | "-lc", line] if is_shell(shell.rsplit('/').next().unwrap_or(shell)) => {
            Some((*line).to_owned())
        }
        words => Some(words.join(" ")),
    }
}

#[cfg(test)]
mod tests;
