//! A conversation with a model: send the request, run the skill calls of the response, send their results, repeat.
//!
//! It ends when a response has no skill call, has a call for the client or for a person, or a limit is reached (rounds,
//! time, bytes of results). Every skill call of a response gets exactly one result; a failure is a result too. The
//! caller's rights are checked for each call. The client's own JSON is forwarded byte for byte.
//!
//! `buffered` drives responses in one piece, `streaming` drives streams; all else is shared. A conversation keeps
//! nothing between requests: what the next request needs is in its messages.

mod buffered;
mod called_tool;
mod carry;
mod confirmation_prompt;
mod confirmations;
mod first_request;
pub mod headers;
mod retry;
mod round_request;
pub mod step;
mod stored_history;
mod streaming;
#[cfg(test)]
mod tests;
mod tool_calls;
mod tool_result;

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::response::Response;
use bytes::Bytes;
use serde_json::Value;
use skillet_api::skill::Invocation;
use skillet_llm::{
    Dialect, DialectName, ToolCall, ToolResult, json_edit::render, result_budget::ResultBudget,
};
use tokio::time::Instant;
use tracing::warn;

use self::{
    first_request::{First, Refusable},
    round_request::RoundRequest,
};
use crate::{
    auth::Caller,
    commands::CommandBudget,
    compute::compute,
    error::ApiError,
    executions::Metadata,
    memory::MemoryReservation,
    model::ModelState,
    model::{
        instructions::RestrictingSkill,
        name_header::set_header,
        offered_tools::{OfferedTool, OfferedTools, Target},
        upstream::Upstream,
    },
};

/// Names of the skills that were run; not in streams, whose headers are sent before.
pub(super) const RAN_HEADER: &str = "x-skillet-ran";
/// The reason why a response holds results of skills in the place of the model's answer.
const INCOMPLETE_HEADER: &str = "x-skillet-incomplete";
/// Time reserved for the model, or half of the request's time if that is shorter.
const FOR_THE_MODEL: Duration = Duration::from_secs(60);

/// Everything about a conversation that does not change.
pub struct Conversation {
    pub gateway: ModelState,
    pub caller: Caller,
    pub dialect: DialectName,
    pub model: String,
    pub offered: OfferedTools,
    /// The request as the client wrote it.
    pub original: Bytes,
    /// The same with the turns of earlier responses, without skills, if it had some to put back.
    pub restored: Option<Bytes>,
    pub limits: Limits,
    pub idempotency: Option<String>,
    pub session: Option<String>,
    pub request_id: Option<String>,
    /// Places and time of the commands in texts that the model reads.
    pub(crate) command_budget: CommandBudget,
    /// Tokens of the request's header that confirm calls.
    pub confirmations: Vec<String>,
    /// The memory reservation of the conversation, returned at its end.
    pub memory: Option<MemoryReservation>,
}

/// Limits of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of requests to the model.
    pub rounds: u32,
    pub time: Duration,
    pub result_bytes: usize,
    pub total_result_bytes: usize,
    pub parallel: usize,
    /// Repetitions of a failed request.
    pub retries: u32,
}

/// The calls of one answer that are looked at here.
#[derive(Debug, Default, PartialEq)]
pub struct SplitCalls {
    pub skills: Vec<ToolCall>,
    /// They go to the client and wait for a person's word.
    pub awaiting_confirmation: Vec<ToolCall>,
    /// True if there are others than `skills`.
    pub has_client_calls: bool,
}

/// Progress of a conversation.
pub struct Progress {
    /// The round that it began with.
    start: u32,
    round: u32,
    deadline: Instant,
    /// Until then confirmed calls are waited for; what is left is the model's.
    confirmations_by: Instant,
    budget: ResultBudget,
    /// For results of earlier turns, which come again with every request.
    earlier: ResultBudget,
    /// The number of occurrences of each call that has to run only once.
    occurrences: HashMap<String, u32>,
    /// Turns of the rounds so far, which the client does not get in full.
    carried: Vec<Value>,
    /// The model was asked to conclude.
    is_concluding: bool,
    /// Calls of skills so far, those that were refused included.
    calls: usize,
    /// Tool names of the calls whose skills were run, in order.
    pub ran: Vec<Arc<str>>,
    /// Skills that the model has read in this request and that restrict tools.
    read: Vec<RestrictingSkill>,
    /// The execution of the last call that ended.
    last_run: Option<Metadata>,
}

impl SplitCalls {
    /// Returns true if there is nothing to run and nobody to ask.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty() && self.awaiting_confirmation.is_empty()
    }
}

impl Conversation {
    /// Resolves confirmations, then asks the model until it is done.
    pub async fn respond(
        mut self,
        upstream: Upstream,
        mut request: Value,
        is_streaming: bool,
    ) -> Result<Response, ApiError> {
        let mut progress = self.progress();
        for _ in &self.offered.restrictions.disallowed {
            self.gateway.metrics.disallowed("reported");
        }
        let is_resolved = self.resolve_confirmations(&mut request, &mut progress).await?;
        // An unchanged request is forwarded byte for byte.
        let is_changed = is_resolved || self.offered.changes_request();
        let bytes = self.original.len();
        let body = if is_changed { compute(bytes, || self.sent(&request)) } else { self.without_skills() };
        let is_json = self.dialect().wants_json(&request);
        let is_stored = self.has_stored_history(&request);
        drop(request);
        let mut sent = RoundRequest::new(body.clone(), is_json, self.memory.take());
        let refusable = Refusable { request: &mut sent, is_stored, is_resolved };
        let first = self.ask_first(&upstream, body, refusable).await?;
        (self.original, self.restored) = (Bytes::new(), None);
        // A request without skills is not looked at again.
        if self.offered.is_empty() {
            sent = RoundRequest::new(Bytes::new(), is_json, None);
        }
        let headers = self.offered.response_headers();
        let mut response = match first {
            First::Refused(answer) => buffered::pass(answer),
            First::Response(first) if is_streaming => {
                streaming::respond(self, upstream, sent, first, progress)
            }
            First::Response(first) => {
                let (mut response, progress) = if self.offered.is_empty() {
                    (buffered::pass_stream(first), progress)
                } else {
                    buffered::respond(&self, &upstream, sent, first, progress).await?
                };
                upstream.record().add_skills(progress.ran.len());
                set_header(response.headers_mut(), RAN_HEADER, progress.ran.iter().map(|name| &**name));
                response
            }
        };
        response.headers_mut().extend(headers);
        Ok(response)
    }

    fn dialect(&self) -> &'static dyn Dialect {
        self.dialect.dialect()
    }

    /// At its beginning.
    pub fn progress(&self) -> Progress {
        self.progress_at(0)
    }

    /// After the model was asked again so often by somebody else.
    pub fn progress_at(&self, round: u32) -> Progress {
        let Limits { rounds: _, time, result_bytes, total_result_bytes, parallel: _, retries: _ } =
            self.limits;
        let now = Instant::now();
        Progress {
            start: round,
            round,
            deadline: now + time,
            confirmations_by: now + time - FOR_THE_MODEL.min(time / 2),
            budget: ResultBudget::new(result_bytes, total_result_bytes),
            earlier: ResultBudget::new(result_bytes, total_result_bytes),
            occurrences: HashMap::new(),
            carried: Vec::new(),
            is_concluding: false,
            calls: 0,
            ran: Vec::new(),
            read: Vec::new(),
            last_run: None,
        }
    }

    /// Returns true if neither rounds nor time are used up.
    pub fn may_continue(&self, progress: &Progress) -> bool {
        progress.round < self.limits.rounds && Instant::now() < progress.deadline
    }

    /// Splits the calls of a response by who handles them.
    pub fn split_calls(&self, answer: &Value) -> SplitCalls {
        let mut called = SplitCalls::default();
        for call in self.dialect().tool_calls(answer) {
            match self.offered.target(&call.name) {
                Some(tool) if !self.needs_confirmation(&tool) => called.skills.push(call),
                Some(_) => {
                    called.awaiting_confirmation.push(call);
                    called.has_client_calls = true;
                }
                None => called.has_client_calls = true,
            }
        }
        if self.dialect().is_cut(answer) {
            called.awaiting_confirmation.clear();
        }
        called
    }

    /// Returns true if a person confirms each call of this tool: it was offered so, or its skill is so by now.
    fn needs_confirmation(&self, tool: &OfferedTool) -> bool {
        match tool {
            OfferedTool::Skill(target) => {
                target.confirm || self.invocation(target) == Some(Invocation::Hybrid)
            }
            // A skill whose servers have tools is none whose runs a person confirms.
            OfferedTool::Search { .. } | OfferedTool::Instructions { .. } | OfferedTool::Server(_) => {
                tool.needs_confirmation()
            }
        }
    }

    /// Returns the skill's invocation mode as it is now, not as it was offered. `None` if the catalog has no such skill;
    /// the operator decides whether it was deleted.
    fn invocation(&self, target: &Target) -> Option<Invocation> {
        let known = self.gateway.catalog.get(&target.namespace, &target.skill)?;
        Some(known.skill.spec.invocation)
    }

    /// Adds the confirmation prompt for these calls to the client's response.
    pub fn add_confirmation_prompt(
        &self,
        answer: &Value,
        asked: &[ToolCall],
        sealed: Option<&str>,
        mixed: &mut Value,
    ) {
        if let Some(question) = confirmation_prompt::build(self, answer, asked, sealed) {
            let is_put = self.dialect().insert_text_before_calls(mixed, &question.text);
            if !is_put {
                warn!(dialect = ?self.dialect, "Confirmation prompt could not be added to the response");
            }
        }
    }

    /// Runs what the request confirms of earlier answers, and puts what it gave in the place of the client's results;
    /// puts in order what a provider would not take back of such an answer. Whether it changed anything. An error where
    /// one could not begin, or not be looked for, that may the next time: the model is not asked, and nothing is spent.
    pub async fn resolve_confirmations(
        &self,
        request: &mut Value,
        progress: &mut Progress,
    ) -> Result<bool, ApiError> {
        confirmations::resolve(self, request, progress).await
    }

    /// Renders the request for the provider; unchanged parts keep the bytes of the client.
    pub fn sent(&self, request: &Value) -> Bytes {
        render(&self.original, request).into()
    }

    /// Builds the request of the next round.
    pub fn next(&self, request: &Value, answer: &Value, results: &[ToolResult]) -> Value {
        let mut next = self.dialect().next_request(request, answer, results);
        self.dialect.relax_tool_choice(&mut next, self.offered.names());
        next
    }
}
