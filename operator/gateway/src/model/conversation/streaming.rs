//! Streaming responses: one stream to the client over all rounds.
//!
//! A body that is not complete ends with an error, so that no client takes a part for the whole.

use std::{io, pin::pin, sync::Arc, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures::stream;
use serde_json::Value;
use skillet_llm::{RoundEnd, StreamFilter, ToolResult};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tracing::{Instrument as _, info, warn};

use super::{
    Conversation, Progress, confirmation_prompt,
    retry::retry,
    round_request::RoundRequest,
    step::{Round, Step},
};
use crate::model::upstream::{ProviderResponse, Upstream, response_headers};

/// Chunks on their way to a client that reads slowly; then the provider is read no further either.
const BUFFERED_CHUNKS: usize = 16;
/// A client that reads nothing for so long is gone.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// A stream that is silent for so long gets a keep-alive.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(10);

/// The error of a stream that the provider broke off.
const BROKEN: &str = "the provider broke off its stream";

type ChunkSender = mpsc::Sender<Chunk>;

/// One part of the client's stream. A sender that is dropped without the end has aborted, for any reason: it may have
/// panicked, or gave up a client that read too slowly.
enum Chunk {
    Bytes(Bytes),
    End,
}

/// Reasons to stop a stream.
enum Stop {
    /// The client reads no more.
    ClientGone,
    /// The provider's stream is broken.
    Broken(String),
}

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

/// A body that ends with an error where its end was not sent.
fn body(received: mpsc::Receiver<Chunk>) -> Body {
    Body::from_stream(stream::unfold(Some(received), |received| async {
        let mut received = received?;
        match received.recv().await {
            Some(Chunk::Bytes(bytes)) => Some((Ok(bytes), Some(received))),
            Some(Chunk::End) => None,
            None => Some((Err(io::Error::other("the answer was broken off")), None)),
        }
    }))
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
    let held = rounds(&conversation, &upstream, request, first, &chunks, &mut progress).await;
    // A stream that was offered nothing may have broken off inside an event.
    if matches!(held, Err(Stop::Broken(_)))
        && !conversation.offered.targets.is_empty()
        && let Some(event) = conversation.dialect.error_event(BROKEN)
    {
        send(&chunks, Chunk::Bytes(event.into())).await.ok();
    }
    upstream.record().add_skills(progress.ran.len());
    end(held, progress.round, &chunks).await;
}

/// Sends the end if the stream completed. Otherwise the body ends with an error.
async fn end(held: Result<(), Stop>, round: u32, chunks: &ChunkSender) {
    let ended = match held {
        Ok(()) => send(chunks, Chunk::End).await,
        Err(stop) => Err(stop),
    };
    match ended {
        Ok(()) => {}
        Err(Stop::ClientGone) => info!(round, "Client went away before the end of its answer"),
        Err(Stop::Broken(why)) => warn!(round, why, "Stream was broken off"),
    }
}

async fn rounds(
    conversation: &Conversation,
    upstream: &Upstream,
    mut request: RoundRequest,
    first: ProviderResponse,
    chunks: &ChunkSender,
    progress: &mut Progress,
) -> Result<(), Stop> {
    let mut filter =
        conversation.dialect.stream_filter(request.is_json, Arc::new(conversation.offered.names()));
    if conversation.can_seal() {
        filter.hold_client_calls();
    }
    let mut response = first;
    loop {
        let end = read(response, filter.as_mut(), chunks).await?;
        let is_answer = end.skill_calls.is_empty() && end.awaiting_confirmation.is_empty();
        let keep_alive = conversation.dialect.keep_alive();
        // Without turns to carry nothing is looked up in the request.
        let is_needed = !is_answer || !progress.carried.is_empty();
        let parsed = stay_alive(request.document_if(is_needed), keep_alive, chunks).await?;
        let document = parsed.map_err(|error| Stop::Broken(error.message))?;
        if is_answer {
            return respond_to_client(conversation, document, &end, &[], progress, filter.as_mut(), chunks)
                .await;
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
                return respond_to_client(
                    conversation,
                    document,
                    &end,
                    &results,
                    progress,
                    filter.as_mut(),
                    chunks,
                )
                .await;
            }
        };
        if let Some(seal) = conversation.seal_rounds(progress) {
            filter.put_seal(seal);
        }
        let body = request.replace(&next);
        drop(next);
        let sent = retry(progress.deadline, conversation.limits.retries, || upstream.send(body.clone()));
        let sent = stay_alive(sent, keep_alive, chunks).await?;
        response = match sent {
            Ok(next) if next.status().is_success() => next,
            // Too late for another status: the client at least gets what its skills gave.
            Ok(refused) => {
                warn!(status = refused.status().as_u16(), "Provider refused the next round");
                return finish(filter.as_mut(), &results, chunks).await;
            }
            Err(error) => {
                warn!(error = error.message, "Provider could not be asked again");
                return finish(filter.as_mut(), &results, chunks).await;
            }
        };
    }
}

/// Waits for `work`. Proxies and clients end a stream that is silent for long, so it gets `keep_alive` now and then.
async fn stay_alive<T>(
    work: impl Future<Output = T>,
    keep_alive: &'static str,
    chunks: &ChunkSender,
) -> Result<T, Stop> {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            () = chunks.closed() => return Err(Stop::ClientGone),
            () = sleep(KEEP_ALIVE_AFTER) => {
                send(chunks, Chunk::Bytes(Bytes::from_static(keep_alive.as_bytes()))).await?;
            }
        }
    }
}

async fn read(
    mut response: ProviderResponse,
    filter: &mut dyn StreamFilter,
    chunks: &ChunkSender,
) -> Result<RoundEnd, Stop> {
    let broken = |error: &dyn std::fmt::Display| Stop::Broken(error.to_string());
    let mut out = Vec::new();
    loop {
        let chunk = tokio::select! {
            chunk = response.chunk() => chunk,
            () = chunks.closed() => return Err(Stop::ClientGone),
        };
        let Some(chunk) = chunk.map_err(|error| broken(&error.message))? else { break };
        filter.feed(&chunk, &mut out).map_err(|error| broken(&error))?;
        flush(&mut out, chunks).await?;
    }
    let end = filter.end_round(&mut out);
    flush(&mut out, chunks).await?;
    end.map_err(|error| broken(&error))
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

async fn flush(out: &mut Vec<u8>, chunks: &ChunkSender) -> Result<(), Stop> {
    if out.is_empty() {
        return Ok(());
    }
    send(chunks, Chunk::Bytes(std::mem::take(out).into())).await
}

async fn send(chunks: &ChunkSender, piece: Chunk) -> Result<(), Stop> {
    match timeout(CLIENT_TIMEOUT, chunks.send(piece)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Stop::ClientGone),
    }
}

#[cfg(test)]
mod tests;
