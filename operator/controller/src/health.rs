//! The state of `/healthz` and `/readyz`.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use skillet_kube::lock;
use tokio::time::Instant;

/// The engine ticks twice a second. One that has not done so for this long is stuck.
const STUCK: Duration = Duration::from_secs(60);

/// Tells whether the operator may lead, and whether its engine works. Clones share their state.
#[derive(Clone, Default)]
pub struct Health(Arc<State>);

#[derive(Default)]
struct State {
    is_ready: AtomicBool,
    ticked_at: Mutex<Option<Instant>>,
}

impl Health {
    /// Returns true once the operator has seen the whole cluster, so that it can lead at once.
    pub fn is_ready(&self) -> bool {
        self.0.is_ready.load(Ordering::Relaxed)
    }

    /// Returns false if the engine is stuck. An operator that does not lead has no engine, and is alive.
    pub fn is_alive(&self) -> bool {
        lock(&self.0.ticked_at).is_none_or(|ticked_at| ticked_at.elapsed() < STUCK)
    }

    pub(crate) fn set_ready(&self) {
        self.0.is_ready.store(true, Ordering::Relaxed);
    }

    /// Notes that the engine works.
    pub(crate) fn tick(&self) {
        *lock(&self.0.ticked_at) = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_an_engine_that_has_not_ticked_for_a_minute_is_stuck() {
        let health = Health::default();
        advance(10 * STUCK).await;
        assert!(health.is_alive(), "it does not lead");
        health.tick();
        advance(STUCK / 2).await;
        assert!(health.is_alive());
        advance(STUCK / 2).await;
        assert!(!health.is_alive());
        health.tick();
        assert!(health.is_alive());
    }
}
