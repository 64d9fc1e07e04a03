//! Responses in one piece.

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde_json::Value;
use skillet_llm::{Usage, json_edit::render};
use tracing::warn;

use super::{
    Conversation, INCOMPLETE_HEADER, Progress, SplitCalls,
    retry::{Head, retry},
    step::{Round, Step},
};
use crate::{
    error::ApiError,
    model::{
        tools::set_header,
        upstream::{ProviderResponse, Upstream, response_headers},
    },
};

/// Most bytes of one answer that are read.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;

/// A provider's answer.
pub(super) struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Head for Answer {
    fn head(&self) -> (StatusCode, &HeaderMap) {
        (self.status, &self.headers)
    }
}

/// The client's part of the rounds before the last.
#[derive(Default)]
struct EarlierRounds {
    /// The usage of the last round too.
    usage: Usage,
    texts: Vec<Value>,
}

/// Continues until the model is done. `first` is the response to the first request.
pub(super) async fn respond(
    conversation: &Conversation,
    upstream: &Upstream,
    mut request: Value,
    first: ProviderResponse,
    mut progress: Progress,
) -> Result<(Response, Progress), ApiError> {
    let dialect = conversation.dialect();
    let is_json = dialect.wants_json(&request);
    let mut earlier = EarlierRounds::default();
    let first = receive(first).await?;
    let Some(read) = read(&first) else { return Ok((pass(first), progress)) };
    let mut current = (first, read);
    loop {
        let (answer, read) = current;
        let called = conversation.split_calls(&read);
        earlier.usage = earlier.usage.plus(&dialect.usage(&read));
        if called.is_empty() {
            if progress.round == 0 {
                return Ok((pass(answer), progress));
            }
            let (given, _) = conversation.client_response(&request, &read, &[], &progress);
            return Ok((whole(conversation, &answer, given, earlier), progress));
        }
        let SplitCalls { skills, awaiting_confirmation, has_client_calls } = called;
        let round = Round { response: &read, skill_calls: &skills, has_client_calls };
        let (next, results) = match conversation.step(&request, round, &mut progress).await {
            Step::Ask { request, results } => (request, results),
            Step::Respond { results } => {
                let (mut given, sealed) = conversation.client_response(&request, &read, &results, &progress);
                conversation.add_confirmation_prompt(
                    &read,
                    &awaiting_confirmation,
                    sealed.as_deref(),
                    &mut given,
                );
                return Ok((whole(conversation, &answer, given, earlier), progress));
            }
        };
        request = next;
        match ask_again(conversation, upstream, &request, &progress).await {
            Ok(next) => {
                if !is_json {
                    earlier.texts.extend(dialect.round_texts(&read));
                }
                current = next;
            }
            // Too late to begin again: the client at least gets what its skills gave.
            Err(why) => {
                warn!(why, "Next round failed");
                let given = dialect.client_response(&read, &results);
                let mut response = whole(conversation, &answer, given, earlier);
                set_header(response.headers_mut(), INCOMPLETE_HEADER, std::iter::once(why.as_str()));
                return Ok((response, progress));
            }
        }
    }
}

/// The response to a later round. The error says in one line why there is none.
async fn ask_again(
    conversation: &Conversation,
    upstream: &Upstream,
    request: &Value,
    progress: &Progress,
) -> Result<(Answer, Value), String> {
    let body = conversation.sent(request);
    let ask = || async { receive(upstream.send(body.clone()).await?).await };
    let answer =
        retry(progress.deadline, conversation.limits.retries, ask).await.map_err(|error| error.code)?;
    match read(&answer) {
        Some(read) => Ok((answer, read)),
        None => Err(format!("ProviderRefused {}", answer.status.as_u16())),
    }
}

/// Reads a whole response.
pub(super) async fn receive(response: ProviderResponse) -> Result<Answer, ApiError> {
    let (status, headers) = (response.status(), response.headers().clone());
    let body = collect(response).await?;
    Ok(Answer { status, headers, body })
}

async fn collect(mut response: ProviderResponse) -> Result<Bytes, ApiError> {
    let broken = |what: String| ApiError::new(StatusCode::BAD_GATEWAY, "ProviderAnswerBroken", what);
    let mut body = Vec::new();
    loop {
        match response.chunk().await? {
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

/// The provider's own response for the client.
pub(super) fn pass(answer: Answer) -> Response {
    let Answer { status, headers, body } = answer;
    (status, response_headers(&headers), Body::from(body)).into_response()
}

/// The response for a client after several rounds.
fn whole(conversation: &Conversation, answer: &Answer, mut read: Value, earlier: EarlierRounds) -> Response {
    let EarlierRounds { usage, texts } = earlier;
    conversation.dialect().prepend_texts(&mut read, texts);
    conversation.dialect().set_usage(&mut read, &usage);
    let mut headers = response_headers(&answer.headers);
    headers.entry(header::CONTENT_TYPE).or_insert(header::HeaderValue::from_static("application/json"));
    (answer.status, headers, Body::from(render(&answer.body, &read))).into_response()
}
