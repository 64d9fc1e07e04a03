//! Reads a body for which there is room, within limits of size and time.

use std::{sync::Arc, time::Duration};

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;

use super::{MemoryPool, MemoryReservation};
use crate::error::ApiError;

/// Longest time for a request to come.
const READ_LIMIT: Duration = Duration::from_secs(60);
/// Room is taken in steps of at least so much where the length is not said before.
const STEP: usize = 64 * 1024;

/// The use of a body, which decides its size in memory.
#[derive(Clone, Copy, Debug)]
pub struct BodyBudget {
    /// Most bytes of it.
    pub max_bytes: usize,
    /// Number of parsed copies that exist at one time.
    pub parsed_copies: usize,
    /// Number of text copies: the received bytes and those to forward.
    pub text_copies: usize,
}

impl BodyBudget {
    fn reservation(self, bytes: &[u8]) -> usize {
        if bytes.is_empty() {
            return 0;
        }
        bytes
            .len()
            .saturating_mul(self.text_copies)
            .saturating_add(skillet_kube::parsed_size(bytes).saturating_mul(self.parsed_copies))
    }
}

impl MemoryPool {
    /// Reads a body of this tenant. What it takes is given back when the second of the two is dropped.
    pub async fn read(
        &self,
        tenant: &Arc<str>,
        body: Body,
        budget: BodyBudget,
    ) -> Result<(Bytes, MemoryReservation), ApiError> {
        let mut reservation = self.enter(tenant);
        let bytes = tokio::time::timeout(READ_LIMIT, collect(body, budget.max_bytes, &mut reservation));
        let bytes = bytes.await.map_err(|_| ApiError::too_slow(READ_LIMIT))??;
        reservation.keep(budget.reservation(&bytes)).await?;
        Ok((bytes, reservation))
    }
}

async fn collect(
    body: Body,
    max_bytes: usize,
    reservation: &mut MemoryReservation,
) -> Result<Bytes, ApiError> {
    let announced = body.size_hint().lower();
    let announced = usize::try_from(announced).ok().filter(|bytes| *bytes <= max_bytes);
    let announced = announced.ok_or_else(|| ApiError::too_large(max_bytes))?;
    reservation.read(announced).await?;
    let mut read = BytesMut::with_capacity(announced);
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| ApiError::bad_request("the body could not be read to its end"))?;
        let length = read.len() + chunk.len();
        if length > max_bytes {
            return Err(ApiError::too_large(max_bytes));
        }
        if length > read.capacity() {
            let capacity = length.max(STEP).next_power_of_two().min(max_bytes);
            reservation.read(capacity).await?;
            read.reserve(capacity - read.len());
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read.freeze())
}
