//! One call of an MCP server: from the input of its execution to the end that its status shows.

use std::sync::Arc;

use serde_json::Value;
use skillet_api::{Phase, Reason, SkillExecution, mcp::McpCall};
use skillet_core::{exact_json::find_inexact, mcp_client::McpRequest, output, text::truncate};
use tokio::sync::{mpsc::error::TrySendError, oneshot, watch};

use super::{
    conclude::Conclusion,
    gather,
    mcp_sessions::{CallSender, SessionCall},
    order::{Order, wait_for_cancel, wait_for_stop},
    reference::ExecutionRef,
    session_driver::{CallEnd, CallError},
};
use crate::context::Context;

/// Most bytes of a message that a failed tool gives.
const MAX_MESSAGE: usize = 2048;

/// Asks the server and waits for its answer, until the execution is cancelled.
pub(super) async fn run(
    ctx: &Context,
    reference: &ExecutionRef,
    call: McpCall,
    (execution, input): (&SkillExecution, Option<Arc<str>>),
    (calls, mut order): (CallSender, watch::Receiver<Order>),
) -> Conclusion {
    let session = call.session.clone();
    let request = match read_request(ctx, reference, call, input).await {
        Ok(request) => request,
        Err(conclusion) => return *conclusion,
    };
    let (answer, answered) = oneshot::channel();
    let timeout = execution.spec.timeout.map(|timeout| timeout.0);
    match calls.try_send(SessionCall { request, timeout, answer }) {
        Ok(()) => {}
        Err(TrySendError::Full(_)) => {
            let message = format!(
                "too many calls wait for the MCP server of SkillExecution {session}; call again later"
            );
            return Conclusion::failed(Reason::SessionEnded, message);
        }
        Err(TrySendError::Closed(_)) => return ended(&session),
    }
    drop(calls);
    let stopped = order.clone();
    tokio::select! {
        end = answered => end.map_or_else(|_| ended(&session), conclude),
        () = wait_for_cancel(&mut order) => Conclusion::cancelled(),
        () = wait_for_stop(stopped) => Conclusion::cancelled(),
    }
}

fn ended(session: &str) -> Conclusion {
    let message =
        format!("the MCP server of SkillExecution {session} ended before it answered; its status says why");
    Conclusion { attempts: 1, ..Conclusion::failed(Reason::SessionEnded, message) }
}

async fn read_request(
    ctx: &Context,
    reference: &ExecutionRef,
    McpCall { session: _, tool }: McpCall,
    input: Option<Arc<str>>,
) -> Result<McpRequest, Box<Conclusion>> {
    let Some(name) = tool else { return Ok(McpRequest::ListTools) };
    let text = match input {
        Some(text) => text,
        None => {
            gather::input(ctx, reference).await.map_err(|refusal| Box::new(Conclusion::refused(&refusal)))?
        }
    };
    if let Ok(arguments @ Value::Object(_)) = serde_json::from_str(&text) {
        return Ok(McpRequest::CallTool { name, arguments });
    }
    let message = "spec.input: the arguments of a tool must be an object".to_owned();
    Err(Box::new(Conclusion::failed(Reason::InputInvalid, message)))
}

/// The end of a call that a server has got.
fn conclude(end: CallEnd) -> Conclusion {
    let CallEnd { result, version, digest, duration } = end;
    let ended = match result {
        Ok(result) => with_result(result),
        Err(CallError::Failed(failure)) => Conclusion::failed(Reason::McpError, failure.to_string()),
        Err(CallError::TimedOut { limit }) => Conclusion {
            phase: Phase::TimedOut,
            ..Conclusion::failed(Reason::TimedOut, format!("the MCP server did not answer within {limit:?}"))
        },
    };
    Conclusion {
        resolved_version: Some(version),
        digest: Some(digest),
        attempts: 1,
        duration_ms: u64::try_from(duration.as_millis()).ok(),
        ..ended
    }
}

fn with_result(result: Value) -> Conclusion {
    let is_error = result["isError"] == Value::Bool(true);
    let message = if is_error { failure_text(&result) } else { "the MCP server answered".to_owned() };
    let text = result.to_string();
    if let Some(inexact) = find_inexact(&text) {
        let message = format!("the answer cannot be kept as it is: {inexact}");
        return Conclusion::failed(Reason::McpError, message);
    }
    let (output, is_cut) = output::fit(result);
    if is_cut {
        let message = format!("the answer has {} bytes; at most 600 KiB are kept", text.len());
        return Conclusion::failed(Reason::OutputTooLarge, message);
    }
    let (phase, reason) =
        if is_error { (Phase::Failed, Reason::ToolFailed) } else { (Phase::Succeeded, Reason::Succeeded) };
    Conclusion {
        phase,
        reason: Some(reason),
        message: Some(message),
        output: Some(output),
        ..Conclusion::default()
    }
}

/// The first text of a failed tool's result.
fn failure_text(result: &Value) -> String {
    let items = result["content"].as_array().into_iter().flatten();
    let text = items.filter_map(|item| item["text"].as_str()).find(|text| !text.trim().is_empty());
    truncate(text.unwrap_or("the tool reports an error"), MAX_MESSAGE).0.to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use skillet_core::mcp_client::McpFailure;

    use super::*;

    fn end(result: Result<Value, CallError>) -> Conclusion {
        conclude(CallEnd {
            result,
            version: "1.2.3".into(),
            digest: "d".into(),
            duration: Duration::from_millis(12),
        })
    }

    #[test]
    fn each_answer_of_a_server_is_an_end() {
        let text = json!({ "content": [{ "type": "text", "text": "4" }] });
        let ended = end(Ok(text.clone()));
        assert_eq!((ended.phase, ended.output), (Phase::Succeeded, Some(text)));
        assert_eq!(
            (ended.resolved_version.as_deref(), ended.attempts, ended.duration_ms),
            (Some("1.2.3"), 1, Some(12))
        );
        let failed = json!({ "content": [{ "type": "image" }, { "type": "text", "text": "no such row" }], "isError": true });
        let ended = end(Ok(failed.clone()));
        assert_eq!((ended.phase, ended.reason), (Phase::Failed, Some(Reason::ToolFailed)));
        assert_eq!((ended.message.as_deref(), ended.output), (Some("no such row"), Some(failed)));
        let error = McpFailure::Server { code: -32602, message: "Unknown tool".into() };
        let ended = end(Err(CallError::Failed(error)));
        assert_eq!(ended.reason, Some(Reason::McpError));
        assert_eq!(ended.message.as_deref(), Some("the MCP server answered with error -32602: Unknown tool"));
        let ended = end(Err(CallError::TimedOut { limit: Duration::from_secs(3) }));
        assert_eq!((ended.phase, ended.reason), (Phase::TimedOut, Some(Reason::TimedOut)));
    }

    #[test]
    fn an_answer_that_no_status_can_keep_is_a_failure() {
        let big = json!({ "content": [{ "type": "text", "text": "x".repeat(700_000) }] });
        assert_eq!(end(Ok(big)).reason, Some(Reason::OutputTooLarge));
        let inexact: Value =
            serde_json::from_str(r#"{"structuredContent":{"n":18446744073709551615}}"#).unwrap();
        assert_eq!(end(Ok(inexact)).reason, Some(Reason::McpError));
    }
}
