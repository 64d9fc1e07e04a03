//! One conversation: ask the model, run what it calls of ours, give it the results, ask again, until it is done.
//!
//! Two drivers share everything else: [`whole`] for answers in one piece, [`streamed`] for streams.

mod asking;
mod calls;
mod confirmed;
mod streamed;
#[cfg(test)]
mod test_bed;
mod whole;

use std::{collections::HashMap, sync::Arc, time::Duration};

use http::HeaderMap;
use serde_json::Value;
use skillet_api::gateway::ConversationPolicy;
use skillet_core::dialect::{
    Dialect, DialectName, ToolCall, ToolResult, budget::Budget, confirmation::question, let_it_answer,
};
use tokio::time::Instant;

use crate::{error::ApiError, identity::Caller, offering::Offering, room::Taken, state::Gateway};

pub use self::{streamed::streamed, whole::whole};

/// At most so many times is the model asked again.
pub const ROUNDS_HEADER: &str = "x-skillet-rounds";
/// Free text that every execution of the conversation carries.
pub const SESSION_HEADER: &str = "x-skillet-session";

/// Everything about a conversation that does not change.
pub struct Conversation {
    pub gateway: Gateway,
    pub caller: Caller,
    pub dialect: DialectName,
    pub offering: Offering,
    pub limits: Limits,
    pub idempotency: Option<String>,
    pub session: Option<String>,
    /// Tokens of the request's header that confirm calls.
    pub confirmations: Vec<String>,
    /// What it takes of the memory for all, given back at its end.
    pub room: Option<Taken>,
}

/// How far it may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often the model is asked again.
    pub rounds: u32,
    pub time: Duration,
    pub result_bytes: usize,
    pub total_result_bytes: usize,
    pub parallel: usize,
}

/// The calls of one answer that are looked at here.
#[derive(Debug, Default, PartialEq)]
pub struct Called {
    pub ours: Vec<ToolCall>,
    /// They go to the client and wait for a person's word.
    pub asked: Vec<ToolCall>,
    /// Whether there are others than `ours`.
    pub has_others: bool,
}

/// How far it has come.
pub struct Progress {
    round: u32,
    deadline: Instant,
    budget: Budget,
    /// How often each call was made, where they are to be made once.
    keyed: HashMap<String, u32>,
    /// Tool names of the calls whose skills were run, in order.
    pub ran: Vec<Arc<str>>,
}

impl Limits {
    /// The policy's, or less where the request asks for less.
    pub fn of(policy: &ConversationPolicy, headers: &HeaderMap) -> Result<Self, ApiError> {
        let ConversationPolicy { rounds, time, result_bytes, total_result_bytes, parallel } = policy;
        let asked = match headers.get(ROUNDS_HEADER) {
            None => *rounds,
            Some(text) => text.to_str().ok().and_then(|text| text.trim().parse().ok()).ok_or_else(|| {
                ApiError::bad_request("the number of rounds is not a whole number").at(ROUNDS_HEADER)
            })?,
        };
        let size = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(Self {
            rounds: asked.min(*rounds),
            time: time.0,
            result_bytes: size(*result_bytes),
            total_result_bytes: size(*total_result_bytes),
            parallel: size(*parallel),
        })
    }
}

impl Conversation {
    fn dialect(&self) -> &'static dyn Dialect {
        self.dialect.dialect()
    }

    /// Where no call can be ours, nothing is made of the request any more: only so many bytes are still sent.
    pub fn let_go(&mut self, request: &mut Value, bytes: usize) {
        if !self.offering.targets.is_empty() {
            return;
        }
        *request = Value::Null;
        if let Some(room) = &mut self.room {
            room.shrink_to(bytes);
        }
    }

    /// At its beginning.
    pub fn progress(&self) -> Progress {
        self.progress_at(0)
    }

    /// After the model was asked again so often by somebody else.
    pub fn progress_at(&self, round: u32) -> Progress {
        let Limits { rounds: _, time, result_bytes, total_result_bytes, parallel: _ } = self.limits;
        Progress {
            round,
            deadline: Instant::now() + time,
            budget: Budget::new(result_bytes, total_result_bytes),
            keyed: HashMap::new(),
            ran: Vec::new(),
        }
    }

    /// Whether the model may be asked once more.
    fn may_go_on(&self, progress: &Progress) -> bool {
        progress.round < self.limits.rounds && Instant::now() < progress.deadline
    }

    /// Whose the calls of an answer are.
    pub fn called(&self, answer: &Value) -> Called {
        let mut called = Called::default();
        for call in self.dialect().calls(answer) {
            match self.offering.targets.get(call.name.as_str()) {
                Some(target) if !target.confirm => called.ours.push(call),
                Some(_) => {
                    called.asked.push(call);
                    called.has_others = true;
                }
                None => called.has_others = true,
            }
        }
        called
    }

    /// Puts a question about these calls of `answer` into what the client gets of it.
    pub fn ask(&self, answer: &Value, asked: &[ToolCall], mixed: &mut Value) {
        if let Some(question) = asking::question(self, answer, asked) {
            question::put(self.dialect, mixed, &question.text);
        }
    }

    /// Runs what the request confirms of earlier answers, and puts what it gave in the place of the client's results.
    /// Whether it changed anything.
    pub async fn settle(&self, request: &mut Value, progress: &mut Progress) -> bool {
        confirmed::settle(self, request, progress).await
    }

    /// Runs calls of ours, as far as limits let it; one result for each, in their order.
    pub async fn run(&self, calls: &[ToolCall], progress: &mut Progress) -> Vec<ToolResult> {
        calls::run(self, calls, progress).await
    }

    /// The request with which the model is asked again.
    pub fn next(&self, request: &Value, answer: &Value, results: &[ToolResult]) -> Value {
        let mut next = self.dialect().next_request(request, answer, results);
        let_it_answer(&mut next);
        next
    }

    /// What the model is told of calls that nothing is left for.
    fn not_run(calls: &[ToolCall]) -> Vec<ToolResult> {
        let message = "the limit of rounds or of time for this request is reached; the skill was not run";
        calls.iter().map(|call| calls::refusal(call, "LimitReached", message)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_may_ask_for_fewer_rounds_and_not_for_more() {
        let policy = ConversationPolicy::default();
        let rounds = |value: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(ROUNDS_HEADER, value.parse().unwrap());
            }
            Limits::of(&policy, &headers).map(|limits| limits.rounds)
        };
        assert_eq!(rounds(None), Ok(8));
        assert_eq!(rounds(Some("2")), Ok(2));
        assert_eq!(rounds(Some("0")), Ok(0));
        assert_eq!(rounds(Some("99")), Ok(8));
        for wrong in ["-1", "two", ""] {
            assert_eq!(rounds(Some(wrong)).unwrap_err().field.as_deref(), Some(ROUNDS_HEADER), "{wrong}");
        }
    }
}
