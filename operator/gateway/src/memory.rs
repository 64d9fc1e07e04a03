//! The memory pool for requests: no tenant can use up the memory of the process.
//!
//! A request reserves memory twice: for its bytes before they are read, and for its parsed document afterwards. A
//! response that is parsed, or that a client may read slowly, has a reservation of its own. Bodies that are being read
//! have a part of the pool of their own, so that two half-read requests never wait for each other.
//!
//! A request that does not fit waits up to 5 s, then fails with 503 and `Retry-After`. There is no queue: small
//! requests overtake large ones, and a tenant can only block its own share. A reservation is freed when it is dropped.
//! The pool counts estimates (see [`skillet_kube::parsed_size`]); it does not measure the allocator.

mod body;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use skillet_kube::lock;
use tokio::sync::Notify;

pub use self::body::BodyBudget;
use crate::error::ApiError;

const MIB: usize = 1 << 20;
/// For all requests together. The rest of the container's memory is for skills, answers and the process.
const ALL: usize = 256 * MIB;
/// Of it for bodies that are not all there yet.
const READING: usize = 80 * MIB;
/// For the requests of one tenant, and the most for one request: one of the largest size takes 96 MiB.
const SHARE: usize = 112 * MIB;
/// For what a tenant is sending: one body of the largest size, and small ones beside it.
const SHARE_READING: usize = 40 * MIB;
/// Longest time that a request waits for room, each time.
const WAIT: Duration = Duration::from_secs(5);

/// The free memory of the pool.
#[derive(Default)]
pub struct MemoryPool(Arc<Shared>);

#[derive(Default)]
struct Shared {
    ledger: Mutex<Ledger>,
    given_back: Notify,
}

/// The reserved bytes.
#[derive(Default)]
struct Ledger {
    all: Reserved,
    tenants: HashMap<Arc<str>, Reserved>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reserved {
    /// By bodies that are not all there yet.
    reading: usize,
    /// By requests that are.
    whole: usize,
}

/// The bytes that one request holds. Dropping it returns them to the pool.
pub struct MemoryReservation {
    shared: Arc<Shared>,
    tenant: Arc<str>,
    part: Reserved,
}

impl MemoryPool {
    /// Room for what is not of a request's body, as an answer.
    pub async fn reserve(&self, tenant: &Arc<str>, bytes: usize) -> Result<MemoryReservation, ApiError> {
        let mut taken = self.enter(tenant);
        taken.resize(bytes).await?;
        Ok(taken)
    }

    /// The beginning of a request, which holds nothing yet.
    fn enter(&self, tenant: &Arc<str>) -> MemoryReservation {
        MemoryReservation { shared: self.0.clone(), tenant: tenant.clone(), part: Reserved::default() }
    }
}

#[cfg(test)]
impl MemoryPool {
    /// By requests that are all there.
    pub(crate) fn reserved(&self) -> usize {
        self.0.ledger().all.whole
    }

    /// Takes all that a tenant may have.
    pub(crate) async fn fill(&self, tenant: &str) -> MemoryReservation {
        let mut all = self.enter(&tenant.into());
        all.keep(SHARE).await.unwrap();
        all
    }
}

impl MemoryReservation {
    /// Waits for room for so many bytes of a body, all that were taken before among them.
    async fn read(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.change(Reserved { reading: bytes.max(self.part.reading), whole: 0 }).await
    }

    /// Waits for what the request takes now that it is in, its bytes among it.
    async fn keep(&mut self, needed: usize) -> Result<(), ApiError> {
        if needed > SHARE {
            return Err(ApiError::too_many_values());
        }
        self.change(Reserved { reading: 0, whole: needed }).await
    }

    /// Frees the reservation, then waits for one of `needed` bytes. Nothing is reserved meanwhile: two requests that
    /// wait with a reservation could block each other.
    pub async fn resize(&mut self, needed: usize) -> Result<(), ApiError> {
        self.shrink_to(0);
        if needed > SHARE {
            return Err(ApiError::answer_too_large());
        }
        self.change(Reserved { reading: 0, whole: needed }).await
    }

    /// Gives back all but so much, as when a document is needed no more.
    pub fn shrink_to(&mut self, needed: usize) {
        let part = Reserved { reading: 0, whole: needed.min(self.part.whole) };
        self.shared.ledger().set(&self.tenant, self.part, part);
        self.part = part;
        self.shared.given_back.notify_waiters();
    }

    async fn change(&mut self, to: Reserved) -> Result<(), ApiError> {
        let waiting = async {
            loop {
                // Made before the look, so that what is given back in between is not missed.
                let given_back = self.shared.given_back.notified();
                if self.shared.ledger().take(&self.tenant, self.part, to) {
                    return;
                }
                given_back.await;
            }
        };
        tokio::time::timeout(WAIT, waiting).await.map_err(|_| ApiError::overloaded(WAIT))?;
        let was = std::mem::replace(&mut self.part, to);
        if was.reading > to.reading {
            self.shared.given_back.notify_waiters();
        }
        Ok(())
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.shared.ledger().set(&self.tenant, self.part, Reserved::default());
        self.shared.given_back.notify_waiters();
    }
}

impl Shared {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }
}

impl Ledger {
    /// Changes what one request of a tenant holds, if there is room for it.
    fn take(&mut self, tenant: &Arc<str>, was: Reserved, to: Reserved) -> bool {
        let share = self.tenants.get(tenant).copied().unwrap_or_default().with(was, to);
        let all = self.all.with(was, to);
        let is_there = all.reading + all.whole <= ALL && all.reading <= READING;
        // The bytes that others of the tenant are reading do not count against its whole: they would wait for each
        // other.
        let is_fair = share.reading <= SHARE_READING && share.whole <= SHARE;
        if is_there && is_fair {
            self.set(tenant, was, to);
        }
        is_there && is_fair
    }

    fn set(&mut self, tenant: &Arc<str>, was: Reserved, to: Reserved) {
        self.all = self.all.with(was, to);
        let share = self.tenants.entry(tenant.clone()).or_default();
        *share = share.with(was, to);
        if *share == Reserved::default() {
            self.tenants.remove(tenant);
        }
    }
}

impl Reserved {
    fn with(self, was: Reserved, to: Reserved) -> Reserved {
        Reserved {
            reading: self.reading - was.reading + to.reading,
            whole: self.whole - was.whole + to.whole,
        }
    }
}

#[cfg(test)]
mod tests;
