//! One round of a stream, whose response may have to be asked for again.

use bytes::Bytes;
use skillet_llm::{RoundEnd, StreamFilter};
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::{
    super::{
        Conversation, Progress,
        retry::{pause, retry},
    },
    chunks::{ChunkSender, Stop, flush, stay_alive},
    round_memory::RoundMemory,
};
use crate::model::upstream::{ProviderResponse, Upstream};

/// A round whose response is read.
pub(super) struct AskedRound<'a> {
    pub(super) conversation: &'a Conversation,
    pub(super) upstream: &'a Upstream,
    /// The request. None in the first round: the client repeats that itself, since no skill has run.
    pub(super) body: Option<Bytes>,
    pub(super) progress: &'a Progress,
}

impl AskedRound<'_> {
    /// Reads the response. If the provider breaks off a later round, or sends an error in it, it is asked again: the part
    /// that the client got stays, and the new attempt follows it. The second value is the reservation for the first.
    pub(super) async fn read(
        &self,
        mut response: ProviderResponse,
        filter: &mut dyn StreamFilter,
        chunks: &ChunkSender,
    ) -> Result<(RoundEnd, RoundMemory), Stop> {
        let Progress { deadline, .. } = *self.progress;
        let mut tries = 0;
        loop {
            let mut memory = RoundMemory::new(self.conversation);
            let why = match self.read_once(response, filter, chunks, &mut memory).await {
                Ok(end) => return Ok((end, memory)),
                Err(Stop::Broken(why)) => why,
                Err(stop) => return Err(stop),
            };
            let is_left =
                tries < self.conversation.limits.retries && Instant::now() + pause(tries) < deadline;
            let (Some(body), true) = (&self.body, is_left) else { return Err(Stop::Broken(why)) };
            let mut out = Vec::new();
            if !filter.abandon_round(&mut out) {
                return Err(Stop::Broken(why));
            }
            flush(&mut out, chunks).await?;
            warn!(tries, why, "Provider broke off a later round and is asked again");
            let keep_alive = self.conversation.dialect.keep_alive();
            let sent = async {
                sleep(pause(tries)).await;
                ask_again(self.conversation, self.upstream, body, deadline).await
            };
            response = stay_alive(sent, keep_alive, chunks).await?.map_err(Stop::Broken)?;
            tries += 1;
        }
    }

    async fn read_once(
        &self,
        mut response: ProviderResponse,
        filter: &mut dyn StreamFilter,
        chunks: &ChunkSender,
        memory: &mut RoundMemory,
    ) -> Result<RoundEnd, Stop> {
        let keep_alive = self.conversation.dialect.keep_alive();
        let broken = |error: &dyn std::fmt::Display| Stop::Broken(error.to_string());
        let mut out = Vec::new();
        loop {
            let chunk = tokio::select! {
                chunk = response.chunk() => chunk,
                () = chunks.closed() => return Err(Stop::ClientGone),
            };
            let Some(chunk) = chunk.map_err(|error| broken(&error.message))? else { break };
            // The client also gets the events before an error.
            let fed = filter.feed(&chunk, &mut out);
            note_last_response(self.conversation, filter, self.progress).await;
            flush(&mut out, chunks).await?;
            fed.map_err(|error| broken(&error))?;
            let held = memory.hold(filter.held_bytes());
            stay_alive(held, keep_alive, chunks).await?.map_err(|error| broken(&error.message))?;
        }
        let end = filter.end_round(&mut out);
        note_last_response(self.conversation, filter, self.progress).await;
        flush(&mut out, chunks).await?;
        end.map_err(|error| broken(&error))
    }
}

/// Notes the last response before the client gets its end, and may continue from it.
pub(super) async fn note_last_response(
    conversation: &Conversation,
    filter: &mut dyn StreamFilter,
    progress: &Progress,
) {
    if let Some(continued) = filter.take_continued() {
        conversation.note_last_response(&continued, progress).await;
    }
}

/// Sends the request of a later round. The error says in one line why there is no response.
pub(super) async fn ask_again(
    conversation: &Conversation,
    upstream: &Upstream,
    body: &Bytes,
    deadline: Instant,
) -> Result<ProviderResponse, String> {
    let sent = retry(deadline, conversation.limits.retries, || upstream.send(body.clone())).await;
    let sent = sent.map_err(|error| error.message)?;
    if sent.status().is_success() {
        Ok(sent)
    } else {
        Err(format!("ProviderRefused {}", sent.status().as_u16()))
    }
}
