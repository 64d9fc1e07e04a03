//! The tools that one model request is offered: skills of the caller's namespaces under legal tool names.

use std::{collections::HashMap, sync::Arc};

use http::StatusCode;
use serde_json::Value;
use skillet_api::{
    SkillPolicySpec,
    gateway::{OfferMode, ToolUse},
};
use skillet_llm::{
    Dialect, DialectName, MODEL_WITHOUT_TOOLS, ToolDefinition,
    tool_names::{OfferTable, SkillIdentity},
};
use skillet_offer::{
    Candidate, Explanation, Index, Learned, Offer, OfferDecision, Query, QuestionTerm, RejectReason,
    RequestFacts, Scoring, Scratch, Selection, SkillFilter, explain, question_terms, select,
};

use crate::{
    auth::{AuthError, Caller, Verb},
    catalog::Namespace,
    error::ApiError,
    learning::Lesson,
    model::ModelState,
    model::{
        instructions::{self, InstructionsQuestion, Restrictions},
        offered_tools::{OfferedTool, OfferedTools, Target},
        preferences::{SKILLS_HEADER, SkillPreferences},
        scoring::{provider_family, scoring, with_scratch},
        search_tools::{self, SearchToolNames, SkillSearch},
    },
    resolve::Lookup,
};

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
        let room = dialect.max_tools().map(|most| most.saturating_sub(client_tools.len()));
        let scope = question.skill_search("");
        return search_tools::offer(&policy_spec.gateway.offer, &names, &namespaces.usable, scope, room);
    }
    let (picked, lesson) =
        search(policy_spec, &namespaces.usable, question, |scoring, indexes, selection, scratch| {
            let picked = select(scoring, indexes, selection, scratch);
            let lesson = question.learned.map(|_| Lesson::of(&picked, selection.query));
            (picked, lesson)
        });
    OfferedTools { lesson, ..table(picked, &dialect.dialect().client_tool_names(request)) }
}

/// The decision about each skill, and the terms that the last turn searches.
pub struct ExplainedOffer {
    pub mode: OfferMode,
    pub skills: Vec<Explanation>,
    /// The instructions of each skill, as JSON.
    pub instructions: Vec<Value>,
    pub terms: Vec<QuestionTerm>,
}

/// Explains for each skill of these namespaces why it is or is not offered.
pub fn explain_offer(
    policy_spec: &SkillPolicySpec,
    namespaces: &[Arc<Namespace>],
    question: &OfferRequest<'_>,
) -> ExplainedOffer {
    let explain =
        |scoring: &Scoring, indexes: &[&Index], selection: &Selection<'_>, scratch: &mut Scratch| {
            ExplainedOffer {
                mode: policy_spec.gateway.offer.mode,
                skills: explain(scoring, indexes, selection, scratch),
                instructions: Vec::new(),
                terms: question_terms(indexes, selection.query),
            }
        };
    let mut explained = if question.is_search(policy_spec) {
        let turns = question.dialect.dialect().user_turns(question.request);
        let text = turns.last().map(|texts| texts.join("\n")).unwrap_or_default();
        search_tools::search(&policy_spec.gateway.offer, namespaces, &question.skill_search(&text), explain)
    } else {
        search(policy_spec, namespaces, question, explain)
    };
    if let Some(reason) = question.find_exclusion() {
        explained
            .skills
            .iter_mut()
            .for_each(|of| of.decision = OfferDecision::NotOffered(RejectReason::Excluded(reason)));
    }
    if question.find_exclusion().is_none() {
        let request = question.instructions(namespaces);
        explained.instructions = instructions::explain(policy_spec, namespaces, &request.as_request());
    }
    explained
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
        max_tools: name.max_tools().map(|most| most.saturating_sub(client_tools.len())),
        can_confirm: can_ask,
    };
    with_scratch(|scratch| search(&scoring, &indexes, &selection, scratch))
}

fn table(picked: Offer, client_tools: &[&str]) -> OfferedTools {
    let own: Vec<Arc<Candidate>> = picked.offered.into_iter().map(|offered| offered.skill).collect();
    let named = own.iter().map(|skill| {
        let identity =
            SkillIdentity { namespace: &skill.namespace, name: &skill.name, version: &skill.version };
        (identity, skill.clone())
    });
    let table = OfferTable::new(client_tools.iter().copied(), named);
    let tools = table
        .iter()
        .map(|(name, skill)| ToolDefinition { name: name.clone(), ..skill.tool.definition() })
        .collect();
    let target = |name: Arc<str>| Some((name.clone(), OfferedTool::Skill(Target::of(table.get(&name)?))));
    let targets = table.offered().iter().cloned().filter_map(target).collect();
    OfferedTools { tools, targets, ..OfferedTools::default() }
}

/// Adds the tools to the request.
pub fn add(dialect: DialectName, request: &mut Value, offered: &mut OfferedTools) -> Result<(), ApiError> {
    offered.texts.add_to(dialect, request);
    let appended = dialect.dialect().append_tools(request, &offered.tools);
    offered.hides_reasoning = appended.map_err(|error| {
        ApiError::new(StatusCode::BAD_REQUEST, "BadRequest", error.message.clone()).at(error.field)
    })?;
    Ok(())
}

#[cfg(test)]
mod tests;
