//! The tools that one model request is offered: skills of the caller's namespaces under legal tool names.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skillet_api::{SkillPolicySpec, gateway::ToolUse, skill::Invocation};
use skillet_llm::{
    Dialect, DialectName, MODEL_WITHOUT_TOOLS, OfferedNames, ToolDefinition,
    tool_names::{OfferTable, SkillIdentity},
};
use skillet_offer::{
    Candidate, Explanation, Index, Offer, OfferDecision, ProviderFamily, Query, QuestionTerm, RejectReason,
    RequestFacts, Scoring, Scratch, Selection, SkillFilter, explain, question_terms, select,
};

use crate::{
    auth::{AuthError, Caller, Verb},
    catalog::Namespace,
    error::ApiError,
    model::ModelState,
    model::{
        name_header::set_header,
        preferences::{SKILLS_HEADER, SkillPreferences},
        scoring::scoring,
    },
    resolve::Lookup,
};

thread_local! {
    /// Room for a search, kept from one to the next.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Names of the offered tools.
pub(super) const OFFERED_HEADER: &str = "x-skillet-offered";
/// The reason why nothing is offered, if the request itself forbids it.
pub(super) const NOT_OFFERED_HEADER: &str = "x-skillet-not-offered";

/// The provider refused the request with skills, and got it without them.
pub(super) const PROVIDER_REFUSED: &str = "ProviderRefused";
/// The caller may not use the skills of any namespace that it looks into.
const FORBIDDEN: &str = "Forbidden";
/// The policy offers nothing to the model.
const TOOLS_NEVER: &str = "ToolsNever";

/// The skills of one request, by the tool names that the model sees.
#[derive(Default)]
pub struct OfferedTools {
    /// In the order in which they are sent.
    pub tools: Vec<ToolDefinition>,
    /// The skill behind each tool name: the names in `tools`, and aliases that a moved client may still call.
    pub targets: HashMap<Arc<str>, Target>,
    /// The reason for an empty offer, if the request itself forbids tools.
    pub withheld: Option<RejectReason>,
    /// The request asks for content of reasoning that the client did not ask for.
    pub hides_reasoning: bool,
}

/// A skill at the version that was offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    pub namespace: String,
    pub skill: String,
    pub version: String,
    /// A person confirms each call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
}

impl OfferedTools {
    /// An empty offer, with the reason.
    pub(super) fn withheld(reason: &'static str) -> Self {
        Self { withheld: Some(RejectReason::Excluded(reason)), ..Self::default() }
    }

    /// The tools that were sent and what each runs.
    pub fn sent(&self) -> BTreeMap<&str, &Target> {
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
        if let Some(reason) = &self.withheld {
            set_header(&mut headers, NOT_OFFERED_HEADER, std::iter::once(reason.as_str()));
        }
        headers
    }

    /// Every name under which a call is ours, or waits for a person's word.
    pub fn names(&self) -> OfferedNames {
        let of = |confirm: bool| self.targets.iter().filter(move |(_, target)| target.confirm == confirm);
        OfferedNames::new(of(false).map(|(name, _)| name.clone()), of(true).map(|(name, _)| name.clone()))
    }
}

impl Target {
    fn of(skill: &Candidate) -> Self {
        let Candidate { namespace, name, version, invocation, .. } = skill;
        Self {
            namespace: namespace.to_string(),
            skill: name.to_string(),
            version: version.to_string(),
            confirm: *invocation == Invocation::Hybrid,
        }
    }
}

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
}

impl OfferRequest<'_> {
    /// The reason why the request is offered nothing at all.
    fn find_exclusion(&self) -> Option<&'static str> {
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
    let OfferRequest { dialect, request, .. } = *question;
    if let Some(reason) = question.find_exclusion() {
        return OfferedTools::withheld(reason);
    }
    if namespaces.usable.is_empty() && !namespaces.forbidden.is_empty() {
        return OfferedTools::withheld(FORBIDDEN);
    }
    let picked = search(policy_spec, &namespaces.usable, question, select);
    table(picked, &dialect.dialect().client_tool_names(request))
}

/// The decision about each skill, and the terms that the last turn searches.
pub struct ExplainedOffer {
    pub skills: Vec<Explanation>,
    pub terms: Vec<QuestionTerm>,
}

/// Explains for each skill of these namespaces why it is or is not offered.
pub fn explain_offer(
    policy_spec: &SkillPolicySpec,
    namespaces: &[Arc<Namespace>],
    question: &OfferRequest<'_>,
) -> ExplainedOffer {
    let mut explained =
        search(policy_spec, namespaces, question, |scoring, indexes, selection, scratch| ExplainedOffer {
            skills: explain(scoring, indexes, selection, scratch),
            terms: question_terms(indexes, selection.query),
        });
    if let Some(reason) = question.find_exclusion() {
        explained
            .skills
            .iter_mut()
            .for_each(|of| of.decision = OfferDecision::NotOffered(RejectReason::Excluded(reason)));
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
    let OfferRequest { dialect: name, model, request, preferences, can_ask, tool_use: _, is_refused: _ } =
        *question;
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
    // A router behind the gateway may serve any family under one form: the model's name says more than the form.
    let provider = match ProviderFamily::of_model(model) {
        ProviderFamily::Other => name.into(),
        named => named,
    };
    let facts = RequestFacts {
        provider,
        model,
        format,
        client_tools: &client_tools,
        texts: &texts,
        user_turns: &user_turns,
    };
    let query: Query = scoring.query(&facts);
    let selection = Selection {
        query: &query,
        client_tools: &dialect.client_tool_names(request),
        filter: &preferences.filter,
        token_budget: Some(policy_spec.gateway.offer.token_budget),
        max_tools: name.max_tools().map(|most| most.saturating_sub(client_tools.len())),
        can_confirm: can_ask,
    };
    let indexes: Vec<&Index> = namespaces.iter().map(|namespace| namespace.index()).collect();
    SCRATCH.with_borrow_mut(|scratch| search(&scoring, &indexes, &selection, scratch))
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
    let target = |name: Arc<str>| Some((name.clone(), Target::of(table.get(&name)?)));
    let targets = table.offered().iter().cloned().filter_map(target).collect();
    OfferedTools { tools, targets, ..OfferedTools::default() }
}

/// Adds the tools to the request.
pub fn add(dialect: DialectName, request: &mut Value, offered: &mut OfferedTools) -> Result<(), ApiError> {
    let appended = dialect.dialect().append_tools(request, &offered.tools);
    offered.hides_reasoning = appended.map_err(|error| {
        ApiError::new(StatusCode::BAD_REQUEST, "BadRequest", error.message.clone()).at(error.field)
    })?;
    Ok(())
}
