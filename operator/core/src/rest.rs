//! The words and numbers of the HTTP interface: phases, refusals, names with a version.

use skillet_api::{Phase, Reason};

/// A phase as the HTTP interface writes it.
pub fn status_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "pending",
        Phase::Running => "running",
        Phase::Succeeded => "success",
        Phase::Failed => "error",
        Phase::TimedOut => "timeout",
        Phase::Cancelled => "cancelled",
    }
}

/// The HTTP status that answers a request to run a skill.
///
/// A run that took place is 200 whatever its end, since the answer is its record. Refusals: 404 there is no such thing,
/// 409 it is there and its state forbids, 422 the request itself is wrong, 503 the cluster cannot now.
pub fn http_status(reason: Reason) -> u16 {
    match reason {
        Reason::SkillNotFound | Reason::VersionNotFound => 404,
        Reason::SkillOff
        | Reason::SkillDisabled
        | Reason::SkillNotReady
        | Reason::VersionConflict
        | Reason::ImageNotAllowed
        | Reason::LimitTooHigh
        | Reason::SecretMissing => 409,
        Reason::ConstraintInvalid
        | Reason::InputInvalid
        | Reason::InputSchemaInvalid
        | Reason::OutputSchemaInvalid
        | Reason::SpecInvalid
        | Reason::ParseFailed => 422,
        Reason::ExecutionDisabled
        | Reason::ImageUnavailable
        | Reason::SandboxUnavailable
        | Reason::IsolationUnavailable
        | Reason::ApiError => 503,
        Reason::Succeeded
        | Reason::Queued
        | Reason::Running
        | Reason::OutputInvalid
        | Reason::StartFailed
        | Reason::ExitCode
        | Reason::OutOfMemory
        | Reason::TimedOut
        | Reason::Cancelled
        | Reason::SandboxLost
        | Reason::ResultLost
        | Reason::Ready
        | Reason::Sealed => 200,
    }
}

/// Splits `name@constraint` at the first `@`. Without one, no version is asked for.
pub fn split_name(text: &str) -> (&str, Option<&str>) {
    match text.split_once('@') {
        Some((name, constraint)) => (name, Some(constraint)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_has_its_word() {
        let phases = [
            Phase::Pending,
            Phase::Running,
            Phase::Succeeded,
            Phase::Failed,
            Phase::TimedOut,
            Phase::Cancelled,
        ];
        let words = ["pending", "running", "success", "error", "timeout", "cancelled"];
        assert_eq!(phases.map(status_word), words);
    }

    #[test]
    fn a_refusal_says_whose_turn_it_is() {
        for (reason, status) in [
            (Reason::SkillNotFound, 404),
            (Reason::VersionNotFound, 404),
            (Reason::SkillOff, 409),
            (Reason::SkillDisabled, 409),
            (Reason::SkillNotReady, 409),
            (Reason::ImageNotAllowed, 409),
            (Reason::SecretMissing, 409),
            (Reason::ConstraintInvalid, 422),
            (Reason::InputInvalid, 422),
            (Reason::ExecutionDisabled, 503),
            (Reason::IsolationUnavailable, 503),
            (Reason::ExitCode, 200),
            (Reason::TimedOut, 200),
            (Reason::Succeeded, 200),
        ] {
            assert_eq!(http_status(reason), status, "{reason}");
        }
    }

    #[test]
    fn a_name_is_split_at_the_first_at() {
        assert_eq!(split_name("lookup"), ("lookup", None));
        assert_eq!(split_name("lookup@^1.0.0"), ("lookup", Some("^1.0.0")));
        assert_eq!(split_name("lookup@"), ("lookup", Some("")));
        assert_eq!(split_name("a@b@c"), ("a", Some("b@c")));
    }
}
