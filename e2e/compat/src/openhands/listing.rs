//! `available_skills_listing`: the entries of the listing, with escapes and cuts.

use serde_json::{Value, json};
use skillet_instructions::{
    document::{DESCRIPTION_LIMIT, cut_middle},
    listing::{escape, summarize},
};

use crate::{case::Case, judge::Answer};

pub(super) fn available_skills_listing(case: &Case) -> Result<Answer, String> {
    let skills = case.input["skills"].as_array().ok_or("the input has no skills")?;
    let entries: Vec<Value> = skills.iter().map(entry).collect();
    let value = json!({"entries": entries, "has_location": false});
    let is_same = comparable(&case.expected) == comparable(&value);
    Ok(Answer { is_same, ..Answer::exact(case, value) })
}

/// A description that is too long is cut when the skill is read.
fn entry(skill: &Value) -> Value {
    let description = skill["description"].as_str().map(cut_middle);
    let summary = summarize(description.as_deref(), skill["content"].as_str().unwrap_or_default());
    let name = skill["name"].as_str().unwrap_or_default().trim();
    json!({
        "name": escape(name),
        "description": escape(&summary.text),
        "truncated_characters": summary.hidden_characters,
    })
}

/// The notice in the middle of a cut description is in the words of each.
fn comparable(answer: &Value) -> Value {
    let mut answer = answer.clone();
    for entry in answer["entries"].as_array_mut().into_iter().flatten() {
        let description = entry["description"].as_str().unwrap_or_default();
        if description.chars().count() + 50 > DESCRIPTION_LIMIT {
            entry["description"] = description.chars().take(300).collect::<String>().into();
        }
    }
    answer
}
