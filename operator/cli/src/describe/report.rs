//! The description of a skill for people. Pure.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;
use skillet_api::{
    Skill,
    instructions::{ConfigMapKeyRef, Instructions},
    skill::{Invocation, Limits, Mode, Runtime, Sandbox, Tool},
};

use super::Description;
use crate::{executions, humanize, versions};

/// Column of the values, as kubectl's own.
const COLUMN: usize = 16;

/// Fields in the order of their questions: the state, the program, the call, the history.
pub(super) fn text(description: &Description, now: Timestamp) -> String {
    let Description { skill, example_input, versions, executions } = description;
    let mut text = state(skill, now);
    text += &conditions(skill);
    text += &instructions(skill);
    text += &program(skill);
    let tool = skill.spec.tool.as_ref();
    text += &schema("Input schema", tool.and_then(|tool: &Tool| tool.input_schema.as_ref()));
    text += &schema("Output schema", tool.and_then(|tool| tool.output_schema.as_ref()));
    if skill.spec.run.is_some() {
        text += &section("Example", &example(skill, example_input));
    }
    if let Some(versions) = versions {
        text += &section("Versions", &or_none(versions.is_empty(), versions::table(versions, now)));
    }
    if let Some(executions) = executions {
        let table = executions::table(executions, false, false, now).render();
        text += &section("Last executions", &or_none(executions.is_empty(), table));
    }
    text
}

fn field(name: &str, value: &str) -> String {
    let name = format!("{name}:");
    let lines = value.trim_end().replace('\n', &format!("\n{:COLUMN$}", ""));
    format!("{name:COLUMN$}{lines}\n")
}

fn section(title: &str, body: &str) -> String {
    let lines: String = body.trim_end().lines().flat_map(|line| ["  ", line, "\n"]).collect();
    format!("{title}:\n{lines}")
}

fn or_none(is_empty: bool, table: String) -> String {
    if is_empty { "<none>".to_owned() } else { table }
}

fn state(skill: &Skill, now: Timestamp) -> String {
    let spec = &skill.spec;
    let mode = match spec.mode {
        Mode::On => "on",
        Mode::Auto => "auto",
        Mode::Off => "off",
    };
    let invocation = match spec.invocation {
        Invocation::Auto => "auto",
        Invocation::Hybrid => "hybrid",
        Invocation::Manual => "manual",
    };
    let latest = skill.status.as_ref().and_then(|status| status.latest_version.as_deref());
    [
        field("Name", skill.metadata.name.as_deref().unwrap_or_default()),
        field("Namespace", skill.metadata.namespace.as_deref().unwrap_or_default()),
        field("Age", &humanize::age(skill.metadata.creation_timestamp.as_ref(), now)),
        field("Description", if spec.description.is_empty() { "<none>" } else { &spec.description }),
        field("Version", &spec.version),
        field("Latest", latest.unwrap_or("<none>")),
        field("Mode", mode),
        field("Enabled", &spec.enabled.to_string()),
        field("Invocation", invocation),
        field("Tags", &if spec.tags.is_empty() { "<none>".to_owned() } else { spec.tags.join(", ") }),
    ]
    .concat()
}

fn conditions(skill: &Skill) -> String {
    let status = skill.status.clone().unwrap_or_default();
    if status.conditions.is_empty() {
        return field(
            "Ready",
            "Unknown: the operator has not seen it; kubectl skill doctor checks the operator",
        );
    }
    let lines = status.conditions.iter().map(|condition| {
        let value = if condition.status == "True" {
            condition.status.clone()
        } else {
            format!("{} ({})\n{}", condition.status, condition.reason, condition.message)
        };
        field(&condition.type_, &value)
    });
    let is_old =
        status.observed_generation.is_some() && status.observed_generation != skill.metadata.generation;
    let note = "the operator has not seen the last change; the lines above are about the one before";
    lines.collect::<String>() + &if is_old { field("Note", note) } else { String::new() }
}

fn instructions(skill: &Skill) -> String {
    let Some(instructions) = &skill.spec.instructions else { return String::new() };
    let Instructions { body, body_from, activation, triggers, inputs, allowed_tools, denied_tools, .. } =
        instructions;
    let triggers = triggers.clone().unwrap_or_default();
    let inputs: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let files: Vec<String> = skill.spec.files.iter().map(|file| file.path.clone()).collect();
    let place = match body_from {
        Some(source) => {
            let ConfigMapKeyRef { name, key } = &source.config_map_key_ref;
            format!("key {key} of ConfigMap {name}")
        }
        None => format!("{} lines", body.lines().count()),
    };
    let mut text = field("Instructions", &format!("{place}, {activation:?}"));
    for (name, values) in [
        ("Keywords", &triggers.keywords),
        ("Slash", &triggers.slash),
        ("Paths", &triggers.paths),
        ("Inputs", &inputs),
        ("Allowed tools", allowed_tools),
        ("Denied tools", denied_tools),
        ("Bundle", &files),
    ] {
        if !values.is_empty() {
            text += &field(name, &values.join("\n"));
        }
    }
    text
}

fn program(skill: &Skill) -> String {
    let Some(run) = &skill.spec.run else { return String::new() };
    let nothing = Sandbox::default();
    let sandbox = run.sandbox.as_ref().unwrap_or(&nothing);
    let runtime = sandbox.runtime.map(|runtime| match runtime {
        Runtime::Shell => "shell",
        Runtime::Python => "python",
        Runtime::Node => "node",
    });
    let place = match (&sandbox.image, runtime) {
        (Some(image), _) => field("Image", image),
        (None, runtime) => field("Runtime", runtime.unwrap_or("<none>")),
    };
    let command = match &sandbox.script {
        Some(script) => field("Script", &format!("{} lines", script.lines().count())),
        None => field("Command", &sandbox.command.join(" ")),
    };
    let files: Vec<&str> = sandbox.files.iter().map(|file| file.path.as_str()).collect();
    let secrets: Vec<String> = sandbox
        .secret_env
        .iter()
        .map(|variable| format!("{} from key {} of Secret {}", variable.name, variable.key, variable.secret))
        .collect();
    let optional = |name: &str, values: &[String]| {
        if values.is_empty() { String::new() } else { field(name, &values.join("\n")) }
    };
    let files: Vec<String> = files.into_iter().map(String::from).collect();
    place
        + &command
        + &optional("Files", &files)
        + &optional("Secrets", &secrets)
        + &field("Limits", &limits(skill.spec.limits.as_ref()))
}

fn limits(limits: Option<&Limits>) -> String {
    let fields = limits.and_then(|limits| serde_json::to_value(limits).ok()).unwrap_or_default();
    let mut text = String::new();
    for (name, value) in fields.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        let comma = if text.is_empty() { "" } else { ", " };
        // A String takes every text.
        let _ = write!(text, "{comma}{name} {value}");
    }
    if text.is_empty() { "those of SkillPolicy".to_owned() } else { text }
}

fn schema(title: &str, schema: Option<&Value>) -> String {
    match schema.map(serde_json::to_string_pretty) {
        Some(Ok(text)) => section(title, &text),
        Some(Err(_)) | None => field(title, "<any JSON>"),
    }
}

/// A command that a shell takes as it is.
fn example(skill: &Skill, input: &Value) -> String {
    let name = skill.metadata.name.as_deref().unwrap_or_default();
    let namespace = skill.metadata.namespace.as_deref().unwrap_or_default();
    let quoted = input.to_string().replace('\'', r"'\''");
    format!("kubectl skill run {name} -n {namespace} --input '{quoted}'")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn describe(status: &Value) -> String {
        let skill: Skill = serde_json::from_value(json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill",
            "metadata": { "name": "count", "namespace": "team-a", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "version": "1.0.0", "description": "Counts words.", "tags": ["text"],
                "tool": { "inputSchema": { "type": "object" } },
                "run": { "sandbox": { "runtime": "shell", "script": "cat\n",
                    "secretEnv": [{ "name": "KEY", "secret": "mine", "key": "k" }] } },
                "limits": { "timeout": "10s", "memory": "64Mi" } },
            "status": status,
        }))
        .unwrap();
        let description = Description {
            skill,
            example_input: json!({ "text": "it's" }),
            versions: Some(Vec::new()),
            executions: None,
        };
        text(&description, "2026-01-01T00:00:09Z".parse().unwrap())
    }

    #[test]
    fn a_description_answers_state_program_call_and_history() {
        let condition = |kind: &str, status: &str| {
            json!({ "type": kind, "status": status, "reason": "VersionConflict", "message": "raise spec.version",
                "lastTransitionTime": "2026-01-01T00:00:00Z" })
        };
        let status = json!({ "observedGeneration": 2, "conditions": [condition("Ready", "True"), condition("Sealed", "False")] });
        assert_eq!(
            describe(&status),
            "\
Name:           count
Namespace:      team-a
Age:            9s
Description:    Counts words.
Version:        1.0.0
Latest:         <none>
Mode:           auto
Enabled:        true
Invocation:     auto
Tags:           text
Ready:          True
Sealed:         False (VersionConflict)
                raise spec.version
Runtime:        shell
Script:         1 lines
Secrets:        KEY from key k of Secret mine
Limits:         memory 64Mi, timeout 10s
Input schema:
  {
    \"type\": \"object\"
  }
Output schema:  <any JSON>
Example:
  kubectl skill run count -n team-a --input '{\"text\":\"it'\\''s\"}'
Versions:
  <none>
"
        );
    }

    #[test]
    fn a_skill_that_no_operator_has_seen_says_so() {
        assert!(describe(&json!(null)).contains("Ready:          Unknown: the operator has not seen it"));
    }
}
