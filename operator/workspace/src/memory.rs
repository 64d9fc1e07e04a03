//! Memory for the content of files, shared by all requests. A request waits for its part, and is refused after a time.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::WorkspaceError;

/// Unit of reservations, and the least that a request takes.
const UNIT: u64 = 1 << 10;
/// Time for which a request waits for memory.
const WAIT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(crate) struct Memory {
    units: Arc<Semaphore>,
    most: u32,
}

/// Memory that is reserved as long as the value lives.
#[derive(Debug)]
pub(crate) struct Reservation {
    _permit: OwnedSemaphorePermit,
}

impl Memory {
    pub(crate) fn new(bytes: usize) -> Self {
        let most = u32::try_from(bytes as u64 / UNIT).unwrap_or(u32::MAX).max(1);
        Self { units: Arc::new(Semaphore::new(most as usize)), most }
    }

    /// More than there is in all is reserved as all.
    pub(crate) async fn reserve(&self, bytes: u64) -> Result<Reservation, WorkspaceError> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).clamp(1, self.most);
        let permit = timeout(WAIT, Arc::clone(&self.units).acquire_many_owned(units)).await;
        match permit {
            Ok(Ok(permit)) => Ok(Reservation { _permit: permit }),
            _ => Err(WorkspaceError::unavailable("its memory is in use; try again")),
        }
    }
}

impl Reservation {
    /// Returns the bytes, with the memory reserved until they are dropped.
    pub(crate) fn hold(self, content: Bytes) -> Bytes {
        Bytes::from_owner(Held { content, _reservation: self })
    }
}

struct Held {
    content: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn memory_is_free_again_when_the_bytes_are_dropped() {
        let memory = Memory::new(8 << 10);
        let held = memory.reserve(6 << 10).await.unwrap().hold(Bytes::from_static(b"content"));
        assert_eq!(held, "content");
        let error = memory.reserve(3 << 10).await.unwrap_err();
        assert!(error.to_string().contains("memory is in use"), "{error}");
        drop(held);
        memory.reserve(3 << 10).await.unwrap();
    }

    #[tokio::test]
    async fn more_than_all_waits_for_all() {
        let memory = Memory::new(4 << 10);
        let all = memory.reserve(u64::MAX).await.unwrap();
        assert_eq!(memory.units.available_permits(), 0);
        drop(all);
        assert_eq!(memory.units.available_permits(), 4);
    }
}
