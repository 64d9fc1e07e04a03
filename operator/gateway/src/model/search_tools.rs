//! The tools of mode `Search`: one finds skills, one runs a skill, and one runs a skill after a person's confirmation.
//!
//! They stand in the place of a tool for each skill. Their text depends on the policy alone, so that no turn of a
//! conversation changes the tools, and the provider's prompt cache holds.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use skillet_api::{
    gateway::{OfferPolicy, SearchTools},
    skill::Invocation,
};
use skillet_llm::{ToolDefinition, tool_names::MAX_LENGTH};
use skillet_offer::{
    Candidate, Index, ProviderFamily, RejectReason, RequestFacts, Scoring, Scratch, Selection, SkillFilter,
    select,
};

use super::{
    offered_tools::{OfferedTool, OfferedTools, SearchAction, SearchScope},
    scoring::{scoring, with_scratch},
};
use crate::catalog::Namespace;

/// A search for skills.
#[derive(Clone, Copy, Debug)]
pub(super) struct SkillSearch<'a> {
    pub(super) text: &'a str,
    pub(super) filter: &'a SkillFilter,
    pub(super) provider: ProviderFamily,
    /// True if the gateway can ask a person to confirm calls.
    pub(super) can_confirm: bool,
}

/// Names of the tools in one request.
pub(super) struct SearchToolNames {
    find: Arc<str>,
    run: Arc<str>,
    run_with_confirmation: Arc<str>,
}

impl SearchToolNames {
    /// Returns the policy's names, each with a number if the client or another of the tools has the name.
    pub(super) fn new(wanted: &SearchTools, client_tools: &[&str]) -> Self {
        let SearchTools { find, run, run_with_confirmation } = wanted;
        let find = free_name(find, client_tools);
        let run = free_name(run, &[client_tools, &[&*find]].concat());
        let run_with_confirmation =
            free_name(run_with_confirmation, &[client_tools, &[&*find, &*run]].concat());
        Self { find, run, run_with_confirmation }
    }

    fn definitions(&self, has_hybrids: bool) -> Vec<(ToolDefinition, SearchAction)> {
        let Self { find, run, run_with_confirmation } = self;
        let query = "The task in a few words, as a user would write it.";
        let find_parameters = json!({
            "type": "object",
            "properties": { "query": { "type": "string", "description": query } },
            "required": ["query"],
        });
        let run_parameters = Arc::new(json!({
            "type": "object",
            "properties": {
                "skill": { "type": "string", "description": format!("The name of the skill, as {find} gave it.") },
                "input": { "type": "object", "description": "The input of the skill, by its own schema." },
            },
            "required": ["skill", "input"],
        }));
        let find_text = "Finds skills: programs of this platform that can be run for you. Returns the name, the description and \
             the input schema of each skill that fits, and the tool that runs it. Search before you say that you \
             cannot do something."
            .to_owned();
        let tool = |name: &Arc<str>, description: String, parameters: &Arc<Value>| ToolDefinition {
            name: name.clone(),
            description: description.into(),
            parameters: parameters.clone(),
        };
        let run_text = format!("Runs a skill that {find} has found, and returns its result.");
        let confirm_text =
            format!("Runs a skill that {find} has found for this tool. A person confirms the call first.");
        let mut tools = vec![
            (tool(find, find_text, &Arc::new(find_parameters)), SearchAction::Find),
            (tool(run, run_text, &run_parameters), SearchAction::Run),
        ];
        if has_hybrids {
            let confirmed = tool(run_with_confirmation, confirm_text, &run_parameters);
            tools.push((confirmed, SearchAction::RunWithConfirmation));
        }
        tools
    }
}

pub(super) fn free_name(wanted: &str, taken: &[&str]) -> Arc<str> {
    let stem = wanted.get(..MAX_LENGTH - 4).unwrap_or(wanted);
    let numbered = (2..1000).map(|number| format!("{stem}_{number}"));
    let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
    names.find(|name| !taken.contains(&name.as_str())).unwrap_or_default().into()
}

/// Offers the tools, if there is a skill to find and room for them.
pub(super) fn offer(
    policy: &OfferPolicy,
    names: &SearchToolNames,
    namespaces: &[Arc<Namespace>],
    search: SkillSearch<'_>,
    max_tools: Option<usize>,
) -> OfferedTools {
    let indexes = || namespaces.iter().map(|namespace| namespace.index());
    if *search.filter == SkillFilter::Off || indexes().all(Index::offers_nothing) {
        return OfferedTools::default();
    }
    let tools = names.definitions(search.can_confirm && indexes().any(Index::has_hybrids));
    let bytes: usize =
        tools.iter().map(|(tool, _)| tool.description.len() + tool.parameters.to_string().len()).sum();
    let has_tokens = u32::try_from(bytes / 4).is_ok_and(|tokens| tokens <= policy.token_budget);
    if !has_tokens || max_tools.is_some_and(|most| tools.len() > most) {
        return OfferedTools::default();
    }
    let target = |(tool, action): &(ToolDefinition, SearchAction)| {
        (tool.name.clone(), OfferedTool::Search { search: *action })
    };
    OfferedTools {
        targets: tools.iter().map(target).collect(),
        tools: tools.into_iter().map(|(tool, _)| tool).collect(),
        scope: SearchScope {
            namespaces: namespaces.iter().map(|namespace| namespace.name().clone()).collect(),
            filter: search.filter.clone(),
        },
        ..OfferedTools::default()
    }
}

/// Searches these namespaces for a text. The model asks for skills, so a skill needs no more than one point.
pub(super) fn search<T>(
    policy: &OfferPolicy,
    namespaces: &[Arc<Namespace>],
    search: &SkillSearch<'_>,
    run: impl FnOnce(&Scoring, &[&Index], &Selection<'_>, &mut Scratch) -> T,
) -> T {
    let SkillSearch { text, filter, provider, can_confirm } = *search;
    let scoring = Scoring { threshold: 1, ..scoring(policy) };
    let (texts, user_turns) = (&[text], &[vec![text]]);
    let facts = RequestFacts { provider, texts, user_turns, ..RequestFacts::default() };
    let query = scoring.query(&facts);
    let selection = Selection {
        query: &query,
        client_tools: &[],
        filter,
        token_budget: Some(policy.token_budget),
        max_tools: None,
        can_confirm,
    };
    let indexes: Vec<&Index> = namespaces.iter().map(|namespace| namespace.index()).collect();
    with_scratch(|scratch| run(&scoring, &indexes, &selection, scratch))
}

/// Returns the skills that a search finds, the best first, in the form that the model reads: as many as fit these bytes.
pub(super) fn find(
    policy: &OfferPolicy,
    namespaces: &[Arc<Namespace>],
    wanted: &SkillSearch<'_>,
    offered: &OfferedTools,
    max_bytes: usize,
) -> Value {
    let found = search(policy, namespaces, wanted, select);
    let (mut skills, mut bytes) = (Vec::new(), 0);
    for skill in found.ranked() {
        let found = found_skill(&skill.skill, offered);
        bytes += found.to_string().len() + 1;
        if bytes + 64 > max_bytes && !skills.is_empty() {
            break;
        }
        skills.push(found);
    }
    let mut result = json!({ "skills": skills });
    if skills_are_empty(&result) {
        result["message"] = "no skill fits; search for other words, or answer without a skill".into();
    }
    result
}

fn skills_are_empty(result: &Value) -> bool {
    result["skills"].as_array().is_none_or(Vec::is_empty)
}

fn found_skill(skill: &Candidate, offered: &OfferedTools) -> Value {
    let action = match skill.invocation {
        Invocation::Hybrid => SearchAction::RunWithConfirmation,
        Invocation::Auto | Invocation::Manual => SearchAction::Run,
    };
    json!({
        "skill": &*skill.name,
        "description": &*skill.description,
        "input": skill.tool.parameters.value(),
        "tool": offered.search_tool(action).map(|name| &**name),
    })
}

/// Returns the skill that a name means in these namespaces, if the model may run it.
pub(super) fn resolve(
    policy: &OfferPolicy,
    namespaces: &[Arc<Namespace>],
    name: &str,
    wanted: &SkillSearch<'_>,
) -> Result<Arc<Candidate>, RejectReason> {
    match wanted.filter {
        SkillFilter::Off => return Err(RejectReason::SwitchedOff),
        SkillFilter::Only(names) | SkillFilter::Exactly(names)
            if !names.iter().any(|named| named == name) =>
        {
            return Err(RejectReason::NotNamed);
        }
        SkillFilter::All | SkillFilter::Only(_) | SkillFilter::Exactly(_) => {}
    }
    let exactly = SkillFilter::Exactly(vec![name.to_owned()]);
    let policy = OfferPolicy { token_budget: u32::MAX, ..policy.clone() };
    let found = search(&policy, namespaces, &SkillSearch { filter: &exactly, ..*wanted }, select);
    match (found.offered.into_iter().next(), found.rejected.into_iter().next()) {
        (Some(skill), _) => Ok(skill.skill),
        (None, Some(rejected)) => Err(rejected.reason),
        (None, None) => Err(RejectReason::Unknown),
    }
}

/// Reads the text that a call of the finding tool searches for.
pub(super) fn read_query(arguments: &Value) -> Result<&str, &'static str> {
    match arguments["query"].as_str().map(str::trim) {
        Some(query) if !query.is_empty() => Ok(query),
        Some(_) | None => Err("`query` is missing; give the task in a few words"),
    }
}

/// Reads the name and the input of a call of a running tool. Models also write the input as text, or beside the name.
pub(super) fn read_run(arguments: &Value) -> Result<(&str, Value), &'static str> {
    let Some(skill) = arguments["skill"].as_str().map(str::trim).filter(|name| !name.is_empty()) else {
        return Err("`skill` is missing; give the name of a skill");
    };
    let input = match &arguments["input"] {
        Value::Object(input) => Value::Object(input.clone()),
        Value::String(text) => {
            serde_json::from_str(text).ok().filter(Value::is_object).ok_or("`input` is not a JSON object")?
        }
        Value::Null => {
            let mut rest: Map<String, Value> = arguments.as_object().cloned().unwrap_or_default();
            rest.retain(|name, _| name != "skill" && name != "input");
            Value::Object(rest)
        }
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => return Err("`input` is not a JSON object"),
    };
    Ok((skill, input))
}

#[cfg(test)]
mod tests;
