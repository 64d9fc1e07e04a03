//! One output stream of a program: masks secrets, digests, cuts into frames, caps, and keeps the end.
//!
//! Pure: bytes in, frames out. Size and digest are of the masked stream.

use std::collections::VecDeque;

use sha2::{Digest as _, Sha256};
use skillet_protocol::{MAX_OUTPUT_BYTES, MAX_TAIL_BYTES, Masker, RunnerMessage, StreamSummary};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    fn frame(self, bytes: Vec<u8>) -> RunnerMessage {
        match self {
            Self::Stdout => RunnerMessage::Stdout(bytes),
            Self::Stderr => RunnerMessage::Stderr(bytes),
        }
    }

    fn tail(self, bytes: Vec<u8>) -> RunnerMessage {
        match self {
            Self::Stdout => RunnerMessage::StdoutTail(bytes),
            Self::Stderr => RunnerMessage::StderrTail(bytes),
        }
    }
}

pub(crate) struct Capture {
    stream: Stream,
    masker: Masker,
    digest: Sha256,
    bytes: u64,
    sent: u64,
    cap: u64,
    /// The last bytes beyond the cap.
    tail: VecDeque<u8>,
}

impl Capture {
    pub(crate) fn new(stream: Stream, cap: u64, masker: Masker) -> Self {
        Self { stream, masker, digest: Sha256::new(), bytes: 0, sent: 0, cap, tail: VecDeque::new() }
    }

    /// Returns frames for the bytes that the program wrote, up to the cap.
    pub(crate) fn take(&mut self, written: &[u8]) -> Vec<RunnerMessage> {
        let masked = self.masker.push(written);
        self.count(&masked)
    }

    /// Returns the last frames and the summary of the stream.
    pub(crate) fn finish(mut self) -> (Vec<RunnerMessage>, StreamSummary) {
        let masked = self.masker.finish();
        let mut frames = self.count(&masked);
        if !self.tail.is_empty() {
            frames.push(self.stream.tail(self.tail.into()));
        }
        let sha256 = format!("{:x}", self.digest.finalize());
        (frames, StreamSummary { bytes: self.bytes, sent: self.sent, sha256 })
    }

    fn count(&mut self, masked: &[u8]) -> Vec<RunnerMessage> {
        self.digest.update(masked);
        self.bytes += masked.len() as u64;
        let left = usize::try_from(self.cap - self.sent).unwrap_or(usize::MAX);
        let (send, keep) = masked.split_at(left.min(masked.len()));
        self.sent += send.len() as u64;
        // Only the end of the rest can matter, so a large piece costs no more than a tail.
        self.tail.extend(&keep[keep.len().saturating_sub(MAX_TAIL_BYTES)..]);
        self.tail.drain(..self.tail.len().saturating_sub(MAX_TAIL_BYTES));
        send.chunks(MAX_OUTPUT_BYTES).map(|chunk| self.stream.frame(chunk.to_vec())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        cap: u64,
        secrets: &[&str],
        written: &[&[u8]],
        expected: &[RunnerMessage],
        bytes: u64,
        sent: u64,
    ) {
        let mut capture = Capture::new(Stream::Stdout, cap, Masker::new(secrets.iter().copied()));
        let mut frames: Vec<RunnerMessage> = written.iter().flat_map(|piece| capture.take(piece)).collect();
        let (last, summary) = capture.finish();
        frames.extend(last);
        assert_eq!(frames, expected);
        assert_eq!((summary.bytes, summary.sent), (bytes, sent));
    }

    fn out(bytes: &[u8]) -> RunnerMessage {
        RunnerMessage::Stdout(bytes.to_vec())
    }

    #[test]
    fn output_is_sent_at_once() {
        check(100, &[], &[b"a\n", b"b"], &[out(b"a\n"), out(b"b")], 3, 3);
        check(100, &[], &[], &[], 0, 0);
    }

    #[test]
    fn only_the_tail_of_output_over_the_cap_is_kept() {
        check(2, &[], &[b"abc", b"de"], &[out(b"ab"), RunnerMessage::StdoutTail(b"cde".to_vec())], 5, 2);
        check(5, &[], &[b"abc", b"de"], &[out(b"abc"), out(b"de")], 5, 5);
        check(0, &[], &[b"abc"], &[RunnerMessage::StdoutTail(b"abc".to_vec())], 3, 0);
    }

    #[test]
    fn the_tail_is_the_end_of_output_in_pieces_of_any_size() {
        let long: Vec<u8> = (0..20_000u32).map(|at| at.to_le_bytes()[0]).collect();
        let tail = RunnerMessage::StdoutTail(long[long.len() - MAX_TAIL_BYTES..].to_vec());
        for piece in [1, 100, 4096, 5000, 20_000] {
            let pieces: Vec<&[u8]> = long.chunks(piece).collect();
            check(0, &[], &pieces, std::slice::from_ref(&tail), 20_000, 0);
        }
    }

    #[test]
    fn a_large_piece_is_cut_into_frames() {
        let large = vec![7; MAX_OUTPUT_BYTES + 1];
        let expected = [out(&large[..MAX_OUTPUT_BYTES]), out(&large[..1])];
        check(u64::MAX, &[], &[&large], &expected, large.len() as u64, large.len() as u64);
    }

    #[test]
    fn size_and_digest_are_of_the_masked_stream() {
        check(100, &["hunter2!"], &[b"x hunt", b"er2! y"], &[out(b"x "), out(b"*** y")], 7, 7);
        check(100, &["hunter2!"], &[b"x hunt"], &[out(b"x "), out(b"hunt")], 6, 6);
        let mut masked = Capture::new(Stream::Stderr, 0, Masker::new(["hunter2!"]));
        masked.take(b"hunter2!");
        let mut plain = Capture::new(Stream::Stderr, 0, Masker::new([]));
        plain.take(b"***");
        assert_eq!(masked.finish(), plain.finish());
    }

    #[test]
    fn stderr_has_frames_of_its_own() {
        let mut capture = Capture::new(Stream::Stderr, 1, Masker::new([]));
        assert_eq!(capture.take(b"ab"), [RunnerMessage::Stderr(b"a".to_vec())]);
        assert_eq!(capture.finish().0, [RunnerMessage::StderrTail(b"b".to_vec())]);
    }
}
