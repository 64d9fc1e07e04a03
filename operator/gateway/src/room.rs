//! Memory for requests, shared by all: whoever finds none waits, so that one caller cannot take the others' process away.

use std::sync::Arc;

use http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// For all requests together, in KiB. The rest of the container's memory is for skills, answers and the process.
const ALL: usize = 256 * 1024;
/// What one value of a parsed document takes beside its text, in bytes.
const VALUE: usize = 40;
/// As bytes, as a document, and as the bytes that are sent.
const COPIES: usize = 3;

/// What is left for requests.
pub struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ALL)))
    }
}

impl Room {
    /// Waits for what a request of this body takes. It is given back with the answer.
    pub async fn take(&self, body: &[u8]) -> Result<OwnedSemaphorePermit, ApiError> {
        let needed = needed(body);
        let too_large = || {
            let message = "the request has more values than the gateway has room for";
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", message)
        };
        let needed = u32::try_from(needed).ok().filter(|_| needed <= ALL).ok_or_else(too_large)?;
        self.0
            .clone()
            .acquire_many_owned(needed)
            .await
            .map_err(|_| ApiError::unavailable("the gateway stops"))
    }
}

fn needed(body: &[u8]) -> usize {
    let values = body.iter().filter(|byte| matches!(byte, b',' | b'{' | b'[' | b':')).count();
    (body.len() * COPIES + values * VALUE) / 1024 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_of_many_small_values_takes_more_room_than_its_bytes() {
        assert_eq!(needed(b"{}"), 1);
        assert!(needed(&b"0,".repeat(10_000)) > 400);
        let refused = Room::default().take(&b"0,".repeat(8 * 1024 * 1024)).await.unwrap_err();
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[tokio::test]
    async fn who_finds_no_room_waits_until_there_is_some() {
        let room = Room::default();
        let body = vec![b' '; 60 * 1024 * 1024];
        let first = room.take(&body).await.unwrap();
        let mut second = Box::pin(room.take(&body));
        assert!(futures::poll!(&mut second).is_pending());
        drop(first);
        drop(second.await.unwrap());
    }
}
