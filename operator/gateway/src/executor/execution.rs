//! A `SkillExecution` as the gateway reads it: input and output, which tenants wrote, stay text.
//!
//! Parsed, a megabyte of small values takes a hundred, and of all who get an execution few look into it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use serde::Deserialize;
use serde_json::value::RawValue;
use skillet_api::{Phase, Reason, SkillExecution, execution::StreamStatus};

use crate::unread::Unread;

/// As a list, a watch or a read shows it.
pub(super) type Found = Unread<SkillExecution>;

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
        found.read_as().map_err(kube::Error::SerdeError)
    }

    /// Bytes of input and output.
    pub fn content(&self) -> usize {
        let output = self.status.as_ref().and_then(|status| status.output.as_ref());
        self.spec.input.iter().chain(output).map(|document| document.get().len()).sum()
    }

    /// Whether nothing will change any more.
    pub fn is_ended(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.phase.is_terminal())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_api_server_holds_is_read_and_documents_are_as_they_were_written() {
        let object = json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution",
            "metadata": { "name": "a", "namespace": "ns", "uid": "u", "labels": { "of": "team" },
                "creationTimestamp": "2026-01-02T03:04:05Z", "managedFields": [{ "fieldsV1": { "f:spec": {} } }] },
            "spec": { "skill": "sum", "version": "*", "sessionId": "s", "caller": "c", "cancel": false },
            "status": { "phase": "Failed", "reason": "ExitCode", "message": "m", "resolvedVersion": "1.0.0", "attempts": 2,
                "startedAt": "2026-01-02T03:04:05.000001Z", "finishedAt": "2026-01-02T03:04:06.000001Z", "durationMs": 7,
                "stderr": { "head": "h", "bytes": 1, "sha256": "" }, "truncated": true, "exitCode": 3, "output": null,
                "conditions": [], "node": "n" },
        });
        let text = object.to_string().replace("\"cancel\":false", r#""input": {"b":1.50, "a":"\u003c"}"#);
        let execution = Execution::read(&serde_json::from_str(&text).unwrap()).unwrap();
        assert!(execution.is_ended());
        let Execution { metadata, spec, status } = execution;
        assert_eq!(
            [&*metadata.name, &metadata.namespace, &metadata.uid, &metadata.labels["of"]],
            ["a", "ns", "u", "team"]
        );
        assert!(metadata.creation_timestamp.is_some());
        assert_eq!([Some(&*spec.skill), spec.version.as_deref()], [Some("sum"), Some("*")]);
        assert_eq!([spec.session_id.as_deref(), spec.caller.as_deref()], [Some("s"), Some("c")]);
        assert_eq!(spec.input.unwrap().get(), r#"{"b":1.50, "a":"\u003c"}"#);
        let status = status.unwrap();
        assert_eq!((status.reason, status.message.as_deref()), (Some(Reason::ExitCode), Some("m")));
        assert_eq!((status.attempts, status.duration_ms, status.exit_code), (2, Some(7), Some(3)));
        assert!(status.started_at.is_some() && status.finished_at.is_some() && status.truncated);
        assert_eq!(
            (status.stderr.unwrap().head.as_str(), status.resolved_version.as_deref()),
            ("h", Some("1.0.0"))
        );
        assert!(status.output.is_none(), "null is none");
    }

    #[test]
    fn one_that_was_just_made_has_no_status_yet() {
        let made = json!({ "metadata": { "name": "a" }, "spec": { "skill": "sum" } });
        let made = Execution::read(&serde_json::from_str(&made.to_string()).unwrap()).unwrap();
        assert!(made.status.is_none() && made.spec.input.is_none() && !made.is_ended());
    }
}
