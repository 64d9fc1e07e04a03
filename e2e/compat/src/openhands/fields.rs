//! The form in which the cases describe a skill, from and to a document of the product.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skillet_instructions::{
    Code, Diagnostic, FileKind, SkillDocument,
    document::{FileName, Reading, Trigger, read},
    triggers::Triggers,
};

use crate::case::Case;

/// The reference's reading of a project: strict names, and no repairs.
pub(super) const STRICT: Reading = Reading { is_name_strict: true, is_repairing: false };

pub(super) fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns a skill of a conversation. Its name, trigger and kind are in the case, not in a file.
pub(super) fn document(skill: &Value) -> Result<SkillDocument, String> {
    let is_skill_md = skill["is_agentskills_format"] == true;
    let name = skill["name"].as_str().unwrap_or_default();
    let file = FileName { name: if is_skill_md { "SKILL.md" } else { "flat.md" }, default_name: name };
    let body = skill["content"].as_str().unwrap_or_default();
    let document = read(body.as_bytes(), file, Reading::LENIENT).map_err(|found| format!("{found:?}"))?;
    let trigger = trigger(&skill["trigger"])?;
    let disable_model_invocation =
        skill["disable_model_invocation"] == true || matches!(trigger, Trigger::Path(_));
    let description = skill["description"].as_str().map(str::to_owned);
    Ok(SkillDocument { body: body.to_owned(), trigger, disable_model_invocation, description, ..document })
}

pub(super) fn documents(case: &Case) -> Result<Vec<SkillDocument>, String> {
    let skills = case.input["skills"].as_array().ok_or("the input has no skills")?;
    skills.iter().map(document).collect()
}

pub(super) fn triggers_of(documents: &[SkillDocument]) -> Vec<Triggers> {
    documents.iter().map(|document| document.trigger.triggers(&document.name)).collect()
}

fn trigger(value: &Value) -> Result<Trigger, String> {
    match value["type"].as_str() {
        None => Ok(Trigger::None),
        Some("keyword") => Ok(Trigger::Keyword(texts(&value["keywords"]))),
        Some("task") => Ok(Trigger::Task(texts(&value["triggers"]))),
        Some("path") => Ok(Trigger::Path(texts(&value["paths"]))),
        Some(other) => Err(format!("the trigger type {other} is not known")),
    }
}

pub(super) fn trigger_value(trigger: &Trigger) -> Value {
    match trigger {
        Trigger::None => Value::Null,
        Trigger::Keyword(keywords) => json!({"type": "keyword", "keywords": keywords}),
        Trigger::Task(triggers) => json!({"type": "task", "triggers": triggers}),
        Trigger::Path(paths) => json!({"type": "path", "paths": paths}),
    }
}

/// The fields of a document, without those that are empty.
pub(super) fn fields(document: &SkillDocument, source: &str) -> Value {
    let SkillDocument { name, kind, description, body, trigger, inputs, license, compatibility, .. } =
        document;
    let skill_type = match (kind, trigger) {
        (FileKind::SkillMd, _) => "agentskills",
        (_, Trigger::None) => "repo",
        _ => "knowledge",
    };
    let inputs: Vec<Value> =
        inputs.iter().map(|input| json!({"name": input.name, "description": input.description})).collect();
    let fields = json!({
        "name": name,
        "type": skill_type,
        "trigger": trigger_value(trigger),
        "body": body,
        "missing_input_prompt_appended": document.asks_for_inputs(),
        "inputs": inputs,
        "description": description,
        "license": license,
        "compatibility": compatibility,
        "metadata": document.metadata,
        "allowed_tools": document.allowed_tools,
        "disable_model_invocation": document.disable_model_invocation,
        "mcp_servers": document.mcp_servers,
        "source": source,
    });
    without_empty(&fields)
}

/// Drops what means nothing: null, false, and empty lists and maps.
pub(super) fn without_empty(fields: &Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => false,
    };
    let kept: BTreeMap<&String, &Value> =
        fields.as_object().into_iter().flatten().filter(|(_, value)| !is_empty(value)).collect();
    json!(kept)
}

/// The reference's word for a file that is refused. A field's type is checked behind its other rules.
pub(crate) fn error_category(found: &[Diagnostic]) -> &'static str {
    let has = |code: Code| found.iter().any(|diagnostic| diagnostic.is_error() && diagnostic.code == code);
    if has(Code::Encoding) {
        "encoding"
    } else if has(Code::InvalidYaml) {
        "yaml_syntax"
    } else if found.iter().filter(|found| found.is_error()).all(|found| found.code == Code::FieldType) {
        "field_type"
    } else {
        "skill_validation"
    }
}
