//! Requests and tokens per minute of each caller namespace, in the memory of this gateway.
//!
//! A namespace has a bucket for each limit, which holds a minute's worth. The tokens of a response are known after it, so
//! their bucket may go below zero; requests then wait until it is above.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use skillet_api::gateway::RateLimits;
use skillet_kube::lock;

/// More namespaces than this are looked through for those that have all of their minute again.
const SWEEP_AT: usize = 1_000;
const MINUTE: f64 = 60.0;

/// The buckets of all namespaces.
#[derive(Debug, Default)]
pub(super) struct RateLimiter(Mutex<HashMap<Arc<str>, Buckets>>);

#[derive(Debug)]
struct Buckets {
    requests: Bucket,
    tokens: Bucket,
}

/// The used part of a minute's worth. It falls with time.
#[derive(Debug)]
struct Bucket {
    used: f64,
    at: Instant,
}

impl RateLimiter {
    /// Takes one request of a namespace, or returns the time until the next one may come.
    pub(super) fn take(
        &self,
        namespace: &Arc<str>,
        limits: &RateLimits,
        now: Instant,
    ) -> Result<(), Duration> {
        let RateLimits { requests_per_minute, tokens_per_minute } = *limits;
        if requests_per_minute.is_none() && tokens_per_minute.is_none() {
            return Ok(());
        }
        let mut namespaces = lock(&self.0);
        if namespaces.len() >= SWEEP_AT {
            namespaces.retain(|_, buckets| !buckets.is_full(limits, now));
        }
        let buckets = namespaces.entry(namespace.clone()).or_insert_with(|| Buckets::new(now));
        let for_request = requests_per_minute.map(|limit| buckets.requests.wait(limit, 1.0, now));
        // Tokens are taken after the response; a request needs some of them to be left.
        let for_tokens = tokens_per_minute.map(|limit| buckets.tokens.wait(limit, 1.0, now));
        let wait = for_request.max(for_tokens).unwrap_or_default();
        if wait > Duration::ZERO {
            return Err(wait);
        }
        buckets.requests.used += 1.0;
        Ok(())
    }

    /// Takes the tokens of a response from its namespace.
    pub(super) fn charge(&self, namespace: &Arc<str>, limits: &RateLimits, tokens: u64, now: Instant) {
        let Some(limit) = limits.tokens_per_minute else { return };
        let mut namespaces = lock(&self.0);
        let buckets = namespaces.entry(namespace.clone()).or_insert_with(|| Buckets::new(now));
        buckets.tokens.refill(limit, now);
        #[expect(
            clippy::cast_precision_loss,
            reason = "a response has fewer tokens than a float is exact for"
        )]
        let tokens = tokens as f64;
        buckets.tokens.used += tokens;
    }
}

impl Buckets {
    fn new(now: Instant) -> Self {
        let bucket = || Bucket { used: 0.0, at: now };
        Self { requests: bucket(), tokens: bucket() }
    }

    fn is_full(&mut self, limits: &RateLimits, now: Instant) -> bool {
        let RateLimits { requests_per_minute, tokens_per_minute } = *limits;
        self.requests.refill(requests_per_minute.unwrap_or(u32::MAX), now);
        self.tokens.refill(tokens_per_minute.unwrap_or(u32::MAX), now);
        self.requests.used <= 0.0 && self.tokens.used <= 0.0
    }
}

impl Bucket {
    fn refill(&mut self, limit: u32, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.used = (self.used - passed * f64::from(limit) / MINUTE).max(0.0);
        self.at = now;
    }

    /// The time until the bucket holds `amount`.
    fn wait(&mut self, limit: u32, amount: f64, now: Instant) -> Duration {
        self.refill(limit, now);
        let missing = (self.used + amount - f64::from(limit)).max(0.0);
        Duration::try_from_secs_f64(missing * MINUTE / f64::from(limit)).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(requests: Option<u32>, tokens: Option<u32>) -> RateLimits {
        RateLimits { requests_per_minute: requests, tokens_per_minute: tokens }
    }

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// The wait in whole seconds, rounded.
    fn wait(taken: Result<(), Duration>) -> u64 {
        (taken.err().unwrap_or_default() + Duration::from_millis(500)).as_secs()
    }

    #[test]
    fn a_namespace_has_a_minutes_requests_and_the_next_after_its_wait() {
        let (limiter, limits, start) = (RateLimiter::default(), limits(Some(6), None), Instant::now());
        let (team, other): (Arc<str>, Arc<str>) = ("team".into(), "other".into());
        for _ in 0..6 {
            assert_eq!(limiter.take(&team, &limits, start), Ok(()));
        }
        assert_eq!(wait(limiter.take(&team, &limits, start)), 10);
        assert_eq!(limiter.take(&other, &limits, start), Ok(()), "another namespace");
        assert_eq!(wait(limiter.take(&team, &limits, start + seconds(4.0))), 6);
        assert_eq!(limiter.take(&team, &limits, start + seconds(10.1)), Ok(()));
        assert_eq!(wait(limiter.take(&team, &limits, start + seconds(10.1))), 10);
    }

    #[test]
    fn tokens_go_into_debt_and_requests_wait_until_it_is_paid() {
        let (limiter, limits, start) = (RateLimiter::default(), limits(None, Some(600)), Instant::now());
        let team: Arc<str> = "team".into();
        assert_eq!(limiter.take(&team, &limits, start), Ok(()));
        limiter.charge(&team, &limits, 900, start);
        assert_eq!(wait(limiter.take(&team, &limits, start)), 30);
        assert_eq!(limiter.take(&team, &limits, start + seconds(30.2)), Ok(()));
        limiter.charge(&team, &limits, u64::MAX, start + seconds(30.2));
        assert!(limiter.take(&team, &limits, start + seconds(60.0)).is_err());
    }

    #[test]
    fn without_limits_nothing_is_kept_and_idle_namespaces_are_forgotten() {
        let (limiter, start) = (RateLimiter::default(), Instant::now());
        let name = |number: usize| -> Arc<str> { number.to_string().into() };
        assert_eq!(limiter.take(&name(0), &limits(None, None), start), Ok(()));
        assert!(lock(&limiter.0).is_empty());
        let limits = limits(Some(60), Some(60));
        (0..SWEEP_AT).for_each(|number| limiter.take(&name(number), &limits, start).unwrap());
        limiter.take(&name(SWEEP_AT), &limits, start + seconds(2.0)).unwrap();
        assert_eq!(lock(&limiter.0).len(), 1);
    }
}
