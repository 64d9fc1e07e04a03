//! The chunks of a stream on their way to the client.
//!
//! A body that is not complete ends with an error, so that no client takes a part for the whole.

use std::{io, pin::pin, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tracing::{info, warn};

/// Chunks on their way to a client that reads slowly; then the provider is read no further either.
pub(super) const BUFFERED_CHUNKS: usize = 16;
/// A client that reads nothing for so long is gone.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// A stream that is silent for so long gets a keep-alive.
pub(super) const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(10);

pub(super) type ChunkSender = mpsc::Sender<Chunk>;

/// One part of the client's stream. A sender that is dropped without the end has aborted, for any reason: it may have
/// panicked, or gave up a client that read too slowly.
pub(super) enum Chunk {
    Bytes(Bytes),
    End,
}

/// Reasons to stop a stream.
pub(super) enum Stop {
    /// The client reads no more.
    ClientGone,
    /// The provider's stream is broken.
    Broken(String),
}

/// A body that ends with an error where its end was not sent.
pub(super) fn body(received: mpsc::Receiver<Chunk>) -> Body {
    Body::from_stream(stream::unfold(Some(received), |received| async {
        let mut received = received?;
        match received.recv().await {
            Some(Chunk::Bytes(bytes)) => Some((Ok(bytes), Some(received))),
            Some(Chunk::End) => None,
            None => Some((Err(io::Error::other("the answer was broken off")), None)),
        }
    }))
}

/// Sends the end if the stream completed. Otherwise the body ends with an error.
pub(super) async fn end(held: Result<(), Stop>, round: u32, chunks: &ChunkSender) {
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

/// Waits for `work`. Proxies and clients end a stream that is silent for long, so it gets `keep_alive` now and then.
pub(super) async fn stay_alive<T>(
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

pub(super) async fn flush(out: &mut Vec<u8>, chunks: &ChunkSender) -> Result<(), Stop> {
    if out.is_empty() {
        return Ok(());
    }
    send(chunks, Chunk::Bytes(std::mem::take(out).into())).await
}

pub(super) async fn send(chunks: &ChunkSender, piece: Chunk) -> Result<(), Stop> {
    match timeout(CLIENT_TIMEOUT, chunks.send(piece)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Stop::ClientGone),
    }
}
