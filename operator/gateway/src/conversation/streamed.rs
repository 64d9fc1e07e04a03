//! Streamed answers: one stream to the client over all rounds.

use std::{io, sync::Arc, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures::stream;
use serde_json::Value;
use skillet_core::dialect::{StreamFilter, ToolResult};
use tokio::{sync::mpsc, time::timeout};
use tracing::{info, warn};

use super::{
    Conversation, Progress,
    asking::{self, Question},
};
use crate::{
    error::ApiError,
    upstream::{Upstream, passed_back},
};

/// Pieces on their way to a client that reads slowly; then the provider is read no further either.
const PIECES: usize = 16;
/// A client that reads nothing for so long is gone.
const SLOWEST_READ: Duration = Duration::from_secs(60);

type Pieces = mpsc::Sender<Result<Bytes, io::Error>>;

/// Why a stream is not gone on with.
enum Stop {
    /// The client reads no more.
    ClientGone,
    /// What came cannot be gone on with; the client is told by a stream that breaks off.
    Broken(String),
}

/// Asks, and passes on what comes as it comes. An error answer of the provider's goes to the client as it is.
pub async fn streamed(
    conversation: Conversation,
    upstream: Upstream,
    request: Value,
    sent: Bytes,
    progress: Progress,
) -> Result<Response, ApiError> {
    let first = upstream.send(sent, progress.deadline).await?;
    let (status, headers) = (first.status(), passed_back(first.headers()));
    let (pieces, mut received) = mpsc::channel(PIECES);
    let body = Body::from_stream(stream::poll_fn(move |context| received.poll_recv(context)));
    if status.is_success() {
        tokio::spawn(converse(conversation, upstream, progress, request, first, pieces));
    } else {
        tokio::spawn(async move { pass_whole(first, &pieces).await.ok() });
    }
    Ok((status, headers, body).into_response())
}

/// Nothing of it is ours.
async fn pass_whole(mut response: reqwest::Response, pieces: &Pieces) -> Result<(), Stop> {
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => send(pieces, chunk).await?,
            Ok(None) => return Ok(()),
            Err(error) => return Err(Stop::Broken(error.without_url().to_string())),
        }
    }
}

async fn converse(
    conversation: Conversation,
    upstream: Upstream,
    mut progress: Progress,
    request: Value,
    first: reqwest::Response,
    pieces: Pieces,
) {
    match rounds(&conversation, &upstream, request, first, &pieces, &mut progress).await {
        Ok(()) => {}
        Err(Stop::ClientGone) => {
            info!(round = progress.round, "Client went away before the end of its answer");
        }
        Err(Stop::Broken(why)) => {
            warn!(round = progress.round, why, "Stream was broken off");
            pieces.send(Err(io::Error::other("the answer was broken off"))).await.ok();
        }
    }
}

async fn rounds(
    conversation: &Conversation,
    upstream: &Upstream,
    mut request: Value,
    first: reqwest::Response,
    pieces: &Pieces,
    progress: &mut Progress,
) -> Result<(), Stop> {
    let dialect = conversation.dialect();
    let mut filter = dialect.stream(Arc::new(conversation.offering.names()));
    let mut response = first;
    loop {
        let end = read(response, filter.as_mut(), pieces).await?;
        if end.ours.is_empty() && end.asked.is_empty() {
            return finish(filter.as_mut(), &[], pieces).await;
        }
        let may_go_on = conversation.may_go_on(progress);
        let results = if may_go_on {
            tokio::select! {
                results = conversation.run(&end.ours, progress) => results,
                () = pieces.closed() => return Err(Stop::ClientGone),
            }
        } else {
            Conversation::not_run(&end.ours)
        };
        if let Some(question) = asking::question(conversation, &end.answer, &end.asked) {
            return ask(filter.as_mut(), &results, &question, pieces).await;
        }
        if end.has_client_calls || !may_go_on {
            return finish(filter.as_mut(), &results, pieces).await;
        }
        progress.round += 1;
        request = conversation.next(&request, &end.answer, &results);
        let sent = tokio::select! {
            sent = upstream.send(conversation.sent(&request), progress.deadline) => sent,
            () = pieces.closed() => return Err(Stop::ClientGone),
        };
        response = match sent {
            Ok(next) if next.status().is_success() => next,
            // Too late for another status: the client at least gets what its skills gave.
            Ok(refused) => {
                warn!(status = refused.status().as_u16(), "Provider refused to go on");
                return finish(filter.as_mut(), &results, pieces).await;
            }
            Err(error) => {
                warn!(error = error.message, "Provider could not be asked again");
                return finish(filter.as_mut(), &results, pieces).await;
            }
        };
    }
}

async fn read(
    mut response: reqwest::Response,
    filter: &mut dyn StreamFilter,
    pieces: &Pieces,
) -> Result<skillet_core::dialect::RoundEnd, Stop> {
    let broken = |error: &dyn std::fmt::Display| Stop::Broken(error.to_string());
    let mut out = Vec::new();
    loop {
        let chunk = tokio::select! {
            chunk = response.chunk() => chunk,
            () = pieces.closed() => return Err(Stop::ClientGone),
        };
        let Some(chunk) = chunk.map_err(|error| broken(&error.without_url()))? else { break };
        filter.feed(&chunk, &mut out).map_err(|error| broken(&error))?;
        flush(&mut out, pieces).await?;
    }
    let end = filter.end_round(&mut out);
    flush(&mut out, pieces).await?;
    end.map_err(|error| broken(&error))
}

/// The question comes last, after what other skills gave.
async fn ask(
    filter: &mut dyn StreamFilter,
    results: &[ToolResult],
    question: &Question,
    pieces: &Pieces,
) -> Result<(), Stop> {
    let mut out = Vec::new();
    for result in results {
        filter.tell(&result.id, &result.told(), &mut out);
    }
    filter.tell(&question.id, &question.text, &mut out);
    filter.finish(&[], &mut out);
    flush(&mut out, pieces).await
}

async fn finish(filter: &mut dyn StreamFilter, results: &[ToolResult], pieces: &Pieces) -> Result<(), Stop> {
    let mut out = Vec::new();
    filter.finish(results, &mut out);
    flush(&mut out, pieces).await
}

async fn flush(out: &mut Vec<u8>, pieces: &Pieces) -> Result<(), Stop> {
    if out.is_empty() {
        return Ok(());
    }
    send(pieces, std::mem::take(out).into()).await
}

async fn send(pieces: &Pieces, piece: Bytes) -> Result<(), Stop> {
    match timeout(SLOWEST_READ, pieces.send(Ok(piece))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Stop::ClientGone),
    }
}
