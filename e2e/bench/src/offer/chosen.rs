//! The tools for a request, in the steps in which the gateway makes them.

use std::sync::Arc;

use serde_json::Value;
use skillet_llm::{
    DialectName, ToolDefinition,
    tool_names::{OfferTable, SkillIdentity},
};
use skillet_offer::{
    Candidate, Index, ProviderFamily, RequestFacts, Scoring, Scratch, Selection, SkillFilter, select,
};

pub(super) const MODEL: &str = "gpt-4o";

/// Returns the tools of a chat request.
pub(super) fn chosen(
    scoring: &Scoring,
    index: &Index,
    request: &Value,
    scratch: &mut Scratch,
) -> Vec<ToolDefinition> {
    let dialect = DialectName::OpenAiChat.dialect();
    let (client_tools, texts) = (dialect.client_tools(request), dialect.texts(request));
    let user_turns = dialect.user_turns(request);
    let facts = RequestFacts {
        provider: ProviderFamily::OpenAi,
        model: MODEL,
        format: "openai",
        client_tools: &client_tools,
        texts: &texts,
        user_turns: &user_turns,
    };
    let query = scoring.query(&facts);
    let names = dialect.client_tool_names(request);
    let selection = Selection {
        query: &query,
        client_tools: &names,
        filter: &SkillFilter::All,
        token_budget: Some(16_000),
        max_tools: None,
        can_confirm: true,
    };
    let picked: Vec<Arc<Candidate>> = select(scoring, &[index], &selection, scratch)
        .offered
        .into_iter()
        .map(|offered| offered.skill)
        .collect();
    let identified = picked.iter().map(|skill| {
        let Candidate { namespace, name, version, .. } = &**skill;
        (SkillIdentity { namespace, name, version }, skill.clone())
    });
    let table = OfferTable::new(names.iter().copied(), identified);
    let tool = |(name, skill): (&Arc<str>, &Arc<Candidate>)| ToolDefinition {
        name: name.clone(),
        ..skill.tool.definition()
    };
    table.iter().map(tool).collect()
}
