//! `available_skills_listing`: the entries of the listing, with escapes and cuts.

use serde_json::{Value, json};
use skillet_instructions::listing::{escape, summarize};

use crate::{case::Case, judge::Answer};

pub(super) fn available_skills_listing(case: &Case) -> Result<Answer, String> {
    let skills = case.input["skills"].as_array().ok_or("the input has no skills")?;
    let entries: Vec<Value> = skills.iter().map(entry).collect();
    Ok(Answer::exact(case, json!({"entries": entries, "has_location": false})))
}

fn entry(skill: &Value) -> Value {
    let summary = summarize(skill["description"].as_str(), skill["content"].as_str().unwrap_or_default());
    let name = skill["name"].as_str().unwrap_or_default().trim();
    json!({
        "name": escape(name),
        "description": escape(&summary.text),
        "truncated_characters": summary.hidden_characters,
    })
}
