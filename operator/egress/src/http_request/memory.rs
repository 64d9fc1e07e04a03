//! Memory for the bodies of requests and responses. All requests together have a budget, so that many large bodies make some
//! requests fail and not the broker.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Unit of the budget.
const UNIT: usize = 1024;

/// The budget of a process.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<Semaphore>);

/// The part of the budget that one request holds.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Memory,
    units: Option<OwnedSemaphorePermit>,
    bytes: usize,
}

/// Others hold the whole budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

impl Memory {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes / UNIT).min(Semaphore::MAX_PERMITS))))
    }

    pub(crate) fn reserve(&self, bytes: usize) -> Result<Reservation, OutOfMemory> {
        let mut reservation = Reservation { memory: self.clone(), units: None, bytes: 0 };
        reservation.add(bytes)?;
        Ok(reservation)
    }
}

impl Reservation {
    /// Holds so many bytes more.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        let held = self.units.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        self.bytes = self.bytes.saturating_add(bytes);
        let missing =
            u32::try_from(self.bytes.div_ceil(UNIT).saturating_sub(held)).map_err(|_| OutOfMemory)?;
        if missing == 0 {
            return Ok(());
        }
        let more = Arc::clone(&self.memory.0).try_acquire_many_owned(missing).map_err(|_| OutOfMemory)?;
        match &mut self.units {
            Some(units) => units.merge(more),
            None => self.units = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_grows_in_the_budget_and_is_free_again() {
        let memory = Memory::new(10 * UNIT);
        let mut first = memory.reserve(UNIT).unwrap();
        first.add(100).unwrap();
        first.add(100).unwrap();
        assert_eq!(memory.0.available_permits(), 8);
        let second = memory.reserve(8 * UNIT).unwrap();
        assert_eq!(first.add(UNIT), Err(OutOfMemory));
        assert_eq!(memory.reserve(1).unwrap_err(), OutOfMemory);
        drop(second);
        first.add(UNIT).unwrap();
        drop(first);
        assert_eq!(memory.0.available_permits(), 10);
    }
}
