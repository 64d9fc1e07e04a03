//! A SkillExecution as the watch shows it, without input and output, and of a script or a command only its name: tenants
//! write the rest, and few readers need it.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::Resource as _;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};
use skillet_api::{
    Phase, Reason, SkillExecution, SkillExecutionSpec, SkillExecutionStatus, duration::SkillDuration,
    dynamic::BodyCommand, execution::BundleScript, mcp::McpCall, names,
};
use skillet_kube::{ParseError, RawObject};

/// An input of more bytes than this is read again when it is needed.
const LARGE_INPUT: usize = 4 * 1024;

#[derive(Deserialize)]
struct Stored {
    metadata: Metadata,
    spec: Spec,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    creation_timestamp: Option<Time>,
    #[serde(default)]
    annotations: Annotations,
}

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(rename = "skillet.dev/request-id")]
    request_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    skill: String,
    version: Option<String>,
    timeout: Option<SkillDuration>,
    retries: Option<u32>,
    input: Option<IgnoredAny>,
    script: Option<ScriptPath>,
    command: Option<CommandText>,
    mcp_server: Option<String>,
    mcp_call: Option<McpCall>,
    caller: Option<String>,
    #[serde(default)]
    cancel: bool,
}

#[derive(Deserialize)]
struct ScriptPath {
    path: String,
}

#[derive(Deserialize)]
struct CommandText {
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    phase: Phase,
    reason: Option<Reason>,
    resolved_version: Option<String>,
    #[serde(default)]
    attempts: u32,
    started_at: Option<MicroTime>,
    finished_at: Option<MicroTime>,
    job: Option<String>,
}

#[derive(Deserialize)]
struct WithInput {
    spec: InputOnly,
}

#[derive(Deserialize)]
struct InputOnly {
    input: Option<Box<RawValue>>,
    script: Option<Box<RawValue>>,
    command: Option<Box<RawValue>>,
}

/// Reads an execution without its input and the values of its script or command, and the fields of its status by which a run resumes.
pub(super) fn read(raw: &RawObject<SkillExecution>) -> Result<SkillExecution, ParseError> {
    let Stored { metadata, spec, status } = raw.parse_part()?;
    let Spec {
        skill,
        version,
        timeout,
        retries,
        input,
        script,
        command,
        mcp_server,
        mcp_call,
        caller,
        cancel,
    } = spec;
    // An input beside one of these is refused, so it must be seen that there is one.
    let takes_none = script.is_some() || command.is_some() || mcp_server.is_some();
    let input = (input.is_some() && takes_none).then_some(Value::Null);
    let script = script.map(|ScriptPath { path }| BundleScript { path, ..BundleScript::default() });
    let command = command.map(|CommandText { text }| BodyCommand { text, ..BodyCommand::default() });
    let spec = SkillExecutionSpec {
        skill,
        version,
        timeout,
        retries,
        input,
        script,
        command,
        mcp_server,
        mcp_call,
        caller,
        cancel,
        ..SkillExecutionSpec::default()
    };
    let mut execution = SkillExecution::new("", spec);
    execution.metadata = raw.meta().clone();
    execution.metadata.creation_timestamp = metadata.creation_timestamp;
    let request_id = metadata.annotations.request_id;
    execution.metadata.annotations =
        request_id.map(|id| [(names::ANNOTATION_REQUEST_ID.to_owned(), id)].into());
    execution.status = status.map(|status| {
        let Status { phase, reason, resolved_version, attempts, started_at, finished_at, job } = status;
        SkillExecutionStatus {
            phase,
            reason,
            resolved_version,
            attempts,
            started_at,
            finished_at,
            job,
            ..SkillExecutionStatus::default()
        }
    });
    Ok(execution)
}

/// Reads the input, or the script or command with its values, as JSON text.
pub(super) fn input(raw: &RawObject<SkillExecution>) -> Result<Arc<str>, ParseError> {
    let WithInput { spec: InputOnly { input, script, command } } = raw.parse_part()?;
    Ok(script.or(command).or(input).map_or_else(|| "{}".into(), |input| input.get().into()))
}

/// Reads the input if it is small.
pub(super) fn small_input(raw: &RawObject<SkillExecution>) -> Option<Arc<str>> {
    input(raw).ok().filter(|input| input.len() <= LARGE_INPUT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(spec: &serde_json::Value) -> RawObject<SkillExecution> {
        let metadata = json!({ "name": "e", "namespace": "ns", "uid": "u", "annotations": { "skillet.dev/request-id": "r", "a": "b" } });
        let status = json!({ "phase": "Running", "attempts": 2, "job": "run-u-3", "output": { "a": 1 } });
        let object = json!({ "metadata": metadata, "spec": spec, "status": status });
        serde_json::from_str(&object.to_string()).unwrap()
    }

    #[test]
    fn an_execution_is_kept_without_its_input_and_output() {
        let large = json!(vec![0; 10_000]);
        let stored = raw(
            &json!({ "skill": "s", "timeout": "3s", "cancel": true, "input": large, "caller": "ns/agent" }),
        );
        let execution = read(&stored).unwrap();
        assert_eq!((execution.spec.skill.as_str(), execution.spec.cancel), ("s", true));
        assert_eq!(execution.spec.caller.as_deref(), Some("ns/agent"));
        assert_eq!(execution.spec.input, None);
        let status = execution.status.unwrap();
        assert_eq!((status.phase, status.attempts, status.output), (Phase::Running, 2, None));
        assert_eq!(execution.metadata.annotations.unwrap()[names::ANNOTATION_REQUEST_ID], "r");
        assert_eq!(small_input(&stored), None);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&input(&stored).unwrap()).unwrap(), large);
    }

    #[test]
    fn a_small_input_is_kept_as_text_and_a_missing_one_is_an_object() {
        let check = |spec, expected: &str| assert_eq!(small_input(&raw(&spec)).as_deref(), Some(expected));
        check(json!({ "skill": "s", "input": { "n": 1.5 } }), r#"{"n":1.5}"#);
        check(json!({ "skill": "s" }), "{}");
        check(json!({ "skill": "s", "input": null }), "{}");
    }

    #[test]
    fn of_a_script_the_path_is_kept_and_the_rest_is_text() {
        let script = json!({ "path": "a.py", "args": ["x"], "stdin": "in" });
        let stored = raw(&json!({ "skill": "s", "script": script }));
        let spec = read(&stored).unwrap().spec;
        assert_eq!(spec.script, Some(BundleScript { path: "a.py".into(), ..BundleScript::default() }));
        assert_eq!(spec.input, None);
        assert_eq!(serde_json::from_str::<Value>(&input(&stored).unwrap()).unwrap(), script);
        let both = raw(&json!({ "skill": "s", "script": script, "input": { "a": 1 } }));
        assert_eq!(read(&both).unwrap().spec.input, Some(Value::Null));
    }

    #[test]
    fn of_a_command_the_text_is_kept_and_the_rest_is_text() {
        let command = json!({ "text": "git log", "arguments": "v1", "inputs": { "tag": "v1" } });
        let spec = read(&raw(&json!({ "skill": "s", "command": command }))).unwrap().spec;
        assert_eq!(spec.command, Some(BodyCommand { text: "git log".into(), ..BodyCommand::default() }));
        let both = raw(&json!({ "skill": "s", "command": command, "input": { "a": 1 } }));
        assert_eq!(serde_json::from_str::<Value>(&input(&both).unwrap()).unwrap(), command);
        assert_eq!(read(&both).unwrap().spec.input, Some(Value::Null));
    }

    #[test]
    fn a_field_that_does_not_parse_is_named() {
        let error = read(&raw(&json!({ "skill": "s", "timeout": 10 }))).unwrap_err();
        assert!(error.to_string().starts_with("the object does not parse: spec.timeout: "), "{error}");
    }
}
