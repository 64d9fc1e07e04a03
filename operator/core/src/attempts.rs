//! Whether an attempt that ended is tried again.

use skillet_api::{Reason, skill::RetryOn};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Start another attempt.
    Retry,
    /// The execution has ended with this outcome.
    Finish,
}

/// Decides after attempt number `attempt`, counted from 1, of at most `1 + retries`.
pub fn next(outcome: Reason, attempt: u32, retries: u32, retry_on: RetryOn) -> Next {
    if attempt <= retries && is_retried(outcome, retry_on) { Next::Retry } else { Next::Finish }
}

fn is_retried(outcome: Reason, retry_on: RetryOn) -> bool {
    match outcome {
        Reason::SandboxLost | Reason::ResultLost => true,
        Reason::ExitCode | Reason::OutOfMemory | Reason::TimedOut | Reason::StartFailed => match retry_on {
            RetryOn::Failure => true,
            RetryOn::Lost => false,
        },
        Reason::Succeeded
        | Reason::Queued
        | Reason::Running
        | Reason::SkillNotFound
        | Reason::SkillNotReady
        | Reason::VersionNotFound
        | Reason::ConstraintInvalid
        | Reason::SkillOff
        | Reason::SkillDisabled
        | Reason::ExecutionDisabled
        | Reason::InputInvalid
        | Reason::OutputInvalid
        | Reason::InputSchemaInvalid
        | Reason::OutputSchemaInvalid
        | Reason::SpecInvalid
        | Reason::VersionConflict
        | Reason::ImageNotAllowed
        | Reason::ImageUnavailable
        | Reason::SecretMissing
        | Reason::LimitTooHigh
        | Reason::SandboxUnavailable
        | Reason::Unschedulable
        | Reason::IsolationUnavailable
        | Reason::Cancelled
        | Reason::ParseFailed
        | Reason::ApiError
        | Reason::Ready
        | Reason::Sealed => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(outcome: Reason, expected_lost: Next, expected_failure: Next) {
        assert_eq!(next(outcome, 1, 1, RetryOn::Lost), expected_lost, "{outcome} on Lost");
        assert_eq!(next(outcome, 1, 1, RetryOn::Failure), expected_failure, "{outcome} on Failure");
        assert_eq!(next(outcome, 2, 1, RetryOn::Failure), Next::Finish, "{outcome} without retries left");
        assert_eq!(next(outcome, 1, 0, RetryOn::Failure), Next::Finish, "{outcome} without retries");
    }

    #[test]
    fn what_was_lost_is_retried_and_what_failed_only_when_asked() {
        for outcome in Reason::ALL {
            match outcome {
                Reason::SandboxLost | Reason::ResultLost => check(*outcome, Next::Retry, Next::Retry),
                Reason::ExitCode | Reason::OutOfMemory | Reason::TimedOut | Reason::StartFailed => {
                    check(*outcome, Next::Finish, Next::Retry);
                }
                _ => check(*outcome, Next::Finish, Next::Finish),
            }
        }
    }

    #[test]
    fn retries_count_attempts_beyond_the_first() {
        let mut attempt = 1;
        while next(Reason::SandboxLost, attempt, 3, RetryOn::Lost) == Next::Retry {
            attempt += 1;
        }
        assert_eq!(attempt, 4);
    }
}
