//! The decision after each response of the model. Buffered, streamed and intercepted responses share it.

use serde_json::Value;
use skillet_llm::{ToolCall, ToolResult};

use super::{Conversation, Progress, tool_calls};

/// One response of the model.
pub struct Round<'a> {
    pub response: &'a Value,
    /// Calls of skills to run.
    pub skill_calls: &'a [ToolCall],
    /// True if the client gets calls, its own or such that await confirmation.
    pub has_client_calls: bool,
}

/// The next step of a conversation.
#[derive(Debug)]
pub enum Step {
    /// The model gets this request.
    Ask { request: Value, results: Vec<ToolResult> },
    /// The client gets the response. The results are those of its skill calls.
    Respond { results: Vec<ToolResult> },
}

impl Conversation {
    /// Runs the skill calls of a response and decides how to go on. At a limit the model concludes without skills.
    pub async fn step(&self, request: &Value, round: Round<'_>, progress: &mut Progress) -> Step {
        let Round { response, skill_calls, has_client_calls } = round;
        if self.dialect().is_cut(response) {
            return Step::Respond { results: Self::cut(skill_calls) };
        }
        let is_within_limits = self.may_continue(progress);
        let results = if is_within_limits {
            tool_calls::run(self, skill_calls, progress).await
        } else {
            Self::not_run(skill_calls)
        };
        let may_conclude =
            self.limits.rounds > 0 && progress.round <= self.limits.rounds && !progress.is_concluding;
        if skill_calls.is_empty() || has_client_calls || !(is_within_limits || may_conclude) {
            return Step::Respond { results };
        }
        progress.round += 1;
        self.carry(request, response, &results, progress);
        let mut request = self.next(request, response, &results);
        self.attach_read_servers(&mut request, (skill_calls, &results), progress.deadline).await;
        if !is_within_limits {
            progress.is_concluding = true;
            self.forbid_skills(&mut request);
        }
        Step::Ask { request, results }
    }

    /// Keeps the model from calling tools. A client's own tools stay callable: their calls end the conversation here.
    fn forbid_skills(&self, request: &mut Value) {
        let has_client_tools = self.dialect().client_tool_names(request).len() > self.offered.count();
        if !has_client_tools {
            self.dialect.forbid_tool_calls(request);
        }
    }

    /// Results for calls of a response that a limit of tokens ended: their arguments may not be whole.
    fn cut(calls: &[ToolCall]) -> Vec<ToolResult> {
        let message =
            "the model reached its limit of tokens before the call was complete; the skill was not run";
        calls.iter().map(|call| tool_calls::refusal(call, "ResponseCut", message)).collect()
    }

    /// Results for calls that no round or time is left for.
    fn not_run(calls: &[ToolCall]) -> Vec<ToolResult> {
        let message = "the limit of rounds or of time for this request is reached; the skill was not run. Answer with what you have";
        calls.iter().map(|call| tool_calls::refusal(call, "LimitReached", message)).collect()
    }
}
