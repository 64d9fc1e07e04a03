//! The tools that run scripts of bundles: their definitions, and the script that a call names.

use std::sync::Arc;

use serde_json::{Value, json};
use skillet_api::{Reason, execution::BundleScript};
use skillet_llm::ToolDefinition;

use super::{
    VisibleGuide,
    calls::{GuideScope, Refused, target},
};
use crate::model::offered_tools::{InstructionsAction, Target};

/// Names of the tools, unless the client or another tool has them.
pub(super) const RUN_SCRIPT: &str = "run_skill_script";
pub(in crate::model) const RUN_SCRIPT_WITH_CONFIRMATION: &str = "run_skill_script_with_confirmation";

/// Returns the tool that runs scripts of these skills; `None` if they have no scripts.
pub(super) fn definition(
    name: &Arc<str>,
    guides: &[&VisibleGuide<'_>],
    action: InstructionsAction,
) -> Option<ToolDefinition> {
    let is_confirmed = action == InstructionsAction::RunScriptWithConfirmation;
    let runs = |guide: &&&VisibleGuide<'_>| {
        !guide.instructions.scripts.is_empty() && guide.is_confirmed() == is_confirmed
    };
    let names: Vec<&str> = guides.iter().filter(runs).map(|guide| guide.name()).collect();
    if names.is_empty() {
        return None;
    }
    let parameters = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "enum": names, "description": "The name of the skill." },
            "path": { "type": "string", "description": "The path of a script among the skill's files." },
            "args": { "type": "array", "items": { "type": "string" }, "description": "The arguments of the script." },
            "stdin": { "type": "string", "description": "Text for its standard input." },
        },
        "required": ["name", "path"],
    });
    let mut description = "Runs a script that belongs to a skill, in a sandbox without network whose working directory has the \
         skill's files. Returns its exit code, standard output and standard error."
        .to_owned();
    if is_confirmed {
        description.push_str(" A person confirms the call first.");
    }
    Some(ToolDefinition {
        name: name.clone(),
        description: description.into(),
        parameters: Arc::new(parameters),
    })
}

/// Returns the skill and the script that a call names, if the script can run.
pub(in crate::model) fn script_of(
    arguments: &Value,
    scope: GuideScope<'_>,
) -> Result<(Target, BundleScript), Refused> {
    let (name, script) =
        read_script(arguments).map_err(|message| (Reason::InputInvalid.as_str(), message))?;
    let guide = scope.with_files(name)?;
    let scripts = &guide.instructions.scripts;
    if scripts.contains(&script.path) {
        return Ok((target(&guide), script));
    }
    let (path, name) = (&script.path, guide.name());
    let (reason, fault) = if guide.instructions.files.contains(path) {
        (Reason::NoInterpreter, format!("no interpreter is known for {path:?} of skill {name}"))
    } else {
        (Reason::FileNotFound, format!("skill {name} has no file {path:?}"))
    };
    let scripts = if scripts.is_empty() { "none".to_owned() } else { scripts.join(", ") };
    Err((reason.as_str(), format!("{fault}; its scripts: {scripts}")))
}

/// Reads the name of the skill and the script. Models also write numbers as arguments, and JSON as standard input.
pub(in crate::model) fn read_script(arguments: &Value) -> Result<(&str, BundleScript), String> {
    let text = |field: &str| match arguments[field].as_str().map(str::trim) {
        Some(text) if !text.is_empty() => Ok(text),
        Some(_) | None => Err(format!("`{field}` is missing")),
    };
    let args = match &arguments["args"] {
        Value::Null => Vec::new(),
        Value::Array(args) => args.iter().map(as_text).collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            return Err("`args` is no list of strings, such as [\"--width\", \"3\"]".to_owned());
        }
    };
    let stdin = match &arguments["stdin"] {
        Value::Null => String::new(),
        stdin => as_text(stdin),
    };
    let path = text("path")?.trim_start_matches("./").to_owned();
    Ok((text("name")?, BundleScript { path, args, stdin }))
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests;
