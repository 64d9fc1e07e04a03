//! The tools that one request was offered, and the meaning of each name.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skillet_api::skill::Invocation;
use skillet_llm::{OfferedNames, ToolDefinition};
use skillet_offer::{Candidate, RejectReason, SkillFilter};

use super::{
    instructions::{InstructionTexts, Restrictions},
    name_header::set_header,
};
use crate::learning::Lesson;

/// Names of the offered tools.
pub(super) const OFFERED_HEADER: &str = "x-skillet-offered";
/// The reason why nothing is offered, if the request itself forbids it.
pub(super) const NOT_OFFERED_HEADER: &str = "x-skillet-not-offered";
/// Names of the client's tools that the model called although the instructions of a skill do not allow it.
const DISALLOWED_HEADER: &str = "x-skillet-disallowed";

/// The skills of one request, by the tool names that the model sees.
#[derive(Default)]
pub struct OfferedTools {
    /// In the order in which they are sent.
    pub tools: Vec<ToolDefinition>,
    /// The meaning of each tool name: the names in `tools`, and aliases that a moved client may still call.
    pub targets: HashMap<Arc<str>, OfferedTool>,
    /// The skills that the tools of mode `Search` and those for instructions reach.
    pub scope: SearchScope,
    /// Texts of skills that are put into the request.
    pub(super) texts: InstructionTexts,
    /// The tools that skills of the conversation allow.
    pub(super) restrictions: Restrictions,
    /// The reason for an empty offer, if the request itself forbids tools.
    pub withheld: Option<RejectReason>,
    /// The request asks for content of reasoning that the client did not ask for.
    pub hides_reasoning: bool,
    /// The terms that calls of these tools would teach, if the caller's namespace learns.
    pub lesson: Option<Lesson>,
}

/// The meaning of an offered tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, try_from = "ToolFields")]
pub enum OfferedTool {
    Skill(Target),
    /// A tool of mode `Search`. Each call names its skill.
    Search {
        search: SearchAction,
    },
    /// A tool that reads instructions, or runs a script beside them. Each call names its skill.
    Instructions {
        instructions: InstructionsAction,
    },
}

/// The fields of an [`OfferedTool`], apart so that an error names its field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolFields {
    namespace: Option<String>,
    skill: Option<String>,
    version: Option<String>,
    #[serde(default)]
    confirm: bool,
    search: Option<SearchAction>,
    instructions: Option<InstructionsAction>,
}

impl TryFrom<ToolFields> for OfferedTool {
    type Error = &'static str;

    fn try_from(fields: ToolFields) -> Result<Self, Self::Error> {
        let ToolFields { namespace, skill, version, confirm, search, instructions } = fields;
        match (namespace, skill, version, (search, instructions)) {
            (None, None, None, (Some(search), None)) => Ok(Self::Search { search }),
            (None, None, None, (None, Some(instructions))) => Ok(Self::Instructions { instructions }),
            (Some(namespace), Some(skill), Some(version), (None, None)) => {
                Ok(Self::Skill(Target { namespace, skill, version, confirm }))
            }
            _ => Err("a tool has `namespace`, `skill` and `version`, or `search` or `instructions` alone"),
        }
    }
}

/// The action of a tool of mode `Search`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SearchAction {
    Find,
    Run,
    /// A person confirms each call.
    RunWithConfirmation,
}

/// The action of a tool for instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InstructionsAction {
    Read,
    ReadFile,
    RunScript,
    /// A person confirms each call.
    RunScriptWithConfirmation,
}

impl InstructionsAction {
    pub(crate) fn runs_script(self) -> bool {
        match self {
            Self::Read | Self::ReadFile => false,
            Self::RunScript | Self::RunScriptWithConfirmation => true,
        }
    }
}

/// The skills that tools reach whose calls name a skill.
#[derive(Clone, Debug, Default)]
pub struct SearchScope {
    /// Namespaces whose skills the caller sees and may run, the nearest first.
    pub namespaces: Vec<Arc<str>>,
    pub filter: SkillFilter,
}

/// A skill at the version that was offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    pub namespace: String,
    pub skill: String,
    pub version: String,
    /// A person confirms each call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
}

impl OfferedTools {
    /// An empty offer, with the reason.
    pub(super) fn withheld(reason: &'static str) -> Self {
        Self { withheld: Some(RejectReason::Excluded(reason)), ..Self::default() }
    }

    /// The tools that were sent and what each runs.
    pub fn sent(&self) -> BTreeMap<&str, &OfferedTool> {
        let sent = self.tools.iter().filter_map(|tool| Some((&*tool.name, self.targets.get(&tool.name)?)));
        sent.collect()
    }

    /// Returns the offer, or the reason for an empty one.
    pub fn to_json(&self) -> Value {
        let mut json = json!({ "offered": self.sent() });
        if let Some(reason) = &self.withheld {
            json["notOffered"] = reason.as_str().into();
        }
        json
    }

    /// Response headers that name the offered tools, or the reason why there are none.
    pub fn response_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        set_header(&mut headers, OFFERED_HEADER, self.tools.iter().map(|tool| &*tool.name));
        let disallowed = &self.restrictions.disallowed;
        if !disallowed.is_empty() {
            set_header(&mut headers, DISALLOWED_HEADER, disallowed.iter().map(String::as_str));
        }
        if let Some(reason) = &self.withheld {
            set_header(&mut headers, NOT_OFFERED_HEADER, std::iter::once(reason.as_str()));
        }
        headers
    }

    /// Returns the name of the tool with this action.
    pub(super) fn search_tool(&self, action: SearchAction) -> Option<&Arc<str>> {
        let is_it = |tool: &OfferedTool| *tool == OfferedTool::Search { search: action };
        self.targets.iter().find_map(|(name, tool)| is_it(tool).then_some(name))
    }

    /// Returns true if the request is changed at all.
    pub(super) fn changes_request(&self) -> bool {
        !self.tools.is_empty() || !self.texts.is_empty()
    }

    /// Returns true if a tool was offered whose calls name a skill.
    pub(super) fn needs_scope(&self) -> bool {
        self.targets.values().any(|tool| !matches!(tool, OfferedTool::Skill(_)))
    }

    /// Returns true if a call of this name runs no skill: it finds skills or reads instructions.
    pub(super) fn is_reading(&self, name: &str) -> bool {
        match self.targets.get(name) {
            Some(OfferedTool::Search { search }) => *search == SearchAction::Find,
            Some(OfferedTool::Instructions { instructions }) => !instructions.runs_script(),
            Some(OfferedTool::Skill(_)) | None => false,
        }
    }

    /// Returns true if a call of this name runs a script of a bundle.
    pub(super) fn is_script(&self, name: &str) -> bool {
        match self.targets.get(name) {
            Some(OfferedTool::Instructions { instructions }) => instructions.runs_script(),
            Some(OfferedTool::Skill(_) | OfferedTool::Search { .. }) | None => false,
        }
    }

    /// Returns true if a call of this name searches for skills, or names the skill that it runs.
    pub(super) fn is_search(&self, name: &str) -> bool {
        matches!(self.targets.get(name), Some(OfferedTool::Search { .. }))
    }

    /// Every name under which a call is ours, or waits for a person's word.
    pub fn names(&self) -> OfferedNames {
        let of = |confirms: bool| {
            self.targets.iter().filter(move |(_, tool)| tool.needs_confirmation() == confirms)
        };
        OfferedNames::new(of(false).map(|(name, _)| name.clone()), of(true).map(|(name, _)| name.clone()))
    }
}

impl OfferedTool {
    /// Returns true if the request offered the tool as one whose calls a person confirms.
    pub fn needs_confirmation(&self) -> bool {
        match self {
            Self::Skill(target) => target.confirm,
            Self::Search { search } => *search == SearchAction::RunWithConfirmation,
            Self::Instructions { instructions } => {
                *instructions == InstructionsAction::RunScriptWithConfirmation
            }
        }
    }
}

impl Target {
    pub(super) fn of(skill: &Candidate) -> Self {
        let Candidate { namespace, name, version, invocation, .. } = skill;
        Self {
            namespace: namespace.to_string(),
            skill: name.to_string(),
            version: version.to_string(),
            confirm: *invocation == Invocation::Hybrid,
        }
    }
}
