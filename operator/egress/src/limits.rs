//! Limits of connections: of a run, of a tenant, and of the process. A place is given back when its value is dropped.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use skillet_protocol::MAX_CHANNELS;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::policy::{InvalidPolicy, Policy, RunPolicy};

/// Tenants that are kept before the idle ones are forgotten.
const KNOWN_TENANTS: usize = 256;

/// Time that a connection waits for a place of its run.
const PLACE_WAIT: Duration = Duration::from_millis(250);

/// Limits that hold for all runs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Most connections of one tenant at one time.
    pub tenant_connections: usize,
    /// New connections of one tenant in a second; as many may come at once.
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
    open: usize,
    tokens: f64,
    filled: Instant,
}

/// Place of a connection among those of its tenant.
#[derive(Debug)]
pub(crate) struct TenantPlace {
    tenant: String,
    tenants: Arc<Mutex<Tenants>>,
}

impl Limits {
    pub(crate) fn new(settings: LimitSettings) -> Self {
        Self { settings, tenants: Arc::default() }
    }

    /// Takes a place, or names the limit that is reached.
    pub(crate) fn enter(&self, tenant: &str, now: Instant) -> Result<TenantPlace, &'static str> {
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
        let fresh = || Tenant { open: 0, tokens: rate, filled: now };
        let known = tenants.by_name.entry(tenant.to_owned()).or_insert_with(fresh);
        if known.open >= tenant_connections {
            return Err("the namespace has no more connections");
        }
        if known.refill(rate, now) < 1.0 {
            return Err("the namespace opens connections too fast");
        }
        known.tokens -= 1.0;
        known.open += 1;
        tenants.open += 1;
        Ok(TenantPlace { tenant: tenant.to_owned(), tenants: Arc::clone(&self.tenants) })
    }
}

impl Tenant {
    fn refill(&mut self, rate: f64, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * rate).min(rate);
        self.filled = now;
        self.tokens
    }
}

impl Drop for TenantPlace {
    fn drop(&mut self) {
        let mut tenants = lock(&self.tenants);
        tenants.open -= 1;
        if let Some(tenant) = tenants.by_name.get_mut(&self.tenant) {
            tenant.open -= 1;
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
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
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
mod tests {
    use super::*;

    fn limits(tenant_connections: usize, tenant_rate: u32, connections: usize) -> Limits {
        Limits::new(LimitSettings { tenant_connections, tenant_rate, connections })
    }

    #[test]
    fn a_tenant_has_its_connections_and_the_process_has_them_all() {
        let (limits, now) = (limits(2, 100, 3), Instant::now());
        let first = limits.enter("a", now).unwrap();
        let _second = limits.enter("a", now).unwrap();
        assert_eq!(limits.enter("a", now).unwrap_err(), "the namespace has no more connections");
        let _other = limits.enter("b", now).unwrap();
        assert_eq!(limits.enter("c", now).unwrap_err(), "the broker has no more connections");
        drop(first);
        assert!(limits.enter("a", now).is_ok());
    }

    #[test]
    fn a_tenant_opens_connections_at_its_rate() {
        let (limits, now) = (limits(100, 10, 100), Instant::now());
        let mut open: Vec<TenantPlace> = (0..10).map(|_| limits.enter("a", now).unwrap()).collect();
        assert_eq!(limits.enter("a", now).unwrap_err(), "the namespace opens connections too fast");
        assert!(limits.enter("b", now).is_ok());
        let later = now + Duration::from_millis(250);
        open.extend([limits.enter("a", later).unwrap(), limits.enter("a", later).unwrap()]);
        assert!(limits.enter("a", later).is_err());
        // Time does not save up more than a second's connections.
        let much_later = now + Duration::from_secs(3600);
        assert_eq!((0..20).filter(|_found| limits.enter("a", much_later).is_ok()).count(), 10);
    }

    #[test]
    fn tenants_without_connections_are_forgotten() {
        let (limits, now) = (limits(10, 10, 100_000), Instant::now());
        let _kept = limits.enter("kept", now).unwrap();
        for number in 0..10_000u32 {
            drop(limits.enter(&number.to_string(), now + Duration::from_millis(number.into())).unwrap());
        }
        let tenants = lock(&limits.tenants);
        assert!(tenants.by_name.len() <= KNOWN_TENANTS + 1, "{}", tenants.by_name.len());
        assert!(tenants.by_name.contains_key("kept"));
    }
}
