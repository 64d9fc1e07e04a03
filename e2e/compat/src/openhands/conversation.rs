//! `message_activation`, `task_activation`, `path_activation`, `system_prompt_partition`: the skills of one turn.

use serde_json::{Map, Value, json};
use skillet_instructions::{
    SkillDocument,
    document::Placement,
    third_party::is_for_model,
    triggers::{Match, TriggerIndex},
};

use super::{
    fields::{document, documents, texts, triggers_of},
    triggers::with_borders,
};
use crate::{case::Case, judge::Answer};

pub(super) fn message_activation(case: &Case) -> Result<Answer, String> {
    let parts = texts(&case.input["message_parts"]);
    let message = if parts.is_empty() { case.text("message").to_owned() } else { parts.join("\n") };
    let skills = match documents(case) {
        Ok(skills) => skills,
        Err(_) if case.input["skill"].is_object() => vec![document(&case.input["skill"])?],
        Err(why) => return Err(why),
    };
    let before = texts(&case.input["already_activated"]);
    let index = TriggerIndex::new(triggers_of(&skills));
    let mut names = Vec::new();
    let mut matched = Map::new();
    for (place, found) in index.matches(&message) {
        let name = &skills[place].name;
        if before.contains(name) {
            continue;
        }
        let word = match found {
            Match::Keyword(keyword) => keyword.to_owned(),
            Match::Slash { name, .. } => format!("/{name}"),
        };
        matched.insert(name.clone(), word.into());
        names.push(name.clone());
    }
    let value = json!({"text_injected": !names.is_empty(), "activated_in_order": names, "matched": matched});
    let known = ["activated_in_order", "text_injected", "matched"];
    if let Some(field) = unknown_field(case, &known) {
        return Err(format!("the answer's field {field} is not known"));
    }
    Ok(with_borders(Answer::by_fields(case, value, &known), &message))
}

pub(super) fn path_activation(case: &Case) -> Result<Answer, String> {
    let skills = documents(case)?;
    let before = texts(&case.input["already_activated"]);
    let path = in_workspace(case.text("touched_path"), case.input["workspace"].as_str());
    let names: Vec<&String> = skills
        .iter()
        .zip(triggers_of(&skills))
        .filter(|(skill, _)| !before.contains(&skill.name))
        .filter(|(_, triggers)| path.is_some_and(|path| triggers.matches_path(path).is_some()))
        .map(|(skill, _)| &skill.name)
        .collect();
    Ok(Answer::by_fields(case, json!({ "activated_in_order": names }), &["activated_in_order"]))
}

/// The path from the workspace; `None` outside it. Without a workspace, the path is as the client gives it.
fn in_workspace<'a>(path: &'a str, workspace: Option<&str>) -> Option<&'a str> {
    let path = match workspace {
        Some(workspace) if path.starts_with('/') || path.starts_with("$ROOT") => {
            path.strip_prefix(workspace.trim_end_matches('/'))?.strip_prefix('/')?
        }
        _ => path,
    };
    (!path.is_empty()).then_some(path)
}

pub(super) fn system_prompt_partition(case: &Case) -> Result<Answer, String> {
    let model = case.text("model");
    let place = |skill: &SkillDocument| match skill.placement() {
        Placement::Always if !is_for_model(&skill.name, model) => Placement::Hidden,
        placement => placement,
    };
    let skills = documents(case)?;
    let placed = |placement: Placement| -> Vec<&String> {
        skills.iter().filter(|skill| place(skill) == placement).map(|skill| &skill.name).collect()
    };
    let value = json!({
        "full_text_in_system_prompt": placed(Placement::Always),
        "listed_as_available": placed(Placement::Listed),
        "neither": placed(Placement::Hidden),
    });
    Ok(Answer::exact(case, value))
}

fn unknown_field<'a>(case: &'a Case, known: &[&str]) -> Option<&'a String> {
    let fields = case.expected.as_object().map(Map::keys)?;
    fields.into_iter().find(|field| !known.contains(&field.as_str()) && case.expected[*field] != Value::Null)
}
