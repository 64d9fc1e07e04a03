//! Pauses between the tries of a request, each twice the last one, up to a limit.

use std::time::Duration;

use tokio::time::sleep;

/// The pauses that are still to come.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
    last: Duration,
}

impl Backoff {
    pub const fn new(first: Duration, last: Duration) -> Self {
        Self { next: first, last }
    }

    /// Returns the next pause and doubles the one after it.
    pub fn next_pause(&mut self) -> Duration {
        let pause = self.next.min(self.last);
        self.next = pause * 2;
        pause
    }

    /// Sleeps for the next pause.
    pub async fn pause(&mut self) {
        sleep(self.next_pause()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_last_one() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
        let pauses = [0; 4].map(|_| backoff.next_pause().as_millis());
        assert_eq!(pauses, [100, 200, 350, 350]);
    }
}
