//! Places and time for commands: of the texts of a request, or of all calls of one conversation.

use std::{sync::Mutex, time::Duration};

use skillet_kube::lock;
use tokio::time::Instant;

/// Most commands.
pub(super) const MOST: usize = 64;
/// Most time in which commands run.
pub(super) const TOTAL_TIME: Duration = Duration::from_secs(30);

/// The places and the time that are left.
#[derive(Debug)]
pub(crate) struct CommandBudget(Mutex<Left>);

#[derive(Debug)]
struct Left {
    places: usize,
    time: Duration,
    /// Bodies whose commands run now.
    running: usize,
    /// Begin of the time in which any of them runs.
    since: Instant,
}

/// Counts the time until it is dropped.
pub(super) struct BudgetTimer<'a> {
    budget: &'a CommandBudget,
    /// Time that was left at the begin.
    pub(super) left: Duration,
}

impl Default for CommandBudget {
    fn default() -> Self {
        Self(Mutex::new(Left { places: MOST, time: TOTAL_TIME, running: 0, since: Instant::now() }))
    }
}

impl CommandBudget {
    /// Takes a place for a command, and returns false if none is left.
    pub(super) fn take_place(&self) -> bool {
        let mut left = lock(&self.0);
        let rest = left.places.checked_sub(1);
        left.places = rest.unwrap_or_default();
        rest.is_some()
    }

    /// Begins to count time. Bodies whose commands run beside each other count once.
    pub(super) fn start(&self) -> BudgetTimer<'_> {
        let mut left = lock(&self.0);
        if left.running == 0 {
            left.since = Instant::now();
        }
        left.running += 1;
        BudgetTimer { budget: self, left: left.time.saturating_sub(left.since.elapsed()) }
    }
}

impl Drop for BudgetTimer<'_> {
    fn drop(&mut self) {
        let mut left = lock(&self.budget.0);
        left.running -= 1;
        if left.running == 0 {
            left.time = left.time.saturating_sub(left.since.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_counts_once_while_anything_runs_and_not_between() {
        let budget = CommandBudget::default();
        let first = budget.start();
        advance(Duration::from_secs(10)).await;
        let second = budget.start();
        assert_eq!((first.left.as_secs(), second.left.as_secs()), (30, 20));
        drop(first);
        advance(Duration::from_secs(5)).await;
        drop(second);
        advance(Duration::from_secs(600)).await;
        assert_eq!(budget.start().left.as_secs(), 15);
        let rest = budget.start();
        advance(Duration::from_secs(60)).await;
        drop(rest);
        assert!(budget.start().left.is_zero());
    }

    #[test]
    fn places_are_taken_once() {
        let budget = CommandBudget::default();
        let is_taken: Vec<bool> = (0..=MOST).map(|_| budget.take_place()).collect();
        assert_eq!(is_taken.iter().position(|is_taken| !is_taken), Some(MOST));
    }
}
