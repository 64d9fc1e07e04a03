//! Limits of connections: of a run, of a tenant, and of the process. A place is given back when its value is dropped.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use skillet_protocol::MAX_CHANNELS;
use tokio::{
    sync::{Mutex as Queue, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::policy::{InvalidPolicy, Policy, RunPolicy};

/// Tenants that are kept before the idle ones are forgotten.
const KNOWN_TENANTS: usize = 256;

/// Time that a connection waits for a place of its run.
const PLACE_WAIT: Duration = Duration::from_millis(250);

const TOO_FAST: &str = "the namespace opens connections too fast";

/// Limits that hold for all runs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Most connections of one tenant at one time.
    pub tenant_connections: usize,
    /// New connections of one tenant in a second; as many may come at once. Further ones wait for their turn.
    pub tenant_rate: u32,
    /// Most connections at one time.
    pub connections: usize,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self { tenant_connections: 512, tenant_rate: 100, connections: 8192 }
    }
}

/// Connections that are open, by tenant.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    settings: LimitSettings,
    tenants: Arc<Mutex<Tenants>>,
}

#[derive(Debug, Default)]
struct Tenants {
    open: usize,
    by_name: HashMap<String, Tenant>,
}

#[derive(Debug)]
struct Tenant {
    /// Connections, and those that wait.
    open: usize,
    /// Connections that wait for a token.
    waiting: usize,
    tokens: f64,
    filled: Instant,
    /// Locked by the first that waits, and in order of arrival by those behind it.
    queue: Arc<Queue<()>>,
}

/// Place of a connection among those of its tenant.
#[derive(Debug)]
pub(crate) struct TenantPlace {
    tenant: String,
    tenants: Arc<Mutex<Tenants>>,
    rate: f64,
    /// The queue in which it waits for a token. `None`: it has one.
    queue: Option<Arc<Queue<()>>>,
}

impl Limits {
    pub(crate) fn new(settings: LimitSettings) -> Self {
        Self { settings, tenants: Arc::default() }
    }

    /// Takes a place, and waits for a token after those that came before. Names the limit if it is reached, and at once if the
    /// token would come after the deadline.
    pub(crate) async fn enter(&self, tenant: &str, deadline: Instant) -> Result<TenantPlace, &'static str> {
        let mut place = self.reserve(tenant, deadline, Instant::now())?;
        timeout_at(deadline, place.wait()).await.map_err(|_| TOO_FAST)?;
        Ok(place)
    }

    /// Takes a place, which has a token or a wait for one. Those that wait count as connections, so their number is bounded.
    fn reserve(&self, tenant: &str, deadline: Instant, now: Instant) -> Result<TenantPlace, &'static str> {
        let LimitSettings { tenant_connections, tenant_rate, connections } = self.settings;
        let mut tenants = lock(&self.tenants);
        if tenants.open >= connections {
            return Err("the broker has no more connections");
        }
        let rate = f64::from(tenant_rate);
        if tenants.by_name.len() >= KNOWN_TENANTS {
            // A tenant without a connection and with all its tokens is the same as none.
            tenants.by_name.retain(|_, known| known.open > 0 || known.refill(rate, now) < rate);
        }
        let fresh = || Tenant { open: 0, waiting: 0, tokens: rate, filled: now, queue: Arc::default() };
        let known = tenants.by_name.entry(tenant.to_owned()).or_insert_with(fresh);
        if known.open >= tenant_connections {
            return Err("the namespace has no more connections");
        }
        let mut queue = None;
        match known.wait_for_token(rate, now) {
            Some(Duration::ZERO) if known.waiting == 0 => known.tokens -= 1.0,
            Some(wait) if now + wait <= deadline => {
                known.waiting += 1;
                queue = Some(Arc::clone(&known.queue));
            }
            Some(_) | None => return Err(TOO_FAST),
        }
        known.open += 1;
        tenants.open += 1;
        Ok(TenantPlace { tenant: tenant.to_owned(), tenants: Arc::clone(&self.tenants), rate, queue })
    }
}

impl TenantPlace {
    /// Waits for a token. It may be dropped at any time: the next one in the queue then gets the token.
    async fn wait(&mut self) {
        let Some(queue) = self.queue.clone() else { return };
        let _first = queue.lock().await;
        while let Some(wait) = self.take_token(Instant::now()) {
            sleep(wait).await;
        }
    }

    /// Takes a token for the first of the queue, or returns the time until there is one.
    fn take_token(&mut self, now: Instant) -> Option<Duration> {
        let mut tenants = lock(&self.tenants);
        let known = tenants.by_name.get_mut(&self.tenant)?;
        let missing = 1.0 - known.refill(self.rate, now);
        if missing > 0.0 {
            return Some(seconds(missing / self.rate).unwrap_or(Duration::MAX));
        }
        known.tokens -= 1.0;
        known.waiting -= 1;
        self.queue = None;
        None
    }
}

impl Tenant {
    fn refill(&mut self, rate: f64, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * rate).min(rate);
        self.filled = now;
        self.tokens
    }

    /// Returns the time until one that comes now has a token, after all that wait. `None`: there will be none.
    fn wait_for_token(&mut self, rate: f64, now: Instant) -> Option<Duration> {
        let waiting = u32::try_from(self.waiting).ok()?;
        let missing = f64::from(waiting) + 1.0 - self.refill(rate, now);
        if missing > 0.0 { seconds(missing / rate) } else { Some(Duration::ZERO) }
    }
}

/// Returns the time. `None` if it is too long for one.
fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

impl Drop for TenantPlace {
    fn drop(&mut self) {
        let mut tenants = lock(&self.tenants);
        tenants.open -= 1;
        if let Some(tenant) = tenants.by_name.get_mut(&self.tenant) {
            tenant.open -= 1;
            tenant.waiting -= usize::from(self.queue.is_some());
        }
    }
}

/// Direction of bytes, as the program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flow {
    Sent,
    Received,
}

/// Rules of one run, and its share of them that is used.
#[derive(Debug)]
pub(crate) struct RunScope {
    pub(crate) policy: Policy,
    /// Uid of the execution, for logs.
    pub(crate) run: String,
    pub(crate) tenant: String,
    connections: Arc<Semaphore>,
    transfer_bytes: u64,
    sent: AtomicU64,
    received: AtomicU64,
}

/// Place of a connection among those of its run.
#[derive(Debug)]
pub(crate) struct RunPlace(#[expect(dead_code, reason = "held until dropped")] OwnedSemaphorePermit);

impl RunScope {
    pub(crate) fn new(policy: &RunPolicy) -> Result<Arc<Self>, InvalidPolicy> {
        let connections = usize::try_from(policy.connections).unwrap_or(usize::MAX);
        Ok(Arc::new(Self {
            policy: Policy::new(policy)?,
            run: policy.run.clone(),
            tenant: policy.tenant.clone(),
            connections: Arc::new(Semaphore::new(connections.min(MAX_CHANNELS))),
            transfer_bytes: policy.transfer_bytes,
            sent: AtomicU64::new(policy.sent_bytes),
            received: AtomicU64::new(policy.received_bytes),
        }))
    }

    /// Takes a place; `None` when the run has all its connections.
    pub(crate) async fn enter(&self) -> Option<RunPlace> {
        // The runner may know the end of a connection a little before the broker does.
        let place = timeout(PLACE_WAIT, Arc::clone(&self.connections).acquire_owned()).await;
        place.ok()?.ok().map(RunPlace)
    }

    /// Counts bytes; false when the run has had all that it may.
    pub(crate) fn count(&self, flow: Flow, bytes: usize) -> bool {
        let counter = match flow {
            Flow::Sent => &self.sent,
            Flow::Received => &self.received,
        };
        let bytes = bytes as u64;
        counter.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= self.transfer_bytes
    }
}

/// Locks a mutex whose holders do not panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
