//! The memory pool for requests: no tenant can use up the memory of the process.
//!
//! A request reserves memory twice: for its bytes before they are read, and for its parsed document afterwards. A
//! response that is parsed, or that a client may read slowly, has a reservation of its own. Bodies that are being read
//! have a part of the pool of their own, so that two half-read requests never wait for each other.
//!
//! A request that does not fit waits up to 5 s, then fails with 503 and `Retry-After`. There is no queue: small
//! requests overtake large ones, and a tenant can only block its own share. A reservation is freed when it is dropped.
//! The pool counts estimates (see [`skillet_kube::parsed_size`]); it does not measure the allocator. [`ledger`] has the
//! rules, [`limits`] the sizes, which follow the memory of the container.

mod body;
mod ledger;
mod limits;
mod metrics;

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use prometheus_client::registry::Registry;
use skillet_kube::lock;
use tokio::sync::Notify;

pub use self::body::BodyBudget;
use self::{
    ledger::{Change, Ledger, Reserved},
    limits::PoolLimits,
    metrics::MemoryCollector,
};
use crate::error::ApiError;

/// Longest time that a request waits for room, each time.
const WAIT: Duration = Duration::from_secs(5);
/// The same for a request that was answered already, in part: its work would be lost.
const LONG_WAIT: Duration = Duration::from_secs(60);

/// The free memory of the pool.
#[derive(Clone)]
pub struct MemoryPool(Arc<Shared>);

struct Shared {
    limits: PoolLimits,
    ledger: Mutex<Ledger>,
    given_back: Notify,
}

/// The bytes that one request holds. Dropping it returns them to the pool.
pub struct MemoryReservation {
    shared: Arc<Shared>,
    tenant: Arc<str>,
    /// Tells the bodies that are being read apart.
    number: u64,
    part: Reserved,
}

impl Default for MemoryPool {
    fn default() -> Self {
        Self::new(PoolLimits::default())
    }
}

impl MemoryPool {
    /// Returns a pool whose size follows the memory limit of the container, less the bytes that something else holds.
    pub fn of_container(held: usize) -> Self {
        Self::new(PoolLimits::of_container(held))
    }

    fn new(limits: PoolLimits) -> Self {
        let ledger = Mutex::new(Ledger::new(limits));
        Self(Arc::new(Shared { limits, ledger, given_back: Notify::new() }))
    }

    /// Returns the bytes of the whole pool.
    pub fn size(&self) -> usize {
        self.0.limits.all
    }

    /// Registers the bytes of the pool, and those that are reserved.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(MemoryCollector(self.clone())));
    }

    /// Room for what is not of a request's body, as an answer.
    pub async fn reserve(&self, tenant: &Arc<str>, bytes: usize) -> Result<MemoryReservation, ApiError> {
        let mut taken = self.enter(tenant);
        taken.resize(bytes).await?;
        Ok(taken)
    }

    /// The beginning of a request, which holds nothing yet.
    fn enter(&self, tenant: &Arc<str>) -> MemoryReservation {
        let (shared, tenant, number) = (self.0.clone(), tenant.clone(), self.0.ledger().next_number());
        MemoryReservation { shared, tenant, number, part: Reserved::default() }
    }
}

#[cfg(test)]
impl MemoryPool {
    /// By requests that are all there.
    pub(crate) fn reserved(&self) -> usize {
        self.0.ledger().all().whole
    }

    /// Takes all that a tenant may have.
    pub(crate) async fn fill(&self, tenant: &str) -> MemoryReservation {
        self.fill_but(tenant, 0).await
    }

    /// Takes all but `left` bytes of that.
    pub(crate) async fn fill_but(&self, tenant: &str, left: usize) -> MemoryReservation {
        let mut all = self.enter(&tenant.into());
        all.keep(self.0.limits.share - left).await.unwrap();
        all
    }
}

impl MemoryReservation {
    /// Waits for room for the first `bytes` of a body that may become as large as `longest`.
    async fn read(&mut self, bytes: usize, longest: usize) -> Result<(), ApiError> {
        let reading = bytes.max(self.part.reading);
        self.change(Reserved { reading, whole: 0 }, longest.saturating_sub(reading), WAIT).await
    }

    /// Waits for what the request takes now that it is in, its bytes among it.
    async fn keep(&mut self, needed: usize) -> Result<(), ApiError> {
        if needed > self.shared.limits.share {
            return Err(ApiError::too_many_values());
        }
        self.change(Reserved { reading: 0, whole: needed }, 0, WAIT).await
    }

    /// Frees the reservation, then waits for one of `needed` bytes. Nothing is reserved meanwhile: two requests that
    /// wait with a reservation could block each other.
    pub async fn resize(&mut self, needed: usize) -> Result<(), ApiError> {
        self.shrink_to(0);
        if needed > self.shared.limits.share {
            return Err(ApiError::answer_too_large());
        }
        self.change(Reserved { reading: 0, whole: needed }, 0, WAIT).await
    }

    /// Does what [`Self::resize`] does for a conversation under way: it waits longer, and for no more than the share.
    pub async fn regain(&mut self, needed: usize) -> Result<(), ApiError> {
        self.shrink_to(0);
        let whole = needed.min(self.shared.limits.share);
        self.change(Reserved { reading: 0, whole }, 0, LONG_WAIT).await
    }

    /// Adds `more` bytes to the reservation, as [`Self::regain`] does.
    pub async fn grow(&mut self, more: usize) -> Result<(), ApiError> {
        self.regain(self.part.whole.saturating_add(more)).await
    }

    /// Gives back all but so much, as when a document is needed no more.
    pub fn shrink_to(&mut self, needed: usize) {
        let part = Reserved { reading: 0, whole: needed.min(self.part.whole) };
        self.shared.ledger().set(self.to(part, 0));
        self.part = part;
        self.shared.given_back.notify_waiters();
    }

    fn to(&self, to: Reserved, rest: usize) -> Change<'_> {
        Change { number: self.number, tenant: &self.tenant, was: self.part, to, rest }
    }

    /// `rest` is the number of bytes of the body that may still come.
    async fn change(&mut self, to: Reserved, rest: usize, limit: Duration) -> Result<(), ApiError> {
        let waiting = async {
            loop {
                // Made before the look, so that what is given back in between is not missed.
                let given_back = self.shared.given_back.notified();
                if self.shared.ledger().take(self.to(to, rest)) {
                    return;
                }
                given_back.await;
            }
        };
        tokio::time::timeout(limit, waiting).await.map_err(|_| ApiError::overloaded(limit))?;
        let was = std::mem::replace(&mut self.part, to);
        if was.reading > to.reading {
            self.shared.given_back.notify_waiters();
        }
        Ok(())
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.shared.ledger().set(self.to(Reserved::default(), 0));
        self.shared.given_back.notify_waiters();
    }
}

impl Shared {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }
}

#[cfg(test)]
mod tests;
