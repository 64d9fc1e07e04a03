//! A `SkillExecution` as the gateway reads it: input and output, which tenants wrote, stay text.
//!
//! Parsed, a megabyte of small values takes a hundred, and of all who get an execution few look into it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use serde::Deserialize;
use serde_json::value::RawValue;
use skillet_api::{Phase, Reason, SkillExecution, execution::StreamStatus, mcp::McpCall};
use skillet_kube::RawObject;

/// As a list, a watch or a read shows it.
pub(super) type Found = RawObject<SkillExecution>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Execution {
    pub metadata: Metadata,
    pub spec: Spec,
    pub status: Option<Status>,
}

/// Without the fields' managers, who repeat the names of all fields of an input.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub labels: BTreeMap<String, String>,
    pub creation_timestamp: Option<Time>,
}

/// See `SkillExecutionSpec`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    pub skill: String,
    pub version: Option<String>,
    pub input: Option<Box<RawValue>>,
    pub script: Option<Box<RawValue>>,
    pub command: Option<Box<RawValue>>,
    pub mcp_server: Option<String>,
    pub mcp_call: Option<McpCall>,
    pub session_id: Option<String>,
    pub caller: Option<String>,
}

/// See `SkillExecutionStatus`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    pub phase: Phase,
    pub reason: Option<Reason>,
    pub message: Option<String>,
    pub resolved_version: Option<String>,
    pub digest: Option<String>,
    #[serde(rename = "imageID")]
    pub image_id: Option<String>,
    pub node: Option<String>,
    pub stdout: Option<StreamStatus>,
    pub attempts: u32,
    pub started_at: Option<MicroTime>,
    pub finished_at: Option<MicroTime>,
    pub duration_ms: Option<u64>,
    pub output: Option<Box<RawValue>>,
    pub stderr: Option<StreamStatus>,
    pub truncated: bool,
    pub exit_code: Option<i32>,
}

impl Execution {
    pub(super) fn read(found: &Found) -> Result<Self, kube::Error> {
        found.parse_unbounded().map_err(kube::Error::SerdeError)
    }

    /// Bytes of input, script, command and output.
    pub fn content(&self) -> usize {
        let output = self.status.as_ref().and_then(|status| status.output.as_ref());
        self.spec
            .input
            .iter()
            .chain(&self.spec.script)
            .chain(&self.spec.command)
            .chain(output)
            .map(|document| document.get().len())
            .sum()
    }

    /// Returns true if the execution has ended.
    pub fn is_ended(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.phase.is_terminal())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skillet_api::{
        SkillExecutionSpec, SkillExecutionStatus, dynamic::BodyCommand, execution::BundleScript,
    };

    use super::*;

    fn object() -> SkillExecution {
        let time = "2026-01-02T03:04:05.000001Z".parse().unwrap();
        let status = SkillExecutionStatus {
            phase: Phase::Failed,
            reason: Some(Reason::ExitCode),
            message: Some("m".into()),
            resolved_version: Some("1.0.0".into()),
            digest: Some("abc".into()),
            image_id: Some("r.example/a@sha256:1".into()),
            node: Some("n1".into()),
            stdout: Some(StreamStatus { head: "o".into(), ..StreamStatus::default() }),
            attempts: 2,
            started_at: Some(MicroTime(time)),
            finished_at: Some(MicroTime(time)),
            duration_ms: Some(7),
            output: Some(json!({ "n": 1 })),
            stderr: Some(StreamStatus { head: "h".into(), ..StreamStatus::default() }),
            truncated: true,
            exit_code: Some(3),
            ..SkillExecutionStatus::default()
        };
        let spec = SkillExecutionSpec {
            skill: "sum".into(),
            version: Some("*".into()),
            input: Some(json!({ "b": 1.5 })),
            script: Some(BundleScript { path: "p".into(), ..BundleScript::default() }),
            command: Some(BodyCommand { text: "c".into(), ..BodyCommand::default() }),
            mcp_server: Some("notes".into()),
            mcp_call: Some(McpCall { session: "x".into(), tool: Some("add".into()) }),
            session_id: Some("s".into()),
            caller: Some("c".into()),
            ..SkillExecutionSpec::default()
        };
        let mut object = SkillExecution { status: Some(status), ..SkillExecution::new("a", spec) };
        object.metadata.namespace = Some("ns".into());
        object.metadata.uid = Some("u".into());
        object.metadata.labels = Some([("of".into(), "team".into())].into());
        object.metadata.creation_timestamp = Some(Time(time));
        object
    }

    #[test]
    fn all_that_the_api_has_of_it_is_read() {
        let execution = Execution::read(&Found::new(&object()).unwrap()).unwrap();
        assert!(execution.is_ended());
        assert_eq!(execution.content(), r#"{"b":1.5}{"path":"p"}{"text":"c"}{"n":1}"#.len());
        let Execution { metadata, spec, status } = execution;
        let Metadata { name, namespace, uid, labels, creation_timestamp } = metadata;
        assert_eq!([&*name, &namespace, &uid, &labels["of"]], ["a", "ns", "u", "team"]);
        assert!(creation_timestamp.is_some());
        let Spec { skill, version, input, script, command, mcp_server, mcp_call, session_id, caller } = spec;
        assert_eq!((mcp_server.as_deref(), mcp_call.unwrap().tool.as_deref()), (Some("notes"), Some("add")));
        assert_eq!((script.unwrap().get(), command.unwrap().get()), (r#"{"path":"p"}"#, r#"{"text":"c"}"#));
        let texts = [Some(skill), version, input.map(|input| input.get().to_owned()), session_id, caller];
        assert_eq!(texts.map(Option::unwrap), ["sum", "*", r#"{"b":1.5}"#, "s", "c"]);
        let status = status.unwrap();
        assert_eq!((status.phase, status.reason), (Phase::Failed, Some(Reason::ExitCode)));
        assert_eq!((status.attempts, status.duration_ms, status.exit_code), (2, Some(7), Some(3)));
        assert!(status.started_at.is_some() && status.finished_at.is_some() && status.truncated);
        let output = status.output.map(|output| output.get().to_owned());
        let texts =
            [status.message, status.resolved_version, status.stderr.map(|stderr| stderr.head), output];
        assert_eq!(texts.map(Option::unwrap), ["m", "1.0.0", "h", r#"{"n":1}"#]);
        let texts = [status.digest, status.image_id, status.node, status.stdout.map(|stdout| stdout.head)];
        assert_eq!(texts.map(Option::unwrap), ["abc", "r.example/a@sha256:1", "n1", "o"]);
    }

    #[test]
    fn documents_stay_as_they_were_written_and_null_is_none() {
        let text = r#"{"spec":{"skill":"s","input": {"b":1.50, "a":"\u003c"}},"status":{"output":null}}"#;
        let execution = Execution::read(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(execution.spec.input.unwrap().get(), r#"{"b":1.50, "a":"\u003c"}"#);
        assert!(execution.status.unwrap().output.is_none());
    }

    #[test]
    fn one_that_was_just_made_has_no_status_yet() {
        let made = json!({ "metadata": { "name": "a" }, "spec": { "skill": "sum" } });
        let made = Execution::read(&serde_json::from_str(&made.to_string()).unwrap()).unwrap();
        assert!(made.status.is_none() && made.spec.input.is_none() && !made.is_ended());
    }
}
