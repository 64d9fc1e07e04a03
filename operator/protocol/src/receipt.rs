//! The runner's record of an ended run: outcome, duration, output sizes and digests, isolation.
//!
//! The same receipt closes the stream (`Exit`) and becomes the container's termination message, shortened to fit.

use serde::{Deserialize, Serialize};

use crate::Isolation;

/// The kubelet reads no more of a termination message.
pub const TERMINATION_MESSAGE_BYTES: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Empty when no run was accepted.
    pub execution_uid: String,
    pub attempt: u32,
    pub outcome: RunOutcome,
    /// From the start of the program to its end, by the monotonic clock.
    pub duration_ms: u64,
    pub stdout: StreamSummary,
    pub stderr: StreamSummary,
    pub isolation: Isolation,
    /// sha256, hex, of all frame bytes from `Accepted` to just before `Exit`; empty when no run was accepted.
    pub digest: String,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum RunOutcome {
    Exited {
        code: i32,
    },
    /// Ended by a signal that the runner did not send.
    Signaled {
        signal: i32,
    },
    TimedOut,
    Cancelled,
    /// Killed by the kernel because memory ran out.
    OutOfMemory,
    /// The program could not be started: no such file, not executable, scratch too small for its files.
    StartFailed {
        message: String,
    },
    /// The sandbox ended without having accepted a run.
    Unused,
}

/// One output stream as a whole, after secrets were masked.
///
/// Computed after masking: the digest of a stream that is little more than a short secret could be guessed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamSummary {
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes sent from the beginning, at most the cap; a tail frame is not counted.
    pub sent: u64,
    /// sha256, hex, of all bytes, sent or not.
    pub sha256: String,
}

impl StreamSummary {
    pub fn is_truncated(&self) -> bool {
        self.bytes > self.sent
    }
}

impl Receipt {
    /// The receipt of a sandbox that ended without a run.
    pub fn unused(isolation: Isolation) -> Self {
        Self {
            execution_uid: String::new(),
            attempt: 0,
            outcome: RunOutcome::Unused,
            duration_ms: 0,
            stdout: StreamSummary::default(),
            stderr: StreamSummary::default(),
            isolation,
            digest: String::new(),
        }
    }

    /// True if no run was accepted.
    pub fn is_unused(&self) -> bool {
        matches!(self.outcome, RunOutcome::Unused)
    }

    /// The receipt as JSON of at most [`TERMINATION_MESSAGE_BYTES`]: notes go first, then the ends of long texts.
    pub fn termination_message(&self) -> String {
        let mut receipt = self.clone();
        let text = receipt.to_json();
        if text.len() <= TERMINATION_MESSAGE_BYTES {
            return text;
        }
        receipt.isolation.notes = vec!["notes are left out: see the stream's receipt".to_owned()];
        // A character takes up to six bytes as JSON (\u0000), and there are four texts of free length.
        for keep in [2048, 512, 128, 64] {
            receipt.shorten(keep);
            let text = receipt.to_json();
            if text.len() <= TERMINATION_MESSAGE_BYTES {
                return text;
            }
        }
        receipt.shorten(0);
        receipt.to_json()
    }

    fn shorten(&mut self, keep: usize) {
        let Self { execution_uid, attempt: _, outcome, duration_ms: _, stdout, stderr, isolation, digest } =
            self;
        if let RunOutcome::StartFailed { message } = outcome {
            cut(message, keep);
        }
        // These are short by construction; only a receipt that was tampered with is cut here.
        for text in [execution_uid, digest, &mut stdout.sha256, &mut stderr.sha256, &mut isolation.kernel] {
            cut(text, keep.max(64));
        }
    }

    fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a receipt has only string keys, so it is always JSON")
    }
}

fn cut(text: &mut String, keep: usize) {
    let end = (0..=keep.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(outcome: RunOutcome) -> Receipt {
        Receipt { outcome, execution_uid: "u-1".into(), attempt: 2, ..Receipt::unused(Isolation::default()) }
    }

    #[test]
    fn each_outcome_has_a_name_on_the_wire() {
        for (outcome, expected) in [
            (RunOutcome::Exited { code: 3 }, r#"{"type":"exited","code":3}"#),
            (RunOutcome::Signaled { signal: 11 }, r#"{"type":"signaled","signal":11}"#),
            (RunOutcome::TimedOut, r#"{"type":"timedOut"}"#),
            (RunOutcome::Cancelled, r#"{"type":"cancelled"}"#),
            (RunOutcome::OutOfMemory, r#"{"type":"outOfMemory"}"#),
            (RunOutcome::StartFailed { message: "m".into() }, r#"{"type":"startFailed","message":"m"}"#),
            (RunOutcome::Unused, r#"{"type":"unused"}"#),
        ] {
            assert_eq!(serde_json::to_string(&outcome).unwrap(), expected);
            assert_eq!(serde_json::from_str::<RunOutcome>(expected).unwrap(), outcome);
        }
    }

    #[test]
    fn a_short_receipt_is_left_whole() {
        let receipt = receipt(RunOutcome::Exited { code: 0 });
        assert_eq!(serde_json::from_str::<Receipt>(&receipt.termination_message()).unwrap(), receipt);
    }

    #[test]
    fn many_notes_give_way_first() {
        let mut receipt = receipt(RunOutcome::StartFailed { message: "no such file".into() });
        receipt.isolation.notes = vec!["a note".repeat(20); 100];
        let text = receipt.termination_message();
        assert!(text.len() <= TERMINATION_MESSAGE_BYTES);
        let read: Receipt = serde_json::from_str(&text).unwrap();
        assert_eq!(read.outcome, receipt.outcome);
        assert_eq!(read.isolation.notes.len(), 1);
    }

    #[test]
    fn texts_of_any_length_fit_and_stay_json() {
        for text in ["x", "\u{0}", "\"", "é", "🔑"] {
            let long = text.repeat(100_000);
            let mut receipt = receipt(RunOutcome::StartFailed { message: long.clone() });
            receipt.execution_uid.clone_from(&long);
            receipt.digest.clone_from(&long);
            receipt.isolation.kernel.clone_from(&long);
            receipt.stdout.sha256.clone_from(&long);
            receipt.stderr.sha256 = long;
            let text = receipt.termination_message();
            assert!(text.len() <= TERMINATION_MESSAGE_BYTES, "{}", text.len());
            let read: Receipt = serde_json::from_str(&text).unwrap();
            assert!(matches!(read.outcome, RunOutcome::StartFailed { .. }));
        }
    }

    #[test]
    fn truncated_means_that_less_was_sent_than_written() {
        let summary = |bytes, sent| StreamSummary { bytes, sent, sha256: String::new() };
        assert!(summary(2, 1).is_truncated());
        assert!(!summary(2, 2).is_truncated());
    }
}
