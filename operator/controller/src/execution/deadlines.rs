//! The times at which a running program is reported, abandoned, or taken for ended. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// After the program's own limit: SIGTERM's grace and the runner's last frames, then the operator ends it.
pub(crate) const OPERATOR_SLACK: Duration = Duration::from_millis(1_850);
/// A cancelled program gets this long to be ended by its runner.
pub(crate) const CANCEL_SLACK: Duration = Duration::from_millis(1_300);
/// The last frames of an ended pod may take this long.
const DRAIN: Duration = Duration::from_millis(1_500);
/// A run longer than this is reported as Running.
const REPORT_AFTER: Duration = Duration::from_millis(500);

/// The reason for which the operator acts at a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// The run is to be reported as Running.
    Report,
    /// The pod ended a while ago and the stream did not.
    Drained,
    /// The runner should have ended the program.
    GiveUp,
}

/// The deadlines of one program.
#[derive(Debug)]
pub(crate) struct Deadlines {
    report: Option<Instant>,
    drained: Option<Instant>,
    give_up: Instant,
}

impl Deadlines {
    /// For a Run frame that was sent at `sent` to a program with the limit `timeout`.
    pub(crate) fn new(sent: Instant, timeout: Duration) -> Self {
        Self { report: None, drained: None, give_up: sent + timeout + OPERATOR_SLACK }
    }

    /// The runner has accepted the run.
    pub(crate) fn accept(&mut self, now: Instant) {
        self.report = Some(now + REPORT_AFTER);
    }

    /// The run is reported.
    pub(crate) fn clear_report(&mut self) {
        self.report = None;
    }

    /// The runner was asked to cancel.
    pub(crate) fn cancel(&mut self, now: Instant) {
        self.give_up = now + CANCEL_SLACK;
    }

    /// The pod has ended.
    pub(crate) fn drain(&mut self, now: Instant) {
        self.drained = Some(now + DRAIN);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.drained.is_some()
    }

    /// The next deadline.
    pub(crate) fn next(&self) -> (Instant, Due) {
        let drained = self.drained.map(|at| (at, Due::Drained));
        let report = self.report.map(|at| (at, Due::Report));
        let others = [report, drained].into_iter().flatten();
        others.fold((self.give_up, Due::GiveUp), |first, other| if other.0 < first.0 { other } else { first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The next deadline, in milliseconds after the Run frame, of a program that may run for ten seconds.
    fn check(change: impl FnOnce(&mut Deadlines, Instant), after: u64, due: Due) {
        let sent = Instant::now();
        let mut deadlines = Deadlines::new(sent, Duration::from_secs(10));
        change(&mut deadlines, sent);
        assert_eq!(deadlines.next(), (sent + millis(after), due));
    }

    #[test]
    fn a_run_that_no_runner_accepted_is_never_reported() {
        check(|_, _| {}, 11_850, Due::GiveUp);
    }

    #[test]
    fn an_accepted_run_is_reported_half_a_second_later_and_once() {
        check(|deadlines, sent| deadlines.accept(sent + millis(900)), 1_400, Due::Report);
        let report = |deadlines: &mut Deadlines, sent| {
            deadlines.accept(sent);
            deadlines.clear_report();
        };
        check(report, 11_850, Due::GiveUp);
    }

    #[test]
    fn a_cancelled_run_is_abandoned_soon() {
        check(|deadlines, sent| deadlines.cancel(sent + millis(2_000)), 3_300, Due::GiveUp);
    }

    #[test]
    fn the_stream_of_an_ended_pod_drains_for_a_while() {
        check(|deadlines, sent| deadlines.drain(sent + millis(5_000)), 6_500, Due::Drained);
        check(|deadlines, sent| deadlines.drain(sent + millis(11_000)), 11_850, Due::GiveUp);
    }
}
