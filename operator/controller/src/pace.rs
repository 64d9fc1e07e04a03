//! Turns of the requests that come in bursts, so that most places of the client are left for the runs.
//!
//! A turn is for one request and not for its retries: writes of one tenant that fail again and again delay nobody's.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The turns of each kind of request. Those of executions that do not run are half of the client's places together.
pub(crate) struct Pace {
    /// Reads of the skills of executions that arrive.
    pub(crate) arrivals: Turns,
    /// Statuses of executions that wait for a place.
    pub(crate) queued: Turns,
    /// Ends of executions that do not run, and their events.
    pub(crate) refusals: Turns,
    /// Ends of attempts, and their events.
    pub(crate) ends: Turns,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            arrivals: Turns::new(16),
            queued: Turns::new(8),
            refusals: Turns::new(8),
            ends: Turns::new(32),
        }
    }
}

/// Turns, in the order in which they were asked for.
#[derive(Clone)]
pub(crate) struct Turns(Arc<Semaphore>);

impl Turns {
    fn new(at_a_time: usize) -> Self {
        Self(Arc::new(Semaphore::new(at_a_time)))
    }

    /// Waits for a turn, which lasts until it is dropped.
    pub(crate) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        // Nothing closes the semaphore, so there is always a permit.
        self.0.clone().acquire_owned().await.ok()
    }
}
