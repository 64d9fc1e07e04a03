//! The meaning of a call of an offered tool: a search, instructions to read, or a skill with its input or script.

use std::sync::Arc;

use serde_json::Value;
use skillet_api::execution::BundleScript;
use skillet_llm::{Arguments, ToolCall, ToolResult};
use tokio::time::Instant;

use super::Conversation;
use crate::{
    catalog::Namespace,
    mcp_servers::{SessionCaller, SkillServer},
    model::{
        instructions::{self, GuideScope, ReadRequest, RestrictingSkill},
        offered_tools::{InstructionsAction, OfferedTool, SearchAction, Target},
        question_vectors,
        scoring::provider_family,
        search_tools::{self, SkillSearch},
        server_tools::{self, ServerTarget},
    },
};

/// The meaning of a call.
pub(super) enum CalledTool {
    /// The result of a search.
    Found(Value),
    /// Instructions or a file to read.
    Reading(ReadRequest),
    Skill(SkillCall),
}

/// A skill, and the input of its program or a script of its bundle.
#[derive(Clone)]
pub(super) struct SkillCall {
    pub(super) target: Target,
    /// Null beside a script.
    pub(super) input: Value,
    pub(super) script: Option<BundleScript>,
    /// The tool of an MCP server of the skill that gets the input.
    pub(super) server: Option<ServerTarget>,
}

impl SkillCall {
    pub(super) fn new(target: Target, input: Value) -> Self {
        Self { target, input, script: None, server: None }
    }

    pub(super) fn of_script(target: Target, script: BundleScript) -> Self {
        Self { target, input: Value::Null, script: Some(script), server: None }
    }

    fn of_server(server: ServerTarget, input: Value) -> Self {
        Self { target: server.skill(), input, script: None, server: Some(server) }
    }
}

/// The reason why a call means nothing that can run.
pub(super) struct CallRefusal {
    pub(super) reason: String,
    pub(super) message: String,
}

impl CallRefusal {
    fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into() }
    }
}

impl Conversation {
    /// Returns the meaning of a call. A search is done here: it runs nothing.
    pub(super) fn called_tool(&self, call: &ToolCall) -> Result<CalledTool, CallRefusal> {
        let Some(tool) = self.offered.target(&call.name) else {
            return Err(CallRefusal::new("SkillNotFound", "this request was not offered such a tool"));
        };
        let Arguments::Json(arguments) = &call.arguments else {
            let message = "the arguments are not JSON; call the tool again with a JSON object";
            return Err(CallRefusal::new("InputInvalid", message));
        };
        match tool {
            OfferedTool::Skill(target) => Ok(CalledTool::Skill(SkillCall::new(target, arguments.clone()))),
            OfferedTool::Search { search: SearchAction::Find } => self.find(arguments).map(CalledTool::Found),
            OfferedTool::Instructions { instructions } => self.instructions(instructions, arguments),
            OfferedTool::Server(server) => {
                Ok(CalledTool::Skill(SkillCall::of_server(server, arguments.clone())))
            }
            OfferedTool::Search { search: SearchAction::Run | SearchAction::RunWithConfirmation } => {
                self.skill_of_run(arguments).map(CalledTool::Skill)
            }
        }
    }

    /// Returns the skill that a call runs.
    pub(super) fn skill_call(&self, call: &ToolCall) -> Option<SkillCall> {
        match self.offered.target(&call.name) {
            None => None,
            Some(_) if self.offered.is_reading(&call.name) => None,
            Some(_) => match self.called_tool(call) {
                Ok(CalledTool::Skill(skill)) => Some(skill),
                Ok(CalledTool::Found(_) | CalledTool::Reading(_)) | Err(_) => None,
            },
        }
    }

    /// Returns the skill whose instructions a call reads, if it restricts tools.
    pub(super) fn read_restriction(&self, call: &ToolCall) -> Option<RestrictingSkill> {
        let read = OfferedTool::Instructions { instructions: InstructionsAction::Read };
        let Arguments::Json(arguments) = &call.arguments else { return None };
        if self.offered.target(&call.name) != Some(read) {
            return None;
        }
        let filter = &self.offered.scope.filter;
        instructions::read_restriction(&self.searched_namespaces(), filter, arguments)
    }

    /// Adds the tools of the MCP servers of skills that the model has just read to the request of the next round.
    pub(super) async fn attach_read_servers(
        &self,
        request: &mut Value,
        (calls, results): (&[ToolCall], &[ToolResult]),
        deadline: Instant,
    ) {
        let read = OfferedTool::Instructions { instructions: InstructionsAction::Read };
        let has_read = |(call, result): &(&ToolCall, &ToolResult)| {
            !result.is_error && self.offered.target(&call.name).as_ref() == Some(&read)
        };
        if self.offered.session.is_empty() || !calls.iter().zip(results).any(|pair| has_read(&pair)) {
            return;
        }
        let (namespaces, filter) = (self.searched_namespaces(), &self.offered.scope.filter);
        let servers: Vec<SkillServer> = calls
            .iter()
            .zip(results)
            .filter(has_read)
            .filter_map(|(call, _)| match &call.arguments {
                Arguments::Json(arguments) => {
                    Some(instructions::read_servers(&namespaces, filter, arguments))
                }
                Arguments::NotJson(_) => None,
            })
            .flatten()
            .collect();
        let caller = SessionCaller {
            caller: &self.caller,
            session: &self.offered.session,
            request_id: self.request_id.as_deref(),
        };
        let (dialect, offered) = (self.dialect, &self.offered);
        let asked = (dialect, &*request);
        let tools = server_tools::list(&self.gateway, caller, asked, offered, &servers, Some(deadline)).await;
        tools.add_to(dialect, request, offered);
    }

    /// Returns the name under which the client reads of a call.
    pub(super) fn shown_name(&self, call: &ToolCall) -> Arc<str> {
        let names_skill = self.offered.is_search(&call.name) || self.offered.is_script(&call.name);
        match self.skill_call(call) {
            Some(SkillCall { target, .. }) if names_skill => target.skill.into(),
            Some(_) | None => call.name.as_str().into(),
        }
    }

    /// Asks for the vector of a search's text, so that the search finds it.
    pub(super) async fn prepare_search(&self, call: &ToolCall) {
        let find = OfferedTool::Search { search: SearchAction::Find };
        if self.offered.target(&call.name) == Some(find)
            && let Arguments::Json(arguments) = &call.arguments
            && let Ok(query) = search_tools::read_query(arguments)
        {
            question_vectors::ask_for_search(&self.gateway.catalog, query).await;
        }
    }

    fn find(&self, arguments: &Value) -> Result<Value, CallRefusal> {
        let query = search_tools::read_query(arguments)
            .map_err(|message| CallRefusal::new("InputInvalid", message))?;
        let (policy, search) = (self.gateway.catalog.policy(), self.skill_search(query));
        let max_bytes = self.limits.result_bytes;
        let namespaces = self.searched_namespaces();
        Ok(search_tools::find(&policy.gateway.offer, &namespaces, &search, &self.offered, max_bytes))
    }

    fn instructions(&self, action: InstructionsAction, arguments: &Value) -> Result<CalledTool, CallRefusal> {
        let namespaces = self.searched_namespaces();
        let scope = GuideScope {
            namespaces: &namespaces,
            filter: &self.offered.scope.filter,
            present: &self.offered.restrictions.present,
        };
        let max_bytes = self.limits.result_bytes;
        let called = match action {
            InstructionsAction::Read => {
                instructions::read_instructions(arguments, scope).map(CalledTool::Reading)
            }
            InstructionsAction::ReadFile => {
                instructions::read_bundle_file(arguments, scope, max_bytes).map(CalledTool::Reading)
            }
            InstructionsAction::RunScript | InstructionsAction::RunScriptWithConfirmation => {
                instructions::script_of(arguments, scope)
                    .map(|(target, script)| CalledTool::Skill(SkillCall::of_script(target, script)))
            }
        };
        called.map_err(|(reason, message)| CallRefusal::new(reason, message))
    }

    fn skill_of_run(&self, arguments: &Value) -> Result<SkillCall, CallRefusal> {
        let (name, input) =
            search_tools::read_run(arguments).map_err(|message| CallRefusal::new("InputInvalid", message))?;
        let (policy, search) = (self.gateway.catalog.policy(), self.skill_search(""));
        let found = search_tools::resolve(&policy.gateway.offer, &self.searched_namespaces(), name, &search);
        match found {
            Ok(skill) => Ok(SkillCall::new(Target::of(&skill), input)),
            Err(reason) => {
                let find = self.offered.search_tool(SearchAction::Find).map_or("a search", |name| &**name);
                let message =
                    format!("there is no skill {name:?} to run; {find} returns the names of skills");
                Err(CallRefusal::new(reason.as_str(), message))
            }
        }
    }

    fn skill_search<'a>(&'a self, text: &'a str) -> SkillSearch<'a> {
        SkillSearch {
            text,
            filter: &self.offered.scope.filter,
            provider: provider_family(self.dialect, &self.model),
            can_confirm: self.gateway.confirmation.is_some(),
        }
    }

    /// The namespaces that the request's caller could use, as they are now.
    fn searched_namespaces(&self) -> Vec<Arc<Namespace>> {
        let names = self.offered.scope.namespaces.iter();
        let found = names.filter_map(|name| self.gateway.catalog.namespace(name));
        found.map(|namespace| Arc::clone(&namespace)).collect()
    }
}
