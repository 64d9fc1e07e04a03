//! Calls of the tools that read instructions and files.

use std::sync::Arc;

use serde_json::{Value, json};
use skillet_instructions::{
    block::defuse,
    inputs::{CallValues, Input, InputType},
};
use skillet_offer::SkillFilter;

use super::{VisibleGuide, find};
use crate::{
    catalog::Namespace,
    commands::{BodyText, CommandEnds},
    model::offered_tools::Target,
};

/// The name under which the body is read like a file.
const BODY: &str = "SKILL.md";
/// Bytes of a result beside its text.
const FRAME_BYTES: usize = 2048;

/// A call that reads.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::model) struct ReadRequest {
    pub(in crate::model) target: Target,
    pub(in crate::model) action: ReadAction,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::model) enum ReadAction {
    /// The text of this result, which was complete when the call was read.
    Text(Value),
    /// A body whose commands are to run first.
    Body(BodyText),
    File {
        path: String,
        offset: usize,
    },
}

/// A reason and a message for the model.
pub(crate) type Refused = (&'static str, String);

/// Reads a call for instructions.
pub(in crate::model) fn read_instructions(
    arguments: &Value,
    scope: GuideScope<'_>,
) -> Result<ReadRequest, Refused> {
    let guide = scope.listed(arguments["name"].as_str().unwrap_or_default())?;
    let values = CallValues {
        named: named(&arguments["inputs"]),
        text: arguments["arguments"].as_str().unwrap_or_default().to_owned(),
    };
    Ok(ReadRequest { target: target(&guide), action: ReadAction::Body(guide.body(values)) })
}

/// Reads a call for a file of a bundle.
pub(in crate::model) fn read_bundle_file(
    arguments: &Value,
    scope: GuideScope<'_>,
    max_bytes: usize,
) -> Result<ReadRequest, Refused> {
    let guide = scope.with_files(arguments["name"].as_str().unwrap_or_default())?;
    let path = arguments["path"].as_str().unwrap_or_default().trim_start_matches("./");
    let offset = arguments["offset"].as_u64().and_then(|offset| usize::try_from(offset).ok());
    let action = read_path(&guide, path, offset.unwrap_or_default(), max_bytes)?;
    Ok(ReadRequest { target: target(&guide), action })
}

/// The skills that calls may name.
#[derive(Clone, Copy)]
pub(in crate::model) struct GuideScope<'a> {
    pub(in crate::model) namespaces: &'a [Arc<Namespace>],
    pub(in crate::model) filter: &'a SkillFilter,
    /// Names of those whose text is in the conversation.
    pub(in crate::model) present: &'a [Arc<str>],
}

impl<'a> GuideScope<'a> {
    /// Returns the listed skill of a name. A hidden skill is for users: a model gets it by a trigger alone.
    fn listed(self, name: &str) -> Result<VisibleGuide<'a>, Refused> {
        self.find(name, |guide| guide.instructions.is_listed())
    }

    /// Returns the skill of a name whose files a model may use: a listed one, or one whose text it has got.
    pub(super) fn with_files(self, name: &str) -> Result<VisibleGuide<'a>, Refused> {
        let is_present = self.present.iter().any(|present| **present == *name);
        self.find(name, |guide| is_present || guide.instructions.is_listed())
    }

    fn find(
        self,
        name: &str,
        is_for_model: impl Fn(&VisibleGuide<'a>) -> bool,
    ) -> Result<VisibleGuide<'a>, Refused> {
        find(self.namespaces, self.filter, name).filter(is_for_model).ok_or_else(|| {
            let message = format!("there are no instructions of a skill {name:?}; the listing has the names");
            ("SkillNotFound", message)
        })
    }
}

pub(super) fn target(guide: &VisibleGuide<'_>) -> Target {
    Target {
        namespace: guide.namespace.to_string(),
        skill: guide.name().to_owned(),
        version: guide.version.spec.version.to_string(),
        confirm: guide.is_confirmed(),
    }
}

fn read_path(
    guide: &VisibleGuide<'_>,
    path: &str,
    offset: usize,
    max_bytes: usize,
) -> Result<ReadAction, Refused> {
    if guide.instructions.image_files.iter().any(|file| file == path) {
        let message = format!(
            "{path} is in an image, which only programs can read; a script of the skill finds it in the folder that SKILL_DIR names"
        );
        return Err(("NotText", message));
    }
    if guide.instructions.files.iter().any(|file| file == path) {
        return Ok(ReadAction::File { path: path.to_owned(), offset });
    }
    if path == BODY {
        return Ok(ReadAction::Text(read_text(path, &guide.instructions.body, offset, max_bytes)));
    }
    let files = guide.instructions.files.join(", ");
    Err(("FileNotFound", format!("skill {} has no file {path:?}; it has: {files}", guide.name())))
}

/// Returns the result for a body with the ends of its commands, in at most these bytes.
pub(crate) fn read_body(body: &BodyText, ends: &CommandEnds, max_bytes: usize) -> Result<Value, Refused> {
    let text = body.text(ends).map_err(|missing| ("InputInvalid", missing.to_string()))?;
    let mut result = json!({ "skill": *body.skill, "version": &*body.version.spec.version });
    let Some(instructions) = body.instructions() else { return Ok(result) };
    if !instructions.inputs.is_empty() {
        result["inputs"] = instructions.inputs.iter().map(input_json).collect();
    }
    for (name, list) in [
        ("allowedTools", &instructions.allowed_tools),
        ("deniedTools", &instructions.denied_tools),
        ("files", &instructions.files),
    ] {
        if !list.is_empty() {
            result[name] = list.to_vec().into();
        }
    }
    let room = max_bytes.saturating_sub(result.to_string().len());
    let part = read_text(BODY, &text, 0, room);
    result["instructions"] = part["text"].clone();
    if let Some(next) = part.get("nextOffset") {
        // Offsets are those of the text as it is written.
        result["message"] = if *text == *instructions.body {
            format!("there is more text; read the path {BODY} of this skill from offset {next}").into()
        } else {
            format!("the text was cut; the path {BODY} of this skill is all of it, as it is written").into()
        };
    }
    Ok(result)
}

fn named(inputs: &Value) -> std::collections::BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    inputs.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect()
}

fn input_json(input: &Input) -> Value {
    let value_type = match input.value_type {
        InputType::String => "string",
        InputType::Integer => "integer",
        InputType::Number => "number",
        InputType::Boolean => "boolean",
    };
    json!({ "name": input.name, "description": input.description, "type": value_type, "required": input.is_required })
}

/// Returns the part of a text from an offset that fits these bytes as JSON, and the offset behind it if there is more.
pub(in crate::model) fn read_text(path: &str, text: &str, offset: usize, max_bytes: usize) -> Value {
    let start = (offset..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let rest = &text[start..];
    let (mut room, mut end) = (max_bytes.saturating_sub(FRAME_BYTES).max(1024), rest.len());
    for (at, c) in rest.char_indices() {
        let written = match c {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            c if c < ' ' => 6,
            c => c.len_utf8(),
        };
        let Some(left) = room.checked_sub(written) else {
            end = at;
            break;
        };
        room = left;
    }
    let mut part = json!({ "path": path, "text": defuse(&rest[..end]) });
    if end < rest.len() {
        part["nextOffset"] = (start + end).into();
    }
    part
}

/// Returns the result for a file's bytes.
pub(crate) fn read_file(
    path: &str,
    bytes: Option<Vec<u8>>,
    offset: usize,
    max_bytes: usize,
) -> Result<Value, Refused> {
    let Some(bytes) = bytes else {
        return Err(("FileNotFound", format!("the file {path:?} is not there any more")));
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(read_text(path, &text, offset, max_bytes)),
        Err(error) => {
            let length = error.as_bytes().len();
            Err((
                "NotText",
                format!("{path} has {length} bytes that are no text; only programs can use them"),
            ))
        }
    }
}
