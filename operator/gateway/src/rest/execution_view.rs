//! A run as the HTTP interface writes it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use skillet_api::Phase;
use utoipa::ToSchema;

use crate::{
    executions::{self, Execution},
    rest::pagination,
};

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ExecutionStatus)]
pub(crate) enum Status {
    Pending,
    Running,
    Success,
    Error,
    Timeout,
    Cancelled,
}

impl Status {
    /// The field selector of this status. Pending is also a run without a status, so its selector excludes all others.
    pub(crate) fn field_selector(self) -> &'static str {
        match self {
            Self::Pending => {
                "status.phase!=Running,status.phase!=Succeeded,status.phase!=Failed,status.phase!=TimedOut,status.phase!=Cancelled"
            }
            Self::Running => "status.phase=Running",
            Self::Success => "status.phase=Succeeded",
            Self::Error => "status.phase=Failed",
            Self::Timeout => "status.phase=TimedOut",
            Self::Cancelled => "status.phase=Cancelled",
        }
    }
}

impl From<Phase> for Status {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Pending => Self::Pending,
            Phase::Running => Self::Running,
            Phase::Succeeded => Self::Success,
            Phase::Failed => Self::Error,
            Phase::TimedOut => Self::Timeout,
            Phase::Cancelled => Self::Cancelled,
        }
    }
}

/// One run.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Execution)]
pub(crate) struct ExecutionView {
    /// Name of the SkillExecution.
    pub(crate) id: String,
    pub(crate) namespace: String,
    pub(crate) skill: String,
    /// The version that is run; none before one was chosen.
    pub(crate) version: Option<String>,
    pub(crate) status: Status,
    /// The reason in one word; see docs/reference/reasons.md.
    pub(crate) reason: Option<String>,
    /// The reason in a sentence.
    pub(crate) message: Option<String>,
    pub(crate) session_id: Option<String>,
    #[schema(value_type = Option<serde_json::Value>)]
    pub(crate) input: Option<Box<RawValue>>,
    #[schema(value_type = Option<serde_json::Value>)]
    pub(crate) output: Option<Box<RawValue>>,
    /// In a list: input and output are left out because the whole list has too many bytes of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) omitted: bool,
    pub(crate) exit_code: Option<i32>,
    /// Run time of the program in milliseconds.
    pub(crate) duration_ms: Option<u64>,
    /// Number of attempts that were started.
    pub(crate) attempts: u32,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) created_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) started_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) finished_at: Option<Timestamp>,
}

impl From<&Execution> for ExecutionView {
    fn from(execution: &Execution) -> Self {
        let spec = &execution.spec;
        let unwritten = executions::Status::default();
        let status = execution.status.as_ref().unwrap_or(&unwritten);
        Self {
            id: execution.metadata.name.clone(),
            namespace: execution.metadata.namespace.clone(),
            skill: spec.skill.clone(),
            version: status.resolved_version.clone(),
            status: status.phase.into(),
            reason: status.reason.map(|reason| reason.as_str().to_owned()),
            message: status.message.clone(),
            session_id: spec.session_id.clone(),
            input: spec.input.clone(),
            output: status.output.clone(),
            omitted: false,
            exit_code: status.exit_code,
            duration_ms: status.duration_ms,
            attempts: status.attempts,
            created_at: execution.metadata.creation_timestamp.as_ref().map(|time| time.0),
            started_at: status.started_at.as_ref().map(|time| time.0),
            finished_at: status.finished_at.as_ref().map(|time| time.0),
        }
    }
}

impl ExecutionView {
    /// Leaves input and output out.
    pub(crate) fn without_content(self) -> Self {
        self.within(&mut 0)
    }

    /// As one of a list, whose inputs and outputs have so many bytes left.
    pub(crate) fn within(self, left: &mut usize) -> Self {
        if pagination::take_bytes(left, [&self.input, &self.output]) {
            return self;
        }
        Self { input: None, output: None, omitted: true, ..self }
    }
}

#[cfg(test)]
mod tests {
    use skillet_core::rest::status_word;

    use super::*;

    #[test]
    fn every_phase_is_written_with_the_interfaces_word() {
        for phase in [
            Phase::Pending,
            Phase::Running,
            Phase::Succeeded,
            Phase::Failed,
            Phase::TimedOut,
            Phase::Cancelled,
        ] {
            let status = Status::from(phase);
            assert_eq!(serde_json::to_value(status).unwrap(), status_word(phase));
            let read: Status = serde_json::from_value(status_word(phase).into()).unwrap();
            assert_eq!(read, status, "the word of a filter");
            let selector = status.field_selector();
            assert!(status == Status::Pending || selector == format!("status.phase={phase:?}"), "{selector}");
        }
    }
}
