//! A token bucket: a rate for what may be dropped above it.

use std::time::{Duration, Instant};

/// Tokens of which each use takes one. One comes back per `interval`, up to `capacity`.
#[derive(Debug)]
pub struct TokenBucket {
    capacity: u32,
    interval: Duration,
    tokens: u32,
    /// The time at which the last token came back.
    refilled_at: Option<Instant>,
}

impl TokenBucket {
    /// Returns a full bucket.
    pub const fn new(capacity: u32, interval: Duration) -> Self {
        Self { capacity, interval, tokens: capacity, refilled_at: None }
    }

    /// Takes a token at the time `now`. Returns false if there is none.
    pub fn take(&mut self, now: Instant) -> bool {
        let since = *self.refilled_at.get_or_insert(now);
        let back = now.saturating_duration_since(since).as_nanos() / self.interval.as_nanos().max(1);
        let back = u32::try_from(back).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(back).min(self.capacity);
        // A full bucket refills from the next use on.
        let refilled_at = since + self.interval.saturating_mul(back);
        self.refilled_at = Some(if self.tokens == self.capacity { now } else { refilled_at });
        let is_left = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_takes_what_is_there_and_then_one_per_interval() {
        let (start, mut bucket) = (Instant::now(), TokenBucket::new(3, Duration::from_millis(100)));
        let mut taken =
            |millis| (0..10).filter(|_| bucket.take(start + Duration::from_millis(millis))).count();
        assert_eq!(taken(0), 3);
        assert_eq!((taken(99), taken(100), taken(350)), (0, 1, 2));
        assert_eq!(taken(400), 1, "the rest of an interval is not lost");
        assert_eq!(taken(60_000), 3);
    }
}
