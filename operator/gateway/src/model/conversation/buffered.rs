//! Responses in one piece.

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde_json::Value;
use skillet_kube::parsed_size;
use skillet_llm::{Usage, json_edit::render};
use tracing::warn;

use super::{
    Conversation, INCOMPLETE_HEADER, Progress, SplitCalls,
    retry::{Head, retry},
    round_request::RoundRequest,
    step::{Round, Step},
};
use crate::{
    compute::compute,
    error::ApiError,
    memory::MemoryReservation,
    model::{
        name_header::set_header,
        upstream::{ProviderResponse, Upstream, response_headers},
    },
};

/// Most bytes of one answer that are read.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;
/// The first step in which memory is reserved for an answer.
const FIRST_STEP: usize = 64 * 1024;

/// A provider's answer.
pub(super) struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    pub(super) body: Bytes,
    memory: MemoryReservation,
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
    mut request: RoundRequest,
    first: ProviderResponse,
    mut progress: Progress,
) -> Result<(Response, Progress), ApiError> {
    let dialect = conversation.dialect();
    let mut earlier = EarlierRounds::default();
    let mut first = receive(conversation, first).await?;
    let Some(read) = read(&mut first).await? else { return Ok((pass(first), progress)) };
    let mut current = (first, read);
    loop {
        let (answer, read) = current;
        let called = conversation.split_calls(&read);
        earlier.usage = earlier.usage.plus(&dialect.usage(&read));
        if called.is_empty() {
            if progress.round == 0 && !conversation.offered.hides_reasoning {
                return Ok((pass(answer), progress));
            }
            let document = request.document_if(!progress.carried.is_empty()).await?;
            let (given, _) = conversation.client_response(document, &read, &[], &progress);
            return Ok((whole(conversation, &answer, given, earlier), progress));
        }
        let SplitCalls { skills, awaiting_confirmation, has_client_calls } = called;
        let round = Round { response: &read, skill_calls: &skills, has_client_calls };
        let document = request.document().await?;
        let (next, results) = match conversation.step(document, round, &mut progress).await {
            Step::Ask { request, results } => (request, results),
            Step::Respond { results } => {
                let (mut given, sealed) = conversation.client_response(document, &read, &results, &progress);
                conversation.add_confirmation_prompt(
                    &read,
                    &awaiting_confirmation,
                    sealed.as_deref(),
                    &mut given,
                );
                return Ok((whole(conversation, &answer, given, earlier), progress));
            }
        };
        let body = request.replace(&next);
        drop(next);
        match ask_again(conversation, upstream, body, &progress).await {
            Ok(next) => {
                if !request.is_json {
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
    body: Bytes,
    progress: &Progress,
) -> Result<(Answer, Value), String> {
    let ask = || async { receive(conversation, upstream.send(body.clone()).await?).await };
    let mut answer =
        retry(progress.deadline, conversation.limits.retries, ask).await.map_err(|error| error.code)?;
    match read(&mut answer).await.map_err(|error| error.code)? {
        Some(read) => Ok((answer, read)),
        None => Err(format!("ProviderRefused {}", answer.status.as_u16())),
    }
}

/// Reads a whole response.
pub(super) async fn receive(
    conversation: &Conversation,
    response: ProviderResponse,
) -> Result<Answer, ApiError> {
    let (status, headers) = (response.status(), response.headers().clone());
    let Conversation { gateway, caller, .. } = conversation;
    let mut memory = gateway.memory.reserve(&caller.namespace, FIRST_STEP).await?;
    let body = collect(response, &mut memory).await?;
    Ok(Answer { status, headers, body, memory })
}

async fn collect(mut response: ProviderResponse, memory: &mut MemoryReservation) -> Result<Bytes, ApiError> {
    let broken = |what: String| ApiError::new(StatusCode::BAD_GATEWAY, "ProviderAnswerBroken", what);
    let (mut body, mut reserved) = (Vec::new(), FIRST_STEP);
    loop {
        match response.chunk().await? {
            None => return Ok(body.into()),
            Some(chunk) if body.len() + chunk.len() > ANSWER_LIMIT => {
                return Err(broken(format!("the provider's answer is larger than {ANSWER_LIMIT} bytes")));
            }
            Some(chunk) => {
                let length = body.len() + chunk.len();
                if length > reserved {
                    reserved = length * 2;
                    memory.regain(reserved).await?;
                }
                body.extend_from_slice(&chunk);
            }
        }
    }
}

/// The answer as JSON; none where it is an error or no JSON: that goes to the client as it is.
async fn read(answer: &mut Answer) -> Result<Option<Value>, ApiError> {
    let bytes = answer.body.len();
    if !answer.status.is_success() {
        answer.memory.shrink_to(bytes);
        return Ok(None);
    }
    answer.memory.regain(bytes + parsed_size(&answer.body)).await?;
    Ok(compute(bytes, || serde_json::from_slice(&answer.body)).ok())
}

/// The provider's own response for the client.
pub(super) fn pass(answer: Answer) -> Response {
    let Answer { status, headers, body, memory: _ } = answer;
    (status, response_headers(&headers), Body::from(body)).into_response()
}

/// The same of a response to a request without skills. It is not read.
pub(super) fn pass_stream(response: ProviderResponse) -> Response {
    let (status, headers) = (response.status(), response_headers(response.headers()));
    (status, headers, Body::from_stream(response.into_stream())).into_response()
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
