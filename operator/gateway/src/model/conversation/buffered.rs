//! Responses in one piece.

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde_json::Value;
use skillet_llm::{ToolResult, Usage, json_edit::render};
use tokio::time::Instant;
use tracing::warn;

use super::{Conversation, Progress, SplitCalls};
use crate::{
    error::ApiError,
    model::upstream::{Upstream, response_headers, transport_error},
};

/// Most bytes of one answer that are read.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;

/// A provider's answer.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// Asks until the model is done. `sent` is the first request, as bytes too where nothing was added to it.
pub(super) async fn respond(
    conversation: &Conversation,
    upstream: &Upstream,
    mut request: Value,
    sent: Bytes,
    mut progress: Progress,
) -> Result<(Response, Progress), ApiError> {
    let dialect = conversation.dialect();
    let mut total = Usage::default();
    let mut body = sent;
    // The last response with skill calls, and their results.
    let mut last: Option<(Answer, Value, Vec<ToolResult>)> = None;
    loop {
        let asked = ask(upstream, body, progress.deadline).await;
        let (answer, read) = match (asked.map(|answer| (read(&answer), answer)), last.take()) {
            (Ok((Some(read), answer)), _) => (answer, read),
            // Too late to begin again: the client at least gets what its skills gave.
            (unread, Some((answer, read, results))) => {
                match unread {
                    Ok((_, refused)) => {
                        warn!(status = refused.status.as_u16(), "Provider refused the next round");
                    }
                    Err(error) => warn!(error = error.message, "Provider could not be asked again"),
                }
                let given = dialect.client_response(&read, &results);
                return Ok((with_usage(conversation, &answer, given, total), progress));
            }
            (Ok((None, answer)), None) => return Ok((pass(answer), progress)),
            (Err(error), None) => return Err(error),
        };
        let called = conversation.split_calls(&read);
        let SplitCalls { skills, awaiting_confirmation, has_client_calls } = &called;
        total = total.plus(dialect.usage(&read));
        if skills.is_empty() && awaiting_confirmation.is_empty() {
            let is_first = progress.round == 0;
            let response =
                if is_first { pass(answer) } else { with_usage(conversation, &answer, read, total) };
            return Ok((response, progress));
        }
        let may_go_on = conversation.may_continue(&progress);
        let results = if may_go_on {
            conversation.run(skills, &mut progress).await
        } else {
            Conversation::not_run(skills)
        };
        if *has_client_calls || !may_go_on {
            let mut given = dialect.client_response(&read, &results);
            conversation.add_confirmation_prompt(&read, awaiting_confirmation, &mut given);
            return Ok((with_usage(conversation, &answer, given, total), progress));
        }
        progress.round += 1;
        request = conversation.next(&request, &read, &results);
        body = conversation.sent(&request);
        last = Some((answer, read, results));
    }
}

async fn ask(upstream: &Upstream, body: Bytes, deadline: Instant) -> Result<Answer, ApiError> {
    let response = upstream.send(body, deadline).await?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = collect(response).await?;
    Ok(Answer { status, headers, body })
}

async fn collect(mut response: reqwest::Response) -> Result<Bytes, ApiError> {
    let broken = |what: String| ApiError::new(StatusCode::BAD_GATEWAY, "ProviderAnswerBroken", what);
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await;
        match chunk.map_err(|error| transport_error(&error))? {
            None => return Ok(body.into()),
            Some(chunk) if body.len() + chunk.len() > ANSWER_LIMIT => {
                return Err(broken(format!("the provider's answer is larger than {ANSWER_LIMIT} bytes")));
            }
            Some(chunk) => body.extend_from_slice(&chunk),
        }
    }
}

/// The answer as JSON; none where it is an error or no JSON: that goes to the client as it is.
fn read(answer: &Answer) -> Option<Value> {
    if !answer.status.is_success() {
        return None;
    }
    serde_json::from_slice(&answer.body).ok()
}

fn pass(answer: Answer) -> Response {
    let Answer { status, headers, body } = answer;
    (status, response_headers(&headers), Body::from(body)).into_response()
}

fn with_usage(conversation: &Conversation, answer: &Answer, mut read: Value, total: Usage) -> Response {
    conversation.dialect().set_usage(&mut read, total);
    let mut headers = response_headers(&answer.headers);
    headers.entry(header::CONTENT_TYPE).or_insert(header::HeaderValue::from_static("application/json"));
    (answer.status, headers, Body::from(render(&answer.body, &read))).into_response()
}
