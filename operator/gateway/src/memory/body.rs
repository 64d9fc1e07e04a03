//! Reads a body for which there is room, within limits of size and time.

use std::{sync::Arc, time::Duration};

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use tokio::time::{Instant, timeout};

use super::{MemoryPool, MemoryReservation};
use crate::error::ApiError;

/// Least number of bytes that a sender sends in a second.
const LEAST_RATE: f64 = 65_536.0;
/// Longest pause of a sender. One that was fast before has no more.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The first step in which memory is reserved. Later ones are a quarter of what is there.
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
    /// The reservation for this body.
    pub fn reservation(self, bytes: &[u8]) -> usize {
        if bytes.is_empty() {
            return 0;
        }
        bytes
            .len()
            .saturating_mul(self.text_copies)
            .saturating_add(skillet_kube::parsed_size(bytes).saturating_mul(self.parsed_copies))
    }

    /// The reservation for text of so many bytes, before it is there.
    pub fn estimate(self, bytes: usize) -> usize {
        bytes.saturating_mul(self.text_copies + self.parsed_copies)
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
        // Of a pool that has no room for the largest body, a smaller one is the largest.
        let max_bytes = budget.max_bytes.min(self.0.limits.share_reading);
        let bytes = collect(body, max_bytes, &mut reservation).await?;
        reservation.keep(budget.reservation(&bytes)).await?;
        Ok((bytes, reservation))
    }
}

async fn collect(
    body: Body,
    max_bytes: usize,
    reservation: &mut MemoryReservation,
) -> Result<Bytes, ApiError> {
    let announced = body.size_hint();
    let longest = match announced.upper() {
        Some(length) => usize::try_from(length).ok().filter(|length| *length <= max_bytes),
        None => Some(max_bytes),
    };
    let longest = longest.ok_or_else(|| ApiError::too_large(max_bytes))?;
    let (mut read, mut reserved) = (BytesMut::new(), 0);
    let mut chunks = body.into_data_stream();
    let mut pace = Pace::default();
    while let Some(chunk) = pace.watch(chunks.next()).await? {
        let chunk = chunk.map_err(|_| ApiError::bad_request("the body could not be read to its end"))?;
        pace.earn(chunk.len());
        let length = read.len() + chunk.len();
        if length > longest {
            return Err(ApiError::too_large(max_bytes));
        }
        if length > reserved {
            reserved = (length + length / 4).max(STEP).min(longest);
            reservation.read(reserved, longest).await?;
            read.reserve(reserved - read.len());
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read.freeze())
}

/// The time that a sender has left to send more. The time in which the gateway waits for memory does not count.
struct Pace(Duration);

impl Default for Pace {
    fn default() -> Self {
        Self(LONGEST_PAUSE)
    }
}

impl Pace {
    async fn watch<T>(&mut self, sent: impl Future<Output = T>) -> Result<T, ApiError> {
        let start = Instant::now();
        let sent = timeout(self.0, sent).await.map_err(|_| ApiError::too_slow())?;
        self.0 = self.0.saturating_sub(start.elapsed());
        Ok(sent)
    }

    fn earn(&mut self, bytes: usize) {
        let bytes = f64::from(u32::try_from(bytes).unwrap_or(u32::MAX));
        self.0 = (self.0 + Duration::from_secs_f64(bytes / LEAST_RATE)).min(LONGEST_PAUSE);
    }
}
