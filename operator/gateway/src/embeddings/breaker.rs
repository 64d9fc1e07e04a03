//! The breaker of a provider: after some failures in a row nobody asks it for a while. No clock.

use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row that open the breaker.
const FAILURES: u32 = 3;

/// Time for which it is open: the first one, and the longest.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);

/// The failures of a provider since its last success.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    open_until: Option<Instant>,
}

impl Breaker {
    /// Returns true if the provider may be asked now. After a pause one request tries it, and the others wait for its end.
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        match self.open_until {
            Some(until) if now < until => false,
            Some(_) => {
                self.open_until = Some(now + FIRST);
                true
            }
            None => true,
        }
    }

    pub(super) fn succeed(&mut self) {
        *self = Self::default();
    }

    pub(super) fn fail(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        let Some(pauses) = self.failures.checked_sub(FAILURES) else { return };
        let pause = FIRST.saturating_mul(1 << pauses.min(8)).min(LONGEST);
        self.open_until = Some(now + pause);
    }

    /// Returns true if the last requests failed.
    pub(super) fn is_open(&self) -> bool {
        self.open_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_provider_is_asked_rarely_and_a_living_one_always() {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        for _ in 1..FAILURES {
            breaker.fail(at(0));
            assert!(breaker.allows(at(0)) && !breaker.is_open());
        }
        breaker.fail(at(0));
        assert!(breaker.is_open() && !breaker.allows(at(4)));
        assert!(breaker.allows(at(5)) && !breaker.allows(at(5)), "one request tries it");
        assert!(breaker.allows(at(10)), "a request that never ended is replaced");
        breaker.fail(at(10));
        assert!(!breaker.allows(at(19)) && breaker.allows(at(20)));
        (0..100).for_each(|_| breaker.fail(at(20)));
        assert!(!breaker.allows(at(79)) && breaker.allows(at(80)));
        breaker.succeed();
        assert!(breaker.allows(at(80)) && breaker.allows(at(80)) && !breaker.is_open());
    }
}
