//! Facts of workspaces that are in use: their lock, their usage, and the last note of their use.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

use crate::{WorkspaceId, backend::Usage};

/// Workspaces whose facts are kept. More are forgotten as soon as nobody uses them, and read again.
const MAX_SLOTS: usize = 10_000;

/// Facts of one workspace.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// The usage if it is known. Who writes to the workspace holds the lock.
    pub(super) usage: tokio::sync::Mutex<Option<Usage>>,
    marked: Mutex<Option<Timestamp>>,
}

impl Slot {
    pub(super) fn is_marked_since(&self, now: Timestamp, interval: Duration) -> bool {
        let interval = SignedDuration::try_from(interval).unwrap_or(SignedDuration::MAX);
        lock(&self.marked).is_some_and(|marked| now.duration_since(marked) < interval)
    }

    pub(super) fn mark(&self, now: Timestamp) {
        *lock(&self.marked) = Some(now);
    }

    pub(super) fn forget_mark(&self) {
        *lock(&self.marked) = None;
    }
}

/// Facts of the workspaces in use.
#[derive(Debug, Default)]
pub(super) struct Slots(Mutex<HashMap<WorkspaceId, Arc<Slot>>>);

impl Slots {
    pub(super) fn of(&self, id: &WorkspaceId) -> Arc<Slot> {
        let mut slots = lock(&self.0);
        if slots.len() >= MAX_SLOTS && !slots.contains_key(id) {
            retain_used(&mut slots);
        }
        Arc::clone(slots.entry(id.clone()).or_default())
    }

    /// Forgets what nobody uses now, so that files which were changed by hand are counted again.
    pub(super) fn clear_idle(&self) {
        retain_used(&mut lock(&self.0));
    }
}

// The map is locked: nobody can take a slot of which the map has the only handle.
fn retain_used(slots: &mut HashMap<WorkspaceId, Arc<Slot>>) {
    slots.retain(|_, slot| Arc::strong_count(slot) > 1);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_in_use_outlive_those_that_are_not() {
        let slots = Slots::default();
        let held = slots.of(&WorkspaceId::of_owner("held"));
        for number in 0..2 * MAX_SLOTS {
            slots.of(&WorkspaceId::of_owner(&number.to_string()));
        }
        assert!(lock(&slots.0).len() <= MAX_SLOTS);
        assert!(Arc::ptr_eq(&held, &slots.of(&WorkspaceId::of_owner("held"))));
        slots.clear_idle();
        assert_eq!(lock(&slots.0).len(), 1);
    }
}
