//! The tools that one request was offered, and the meaning of each name.

mod tool_fields;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, OnceLock},
};

use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skillet_api::skill::Invocation;
use skillet_kube::lock;
use skillet_llm::{OfferedNames, ToolDefinition, tool_names::builtin};
use skillet_offer::{Candidate, RejectReason, SkillFilter};

use self::tool_fields::ToolFields;
use super::{
    instructions::{InstructionTexts, Restrictions},
    name_header::set_header,
    native_tools::{self, NativeOutcome},
    server_tools::ServerTarget,
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
    /// Tool names of built-in programs by the programs' own names, under which they may be called too.
    pub(super) builtins: HashMap<&'static str, Arc<str>>,
    /// The native tools of the request that the policy wants replaced.
    pub(super) native: Vec<NativeOutcome>,
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
    /// Id of the sessions with MCP servers in this conversation. Empty if it is a router's, which gets no tools between rounds.
    pub(super) session: Arc<str>,
    /// Tools of MCP servers, by their names.
    pub(super) attached: Mutex<HashMap<Arc<str>, OfferedTool>>,
    /// Made at the first use, and shared with the filter of a stream.
    pub(super) shared_names: OnceLock<Arc<OfferedNames>>,
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
    /// A tool of a skill's MCP server.
    Server(ServerTarget),
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

    /// Returns these tools, and behind them those of another offer.
    pub(super) fn followed_by(mut self, other: Self) -> Self {
        self.tools.extend(other.tools);
        self.targets.extend(other.targets);
        Self { tools: self.tools, targets: self.targets, builtins: self.builtins, ..other }
    }

    /// The tools that were sent and what each runs.
    pub fn sent(&self) -> BTreeMap<&str, &OfferedTool> {
        let sent = self.tools.iter().filter_map(|tool| Some((&*tool.name, self.targets.get(&tool.name)?)));
        sent.collect()
    }

    /// Returns the offer, or the reason for an empty one.
    pub fn to_json(&self) -> Value {
        let mut json = json!({ "offered": self.sent() });
        for (name, tool) in &*lock(&self.attached) {
            json["offered"][&**name] = json!(tool);
        }
        if let Some(reason) = &self.withheld {
            json["notOffered"] = reason.as_str().into();
        }
        if !self.native.is_empty() {
            json["nativeTools"] = self.native.iter().map(NativeOutcome::to_json).collect();
        }
        json
    }

    /// Response headers that name the offered tools, or the reason why there are none.
    pub fn response_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut attached: Vec<Arc<str>> = lock(&self.attached).keys().cloned().collect();
        attached.sort_unstable();
        let names = self.tools.iter().map(|tool| &*tool.name).chain(attached.iter().map(|name| &**name));
        set_header(&mut headers, OFFERED_HEADER, names);
        let disallowed = &self.restrictions.disallowed;
        if !disallowed.is_empty() {
            set_header(&mut headers, DISALLOWED_HEADER, disallowed.iter().map(String::as_str));
        }
        if let Some(reason) = &self.withheld {
            set_header(&mut headers, NOT_OFFERED_HEADER, std::iter::once(reason.as_str()));
        }
        native_tools::add_header(&self.native, &mut headers);
        headers
    }

    /// Returns the meaning of a tool's name.
    pub(super) fn target(&self, name: &str) -> Option<OfferedTool> {
        let known = self.targets.get(name).cloned();
        known.or_else(|| lock(&self.attached).get(name).cloned()).or_else(|| {
            let tool = self.builtins.get(builtin::canonical(name))?;
            self.targets.get(tool).cloned()
        })
    }

    /// Returns true if any tool is as `is_it` says.
    pub(super) fn any_target(&self, is_it: impl Fn(&str, &OfferedTool) -> bool) -> bool {
        let is = |(name, tool): (&Arc<str>, &OfferedTool)| is_it(name, tool);
        self.targets.iter().any(is) || lock(&self.attached).iter().any(is)
    }

    /// Returns the name of every tool.
    pub(super) fn target_names(&self) -> Vec<Arc<str>> {
        self.targets.keys().chain(lock(&self.attached).keys()).cloned().collect()
    }

    /// Adds tools of MCP servers, which are in the request already.
    pub(super) fn attach(&self, tools: Vec<(ToolDefinition, OfferedTool)>) {
        let names: Vec<Arc<str>> = tools.iter().map(|(definition, _)| definition.name.clone()).collect();
        lock(&self.attached).extend(tools.into_iter().map(|(definition, tool)| (definition.name, tool)));
        self.names().add(names);
    }

    /// Returns true if no call of a response is ours.
    pub(super) fn is_empty(&self) -> bool {
        self.targets.is_empty() && !self.has_server_tools()
    }

    /// Returns true if tools of MCP servers are offered.
    pub(super) fn has_server_tools(&self) -> bool {
        !lock(&self.attached).is_empty()
    }

    /// Returns the number of tools that the gateway has added.
    pub(super) fn count(&self) -> usize {
        self.tools.len() + lock(&self.attached).len()
    }

    /// Returns the name of the tool with this action.
    pub(super) fn search_tool(&self, action: SearchAction) -> Option<&Arc<str>> {
        let is_it = |tool: &OfferedTool| *tool == OfferedTool::Search { search: action };
        self.targets.iter().find_map(|(name, tool)| is_it(tool).then_some(name))
    }

    /// Returns true if the request is changed at all.
    pub(super) fn changes_request(&self) -> bool {
        !self.tools.is_empty() || !self.texts.is_empty() || self.has_server_tools()
    }

    /// Returns true if a tool was offered whose calls name a skill.
    pub(super) fn needs_scope(&self) -> bool {
        self.targets.values().any(|tool| !matches!(tool, OfferedTool::Skill(_) | OfferedTool::Server(_)))
    }

    /// Returns true if a call of this name runs no skill: it finds skills or reads instructions.
    pub(super) fn is_reading(&self, name: &str) -> bool {
        match self.targets.get(name) {
            Some(OfferedTool::Search { search }) => *search == SearchAction::Find,
            Some(OfferedTool::Instructions { instructions }) => !instructions.runs_script(),
            Some(OfferedTool::Skill(_) | OfferedTool::Server(_)) | None => false,
        }
    }

    /// Returns true if a call of this name runs a script of a bundle.
    pub(super) fn is_script(&self, name: &str) -> bool {
        match self.targets.get(name) {
            Some(OfferedTool::Instructions { instructions }) => instructions.runs_script(),
            Some(OfferedTool::Skill(_) | OfferedTool::Search { .. } | OfferedTool::Server(_)) | None => false,
        }
    }

    /// Returns true if a call of this name searches for skills, or names the skill that it runs.
    pub(super) fn is_search(&self, name: &str) -> bool {
        matches!(self.targets.get(name), Some(OfferedTool::Search { .. }))
    }

    /// Every name under which a call is ours, or waits for a person's word. Tools that are attached later are added.
    pub fn names(&self) -> &Arc<OfferedNames> {
        let of = |confirms: bool| {
            let own = self.targets.iter().filter(move |(_, tool)| tool.needs_confirmation() == confirms);
            own.map(|(name, _)| name.clone())
        };
        let builtins = |confirms: bool| {
            let is_such = move |tool: &Arc<str>| {
                self.targets.get(tool).is_some_and(|tool| tool.needs_confirmation() == confirms)
            };
            self.builtins.iter().filter(move |(_, tool)| is_such(tool)).map(|(builtin, _)| *builtin)
        };
        let names = || {
            let names = OfferedNames::new(of(false), of(true)).with_builtins(builtins(false));
            Arc::new(names.with_confirmed_builtins(builtins(true)))
        };
        self.shared_names.get_or_init(names)
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
            Self::Server(_) => false,
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
