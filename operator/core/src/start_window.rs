//! The number of runs that hold a place at one time while the cluster has no room for more, and the pause of a run that
//! found no room.
//!
//! A window as in congestion control. It is open without a limit until the scheduler finds no room for a sandbox.
//! Then it shrinks to the runs that have room, never below 1, so that new sandboxes do not overtake waiting ones.
//! It grows by one place for each window of runs that found room, and by half after each quiet period.
//! Pure: times come in as parameters.

use std::time::{Duration, Instant};

/// Without a shortage for this long, the window grows by half.
const QUIET: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// The bound on runs that hold a place.
#[derive(Debug, Default)]
pub struct StartWindow(Option<Narrow>);

#[derive(Debug)]
struct Narrow {
    size: u32,
    /// Runs that found room since the window last changed.
    placed: u32,
    changed_at: Instant,
}

impl StartWindow {
    /// Shrinks the window to the `placed` runs that have room.
    pub fn shrink(&mut self, placed: u32, now: Instant) {
        let size = self.0.as_ref().map_or(placed, |narrow| narrow.size.min(placed)).max(1);
        self.0 = Some(Narrow { size, placed: 0, changed_at: now });
    }

    /// Counts a run that found room.
    pub fn grow(&mut self) {
        let Some(narrow) = &mut self.0 else { return };
        narrow.placed += 1;
        if narrow.placed >= narrow.size {
            narrow.size += 1;
            narrow.placed = 0;
        }
    }

    /// The number of runs that may hold a place now, at most `total`. A window that reaches `total` opens again.
    pub fn limit(&mut self, total: u32, now: Instant) -> u32 {
        let Some(narrow) = &mut self.0 else { return total };
        if now.duration_since(narrow.changed_at) >= QUIET {
            narrow.size += narrow.size.div_ceil(2);
            narrow.changed_at = now;
        }
        if narrow.size >= total {
            self.0 = None;
            return total;
        }
        narrow.size
    }
}

/// The pause of a run before its next sandbox, after `rejections` sandboxes that found no room.
pub fn pause(rejections: u32) -> Duration {
    let doublings = rejections.saturating_sub(1).min(5);
    (FIRST_PAUSE * 2_u32.pow(doublings)).min(LAST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Event {
        Full(u32),
        Placed(u32),
        Seconds(u64),
    }
    use Event::{Full, Placed, Seconds};

    /// The limit under a total of 32, after each event.
    fn check(events: &[Event], expected: &[u32]) {
        let (mut window, mut now) = (StartWindow::default(), Instant::now());
        let limits: Vec<u32> = events
            .iter()
            .map(|event| {
                match event {
                    Full(placed) => window.shrink(*placed, now),
                    Placed(runs) => (0..*runs).for_each(|_| window.grow()),
                    Seconds(seconds) => now += Duration::from_secs(*seconds),
                }
                window.limit(32, now)
            })
            .collect();
        assert_eq!(limits, expected);
    }

    #[test]
    fn a_window_is_open_until_the_cluster_is_full() {
        check(&[Placed(5), Seconds(60), Full(20)], &[32, 32, 20]);
    }

    #[test]
    fn a_full_cluster_shrinks_the_window_to_placed_runs_and_never_below_one() {
        check(&[Full(20), Full(25), Full(3), Full(0), Full(0)], &[20, 20, 3, 1, 1]);
    }

    #[test]
    fn runs_that_find_room_grow_the_window_by_one_per_window() {
        check(&[Full(1), Placed(1), Placed(1), Placed(1), Placed(2), Placed(1)], &[1, 2, 2, 3, 3, 4]);
    }

    #[test]
    fn a_quiet_period_grows_the_window_by_half_until_it_opens() {
        let quiet = || Seconds(10);
        check(
            &[Full(1), Seconds(9), Seconds(1), quiet(), quiet(), quiet(), quiet(), quiet(), quiet(), quiet()],
            &[1, 1, 2, 3, 5, 8, 12, 18, 27, 32],
        );
        // The opened window does not shrink again by itself.
        check(&[Full(20), quiet(), quiet(), Seconds(0)], &[20, 30, 32, 32]);
    }

    #[test]
    fn a_shortage_restarts_the_quiet_period() {
        check(&[Full(4), Seconds(9), Full(4), Seconds(9), Seconds(1)], &[4, 4, 4, 4, 6]);
    }

    #[test]
    fn each_rejection_doubles_the_pause_up_to_half_a_minute() {
        let seconds: Vec<u64> = (0..9).map(|rejections| pause(rejections).as_secs()).collect();
        assert_eq!(seconds, [1, 1, 2, 4, 8, 16, 30, 30, 30]);
    }
}
