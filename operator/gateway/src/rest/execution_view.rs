//! A run as the HTTP interface writes it.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use skillet_api::{Phase, execution::StreamStatus};
use utoipa::ToSchema;

use crate::{
    executions::{self, Execution},
    rest::{create_execution::ScriptView, operation::phase_schema, pagination},
};

/// One output stream of the program.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Stream)]
pub(crate) struct StreamView {
    /// Beginning of the stream. Empty in a list, and where the stream is the output.
    pub(crate) head: String,
    /// End of the stream, if it is longer than was kept. Empty in a list.
    pub(crate) tail: String,
    /// Size of the whole stream in bytes.
    pub(crate) bytes: u64,
    /// sha256 of the whole stream, in hex.
    pub(crate) sha256: String,
}

impl From<&StreamStatus> for StreamView {
    fn from(stream: &StreamStatus) -> Self {
        let StreamStatus { head, tail, bytes, sha256 } = stream.clone();
        Self { head, tail, bytes, sha256 }
    }
}

impl StreamView {
    fn without_text(self) -> Self {
        Self { head: String::new(), tail: String::new(), ..self }
    }
}

/// One run.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Execution)]
pub(crate) struct ExecutionView {
    /// Name of the SkillExecution.
    pub(crate) name: String,
    /// Namespace of the SkillExecution and of its skill.
    pub(crate) namespace: String,
    /// Name of the skill.
    pub(crate) skill: String,
    /// The version that is run; none before one was chosen.
    pub(crate) version: Option<String>,
    /// sha256 of the content of that version, as sealed.
    pub(crate) digest: Option<String>,
    /// Image that ran, with its digest, if the node reported it.
    #[serde(rename = "imageID")]
    pub(crate) image_id: Option<String>,
    /// Phase of the run, as its SkillExecution has it.
    #[schema(schema_with = phase_schema)]
    pub(crate) phase: Phase,
    /// The reason in one word; see docs/reference/reasons.md.
    pub(crate) reason: Option<String>,
    /// The reason in a sentence.
    pub(crate) message: Option<String>,
    /// Conversation of the run.
    pub(crate) session_id: Option<String>,
    /// `<namespace>/<service account>` of the caller.
    pub(crate) caller: Option<String>,
    /// Input as it was sent.
    #[schema(value_type = Option<serde_json::Value>)]
    pub(crate) input: Option<Box<RawValue>>,
    /// Script that runs instead of the skill's own program.
    #[schema(value_type = Option<ScriptView>)]
    pub(crate) script: Option<Box<RawValue>>,
    /// Command of the instructions that runs instead of the skill's own program.
    #[schema(value_type = Option<serde_json::Value>)]
    pub(crate) command: Option<Box<RawValue>>,
    /// Output of a success: the JSON that the program wrote, or its text under `output`.
    #[schema(value_type = Option<serde_json::Value>)]
    pub(crate) output: Option<Box<RawValue>>,
    /// Standard output. Its text is here only if it is not the output.
    pub(crate) stdout: Option<StreamView>,
    /// Standard error.
    pub(crate) stderr: Option<StreamView>,
    /// True if the program wrote more than was kept.
    pub(crate) truncated: bool,
    /// In a list: input, script, command and output are left out because the whole list has too many bytes of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) omitted: bool,
    /// Exit code of the program, or 128 plus the number of the signal that ended it.
    pub(crate) exit_code: Option<i32>,
    /// Run time of the program in milliseconds.
    pub(crate) duration_ms: Option<u64>,
    /// Number of attempts that were started.
    pub(crate) attempts: u32,
    /// Node of the sandbox.
    pub(crate) node: Option<String>,
    /// Time of its creation.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) created_at: Option<Timestamp>,
    /// Time at which the program began.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) started_at: Option<Timestamp>,
    /// Time of its end.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) finished_at: Option<Timestamp>,
}

impl From<&Execution> for ExecutionView {
    fn from(execution: &Execution) -> Self {
        let spec = &execution.spec;
        let unwritten = executions::Status::default();
        let status = execution.status.as_ref().unwrap_or(&unwritten);
        Self {
            name: execution.metadata.name.clone(),
            namespace: execution.metadata.namespace.clone(),
            skill: spec.skill.clone(),
            version: status.resolved_version.clone(),
            digest: status.digest.clone(),
            image_id: status.image_id.clone(),
            phase: status.phase,
            reason: status.reason.map(|reason| reason.as_str().to_owned()),
            message: status.message.clone(),
            session_id: spec.session_id.clone(),
            caller: spec.caller.clone(),
            input: spec.input.clone(),
            script: spec.script.clone(),
            command: spec.command.clone(),
            output: status.output.clone(),
            stdout: status.stdout.as_ref().map(Into::into),
            stderr: status.stderr.as_ref().map(Into::into),
            truncated: status.truncated,
            omitted: false,
            exit_code: status.exit_code,
            duration_ms: status.duration_ms,
            attempts: status.attempts,
            node: status.node.clone(),
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
    pub(crate) fn within(mut self, left: &mut usize) -> Self {
        self.stdout = self.stdout.map(StreamView::without_text);
        self.stderr = self.stderr.map(StreamView::without_text);
        if pagination::take_bytes(left, &[&self.input, &self.script, &self.command, &self.output]) {
            return self;
        }
        Self { input: None, script: None, command: None, output: None, omitted: true, ..self }
    }
}
