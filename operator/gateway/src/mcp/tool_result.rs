//! Results of tool calls: the output of a run, or the reason why there is none, in words that a model can use.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, Value, json, value::RawValue};
use skillet_api::{Phase, Reason, execution::StreamStatus};
use skillet_core::text::truncate;
use tracing::warn;

use crate::{
    auth::AuthError,
    executions::{Execution, Status, script_result},
    service::ServiceError,
};

/// Bytes of standard error that a failure shows.
const STDERR_BYTES: usize = 4096;

/// A tool that did what it was asked.
pub(super) fn done(value: Value) -> CallToolResult {
    let text = ContentBlock::text(value.to_string());
    let mut result = CallToolResult::success(vec![text]);
    result.structured_content = Some(value);
    result
}

/// A tool that did not. There is no structured content: it would have to fit the tool's output schema.
pub(super) fn failed(reason: &str, message: &str) -> CallToolResult {
    failure(&json!({ "reason": reason, "message": message }))
}

fn failure(value: &Value) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(value.to_string())])
}

/// Bytes that the answer to an execution takes: its output as a document and three times as text.
pub(super) fn needed(execution: &Execution) -> usize {
    let output = execution.status.as_ref().and_then(|status| status.output.as_deref());
    output.map_or(0, |output| skillet_kube::parsed_size(output.get().as_bytes()) + 3 * output.get().len())
}

/// Renders an error of the services.
pub(super) fn service_error(error: &ServiceError) -> CallToolResult {
    warn!(error = ?error, "Tool call failed");
    let mut message = error.to_string();
    let reason = match error {
        ServiceError::Auth(AuthError::Forbidden { .. }) | ServiceError::UnknownNamespace(_) => "Forbidden",
        ServiceError::Auth(_) => Reason::ApiError.as_str(),
        ServiceError::Execution(error) => error.reason(),
        // No tool of MCP reads files.
        ServiceError::File(_) => Reason::WorkspaceUnavailable.as_str(),
        ServiceError::Update { source, .. } => match &**source {
            kube::Error::Api(status) => {
                message = format!("{message}: {}", status.message);
                update_reason(status.code)
            }
            _ => Reason::ApiError.as_str(),
        },
        ServiceError::SkillNotFound { .. }
        | ServiceError::SkillNotFoundIn { .. }
        | ServiceError::ExecutionNotFound(_) => Reason::SkillNotFound.as_str(),
    };
    failed(reason, &message)
}

/// Returns the reason for a status code with which the API server refuses an update.
fn update_reason(code: u16) -> &'static str {
    match code {
        403 => "Forbidden",
        404 => Reason::SkillNotFound.as_str(),
        409 => "Conflict",
        400 | 422 => Reason::InputInvalid.as_str(),
        _ => Reason::ApiError.as_str(),
    }
}

/// Renders an execution that has ended.
pub(super) fn render(execution: &Execution) -> CallToolResult {
    let unknown = Status::default();
    let status = execution.status.as_ref().unwrap_or(&unknown);
    // What the operator refuses ends without an attempt.
    let is_script = execution.spec.script.is_some() && status.attempts > 0;
    let result = match status.phase {
        Phase::Succeeded if is_script => done(script_result(status)),
        Phase::Failed | Phase::TimedOut | Phase::Cancelled if is_script => failure(&script_result(status)),
        Phase::Succeeded => succeeded(status.output.as_deref()),
        Phase::Pending | Phase::Running | Phase::Failed | Phase::TimedOut | Phase::Cancelled => {
            failure(&why(execution, status))
        }
    };
    result.with_meta(Some(about(execution, status)))
}

/// Returns the output as structured content. MCP requires an object, so any other value is wrapped as `{"value": ...}`.
fn succeeded(output: Option<&RawValue>) -> CallToolResult {
    let Some(output) = output else { return done(json!({})) };
    match serde_json::from_str(output.get()) {
        Ok(object @ Value::Object(_)) => done(object),
        Ok(other) => done(json!({ "value": other })),
        // Nested deeper than is read.
        Err(_) => CallToolResult::success(vec![ContentBlock::text(output.get())]),
    }
}

fn why(execution: &Execution, status: &Status) -> Value {
    let why = without_nulls(json!({
        "reason": status.reason.unwrap_or(Reason::ApiError).as_str(),
        "message": status.message.as_deref().unwrap_or_default(),
        "execution": execution.metadata.name,
        "exitCode": status.exit_code,
        "stderr": status.stderr.as_ref().and_then(shown),
    }));
    Value::Object(why)
}

fn without_nulls(value: Value) -> Map<String, Value> {
    let Value::Object(mut fields) = value else { return Map::new() };
    fields.retain(|_, value| !value.is_null());
    fields
}

/// The part of a stream where a program says what is wrong.
fn shown(stream: &StreamStatus) -> Option<String> {
    let text = if stream.tail.is_empty() { &stream.head } else { &stream.tail };
    Some(truncate(text, STDERR_BYTES).0.to_owned()).filter(|text| !text.is_empty())
}

fn about(execution: &Execution, status: &Status) -> MetaObject {
    MetaObject(without_nulls(json!({
        "skillet.dev/namespace": execution.metadata.namespace,
        "skillet.dev/execution": execution.metadata.name,
        "skillet.dev/version": status.resolved_version,
        "skillet.dev/digest": status.digest,
        "skillet.dev/imageID": status.image_id,
        "skillet.dev/durationMs": status.duration_ms,
        "skillet.dev/truncated": status.truncated,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: &Value, expected: &Value) {
        let execution = json!({
            "metadata": { "name": "run-1", "namespace": "ns" }, "spec": { "skill": "s" }, "status": status,
        });
        let execution: Execution = serde_json::from_str(&execution.to_string()).unwrap();
        let result = serde_json::to_value(render(&execution)).unwrap();
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&result["isError"], &text), (&expected["isError"], &expected["text"]));
        let structured = if expected["isError"] == json!(true) { &Value::Null } else { &text };
        assert_eq!(&result["structuredContent"], structured);
        assert_eq!(result["_meta"]["skillet.dev/execution"], "run-1");
    }

    #[test]
    fn an_output_that_is_no_object_is_in_one() {
        for (output, text) in [
            (json!({ "sum": 3 }), json!({ "sum": 3 })),
            (json!([1, 2]), json!({ "value": [1, 2] })),
            (Value::Null, json!({})),
        ] {
            check(
                &json!({ "phase": "Succeeded", "output": output }),
                &json!({ "isError": false, "text": text }),
            );
        }
    }

    #[test]
    fn an_output_too_deep_to_be_read_is_text() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        let result = succeeded(Some(&RawValue::from_string(deep.clone()).unwrap()));
        let result = serde_json::to_value(result).unwrap();
        assert_eq!((&result["content"][0]["text"], &result["isError"]), (&json!(deep), &json!(false)));
        assert!(result["structuredContent"].is_null());
    }

    #[test]
    fn a_failure_names_reason_message_and_what_the_program_said_last() {
        let stream = |head: &str, tail: &str| json!({ "head": head, "tail": tail, "bytes": 9, "sha256": "" });
        let status = json!({ "phase": "Failed", "reason": "ExitCode", "message": "exit code 2", "exitCode": 2,
            "stderr": stream("first", "last") });
        let text = json!({ "reason": "ExitCode", "message": "exit code 2", "execution": "run-1", "exitCode": 2,
            "stderr": "last" });
        check(&status, &json!({ "isError": true, "text": text }));
        let long = "é".repeat(4000);
        let status = json!({ "phase": "TimedOut", "reason": "TimedOut", "stderr": stream(&long, "") });
        let text =
            json!({ "reason": "TimedOut", "message": "", "execution": "run-1", "stderr": "é".repeat(2048) });
        check(&status, &json!({ "isError": true, "text": text }));
    }
}
