//! The tokens that a conversation of 30 turns sends again without the provider's prompt cache, because its tools changed.

use std::sync::Arc;

use serde_json::{Value, json};
use skillet_offer::{
    Candidate, Index, Scoring, Scratch,
    synthetic::{
        self,
        conversation::{SKILLS, ScriptedTurn, resent_tokens, turns},
    },
};

use super::chosen::{MODEL, chosen};
use crate::figure::Figure;

/// Measures the choice by turn (`Substring`), skills that a conversation keeps (`Ranked`), and tools that never change
/// (mode `Search`).
pub(super) fn measure() -> Vec<Figure> {
    let kept = Scoring { conversation_maximum: 10, ..Scoring::ranked() };
    let by_turn = resent_tokens(&prompts(|request| offered(&Scoring::default(), request)));
    let ranked = resent_tokens(&prompts(|request| offered(&kept, request)));
    let search = resent_tokens(&prompts(|_| "find_skills, run_skill".to_owned()));
    println!("30 turns: {by_turn} tokens sent again by turn, {ranked} kept, {search} in mode Search");
    let number = turns().len();
    let figure = |name, tokens: usize, goal| {
        Figure::lower(name, f64::from(u32::try_from(tokens).unwrap_or(u32::MAX)), goal, "tokens", number)
    };
    vec![
        figure("resent_tokens_by_turn", by_turn, None),
        figure(
            "resent_tokens_ranked",
            ranked,
            Some(0.25 * f64::from(u32::try_from(by_turn).unwrap_or(u32::MAX))),
        ),
        figure("resent_tokens_search", search, Some(0.0)),
    ]
}

/// Returns the prompt of each turn in the order of the provider's cache: the tools, then the messages.
fn prompts(tools: impl Fn(&Value) -> String) -> Vec<String> {
    let turns = turns();
    let prompt = |number: usize| {
        let messages = messages(turns.get(..number).unwrap_or_default());
        let request = json!({ "model": MODEL, "messages": messages });
        let texts: Vec<String> = messages.iter().map(Value::to_string).collect();
        format!("{}\n{}", tools(&request), texts.join("\n"))
    };
    (1..=turns.len()).map(prompt).collect()
}

/// Returns the messages up to the last of these turns of the user.
fn messages(turns: &[ScriptedTurn]) -> Vec<Value> {
    let mut messages = Vec::new();
    for (number, ScriptedTurn { user, file, response }) in (1..).zip(turns) {
        messages.push(json!({ "role": "user", "content": user }));
        if number < turns.len() {
            messages.push(json!({ "role": "tool", "tool_call_id": "read", "content": file }));
            messages.push(json!({ "role": "assistant", "content": response }));
        }
    }
    messages
}

fn offered(scoring: &Scoring, request: &Value) -> String {
    let skills = SKILLS.map(|(name, description)| {
        Arc::new(Candidate { registered: 1, ..synthetic::candidate(name, description, &[]) })
    });
    let index = Index::build(scoring.matching, skills);
    let tools = chosen(scoring, &index, request, &mut Scratch::default());
    let lines: Vec<String> =
        tools.iter().map(|tool| format!("{} {} {}", tool.name, tool.description, tool.parameters)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_that_keeps_its_skills_sends_less_again() {
        let figures = measure();
        let value = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap().value;
        assert!(value("resent_tokens_ranked") * 4.0 < value("resent_tokens_by_turn"));
        assert!(value("resent_tokens_search") < 1.0);
    }
}
