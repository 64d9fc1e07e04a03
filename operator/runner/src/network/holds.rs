//! Callers that do not want to wait for a connection and do so for a moment, because a host nearby answers sooner. Pure.
//!
//! A connection that is made within the call costs the program one call. One that is not costs three, and the pretense of a
//! busy socket. Once a moment was not enough, the next callers are not held.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Longest time for which a caller is held.
const HOLD: Duration = Duration::from_millis(2);

/// Callers that are not held after one that was held in vain.
const SPARED: u32 = 32;

#[derive(Debug, Default)]
pub(super) struct Holds {
    /// Sockets whose caller is held, the oldest first.
    held: VecDeque<(Instant, u64)>,
    spared: u32,
}

impl Holds {
    /// True if the caller that connects a socket at `now` is held.
    pub(super) fn begin(&mut self, inode: u64, now: Instant) -> bool {
        if self.spared > 0 {
            self.spared -= 1;
            return false;
        }
        self.held.push_back((now + HOLD, inode));
        true
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.held.front().map(|(until, _)| *until)
    }

    /// The connection of a socket is made, or will not be.
    pub(super) fn end(&mut self, inode: u64) {
        self.held.retain(|(_, held)| *held != inode);
    }

    /// Takes a socket whose time is over at `now`.
    pub(super) fn due(&mut self, now: Instant) -> Option<u64> {
        if self.deadline().is_none_or(|until| until > now) {
            return None;
        }
        self.held.pop_front().map(|(_, inode)| inode)
    }

    /// A caller was held in vain.
    pub(super) fn spare_next(&mut self) {
        self.spared = SPARED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_held_for_a_moment() {
        let (mut holds, now) = (Holds::default(), Instant::now());
        assert_eq!(holds.deadline(), None);
        assert!(holds.begin(7, now));
        assert!(holds.begin(8, now + HOLD / 2));
        assert_eq!(holds.deadline(), Some(now + HOLD));
        assert_eq!(holds.due(now), None);
        assert_eq!(holds.due(now + HOLD), Some(7));
        assert_eq!(holds.due(now + HOLD), None);
        assert_eq!(holds.due(now + 2 * HOLD), Some(8));
        assert_eq!(holds.deadline(), None);
    }

    #[test]
    fn nobody_waits_for_a_connection_that_is_made() {
        let (mut holds, now) = (Holds::default(), Instant::now());
        assert!(holds.begin(7, now));
        holds.end(7);
        assert_eq!((holds.deadline(), holds.due(now + HOLD)), (None, None));
        assert!(holds.begin(9, now));
    }

    #[test]
    fn the_next_callers_are_spared_after_one_was_held_in_vain() {
        let (mut holds, now) = (Holds::default(), Instant::now());
        holds.spare_next();
        let held = (0..=u64::from(SPARED)).filter(|inode| holds.begin(*inode, now)).count();
        assert_eq!((held, holds.due(now + HOLD)), (1, Some(u64::from(SPARED))));
    }
}
