//! Memory for the part of a streamed round that waits for the round's end.

use std::sync::Arc;

use super::super::Conversation;
use crate::{
    error::ApiError,
    memory::{MemoryPool, MemoryReservation},
};

/// Bytes of a round that are not counted. Most rounds have no more.
const UNCOUNTED: usize = 64 * 1024;

/// The reservation of one round. It grows while the round is read.
pub(super) struct RoundMemory {
    pool: Arc<MemoryPool>,
    tenant: Arc<str>,
    reservation: Option<MemoryReservation>,
    reserved: usize,
}

impl RoundMemory {
    pub(super) fn new(conversation: &Conversation) -> Self {
        let (pool, tenant) = (conversation.gateway.memory.clone(), conversation.caller.namespace.clone());
        Self { pool, tenant, reservation: None, reserved: UNCOUNTED }
    }

    /// Waits for room for the `held` bytes of a round and as many more.
    pub(super) async fn hold(&mut self, held: usize) -> Result<(), ApiError> {
        if held <= self.reserved {
            return Ok(());
        }
        let reservation = match &mut self.reservation {
            Some(reservation) => reservation,
            none => none.insert(self.pool.reserve(&self.tenant, 0).await?),
        };
        reservation.regain(held * 2).await?;
        self.reserved = held * 2;
        Ok(())
    }
}
