//! `frontmatter_load`, `task_skill_inputs`, `description_truncation`: one file, read.

use serde_json::{Value, json};
use skillet_instructions::{
    FileKind, SkillDocument,
    discovery::{is_skill_md, parent},
    document::{DESCRIPTION_LIMIT, FileName, Reading, Trigger, read},
    inputs::variables,
    mcp::{self, Unset},
};

use super::{
    fields::{STRICT, error_category, fields, trigger_value, without_empty},
    mcp::is_alike,
};
use crate::{
    case::Case,
    judge::{Answer, Sense},
};

pub(super) fn frontmatter_load(case: &Case) -> Result<Answer, String> {
    let path = case.text("path");
    let value = match load(case, path) {
        Ok(document) => {
            let mut fields = fields(&document, &format!("$ROOT/{path}"));
            let resources = resources(case, path);
            if document.kind == FileKind::SkillMd && resources != json!({}) {
                fields["resources"] = resources;
            }
            json!({"accept": true, "fields": fields})
        }
        Err(category) => json!({"accept": false, "error_category": category}),
    };
    let (expected, mut found) = (comparable(&case.expected), comparable(&value));
    if expected["fields"]["mcp_servers"].is_object()
        && is_alike(&expected["fields"]["mcp_servers"], &found["fields"]["mcp_servers"])
    {
        found["fields"]["mcp_servers"] = expected["fields"]["mcp_servers"].clone();
    }
    let difference = if expected == found { None } else { difference(case, &expected, &found) };
    Ok(Answer {
        is_same: expected == found,
        meets_want: if difference.is_some() { Sense::Met } else { Sense::Unknown },
        difference: difference.map(str::to_owned),
        value,
    })
}

fn content(case: &Case) -> Vec<u8> {
    match case.input["content_hex"].as_str() {
        Some(hex) => from_hex(hex),
        None => case.text("content").as_bytes().to_vec(),
    }
}

/// Reads the file of a case and the `.mcp.json` beside a SKILL.md. The error is a category of the cases.
fn load(case: &Case, path: &str) -> Result<SkillDocument, &'static str> {
    let bytes = content(case);
    let reading = Reading { is_name_strict: case.input["strict"] != false, ..STRICT };
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut document = read(&bytes, FileName { name, default_name: default_name(case, path) }, reading)
        .map_err(|found| error_category(&found))?;
    let beside =
        if parent(path).is_empty() { ".mcp.json".to_owned() } else { format!("{}/.mcp.json", parent(path)) };
    if document.kind == FileKind::SkillMd
        && let Some(text) = case.input["other_files"][&beside].as_str()
    {
        let config: Value = serde_json::from_str(text).map_err(|_| "skill_validation")?;
        if !config.is_object() {
            return Err("skill_validation");
        }
        let root = format!("$ROOT/{}", parent(path));
        let lookup = |name: &str| (name == "SKILL_ROOT").then(|| root.clone());
        let config = mcp::expand(&config, Unset::Default, &lookup);
        document.mcp_servers = mcp::servers(&config).map_err(|_| "skill_validation")?;
    }
    Ok(document)
}

fn default_name<'a>(case: &Case, path: &'a str) -> &'a str {
    if is_skill_md(path) {
        return parent(path).rsplit('/').next().unwrap_or_default();
    }
    let base = case.input["skill_base_dir"].as_str().unwrap_or_default();
    let inner =
        path.strip_prefix(base).filter(|_inner| !base.is_empty()).map(|inner| inner.trim_start_matches('/'));
    let name = inner.unwrap_or_else(|| path.rsplit('/').next().unwrap_or(path));
    // A name that begins with its only dot has no extension.
    name.rsplit_once('.').map_or(name, |(stem, _)| if stem.is_empty() { name } else { stem })
}

/// The files of the three conventional directories, by directory.
fn resources(case: &Case, path: &str) -> Value {
    let root = parent(path);
    let mut found = serde_json::Map::new();
    for directory in ["scripts", "references", "assets"] {
        let prefix = format!("{root}/{directory}/");
        let mut names: Vec<&str> = case.input["other_files"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(path, _)| path.strip_prefix(prefix.trim_start_matches('/')))
            .collect();
        names.sort_unstable();
        if !names.is_empty() {
            found.insert(directory.to_owned(), json!(names));
        }
    }
    Value::Object(found)
}

/// The parts of an answer that mean the same in both. The version is the same for every file of the reference.
fn comparable(answer: &Value) -> Value {
    let mut fields = without_empty(&answer["fields"]);
    if let Some(map) = fields.as_object_mut() {
        map.remove("version");
        map.remove("source");
        if let Some(resources) = map.get_mut("resources").and_then(Value::as_object_mut) {
            *resources = comparable_resources(resources);
        }
        // The notice in the middle of a cut description is in the words of each.
        if let Some(description) = map.get("description").and_then(Value::as_str)
            && description.chars().count() == DESCRIPTION_LIMIT
        {
            let head: String = description.chars().take(300).collect();
            map.insert("description".to_owned(), head.into());
        }
    }
    json!({"accept": answer["accept"], "error_category": answer["error_category"], "fields": fields})
}

/// Files by directory, without its name in front and without the root.
fn comparable_resources(resources: &serde_json::Map<String, Value>) -> serde_json::Map<String, Value> {
    let lists = resources.iter().filter(|(_, value)| value.as_array().is_some_and(|list| !list.is_empty()));
    let strip = |directory: &str, value: &Value| -> Value {
        let names = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        names
            .map(|name| name.strip_prefix(&format!("{directory}/")).unwrap_or(name))
            .collect::<Vec<_>>()
            .into()
    };
    lists.map(|(directory, value)| (directory.clone(), strip(directory, value))).collect()
}

/// The reason for which the product reads a file otherwise, if it is one that it means.
fn difference(case: &Case, expected: &Value, found: &Value) -> Option<&'static str> {
    let content = content(case);
    if content.starts_with("\u{feff}".as_bytes()) {
        return Some("a byte-order mark does not hide the frontmatter");
    }
    let content = String::from_utf8_lossy(&content);
    let value =
        |line: &str| line.strip_prefix("name:").map(|value| value.trim_matches([' ', '\'', '"']).to_owned());
    let is_nameless =
        content.lines().filter_map(value).any(|name| matches!(name.as_str(), "" | "null" | "~"));
    if is_nameless && found["accept"] == true {
        return Some("a name without a value is the default name");
    }
    let without = |answer: &Value, fields: &[&str]| {
        let mut answer = answer.clone();
        if let Some(map) = answer["fields"].as_object_mut() {
            map.retain(|field, _| !fields.contains(&field.as_str()));
        }
        answer
    };
    let differ_only = |fields: &[&str]| without(expected, fields) == without(found, fields);
    let joined = |answer: &Value| {
        let tools = answer["fields"]["allowed_tools"].as_array().cloned().unwrap_or_default();
        let text: String = tools.iter().filter_map(Value::as_str).collect();
        text.replace([',', ' '], "")
    };
    if differ_only(&["allowed_tools"]) && joined(expected) == joined(found) {
        return Some("tools are separated by commas, too, and parentheses keep them whole");
    }
    let lists = |answer: &Value| {
        let fields = &answer["fields"];
        [&fields["allowed_tools"], &fields["trigger"]["paths"]].map(|list| {
            let items = list.as_array().into_iter().flatten().filter_map(Value::as_str);
            items.map(printed).collect::<Vec<_>>()
        })
    };
    if differ_only(&["allowed_tools", "trigger"]) && lists(expected) == lists(found) {
        return Some("a tool or path that is no text is written as in the file or as JSON");
    }
    let keys = |answer: &Value| {
        answer["fields"]["metadata"]
            .as_object()
            .map(|map| map.keys().map(|key| printed(key)).collect::<Vec<_>>())
    };
    if differ_only(&["metadata"]) && keys(expected) == keys(found) {
        return Some("what is no text in metadata is written as in the file or as JSON");
    }
    if differ_only(&["name"]) {
        return Some("a name is as written, without white space around it");
    }
    let is_object =
        content.lines().any(|line| line.trim_end() == "trigger:" || line.starts_with("trigger: {"));
    if is_object && differ_only(&["trigger", "type"]) {
        return Some("the documented object `trigger` is read");
    }
    None
}

/// A value that is no text, without what languages print in ways of their own.
fn printed(text: &str) -> String {
    let plain = text.to_lowercase().replace([' ', '\'', '"'], "");
    match plain.parse::<f64>() {
        Ok(number) => number.to_string(),
        Err(_) if plain == "none" => "null".to_owned(),
        Err(_) => plain,
    }
}

pub(super) fn task_skill_inputs(case: &Case) -> Result<Answer, String> {
    let value = match load(case, case.text("path")) {
        Ok(document) => {
            let inputs: Vec<Value> = document
                .inputs
                .iter()
                .filter(|_input| matches!(document.trigger, Trigger::Task(_)))
                .map(|input| json!({"name": input.name, "description": input.description}))
                .collect();
            json!({
                "accept": true,
                "name": document.name,
                "trigger": trigger_value(&document.trigger),
                "inputs": inputs,
                "variables": variables(&document.body),
                "requires_user_input": document.requires_user_input(),
                "missing_input_prompt_appended": document.asks_for_inputs(),
                "body": document.body,
            })
        }
        Err(category) => json!({"accept": false, "error_category": category}),
    };
    Ok(Answer::exact(case, value))
}

pub(super) fn description_truncation(case: &Case) -> Result<Answer, String> {
    let character = case.input["description_character"].as_str().unwrap_or("x");
    let length = case.input["description_length"].as_u64().and_then(|length| usize::try_from(length).ok());
    let written = character.repeat(length.ok_or("the input has no length")?);
    let text = format!("---\ndescription: {written}\n---\n");
    let file = FileName { name: "SKILL.md", default_name: "a" };
    let Ok(document) = read(text.as_bytes(), file, STRICT) else {
        return Ok(Answer::exact(case, json!({ "accept": false })));
    };
    let kept = document.description.unwrap_or_default();
    let is_cut = kept != written;
    let has_ends = kept.starts_with(character) && kept.ends_with(character);
    let value = json!({
        "accept": true,
        "length": kept.chars().count(),
        "truncated": is_cut,
        "keeps_head_and_tail": has_ends,
        "notice_in_middle": is_cut && has_ends,
    });
    let known = ["accept", "length", "truncated"];
    let known_if_cut = ["accept", "length", "truncated", "keeps_head_and_tail", "notice_in_middle"];
    Ok(Answer::by_fields(case, value, if is_cut { &known_if_cut } else { &known }))
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits
        .chunks(2)
        .filter_map(|pair| u8::try_from(pair.iter().fold(0, |sum, digit| sum * 16 + digit)).ok())
        .collect()
}
