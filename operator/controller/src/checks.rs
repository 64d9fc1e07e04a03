//! Turns of those who read and check what tenants wrote: a few of each lane, so that no tenant takes the memory or
//! the threads of the others.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use skillet_core::{content_cache::ContentCache, lane::Lane};
use skillet_kube::lock;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

/// Checks at one time, whatever their lanes.
const PARALLEL: usize = 2;
/// Objects for one lane that are read at one time.
const READS: usize = 4;
/// An object that takes more memory than this is worked on alone.
const LARGE: usize = 1 << 20;

/// Valid contents of versions, and the turns.
pub(crate) struct Checks {
    pub(crate) contents: ContentCache,
    all: Arc<Semaphore>,
    large: Arc<Semaphore>,
    lanes: Mutex<HashMap<Lane, Arc<LanePermits>>>,
}

struct LanePermits {
    reads: Arc<Semaphore>,
    check: Arc<Semaphore>,
}

/// The turn of a lane to read objects, until it is dropped.
pub(crate) struct Turn {
    lane: Arc<LanePermits>,
    _read: Option<OwnedSemaphorePermit>,
}

/// The right to hold a large object, until it is dropped. A small object needs none.
pub(crate) struct LargeObject {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            contents: ContentCache::new(),
            all: semaphore(PARALLEL),
            large: semaphore(1),
            lanes: Mutex::default(),
        }
    }
}

impl Checks {
    /// Waits for the turn of a lane to read objects.
    pub(crate) async fn turn(&self, lane: &Lane) -> Turn {
        let Turn { lane, .. } = self.turn_to_check(lane);
        let read = acquire(&lane.reads).await;
        Turn { lane, _read: read }
    }

    /// Returns the turn of a lane to check an output, which waits for no reads.
    pub(crate) fn turn_to_check(&self, lane: &Lane) -> Turn {
        let mut lanes = lock(&self.lanes);
        lanes.retain(|_, permits| Arc::strong_count(permits) > 1);
        let new = || Arc::new(LanePermits { reads: semaphore(READS), check: semaphore(1) });
        let lane = lanes.entry(lane.clone()).or_insert_with(new).clone();
        Turn { lane, _read: None }
    }

    /// Waits until no other large object is parsed.
    pub(crate) async fn large_object(&self, parsed_size: usize) -> LargeObject {
        let permit = if parsed_size > LARGE { acquire(&self.large).await } else { None };
        LargeObject { _permit: permit }
    }

    /// Runs `check` of an object of this size on a thread of its own. `None` if it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        turn: &Turn,
        parsed_size: usize,
        check: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        // A lane takes one thread and waits with one check, so that the others come next.
        let own = acquire(&turn.lane.check).await;
        let large = self.large_object(parsed_size).await;
        let all = acquire(&self.all).await;
        let permits = (own, large, all);
        let result = spawn_blocking(move || {
            let result = check();
            drop(permits);
            result
        });
        result.await.ok()
    }
}

fn semaphore(permits: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(permits))
}

/// Nothing closes the semaphores, so there is always a permit.
async fn acquire(semaphore: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    semaphore.clone().acquire_owned().await.ok()
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test]
    async fn a_lane_whose_checks_take_long_holds_up_no_other() {
        let checks = Arc::new(Checks::default());
        let lane = |caller| Lane::new("platform", Some(caller));
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        for _ in 0..10 {
            let (checks, released) = (checks.clone(), released.clone());
            tokio::spawn(async move {
                let turn = checks.turn(&lane("slow")).await;
                checks.run(&turn, 0, move || lock(&released).recv()).await;
            });
        }
        sleep(Duration::from_millis(50)).await;
        let turn = timeout(Duration::from_secs(10), checks.turn(&lane("quick"))).await.unwrap();
        let quick = timeout(Duration::from_secs(10), checks.run(&turn, 0, || 7)).await;
        assert_eq!(quick, Ok(Some(7)));
        drop(release);
    }

    #[tokio::test]
    async fn the_check_of_an_output_waits_for_no_reads_of_its_lane() {
        let (checks, lane, limit) = (Checks::default(), Lane::new("a", None), Duration::from_secs(10));
        let mut reads = Vec::new();
        for _ in 0..READS {
            reads.push(checks.turn(&lane).await);
        }
        assert!(timeout(Duration::from_millis(50), checks.turn(&lane)).await.is_err());
        let turn = checks.turn_to_check(&lane);
        assert_eq!(timeout(limit, checks.run(&turn, 0, || 7)).await, Ok(Some(7)));
    }

    #[tokio::test(start_paused = true)]
    async fn large_objects_are_held_one_at_a_time() {
        let checks = Checks::default();
        let first = checks.large_object(LARGE + 1).await;
        let limit = Duration::from_secs(1);
        assert!(timeout(limit, checks.large_object(LARGE)).await.is_ok(), "a small one does not wait");
        assert!(timeout(limit, checks.large_object(LARGE + 1)).await.is_err());
        drop(first);
        assert!(timeout(limit, checks.large_object(LARGE + 1)).await.is_ok());
    }
}
