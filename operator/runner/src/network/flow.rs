//! The two directions of a channel: what each side may still send, and what waits for the program.
//!
//! Pure. `transfer` moves the bytes.
//!
//! # Guarantees
//!
//! - The runner sends no more than the broker has allowed, and holds no more than it has allowed the broker.
//! - The broker is allowed more only when the program's socket has taken what came before.

use std::collections::VecDeque;

use skillet_protocol::{EXTRA_WINDOW_BYTES, INITIAL_WINDOW_BYTES};

/// Bytes that a `Window` frame is worth.
const UPDATE_BYTES: u32 = INITIAL_WINDOW_BYTES / 2;

#[derive(Debug)]
// Each flag is one step of one direction; together they are no states of one thing.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Flow {
    /// Bytes that the broker still takes.
    sendable: u32,
    /// Bytes that the broker may still send.
    allowed: u32,
    /// Bytes that the program's socket took since the last `Window`.
    taken: u32,
    waiting: VecDeque<Vec<u8>>,
    /// Bytes of the first waiting piece that are written.
    written: usize,
    /// The host sends no more.
    pub(crate) has_host_ended: bool,
    /// The program's socket shows it.
    pub(crate) is_end_passed_on: bool,
    /// The program sends no more.
    pub(crate) has_program_ended: bool,
    /// The program reads no more.
    is_discarding: bool,
    is_extended: bool,
}

impl Flow {
    pub(crate) fn new() -> Self {
        Self {
            sendable: INITIAL_WINDOW_BYTES,
            allowed: INITIAL_WINDOW_BYTES,
            taken: 0,
            waiting: VecDeque::new(),
            written: 0,
            has_host_ended: false,
            is_end_passed_on: false,
            has_program_ended: false,
            is_discarding: false,
            is_extended: false,
        }
    }

    /// Bytes that may be sent to the broker, at most `most`.
    pub(crate) fn sendable(&self, most: usize) -> usize {
        usize::try_from(self.sendable).unwrap_or(usize::MAX).min(most)
    }

    pub(crate) fn sent(&mut self, length: usize) {
        self.sendable = self.sendable.saturating_sub(u32::try_from(length).unwrap_or(u32::MAX));
    }

    pub(crate) fn allow_sending(&mut self, bytes: u32) {
        self.sendable = self.sendable.saturating_add(bytes);
    }

    /// Takes bytes of the host; false if the broker was not allowed to send them.
    pub(crate) fn receive(&mut self, bytes: Vec<u8>) -> bool {
        let Some(left) = u32::try_from(bytes.len()).ok().and_then(|length| self.allowed.checked_sub(length))
        else {
            return false;
        };
        self.allowed = left;
        if !self.is_discarding && !bytes.is_empty() {
            self.waiting.push_back(bytes);
        }
        true
    }

    /// The next bytes for the program.
    pub(crate) fn next(&self) -> Option<&[u8]> {
        self.waiting.front().and_then(|piece| piece.get(self.written..))
    }

    /// Notes that the program's socket took `length` of the next bytes.
    pub(crate) fn take(&mut self, length: usize) {
        self.taken = self.taken.saturating_add(u32::try_from(length).unwrap_or(u32::MAX));
        self.written += length;
        if self.waiting.front().is_some_and(|piece| self.written >= piece.len()) {
            self.waiting.pop_front();
            self.written = 0;
        }
    }

    /// Returns the size of the `Window` frame that is due.
    pub(crate) fn window(&mut self, may_extend: bool) -> Option<u32> {
        if self.taken < UPDATE_BYTES || self.has_host_ended {
            return None;
        }
        let mut window = std::mem::take(&mut self.taken);
        if may_extend && !self.is_extended {
            self.is_extended = true;
            window += EXTRA_WINDOW_BYTES;
        }
        self.allowed = self.allowed.saturating_add(window);
        Some(window)
    }

    /// The program reads no more: what comes is dropped, and the broker is allowed no more.
    pub(crate) fn discard(&mut self) {
        self.is_discarding = true;
        self.waiting.clear();
        self.written = 0;
    }

    /// True if both directions are over.
    pub(crate) fn is_over(&self) -> bool {
        self.has_host_ended && self.has_program_ended && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: usize = INITIAL_WINDOW_BYTES as usize;

    #[test]
    fn sending_stops_at_the_window_and_resumes_after_a_frame() {
        let mut flow = Flow::new();
        assert_eq!(flow.sendable(usize::MAX), WINDOW);
        assert_eq!(flow.sendable(10), 10);
        flow.sent(WINDOW);
        assert_eq!(flow.sendable(10), 0);
        flow.allow_sending(7);
        assert_eq!(flow.sendable(10), 7);
        flow.allow_sending(u32::MAX);
        flow.allow_sending(u32::MAX);
        assert_eq!(flow.sendable(10), 10);
    }

    #[test]
    fn a_broker_that_sends_too_much_is_noticed() {
        let mut flow = Flow::new();
        assert!(flow.receive(vec![0; WINDOW]));
        assert!(flow.receive(vec![]));
        assert!(!flow.receive(vec![0]));
    }

    #[test]
    fn the_broker_is_allowed_more_only_for_what_was_taken() {
        let mut flow = Flow::new();
        assert!(flow.receive(vec![0; WINDOW]));
        assert_eq!(flow.window(false), None);
        flow.take(WINDOW / 2 - 1);
        assert_eq!(flow.window(false), None);
        flow.take(1);
        assert_eq!(flow.window(false), Some(INITIAL_WINDOW_BYTES / 2));
        assert_eq!(flow.window(false), None);
        assert!(flow.receive(vec![0; WINDOW / 2]));
        assert!(!flow.receive(vec![0]));
    }

    #[test]
    fn a_fast_reader_gets_a_larger_window_once() {
        let mut flow = Flow::new();
        flow.take(WINDOW);
        assert_eq!(flow.window(true), Some(INITIAL_WINDOW_BYTES + EXTRA_WINDOW_BYTES));
        flow.take(WINDOW);
        assert_eq!(flow.window(true), Some(INITIAL_WINDOW_BYTES));
    }

    #[test]
    fn bytes_are_taken_in_pieces_of_any_size_and_in_order() {
        let mut flow = Flow::new();
        flow.receive(b"abc".to_vec());
        flow.receive(b"de".to_vec());
        let mut read = vec![];
        while let Some(next) = flow.next() {
            let piece = next[..next.len().min(2)].to_vec();
            flow.take(piece.len());
            read.extend(piece);
        }
        assert_eq!(read, b"abcde");
    }

    #[test]
    fn nothing_is_kept_for_a_program_that_reads_no_more() {
        let mut flow = Flow::new();
        flow.receive(b"abc".to_vec());
        flow.discard();
        assert_eq!(flow.next(), None);
        assert!(flow.receive(vec![0; WINDOW - 3]));
        assert_eq!(flow.next(), None);
        assert_eq!(flow.window(true), None);
        assert!(!flow.receive(vec![0]));
    }

    #[test]
    fn a_channel_is_over_when_both_directions_are() {
        let mut flow = Flow::new();
        flow.receive(b"a".to_vec());
        flow.has_host_ended = true;
        assert!(!flow.is_over());
        flow.has_program_ended = true;
        assert!(!flow.is_over());
        flow.take(1);
        assert!(flow.is_over());
    }
}
