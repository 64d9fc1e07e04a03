//! The exit codes of the process, and the one of each finished execution.

use skillet_api::{
    Phase, Reason, SkillExecutionStatus, condition_reason, egress_failure, egress_refusal, workspace_refusal,
};

/// The end of the process. Codes are documented in docs/reference/kubectl-skill.md and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    Usage,
    Refused,
    Cluster,
    StillRunning,
    TimedOut,
    CannotStart,
    Cancelled,
    OutOfMemory,
    /// The program's own code, from 1 to 125.
    Program(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::Cluster => 4,
            Exit::StillRunning => 5,
            Exit::TimedOut => 124,
            Exit::CannotStart => 126,
            Exit::Cancelled => 130,
            Exit::OutOfMemory => 137,
            Exit::Program(code) => code,
        }
    }

    /// Exit of a process that waited for this execution.
    pub(crate) fn from_execution(status: &SkillExecutionStatus) -> Self {
        match status.phase {
            Phase::Succeeded => Exit::Done,
            Phase::TimedOut => Exit::TimedOut,
            Phase::Cancelled => Exit::Cancelled,
            Phase::Failed => status.reason.map_or(Exit::Failed, |reason| Self::from_failure(reason, status)),
            Phase::Pending | Phase::Running => Exit::StillRunning,
        }
    }

    // The reasons of conditions and of egress are patterns.
    #[allow(clippy::unnested_or_patterns)]
    fn from_failure(reason: Reason, status: &SkillExecutionStatus) -> Self {
        match reason {
            Reason::ExitCode => Self::from_program(status.exit_code),
            Reason::OutOfMemory => Exit::OutOfMemory,
            Reason::StartFailed => Exit::CannotStart,
            Reason::TimedOut => Exit::TimedOut,
            Reason::Cancelled => Exit::Cancelled,
            Reason::SkillNotFound
            | Reason::SkillNotReady
            | Reason::NoProgram
            | Reason::FileNotFound
            | Reason::NoInterpreter
            | Reason::CommandNotFound
            | Reason::ServerNotFound
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
            | Reason::InputSchemaInvalid
            | Reason::OutputSchemaInvalid
            | Reason::SpecInvalid
            | Reason::VersionConflict
            | Reason::SealRecordFull
            | Reason::ConfigMapMissing
            | Reason::ImageNotAllowed
            | Reason::SecretMissing
            | Reason::SecretNotGranted
            | Reason::HostNotAllowed
            | Reason::LimitTooHigh
            | Reason::ParseFailed => Exit::Refused,
            Reason::ImageUnavailable
            | Reason::SandboxUnavailable
            | Reason::Unschedulable
            | Reason::IsolationUnavailable
            | Reason::SandboxLost
            | Reason::ResultLost
            | Reason::SessionEnded
            | Reason::BrokerUnavailable
            | Reason::WorkspaceUnavailable
            | Reason::ApiError => Exit::Cluster,
            Reason::OutputInvalid
            | Reason::OutputTooLarge
            | Reason::McpError
            | Reason::ToolFailed
            | Reason::Succeeded
            | Reason::Queued
            | Reason::Running
            | egress_refusal!()
            | workspace_refusal!()
            | egress_failure!()
            | condition_reason!() => Exit::Failed,
        }
    }

    /// Codes above 125 have a meaning of their own for shells, or are a signal's.
    fn from_program(code: Option<i32>) -> Self {
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(code @ 1..=125) => Exit::Program(code),
            Some(_) | None => Exit::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: &str = include_str!("../../../docs/reference/kubectl-skill.md");

    fn failed(reason: Reason, exit_code: Option<i32>) -> Exit {
        Exit::from_execution(&SkillExecutionStatus {
            phase: Phase::Failed,
            reason: Some(reason),
            exit_code,
            ..SkillExecutionStatus::default()
        })
    }

    fn ended(phase: Phase) -> u8 {
        Exit::from_execution(&SkillExecutionStatus { phase, ..SkillExecutionStatus::default() }).code()
    }

    #[test]
    fn every_phase_has_its_code() {
        assert_eq!(ended(Phase::Succeeded), 0);
        assert_eq!(ended(Phase::Failed), 1);
        assert_eq!(ended(Phase::TimedOut), 124);
        assert_eq!(ended(Phase::Cancelled), 130);
        assert_eq!(ended(Phase::Pending), 5);
    }

    #[test]
    fn exit_codes_from_programs_from_1_to_125_are_passed_on() {
        for (code, expected) in [
            (Some(1), 1),
            (Some(42), 42),
            (Some(125), 125),
            (Some(126), 1),
            (Some(137), 1),
            (Some(-1), 1),
            (None, 1),
        ] {
            assert_eq!(failed(Reason::ExitCode, code).code(), expected, "{code:?}");
        }
    }

    #[test]
    fn reasons_before_a_start_exit_3_and_reasons_of_the_cluster_exit_4() {
        for reason in
            [Reason::SkillNotFound, Reason::InputInvalid, Reason::ExecutionDisabled, Reason::SecretMissing]
        {
            assert_eq!(failed(reason, None).code(), 3, "{reason}");
        }
        for reason in [Reason::IsolationUnavailable, Reason::SandboxLost, Reason::ImageUnavailable] {
            assert_eq!(failed(reason, None).code(), 4, "{reason}");
        }
        assert_eq!(failed(Reason::OutOfMemory, Some(137)).code(), 137);
        assert_eq!(failed(Reason::StartFailed, None).code(), 126);
        assert_eq!(failed(Reason::OutputInvalid, Some(0)).code(), 1);
    }

    #[test]
    fn no_failure_exits_0() {
        for reason in Reason::ALL {
            assert_ne!(failed(*reason, Some(0)).code(), 0, "{reason}");
        }
    }

    #[test]
    fn every_code_is_in_the_reference() {
        for exit in [
            Exit::Done,
            Exit::Failed,
            Exit::Usage,
            Exit::Refused,
            Exit::Cluster,
            Exit::StillRunning,
            Exit::TimedOut,
            Exit::CannotStart,
            Exit::Cancelled,
            Exit::OutOfMemory,
        ] {
            assert!(REFERENCE.contains(&format!("| {} |", exit.code())), "{exit:?}");
        }
    }
}
