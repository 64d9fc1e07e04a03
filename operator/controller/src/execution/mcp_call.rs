//! One call of an MCP server: from the input of its execution to the end that its status shows.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use skillet_api::{Phase, Reason, SkillExecution, mcp::McpCall};
use skillet_core::{exact_json::find_inexact, mcp_client::McpRequest, text::truncate};
use skillet_kube::parsed_size;
use tokio::{
    sync::{mpsc::error::TrySendError, oneshot, watch},
    time::sleep,
};

use super::{
    conclude::Conclusion,
    gather,
    mcp_sessions::{CallSender, SessionCall},
    order::{Order, wait_for_cancel, wait_for_stop},
    reference::ExecutionRef,
    session_driver::{CallEnd, CallError},
};
use crate::context::Context;

/// Most bytes of a result, and of its memory once it is parsed.
const MAX_RESULT: usize = 600 << 10;
const MAX_PARSED: usize = 16 << 20;
/// The driver of a session ends a call in time. This is for calls that it has not taken.
const TIMEOUT_SLACK: Duration = Duration::from_secs(1);
/// Most bytes of a message that a failed tool gives.
const MAX_MESSAGE: usize = 2048;

/// Asks the server and waits for its answer, until the execution is cancelled or its own time is over.
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
    let is_delivered = Arc::new(AtomicBool::new(false));
    let timeout = execution.spec.timeout.map(|timeout| timeout.0);
    let sent = SessionCall { request, timeout, answer, is_delivered: is_delivered.clone() };
    match calls.try_send(sent) {
        Ok(()) => {}
        Err(TrySendError::Full(_)) => {
            let message = format!(
                "too many calls wait for the MCP server of SkillExecution {session}; call again later"
            );
            return Conclusion::failed(Reason::SessionEnded, message);
        }
        Err(TrySendError::Closed(_)) => return ended(&session, false),
    }
    drop(calls);
    let stopped = order.clone();
    // The driver has the time limit of a call that it has taken.
    let over = async {
        match timeout {
            Some(timeout) => sleep(timeout + TIMEOUT_SLACK).await,
            None => pending().await,
        }
    };
    tokio::select! {
        end = answered => match end {
            Ok(end) => conclude(ctx, end).await,
            Err(_) => ended(&session, is_delivered.load(Ordering::Relaxed)),
        },
        () = wait_for_cancel(&mut order) => Conclusion::cancelled(),
        () = wait_for_stop(stopped) => Conclusion::cancelled(),
        () = over => timed_out(timeout.unwrap_or_default()),
    }
}

/// The end of a call whose server has ended. One that was delivered counts as an attempt.
pub(super) fn ended(session: &str, is_delivered: bool) -> Conclusion {
    let message =
        format!("the MCP server of SkillExecution {session} ended before it answered; its status says why");
    Conclusion { attempts: u32::from(is_delivered), ..Conclusion::failed(Reason::SessionEnded, message) }
}

fn timed_out(limit: Duration) -> Conclusion {
    let message = format!("the MCP server did not answer within {limit:?}");
    Conclusion { phase: Phase::TimedOut, ..Conclusion::failed(Reason::TimedOut, message) }
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
async fn conclude(ctx: &Context, end: CallEnd) -> Conclusion {
    let CallEnd { result, version, digest, duration } = end;
    let ended = match result {
        Ok(text) => {
            // One large result is parsed at a time.
            let _turn = ctx.checks.large_object(parsed_size(text.as_bytes())).await;
            with_result(&text)
        }
        Err(CallError::Failed(failure)) => Conclusion::failed(Reason::McpError, failure.to_string()),
        Err(CallError::TimedOut { limit }) => timed_out(limit),
    };
    Conclusion {
        resolved_version: Some(version),
        digest: Some(digest),
        attempts: 1,
        duration_ms: u64::try_from(duration.as_millis()).ok(),
        ..ended
    }
}

fn with_result(text: &str) -> Conclusion {
    let (bytes, parsed) = (text.len(), parsed_size(text.as_bytes()));
    if bytes > MAX_RESULT || parsed > MAX_PARSED {
        let message = format!(
            "the answer has {bytes} bytes, and would take {parsed} bytes of memory; at most {MAX_RESULT} and {MAX_PARSED} are kept"
        );
        return Conclusion::failed(Reason::OutputTooLarge, message);
    }
    if let Some(inexact) = find_inexact(text) {
        let message = format!("the answer cannot be kept as it is: {inexact}");
        return Conclusion::failed(Reason::McpError, message);
    }
    let Ok(result) = serde_json::from_str::<Value>(text) else {
        return Conclusion::failed(Reason::McpError, "the answer is no JSON".to_owned());
    };
    let is_error = result["isError"] == Value::Bool(true);
    let message = if is_error { failure_text(&result) } else { "the MCP server answered".to_owned() };
    let (phase, reason) =
        if is_error { (Phase::Failed, Reason::ToolFailed) } else { (Phase::Succeeded, Reason::Succeeded) };
    Conclusion {
        phase,
        reason: Some(reason),
        message: Some(message),
        output: Some(result),
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

    use super::{
        super::tests::{context, serving},
        *,
    };

    async fn end(result: Result<Value, CallError>) -> Conclusion {
        let ctx = context(serving(|_| None).0);
        let result = result.map(|value| value.to_string());
        let duration = Duration::from_millis(12);
        conclude(&ctx, CallEnd { result, version: "1.2.3".into(), digest: "d".into(), duration }).await
    }

    #[tokio::test]
    async fn each_answer_of_a_server_is_an_end() {
        let text = json!({ "content": [{ "type": "text", "text": "4" }] });
        let ended = end(Ok(text.clone())).await;
        assert_eq!((ended.phase, ended.output), (Phase::Succeeded, Some(text)));
        assert_eq!(
            (ended.resolved_version.as_deref(), ended.attempts, ended.duration_ms),
            (Some("1.2.3"), 1, Some(12))
        );
        let failed = json!({ "content": [{ "type": "image" }, { "type": "text", "text": "no such row" }], "isError": true });
        let ended = end(Ok(failed.clone())).await;
        assert_eq!((ended.phase, ended.reason), (Phase::Failed, Some(Reason::ToolFailed)));
        assert_eq!((ended.message.as_deref(), ended.output), (Some("no such row"), Some(failed)));
        let error = McpFailure::Server { code: -32602, message: "Unknown tool".into() };
        let ended = end(Err(CallError::Failed(error))).await;
        assert_eq!(ended.reason, Some(Reason::McpError));
        assert_eq!(ended.message.as_deref(), Some("the MCP server answered with error -32602: Unknown tool"));
        let ended = end(Err(CallError::TimedOut { limit: Duration::from_secs(3) })).await;
        assert_eq!((ended.phase, ended.reason), (Phase::TimedOut, Some(Reason::TimedOut)));
    }

    #[tokio::test]
    async fn an_answer_that_no_status_can_keep_is_a_failure() {
        let big = json!({ "content": [{ "type": "text", "text": "x".repeat(700_000) }] });
        assert_eq!(end(Ok(big)).await.reason, Some(Reason::OutputTooLarge));
        let inexact: Value =
            serde_json::from_str(r#"{"structuredContent":{"n":18446744073709551615}}"#).unwrap();
        assert_eq!(end(Ok(inexact)).await.reason, Some(Reason::McpError));
    }

    #[tokio::test]
    async fn a_small_text_that_would_take_much_memory_is_not_parsed() {
        let hostile: Vec<Value> = vec![json!({ "": 0 }); 60_000];
        let ended = end(Ok(json!({ "content": hostile }))).await;
        assert_eq!(ended.reason, Some(Reason::OutputTooLarge));
        assert!(ended.output.is_none() && ended.attempts == 1);
    }
}
