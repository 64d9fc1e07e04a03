//! The decision to retry an attempt.

use skillet_api::{
    Reason, condition_reason, egress_failure, egress_refusal, skill::RetryOn, workspace_refusal,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Start another attempt.
    Retry,
    /// End the execution with this outcome.
    Finish,
}

/// Decides after attempt number `attempt`, counted from 1, of at most `1 + retries`.
pub fn decide(outcome: Reason, attempt: u32, retries: u32, retry_on: RetryOn) -> RetryDecision {
    if attempt <= retries && is_retried(outcome, retry_on) {
        RetryDecision::Retry
    } else {
        RetryDecision::Finish
    }
}

// The reasons of conditions and of egress are patterns.
#[allow(clippy::unnested_or_patterns)]
fn is_retried(outcome: Reason, retry_on: RetryOn) -> bool {
    match outcome {
        Reason::SandboxLost | Reason::ResultLost => true,
        Reason::ExitCode
        | Reason::OutOfMemory
        | Reason::TimedOut
        | Reason::StartFailed
        | Reason::BrokerUnavailable
        | Reason::WorkspaceUnavailable
        | egress_failure!() => match retry_on {
            RetryOn::Failure => true,
            RetryOn::Lost => false,
        },
        Reason::Succeeded
        | Reason::Queued
        | Reason::Running
        | Reason::SkillNotFound
        | Reason::SkillNotReady
        | Reason::NoProgram
        | Reason::FileNotFound
        | Reason::NoInterpreter
        | Reason::CommandNotFound
        | Reason::ServerNotFound
        | Reason::SessionEnded
        | Reason::McpError
        | Reason::ToolFailed
        | Reason::DynamicContentDisabled
        | Reason::NetworkDisabled
        | Reason::BuiltinDisabled
        | Reason::VersionNotFound
        | Reason::VersionYanked
        | Reason::ConstraintInvalid
        | Reason::SkillOff
        | Reason::SkillDisabled
        | Reason::ExecutionDisabled
        | Reason::InputInvalid
        | Reason::OutputInvalid
        | Reason::OutputTooLarge
        | Reason::InputSchemaInvalid
        | Reason::OutputSchemaInvalid
        | Reason::SpecInvalid
        | Reason::VersionConflict
        | Reason::SealRecordFull
        | Reason::ConfigMapMissing
        | Reason::ImageNotAllowed
        | Reason::ImageUnavailable
        | Reason::SecretMissing
        | Reason::SecretNotGranted
        | Reason::HostNotAllowed
        | Reason::LimitTooHigh
        | Reason::SandboxUnavailable
        | Reason::Unschedulable
        | Reason::IsolationUnavailable
        | Reason::Cancelled
        | Reason::ParseFailed
        | Reason::ApiError
        | egress_refusal!()
        | workspace_refusal!()
        | condition_reason!() => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(outcome: Reason, expected_lost: RetryDecision, expected_failure: RetryDecision) {
        assert_eq!(decide(outcome, 1, 1, RetryOn::Lost), expected_lost, "{outcome} on Lost");
        assert_eq!(decide(outcome, 1, 1, RetryOn::Failure), expected_failure, "{outcome} on Failure");
        assert_eq!(
            decide(outcome, 2, 1, RetryOn::Failure),
            RetryDecision::Finish,
            "{outcome} without retries left"
        );
        assert_eq!(
            decide(outcome, 1, 0, RetryOn::Failure),
            RetryDecision::Finish,
            "{outcome} without retries"
        );
    }

    #[test]
    // The reasons of egress are a pattern.
    #[allow(clippy::unnested_or_patterns)]
    fn lost_attempts_are_retried_and_failed_attempts_only_on_failure() {
        for outcome in Reason::ALL {
            match outcome {
                Reason::SandboxLost | Reason::ResultLost => {
                    check(*outcome, RetryDecision::Retry, RetryDecision::Retry);
                }
                Reason::ExitCode
                | Reason::OutOfMemory
                | Reason::TimedOut
                | Reason::StartFailed
                | Reason::BrokerUnavailable
                | Reason::WorkspaceUnavailable
                | egress_failure!() => {
                    check(*outcome, RetryDecision::Finish, RetryDecision::Retry);
                }
                _ => check(*outcome, RetryDecision::Finish, RetryDecision::Finish),
            }
        }
    }

    #[test]
    fn retries_count_the_attempts_after_the_first() {
        let mut attempt = 1;
        while decide(Reason::SandboxLost, attempt, 3, RetryOn::Lost) == RetryDecision::Retry {
            attempt += 1;
        }
        assert_eq!(attempt, 4);
    }
}
