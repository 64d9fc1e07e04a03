//! Signals as a descriptor to poll: children that ended, and the request to end.
//!
//! Only a SIGTERM from outside of the sandbox counts, because the program has the runner's uid and can send one too.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys;

pub(crate) struct Signals {
    descriptor: OwnedFd,
    is_init: bool,
}

/// Summary of the received signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) child: bool,
    pub(crate) terminate: bool,
}

impl Signals {
    pub(crate) fn new(is_init: bool) -> io::Result<Self> {
        // Programs would inherit the signals that the runtime ignores.
        sys::reset_signal_actions();
        Ok(Self { descriptor: sys::signal_descriptor(&[libc::SIGCHLD, libc::SIGTERM])?, is_init })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Reads all pending signals.
    pub(crate) fn take(&self) -> Received {
        let mut received = Received::default();
        let mut record = [0; 128];
        while let Ok(128) = rustix::io::read(&self.descriptor, &mut record) {
            judge(&record, self.is_init, &mut received);
        }
        received
    }
}

/// The record is the kernel's `signalfd_siginfo`: signal, error, code and sender, four bytes each.
fn judge(record: &[u8; 128], is_init: bool, received: &mut Received) {
    let field = |at: usize| {
        let bytes = [record[at], record[at + 1], record[at + 2], record[at + 3]];
        i32::from_ne_bytes(bytes)
    };
    let (signal, code, sender) = (field(0), field(8), field(12));
    // A sender outside of this process namespace has no number in it. The sender can choose any other code itself.
    let is_from_outside = code == libc::SI_USER && sender == 0;
    match signal {
        libc::SIGCHLD => received.child = true,
        libc::SIGTERM if is_from_outside || !is_init => received.terminate = true,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(signal: i32, code: i32, sender: i32, is_init: bool, expected: Received) {
        let mut record = [0; 128];
        for (at, value) in [(0, signal), (8, code), (12, sender)] {
            record[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        let mut received = Received::default();
        judge(&record, is_init, &mut received);
        assert_eq!(received, expected, "signal {signal} code {code} sender {sender}");
    }

    #[test]
    fn a_request_to_end_counts_from_outside_only() {
        let nothing = Received::default();
        let terminate = Received { terminate: true, ..nothing };
        check(libc::SIGTERM, libc::SI_USER, 0, true, terminate);
        check(libc::SIGTERM, libc::SI_USER, 7, true, nothing);
        check(libc::SIGTERM, libc::SI_QUEUE, 0, true, nothing);
        check(libc::SIGTERM, libc::SI_USER, 7, false, terminate);
    }

    #[test]
    fn a_child_is_worth_a_look_whoever_says_so() {
        let child = Received { child: true, terminate: false };
        check(libc::SIGCHLD, 1, 7, true, child);
        check(libc::SIGUSR1, libc::SI_USER, 0, true, Received::default());
    }
}
