//! Reads a file of instructions: `SKILL.md`, a flat `.md` file, or the file of another product.
//!
//! Reading is lenient: a finding that leaves a meaning is a warning. A field with a wrong type is refused, since a restriction
//! that is dropped in silence would be worse than no skill.

mod fields;
mod repair;
mod trigger;

use std::collections::BTreeMap;

use serde_json::Value;

pub use self::trigger::Trigger;
use self::{fields::Fields, repair::parse_frontmatter};
use crate::{
    Code, Diagnostic, Position, frontmatter,
    inputs::{Input, variables},
    mcp, names,
    third_party::ThirdParty,
    tools,
    yaml::{YamlNode, YamlValue},
};

/// Longest description, in characters.
pub const DESCRIPTION_LIMIT: usize = 1024;

/// Kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    SkillMd,
    /// Any other `.md` file.
    Flat,
    ThirdParty(ThirdParty),
}

/// The name of a file, as far as its meaning depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileName<'a> {
    /// Last part of the path.
    pub name: &'a str,
    /// Name of a skill that names none: of the directory of a SKILL.md, or of a flat file without its extension.
    pub default_name: &'a str,
}

/// Choices of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Refuse the name of a SKILL.md that breaks the standard's rules. Otherwise it is a warning.
    pub is_name_strict: bool,
    /// Quote prose that is no YAML, such as `description: Use when: x`, and say so. Otherwise it is refused.
    pub is_repairing: bool,
}

impl Reading {
    pub const LENIENT: Self = Self { is_name_strict: false, is_repairing: true };
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillDocument {
    pub name: String,
    pub kind: FileKind,
    pub description: Option<String>,
    /// Text behind the frontmatter, without white space around it; of another product's file, all of its text.
    pub body: String,
    pub trigger: Trigger,
    pub inputs: Vec<Input>,
    pub license: Option<String>,
    pub compatibility: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub allowed_tools: Vec<String>,
    pub disable_model_invocation: bool,
    pub user_invocable: Option<bool>,
    pub argument_hint: Option<String>,
    pub mcp_servers: serde_json::Map<String, Value>,
    /// Fields that mean nothing to Skillet.
    pub unknown_fields: BTreeMap<String, Value>,
    pub warnings: Vec<Diagnostic>,
}

impl SkillDocument {
    /// True if a user must be asked for values: the reference adds a sentence to the body of a task with inputs.
    pub fn asks_for_inputs(&self) -> bool {
        let is_task = matches!(self.trigger, Trigger::Task(_));
        is_task && !self.body.is_empty() && (!self.inputs.is_empty() || self.requires_user_input())
    }

    /// True if the body has variables.
    pub fn requires_user_input(&self) -> bool {
        !variables(&self.body).is_empty()
    }
}

/// The place of a skill's text in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The whole text, always.
    Always,
    /// Name and description in the listing.
    Listed,
    /// Nothing, until a trigger fires or a user names it.
    Hidden,
}

impl SkillDocument {
    /// Returns the place of the text before any trigger fires.
    pub fn placement(&self) -> Placement {
        match (self.kind, &self.trigger) {
            (_, Trigger::Path(_)) => Placement::Hidden,
            (FileKind::Flat | FileKind::ThirdParty(_), Trigger::None) => Placement::Always,
            _ if self.disable_model_invocation => Placement::Hidden,
            _ => Placement::Listed,
        }
    }
}

/// Reads the bytes of a file. The error has at least one finding that is an error.
pub fn read(bytes: &[u8], file: FileName<'_>, reading: Reading) -> Result<SkillDocument, Vec<Diagnostic>> {
    let text = decode(bytes).map_err(|error| vec![error])?;
    let mut kind = FileKind::Flat;
    if let Some(product) = ThirdParty::of_file_name(file.name) {
        return Ok(raw(product, &text));
    }
    if file.name.eq_ignore_ascii_case("SKILL.md") {
        kind = FileKind::SkillMd;
    }
    let split = frontmatter::split(&text);
    let mut fields = Fields::new(split.lines_before);
    if let Some(yaml) = split.frontmatter {
        fields.fill(
            parse_frontmatter(yaml, split.lines_before, reading.is_repairing).map_err(|error| vec![error])?,
        );
    }
    let name = read_name(&mut fields, kind, file.default_name, reading);
    let trigger = trigger::read(&mut fields, &name);
    let mcp_servers = read_mcp(&mut fields, kind);
    let document = SkillDocument {
        kind,
        description: read_description(&mut fields),
        body: split.body.trim_matches(is_space).to_owned(),
        license: fields.text("license"),
        compatibility: fields.text("compatibility"),
        metadata: fields.metadata(),
        allowed_tools: read_tools(&mut fields),
        disable_model_invocation: fields
            .flag(&["disable-model-invocation", "disable_model_invocation"])
            .unwrap_or(false)
            || matches!(trigger.trigger, Trigger::Path(_)),
        user_invocable: fields.hint_flag(&["user-invocable", "user_invocable"]),
        argument_hint: fields.hint("argument-hint"),
        unknown_fields: fields.rest(),
        inputs: trigger.inputs,
        trigger: trigger.trigger,
        name,
        mcp_servers,
        warnings: Vec::new(),
    };
    match fields.finish() {
        Ok(warnings) => Ok(SkillDocument { warnings, ..document }),
        Err(found) => Err(found),
    }
}

/// True for white space and the separators of ASCII, which Python takes for it, too.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Ends each line by a single line feed, as Python reads texts.
pub fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

pub(crate) fn decode(bytes: &[u8]) -> Result<String, Diagnostic> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let position = Position {
            line: before.split(|b| *b == b'\n').count(),
            column: String::from_utf8_lossy(&before[line_start..]).chars().count() + 1,
        };
        Diagnostic::error(Code::Encoding, position, "is not UTF-8")
    })?;
    Ok(with_line_feeds(text))
}

fn raw(product: ThirdParty, text: &str) -> SkillDocument {
    SkillDocument {
        name: product.skill_name().to_owned(),
        kind: FileKind::ThirdParty(product),
        description: None,
        body: text.to_owned(),
        trigger: Trigger::None,
        inputs: Vec::new(),
        license: None,
        compatibility: None,
        metadata: BTreeMap::new(),
        allowed_tools: Vec::new(),
        disable_model_invocation: false,
        user_invocable: None,
        argument_hint: None,
        mcp_servers: serde_json::Map::new(),
        unknown_fields: BTreeMap::new(),
        warnings: Vec::new(),
    }
}

fn read_name(fields: &mut Fields, kind: FileKind, default: &str, reading: Reading) -> String {
    let position = fields.position_of("name");
    let mut name = default.to_owned();
    if let Some(node) = fields.take("name") {
        let is_null = node.value == YamlValue::Null;
        let written = if is_null { String::new() } else { node.text_or_json() };
        if matches!(node.value, YamlValue::List(_) | YamlValue::Map(_)) {
            let message = format!("name must be text, not {}; it is read as written", node.type_name());
            fields.warn(Code::SkillValidation, position, message);
        }
        if written.trim().is_empty() {
            let message = "name is empty; the name of the file or directory is used";
            fields.warn(Code::EmptyName, position, message);
        } else {
            written.trim().clone_into(&mut name);
        }
        if kind == FileKind::SkillMd && reading.is_name_strict && written != name {
            fields.refuse(Code::SkillValidation, position, "name is empty, or has white space around it");
        }
    }
    if kind == FileKind::SkillMd {
        for error in names::check(&name, Some(default)) {
            if reading.is_name_strict {
                fields.refuse(Code::SkillValidation, position, error.message());
            } else {
                fields.warn(Code::SkillValidation, position, error.message());
            }
        }
    }
    name
}

/// Cuts a long description in its middle, so that both its purpose and its last words stay.
fn read_description(fields: &mut Fields) -> Option<String> {
    let position = fields.position_of("description");
    let description = fields.text("description")?;
    fields.warn_if_cut(position, "description");
    let length = description.chars().count();
    if length <= DESCRIPTION_LIMIT {
        return Some(description);
    }
    let message =
        format!("description has {length} characters; its middle is cut to keep {DESCRIPTION_LIMIT}");
    fields.warn(Code::DescriptionTooLong, position, message);
    Some(cut_middle(&description))
}

/// Returns the head and the tail of a text, in as many characters as a description has at most.
pub fn cut_middle(text: &str) -> String {
    const NOTICE: &str = " [... cut: see the skill's file ...] ";
    let length = text.chars().count();
    if length <= DESCRIPTION_LIMIT {
        return text.to_owned();
    }
    let kept = DESCRIPTION_LIMIT - NOTICE.chars().count();
    let head: String = text.chars().take(kept.div_ceil(2)).collect();
    let tail: String = text.chars().skip(length - kept / 2).collect();
    format!("{head}{NOTICE}{tail}")
}

fn read_tools(fields: &mut Fields) -> Vec<String> {
    let position = fields.position_of("allowed-tools");
    let hyphen = fields.take("allowed-tools");
    let underscore = fields.take("allowed_tools");
    let Some(node) = hyphen.or(underscore) else { return Vec::new() };
    match &node.value {
        YamlValue::Null => Vec::new(),
        YamlValue::Text(text) => tools::split(text),
        YamlValue::List(items) => items.iter().map(YamlNode::text_or_json).collect(),
        _ => {
            let message = format!("allowed-tools must be text or a list, not {}", node.type_name());
            fields.refuse(Code::SkillValidation, position, message);
            Vec::new()
        }
    }
}

fn read_mcp(fields: &mut Fields, kind: FileKind) -> serde_json::Map<String, Value> {
    let position = fields.position_of("mcp_tools");
    if kind == FileKind::SkillMd {
        if fields.has("mcp_tools") {
            fields.warn(
                Code::UnusedField,
                position,
                "mcp_tools is not read; write .mcp.json beside the file",
            );
        }
        return serde_json::Map::new();
    }
    let Some(node) = fields.take("mcp_tools") else { return serde_json::Map::new() };
    mcp::servers(&node.to_json()).unwrap_or_else(|problem| {
        let is_map = matches!(node.value, YamlValue::Map(_));
        let code = if is_map { Code::FieldType } else { Code::SkillValidation };
        fields.refuse(code, position, format!("mcp_tools: {problem}"));
        serde_json::Map::new()
    })
}

#[cfg(test)]
mod tests;
