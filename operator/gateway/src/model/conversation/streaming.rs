//! Streaming responses: one stream to the client over all rounds.
//!
//! A body that is not complete ends with an error, so that no client takes a part for the whole.

mod asked_round;
mod chunks;
mod round_memory;

use std::{sync::Arc, time::Duration};

use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use skillet_llm::{ErrorDetail, RoundEnd, StreamFilter, ToolResult};
use tokio::{sync::mpsc, time::sleep};
use tracing::{Instrument as _, warn};

use self::{
    asked_round::{AskedRound, ask_again, note_last_response},
    chunks::{BUFFERED_CHUNKS, Chunk, ChunkSender, Stop, body, end, flush, send, stay_alive},
};
use super::{
    Conversation, Progress, confirmation_prompt,
    round_request::RoundRequest,
    step::{Round, Step},
};
use crate::model::upstream::{ProviderResponse, Upstream, response_headers};

/// The time between the error event of a stream and the end of its connection, which drops bytes that are not sent yet.
const ERROR_DELAY: Duration = Duration::from_millis(100);

/// The error of a stream that the provider broke off.
const BROKEN: ErrorDetail<'static> = ErrorDetail {
    status: 502,
    reason: "ProviderAnswerBroken",
    message: "the provider broke off its stream",
    field: None,
};

/// Asks, and passes on what comes as it comes. An error answer of the provider's goes to the client as it is.
pub(super) fn respond(
    conversation: Conversation,
    upstream: Upstream,
    request: RoundRequest,
    first: ProviderResponse,
    progress: Progress,
) -> Response {
    let (status, headers) = (first.status(), response_headers(first.headers()));
    let (chunks, received) = mpsc::channel(BUFFERED_CHUNKS);
    if status.is_success() {
        let conversed = converse(conversation, upstream, progress, request, first, chunks);
        tokio::spawn(conversed.in_current_span());
    } else {
        let passed = async move {
            let passed = pass_whole(first, &chunks).await;
            end(passed, 0, &chunks).await;
        };
        tokio::spawn(passed.in_current_span());
    }
    (status, headers, body(received)).into_response()
}

/// Forwards a response that has no skill calls.
async fn pass_whole(mut response: ProviderResponse, chunks: &ChunkSender) -> Result<(), Stop> {
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => send(chunks, Chunk::Bytes(chunk)).await?,
            Ok(None) => return Ok(()),
            Err(error) => return Err(Stop::Broken(error.message)),
        }
    }
}

async fn converse(
    conversation: Conversation,
    upstream: Upstream,
    mut progress: Progress,
    request: RoundRequest,
    first: ProviderResponse,
    chunks: ChunkSender,
) {
    let mut filter =
        conversation.dialect.stream_filter(request.is_json, Arc::clone(conversation.offered.names()));
    if conversation.can_seal() {
        filter.hold_client_calls();
    }
    if conversation.offered.hides_reasoning {
        filter.hide_reasoning();
    }
    let filter = filter.as_mut();
    let held = rounds(&conversation, &upstream, request, first, filter, &chunks, &mut progress).await;
    if matches!(held, Err(Stop::Broken(_))) {
        let mut out = Vec::new();
        filter.write_error(&BROKEN, &mut out);
        if flush(&mut out, &chunks).await.is_ok() {
            sleep(ERROR_DELAY).await;
        }
    }
    upstream.record().add_skills(progress.ran.len());
    end(held, progress.round, &chunks).await;
}

async fn rounds(
    conversation: &Conversation,
    upstream: &Upstream,
    mut request: RoundRequest,
    first: ProviderResponse,
    filter: &mut dyn StreamFilter,
    chunks: &ChunkSender,
    progress: &mut Progress,
) -> Result<(), Stop> {
    let keep_alive = conversation.dialect.keep_alive();
    let mut response = first;
    let mut body = None;
    loop {
        let asked = AskedRound { conversation, upstream, body: body.take(), progress };
        let (end, _memory) = asked.read(response, filter, chunks).await?;
        let is_answer = end.skill_calls.is_empty() && end.awaiting_confirmation.is_empty();
        // Without turns to carry nothing is looked up in the request.
        let is_needed = !is_answer || !progress.carried.is_empty();
        let parsed = stay_alive(request.document_if(is_needed), keep_alive, chunks).await?;
        let document = parsed.map_err(|error| Stop::Broken(error.message))?;
        if is_answer {
            return respond_to_client(conversation, document, &end, &[], progress, filter, chunks).await;
        }
        let round = Round {
            response: &end.response,
            skill_calls: &end.skill_calls,
            has_client_calls: end.has_client_calls,
        };
        let step = stay_alive(conversation.step(document, round, progress), keep_alive, chunks).await?;
        let (next, results) = match step {
            Step::Ask { request, results } => (request, results),
            Step::Respond { results } => {
                return respond_to_client(conversation, document, &end, &results, progress, filter, chunks)
                    .await;
            }
        };
        if let Some(make) = conversation.seal_rounds(progress) {
            filter.put_seal(make);
        }
        let bytes = body.insert(request.replace(&next)).clone();
        drop(next);
        let sent = ask_again(conversation, upstream, &bytes, progress.deadline);
        response = match stay_alive(sent, keep_alive, chunks).await? {
            Ok(next) => next,
            // Too late for another status: the client at least gets what its skills gave.
            Err(why) => {
                warn!(why, "Next round failed");
                return finish(filter, &results, chunks).await;
            }
        };
    }
}

/// Ends the stream with the client's calls, and with the question about those that await confirmation.
async fn respond_to_client(
    conversation: &Conversation,
    request: &Value,
    end: &RoundEnd,
    results: &[ToolResult],
    progress: &Progress,
    filter: &mut dyn StreamFilter,
    chunks: &ChunkSender,
) -> Result<(), Stop> {
    let mut out = Vec::new();
    let sealed = conversation.seal_response(request, &end.response, results, progress);
    let mut texts = if sealed.is_some() { &[] } else { results };
    let sealed_id = sealed.as_ref().map(|(_, id)| &**id);
    let question =
        confirmation_prompt::build(conversation, &end.response, &end.awaiting_confirmation, sealed_id);
    // The question comes last, after the results of other skills.
    if let Some(question) = question {
        for result in std::mem::take(&mut texts) {
            filter.write_text(&result.id, &result.to_text(), &mut out);
        }
        filter.write_text(&question.id, &question.text, &mut out);
    }
    match sealed {
        Some((seal, call_id)) => filter.finish_sealed(&seal, &call_id, &mut out),
        None => filter.finish(texts, &mut out),
    }
    note_last_response(conversation, filter, progress).await;
    flush(&mut out, chunks).await
}

async fn finish(
    filter: &mut dyn StreamFilter,
    results: &[ToolResult],
    chunks: &ChunkSender,
) -> Result<(), Stop> {
    let mut out = Vec::new();
    filter.finish(results, &mut out);
    flush(&mut out, chunks).await
}

#[cfg(test)]
mod tests;
