//! The end of a program over time: SIGTERM, grace, SIGKILL, and the outcome.
//!
//! Pure: the caller passes the time and carries out the returned action. `supervise` has the clock and the signals.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use skillet_protocol::RunOutcome;

/// The cause of an end that was not the program's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    TimeLimit,
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// `None` if the limit is beyond the range of the clock.
    Running {
        until: Option<Instant>,
    },
    Grace {
        cause: Cause,
        until: Option<Instant>,
    },
    Killed {
        cause: Cause,
        until: Instant,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    /// SIGTERM to the program's process group.
    Terminate,
    /// SIGKILL to everything.
    Kill,
    /// Even SIGKILL did not end the process, which is stuck in the kernel. The sandbox ends without it.
    Abandon,
}

/// Time that the kernel has to carry out a SIGKILL.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Termination {
    stage: Stage,
    grace: Duration,
}

impl Termination {
    pub(crate) fn new(started: Instant, limit: Duration, grace: Duration) -> Self {
        Self { stage: Stage::Running { until: started.checked_add(limit) }, grace }
    }

    /// The time at which [`Termination::due`] has the next action.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Running { until } | Stage::Grace { until, .. } => until,
            Stage::Killed { until, .. } => Some(until),
        }
    }

    pub(crate) fn cause(&self) -> Option<Cause> {
        match self.stage {
            Stage::Running { .. } => None,
            Stage::Grace { cause, .. } | Stage::Killed { cause, .. } => Some(cause),
        }
    }

    /// Returns the action that is due at `now`.
    pub(crate) fn due(&mut self, now: Instant) -> Action {
        if self.deadline().is_none_or(|until| now < until) {
            return Action::Nothing;
        }
        match self.stage {
            Stage::Running { .. } => self.stop(Cause::TimeLimit, now),
            Stage::Grace { cause, .. } => {
                self.stage = Stage::Killed { cause, until: now + KILL_LIMIT };
                Action::Kill
            }
            Stage::Killed { .. } => Action::Abandon,
        }
    }

    /// Begins the end for `cause`, unless it has begun: the first cause is reported.
    pub(crate) fn stop(&mut self, cause: Cause, now: Instant) -> Action {
        match self.stage {
            Stage::Running { .. } => {
                self.stage = Stage::Grace { cause, until: now.checked_add(self.grace) };
                Action::Terminate
            }
            Stage::Grace { .. } | Stage::Killed { .. } => Action::Nothing,
        }
    }
}

/// Returns the outcome. `is_oom_killed` is true if the kernel killed a process here because memory ran out.
pub(crate) fn outcome(status: Option<ExitStatus>, cause: Option<Cause>, is_oom_killed: bool) -> RunOutcome {
    match cause {
        Some(Cause::TimeLimit) => return RunOutcome::TimedOut,
        Some(Cause::Cancel) => return RunOutcome::Cancelled,
        None => {}
    }
    let code = status.and_then(|status| status.code());
    let signal = status.and_then(|status| status.signal());
    // A shell exits with 128 + 9 if its child was killed.
    let is_killed = signal == Some(libc::SIGKILL) || code == Some(128 + libc::SIGKILL);
    match (code, signal) {
        _ if is_killed && is_oom_killed => RunOutcome::OutOfMemory,
        (Some(code), _) => RunOutcome::Exited { code },
        (None, Some(signal)) => RunOutcome::Signaled { signal },
        // Supervision ends without a status only after a cause; the last signal was SIGKILL.
        (None, None) => RunOutcome::Signaled { signal: libc::SIGKILL },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_program_over_time_gets_sigterm_then_sigkill_then_is_abandoned() {
        let start = Instant::now();
        let mut termination = Termination::new(start, 10 * SECOND, 2 * SECOND);
        assert_eq!(termination.deadline(), Some(start + 10 * SECOND));
        assert_eq!(termination.due(start + 9 * SECOND), Action::Nothing);
        assert_eq!(termination.cause(), None);
        assert_eq!(termination.due(start + 10 * SECOND), Action::Terminate);
        assert_eq!(termination.cause(), Some(Cause::TimeLimit));
        assert_eq!(termination.due(start + 11 * SECOND), Action::Nothing);
        assert_eq!(termination.due(start + 12 * SECOND), Action::Kill);
        assert_eq!(termination.due(start + 12 * SECOND), Action::Nothing);
        assert_eq!(termination.deadline(), Some(start + 12 * SECOND + KILL_LIMIT));
        assert_eq!(termination.due(start + 12 * SECOND + KILL_LIMIT), Action::Abandon);
        assert_eq!(termination.cause(), Some(Cause::TimeLimit));
    }

    #[test]
    fn the_first_cause_is_kept() {
        let start = Instant::now();
        let mut termination = Termination::new(start, 10 * SECOND, SECOND);
        assert_eq!(termination.stop(Cause::Cancel, start + SECOND), Action::Terminate);
        assert_eq!(termination.stop(Cause::TimeLimit, start + SECOND), Action::Nothing);
        assert_eq!(termination.due(start + 2 * SECOND), Action::Kill);
        assert_eq!(termination.stop(Cause::TimeLimit, start + 2 * SECOND), Action::Nothing);
        assert_eq!(termination.cause(), Some(Cause::Cancel));
    }

    #[test]
    fn a_limit_beyond_the_clock_is_none() {
        let start = Instant::now();
        let mut termination = Termination::new(start, Duration::MAX, Duration::MAX);
        assert_eq!(termination.deadline(), None);
        assert_eq!(termination.due(start + SECOND), Action::Nothing);
        assert_eq!(termination.stop(Cause::Cancel, start), Action::Terminate);
        assert_eq!(termination.deadline(), None);
    }

    fn check(status: i32, cause: Option<Cause>, is_oom_killed: bool, expected: &RunOutcome) {
        let status = Some(ExitStatus::from_raw(status));
        assert_eq!(&outcome(status, cause, is_oom_killed), expected);
    }

    #[test]
    fn the_first_cause_decides_the_outcome() {
        let (code_0, code_3, code_137, killed, aborted) = (0, 3 << 8, 137 << 8, 9, 6);
        check(code_0, None, false, &RunOutcome::Exited { code: 0 });
        check(code_3, None, true, &RunOutcome::Exited { code: 3 });
        check(killed, None, false, &RunOutcome::Signaled { signal: 9 });
        check(killed, None, true, &RunOutcome::OutOfMemory);
        check(code_137, None, true, &RunOutcome::OutOfMemory);
        check(code_137, None, false, &RunOutcome::Exited { code: 137 });
        check(aborted, None, true, &RunOutcome::Signaled { signal: 6 });
        check(killed, Some(Cause::TimeLimit), true, &RunOutcome::TimedOut);
        check(code_0, Some(Cause::Cancel), false, &RunOutcome::Cancelled);
        assert_eq!(outcome(None, None, false), RunOutcome::Signaled { signal: 9 });
    }
}
