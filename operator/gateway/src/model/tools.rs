//! The tools that one model request is offered: skills of the caller's namespaces under legal tool names.

mod explained;

use std::{collections::HashMap, sync::Arc};

use http::StatusCode;
use serde_json::Value;
use skillet_api::{
    SkillPolicySpec,
    builtin::Builtin,
    gateway::{OfferMode, ToolUse},
};
use skillet_llm::{
    Dialect, DialectError, DialectName, MODEL_WITHOUT_TOOLS, ToolDefinition,
    tool_names::{OfferTable, SkillIdentity},
};
use skillet_offer::{
    Candidate, Index, Learned, Query, RequestFacts, Scoring, Scratch, Selection, SkillFilter, select,
};

use crate::{
    auth::{AuthError, Caller, Verb},
    catalog::Namespace,
    error::ApiError,
    learning::Lesson,
    model::ModelState,
    model::{
        instructions::{self, InstructionsQuestion, Restrictions},
        native_tools::{self, NativePlan, StandIn},
        offered_tools::{OfferedTool, OfferedTools, Target},
        preferences::{SKILLS_HEADER, SkillPreferences},
        scoring::{provider_family, scoring, with_scratch},
        search_tools::{self, SearchToolNames, SkillSearch},
    },
    resolve::Lookup,
};

pub use self::explained::{ExplainedOffer, explain_offer};

/// The provider refused the request with skills, and got it without them.
pub(super) const PROVIDER_REFUSED: &str = "ProviderRefused";
/// The caller may not use the skills of any namespace that it looks into.
const FORBIDDEN: &str = "Forbidden";
/// The policy offers nothing to the model.
const TOOLS_NEVER: &str = "ToolsNever";

/// The namespaces with skills that a caller looks into.
pub struct CallerNamespaces {
    /// Those whose skills the caller sees and may run, nearest first, as they are now.
    pub usable: Vec<Arc<Namespace>>,
    /// The others, each with a verb that the caller lacks.
    pub forbidden: Vec<(Arc<str>, Verb)>,
}

impl CallerNamespaces {
    /// Refuses a request for exactly these skills, one of which no usable namespace has.
    pub fn check_exact_names(&self, preferences: &SkillPreferences) -> Result<(), ApiError> {
        let SkillFilter::Exactly(names) = &preferences.filter else { return Ok(()) };
        let is_known = |name: &str| self.usable.iter().any(|namespace| namespace.index().get(name).is_some());
        match names.iter().find(|name| !is_known(name)) {
            None => Ok(()),
            Some(name) => {
                let message = format!("the caller may get and execute no skill named {name:?}");
                Err(ApiError::new(StatusCode::BAD_REQUEST, "SkillNotFound", message).at(SKILLS_HEADER))
            }
        }
    }
}

/// Returns the namespaces with skills that a caller looks into.
pub async fn load_namespaces(
    gateway: &ModelState,
    caller: &Caller,
    preferences: &SkillPreferences,
) -> Result<CallerNamespaces, AuthError> {
    const VERBS: [Verb; 2] = [Verb::Get, Verb::Execute];
    let lookup = Lookup { auth: &gateway.auth, catalog: &gateway.catalog, caller };
    let mut allowed = lookup.allowed_namespaces(&VERBS).await?;
    let mut forbidden = Vec::new();
    for namespace in gateway.catalog.namespaces(caller) {
        let has_skills = gateway.catalog.namespace(&namespace).is_some();
        if has_skills
            && !allowed.contains(&namespace)
            && let Some(verb) = gateway.auth.first_refused(caller, &VERBS, &namespace).await?
        {
            forbidden.push((namespace, verb));
        }
    }
    allowed.retain(|namespace| !preferences.without_own_skills || *namespace != caller.namespace);
    // After the questions, which may take a while: what is offered is what is there now.
    let skills = allowed.iter().filter_map(|namespace| gateway.catalog.namespace(namespace));
    Ok(CallerNamespaces { usable: skills.map(|skills| Arc::clone(&skills)).collect(), forbidden })
}

/// A model request as far as its skills are concerned.
#[derive(Clone, Copy, Debug)]
pub struct OfferRequest<'a> {
    pub dialect: DialectName,
    pub model: &'a str,
    pub request: &'a Value,
    pub preferences: &'a SkillPreferences,
    /// This gateway can ask a person: it has the key for that.
    pub can_ask: bool,
    /// The policy's word on skills for the model.
    pub tool_use: ToolUse,
    /// The provider has lately refused this model's requests because skills were offered.
    pub is_refused: bool,
    /// The terms that the caller's namespace has learned, if it learns.
    pub learned: Option<&'a Learned>,
    /// Skills in the place of native tools, which are not in the request any more.
    pub stand_ins: &'a [StandIn],
}

impl OfferRequest<'_> {
    /// Returns true if the request is offered the tools of mode `Search`. A request for exact skills gets these as tools.
    fn is_search(&self, policy_spec: &SkillPolicySpec) -> bool {
        match policy_spec.gateway.offer.mode {
            OfferMode::Tools => false,
            OfferMode::Search => !matches!(self.preferences.filter, SkillFilter::Exactly(_)),
        }
    }

    fn skill_search<'a>(&'a self, text: &'a str) -> SkillSearch<'a> {
        SkillSearch {
            text,
            filter: &self.preferences.filter,
            provider: provider_family(self.dialect, self.model),
            can_confirm: self.can_ask,
        }
    }

    /// The parts of the request that its instructions depend on.
    fn instructions(&self, namespaces: &[Arc<Namespace>]) -> InstructionsQuestion<'_> {
        let needs_calls = namespaces.iter().any(|namespace| namespace.guides().depend_on_calls());
        let dialect = self.dialect.dialect();
        let client_tools = dialect.client_tool_names(self.request);
        InstructionsQuestion {
            filter: &self.preferences.filter,
            max_tools: self.dialect.max_tools().map(|most| most.saturating_sub(client_tools.len())),
            client_tools,
            turns: dialect.user_turns(self.request),
            calls: if needs_calls { dialect.history_calls(self.request) } else { Vec::new() },
            can_confirm: self.can_ask,
        }
    }

    /// The number of tools for which the request has room.
    fn room(&self, client_tools: usize) -> Option<usize> {
        let taken = client_tools + self.stand_ins.len();
        self.dialect.max_tools().map(|most| most.saturating_sub(taken))
    }

    /// The reason why the request is offered nothing at all.
    pub(super) fn find_exclusion(&self) -> Option<&'static str> {
        let excluded = self.dialect.find_exclusion(self.request, self.model);
        match self.tool_use {
            ToolUse::Never => Some(TOOLS_NEVER),
            ToolUse::Auto if self.is_refused => Some(PROVIDER_REFUSED),
            ToolUse::Auto => excluded,
            ToolUse::Always => excluded.filter(|reason| *reason != MODEL_WITHOUT_TOOLS),
        }
    }
}

/// Selects the skills of these namespaces for a request.
pub fn offer(
    policy_spec: &SkillPolicySpec,
    namespaces: &CallerNamespaces,
    question: &OfferRequest<'_>,
) -> OfferedTools {
    let mut offered = offer_tools(policy_spec, namespaces, question);
    if offered.withheld.is_none() {
        let policy = &policy_spec.gateway.offer;
        let request = question.instructions(&namespaces.usable);
        instructions::add_offer(policy, &namespaces.usable, &request.as_request(), &mut offered);
    }
    offered
}

/// Returns the restrictions by skills in a request that was offered these tools.
pub(super) fn find_restrictions(
    namespaces: &[Arc<Namespace>],
    question: &OfferRequest<'_>,
    targets: &HashMap<Arc<str>, OfferedTool>,
) -> Restrictions {
    let request = question.instructions(namespaces);
    instructions::find_restrictions(namespaces, &request.as_request(), targets)
}

fn offer_tools(
    policy_spec: &SkillPolicySpec,
    namespaces: &CallerNamespaces,
    question: &OfferRequest<'_>,
) -> OfferedTools {
    let OfferRequest { dialect, request, .. } = *question;
    if let Some(reason) = question.find_exclusion() {
        return OfferedTools::withheld(reason);
    }
    if namespaces.usable.is_empty() && !namespaces.forbidden.is_empty() {
        return OfferedTools::withheld(FORBIDDEN);
    }
    if question.is_search(policy_spec) {
        let client_tools = dialect.dialect().client_tool_names(request);
        let names = SearchToolNames::new(&policy_spec.gateway.offer.search_tools, &client_tools);
        let room = question.room(client_tools.len());
        let scope = question.skill_search("");
        let search = search_tools::offer(&policy_spec.gateway.offer, &names, &namespaces.usable, scope, room);
        let taken: Vec<&str> =
            client_tools.into_iter().chain(search.targets.keys().map(|name| &**name)).collect();
        let stand_ins = name_tools(question.stand_ins, [], &taken);
        return stand_ins.followed_by(search);
    }
    let (picked, lesson) =
        search(policy_spec, &namespaces.usable, question, |scoring, indexes, selection, scratch| {
            let picked = select(scoring, indexes, selection, scratch);
            let lesson = question.learned.map(|_| Lesson::of(&picked, selection.query));
            (picked, lesson)
        });
    let picked = picked.offered.into_iter().map(|offered| offered.skill);
    let client_tools = dialect.dialect().client_tool_names(request);
    OfferedTools { lesson, ..name_tools(question.stand_ins, picked, &client_tools) }
}

/// Searches these namespaces for the request.
fn search<T>(
    policy_spec: &SkillPolicySpec,
    namespaces: &[Arc<Namespace>],
    question: &OfferRequest<'_>,
    search: impl FnOnce(&Scoring, &[&Index], &Selection<'_>, &mut Scratch) -> T,
) -> T {
    let OfferRequest {
        dialect: name,
        model,
        request,
        preferences,
        can_ask,
        tool_use: _,
        is_refused: _,
        learned,
        stand_ins: _,
    } = *question;
    let dialect: &dyn Dialect = name.dialect();
    let scoring = scoring(&policy_spec.gateway.offer);
    let (client_tools, texts) = (dialect.client_tools(request), dialect.texts(request));
    let user_turns = dialect.user_turns(request);
    let format = match name {
        DialectName::OpenAiChat => "openai",
        DialectName::OpenAiResponses => "openai-responses",
        DialectName::Anthropic => "claude",
        DialectName::Gemini => "gemini",
    };
    let facts = RequestFacts {
        provider: provider_family(name, model),
        model,
        format,
        client_tools: &client_tools,
        texts: &texts,
        user_turns: &user_turns,
    };
    let indexes: Vec<&Index> = namespaces.iter().map(|namespace| namespace.index()).collect();
    let query: Query = match learned {
        Some(learned) => scoring.query(&facts).with_learned(learned, &indexes),
        None => scoring.query(&facts),
    };
    let selection = Selection {
        query: &query,
        client_tools: &dialect.client_tool_names(request),
        filter: &preferences.filter,
        token_budget: Some(policy_spec.gateway.offer.token_budget),
        max_tools: question.room(client_tools.len()),
        can_confirm: can_ask,
    };
    with_scratch(|scratch| search(&scoring, &indexes, &selection, scratch))
}

/// Names the skills in the place of native tools, which come first, and those that were picked.
fn name_tools(
    stand_ins: &[StandIn],
    picked: impl IntoIterator<Item = Arc<Candidate>>,
    taken: &[&str],
) -> OfferedTools {
    let own: Vec<Arc<Candidate>> = stand_ins.iter().map(|of| of.skill.clone()).chain(picked).collect();
    let named = own.iter().map(|skill| {
        let identity =
            SkillIdentity { namespace: &skill.namespace, name: &skill.name, version: &skill.version };
        (identity, skill.clone())
    });
    let table = OfferTable::new(taken.iter().copied(), named)
        .with_builtins(|skill| skill.builtin.map(Builtin::as_str));
    let mut tools: Vec<ToolDefinition> = table
        .iter()
        .map(|(name, skill)| ToolDefinition { name: name.clone(), ..skill.tool.definition() })
        .collect();
    for (tool, stand_in) in tools.iter_mut().zip(stand_ins) {
        *tool = stand_in.definition(tool.clone());
    }
    let target = |name: Arc<str>| Some((name.clone(), OfferedTool::Skill(Target::of(table.get(&name)?))));
    let targets = table.offered().iter().cloned().filter_map(target).collect();
    let builtins = table.builtins().map(|(builtin, tool)| (builtin, tool.clone())).collect();
    OfferedTools { tools, targets, builtins, ..OfferedTools::default() }
}

/// Adds the tools to the request.
pub(super) fn add(
    dialect: DialectName,
    request: &mut Value,
    native: &NativePlan,
    offered: &mut OfferedTools,
) -> Result<(), ApiError> {
    offered.texts.add_to(dialect, request);
    let bad_request = |error: DialectError| {
        ApiError::new(StatusCode::BAD_REQUEST, "BadRequest", error.message.clone()).at(error.field)
    };
    let in_place = native_tools::replace(dialect, request, native, offered).map_err(bad_request)?;
    let others = offered.tools.get(native.stand_ins.len()..).unwrap_or_default();
    let appended = dialect.dialect().append_tools(request, others).map_err(bad_request)?;
    offered.hides_reasoning = in_place || appended;
    Ok(())
}

#[cfg(test)]
mod tests;
