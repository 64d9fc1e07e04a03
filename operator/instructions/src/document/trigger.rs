//! The trigger of a file. The first that applies: `paths`, then `inputs`, then `triggers` or the object `trigger`.

use super::fields::Fields;
use crate::{
    Code,
    inputs::{Input, InputType},
    triggers::Triggers,
    yaml::{YamlNode, YamlValue},
};

/// The trigger of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    #[default]
    None,
    Keyword(Vec<String>),
    /// Keywords of a skill with inputs; its slash name is among them.
    Task(Vec<String>),
    /// Globs of paths that a tool call touches.
    Path(Vec<String>),
}

impl Trigger {
    /// Returns what fires the skill of this name. The slash name of a task takes the text behind it as arguments.
    pub fn triggers(&self, name: &str) -> Triggers {
        match self {
            Self::None => Triggers::default(),
            Self::Keyword(keywords) => Triggers { keywords: keywords.clone(), ..Triggers::default() },
            Self::Task(keywords) => {
                Triggers { keywords: keywords.clone(), slash: vec![name.to_owned()], ..Triggers::default() }
            }
            Self::Path(paths) => Triggers { paths: paths.clone(), ..Triggers::default() },
        }
    }
}

/// A trigger with the inputs of a task.
#[derive(Debug, Default)]
pub(super) struct TriggerFields {
    pub(super) trigger: Trigger,
    pub(super) inputs: Vec<Input>,
}

pub(super) fn read(fields: &mut Fields, name: &str) -> TriggerFields {
    let paths = read_paths(fields);
    let has_inputs = fields.has("inputs");
    let inputs_position = fields.position_of("inputs");
    let triggers_position = fields.position_of("triggers");
    let has_triggers = fields.has("triggers");
    if !paths.is_empty() {
        // A list of anything: its items mean nothing here.
        read_list(fields, "triggers");
        fields.take("trigger");
        fields.take("inputs");
        for (is_there, position, field) in
            [(has_triggers, triggers_position, "triggers"), (has_inputs, inputs_position, "inputs")]
        {
            if is_there {
                fields.warn(
                    Code::UnusedField,
                    position,
                    format!("{field} is not read, since there are paths"),
                );
            }
        }
        return TriggerFields { trigger: Trigger::Path(paths), inputs: Vec::new() };
    }
    let keywords = read_keywords(fields);
    let inputs = read_inputs(fields);
    if has_inputs {
        let mut keywords = keywords;
        let slash = format!("/{name}");
        if !keywords.contains(&slash) {
            keywords.push(slash);
        }
        return TriggerFields { trigger: Trigger::Task(keywords), inputs };
    }
    let trigger = if keywords.is_empty() { Trigger::None } else { Trigger::Keyword(keywords) };
    TriggerFields { trigger, inputs }
}

fn read_paths(fields: &mut Fields) -> Vec<String> {
    let Some(node) = fields.take("paths") else { return Vec::new() };
    let paths: Vec<String> = match &node.value {
        YamlValue::Null => Vec::new(),
        YamlValue::Text(text) => text.split(',').map(str::to_owned).collect(),
        YamlValue::List(items) if items.iter().all(|item| item.scalar_text().is_some()) => {
            items.iter().filter_map(YamlNode::scalar_text).collect()
        }
        _ => {
            let message = "paths must be a list of text, or text with commas";
            fields.refuse(Code::SkillValidation, node.position, message);
            Vec::new()
        }
    };
    paths.iter().map(|path| path.trim().to_owned()).filter(|path| !path.is_empty()).collect()
}

fn read_keywords(fields: &mut Fields) -> Vec<String> {
    let object = fields.take("trigger");
    if !fields.has("triggers") {
        return object.map(|node| keywords_of_object(fields, &node)).unwrap_or_default();
    }
    let items = read_list(fields, "triggers");
    texts(fields, &items, "triggers")
}

/// Takes a field that must be a list if it is there.
fn read_list(fields: &mut Fields, field: &str) -> Vec<YamlNode> {
    let Some(node) = fields.take(field) else { return Vec::new() };
    let type_name = node.type_name();
    if let YamlValue::List(items) = node.value {
        return items;
    }
    let message = format!("{field} must be a list, not {type_name}");
    fields.refuse(Code::SkillValidation, node.position, message);
    Vec::new()
}

/// Reads `trigger: {type: keyword, keywords: [...]}`, and `triggers` in the place of `keywords`.
fn keywords_of_object(fields: &mut Fields, node: &YamlNode) -> Vec<String> {
    let YamlValue::Map(entries) = &node.value else {
        fields.warn(
            Code::UnusedField,
            node.position,
            "trigger is not read: it is no map of type and keywords",
        );
        return Vec::new();
    };
    let keywords = entries.iter().find(|(key, _)| key == "keywords" || key == "triggers");
    if let Some((_, YamlNode { value: YamlValue::List(items), .. })) = keywords {
        return texts(fields, items, "trigger.keywords");
    }
    fields.warn(Code::UnusedField, node.position, "trigger is not read: it has no list of keywords");
    Vec::new()
}

fn texts(fields: &mut Fields, items: &[YamlNode], field: &str) -> Vec<String> {
    let mut found = Vec::new();
    for item in items {
        if let YamlValue::Text(text) = &item.value {
            found.push(text.clone());
        } else {
            let message = format!("{field} must hold text, not {}; write it in quotes", item.type_name());
            fields.refuse(Code::FieldType, item.position, message);
        }
    }
    found
}

fn read_inputs(fields: &mut Fields) -> Vec<Input> {
    let items = read_list(fields, "inputs");
    items.iter().filter_map(|item| read_input(fields, item)).collect()
}

fn read_input(fields: &mut Fields, item: &YamlNode) -> Option<Input> {
    let YamlValue::Map(entries) = &item.value else {
        let message = format!("an input must be a map of name and description, not {}", item.type_name());
        fields.refuse(Code::FieldType, item.position, message);
        return None;
    };
    let find = |key: &str| entries.iter().find(|(name, _)| name == key).map(|(_, node)| node);
    let mut text = |key: &str| {
        if let Some(YamlValue::Text(text)) = find(key).map(|node| &node.value) {
            return Some(text.clone());
        }
        fields.refuse(Code::FieldType, item.position, format!("an input needs {key} as text"));
        None
    };
    let (name, description) = (text("name"), text("description"));
    let default = find("default").and_then(YamlNode::scalar_text);
    let is_required = match find("required").map(|node| &node.value) {
        Some(YamlValue::Boolean(value)) => *value,
        _ => default.is_none(),
    };
    let value_type = match find("type").and_then(YamlNode::scalar_text).as_deref() {
        Some("integer" | "int") => InputType::Integer,
        Some("number" | "float") => InputType::Number,
        Some("boolean" | "bool") => InputType::Boolean,
        _ => InputType::String,
    };
    Some(Input { name: name?, description: description?, value_type, is_required, default })
}
