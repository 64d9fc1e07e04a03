//! A model request, as far as its instructions are concerned.

use skillet_llm::history::HistoryCall;
use skillet_offer::SkillFilter;

use super::listing::InstructionsRequest;

/// The parts of a request that its instructions depend on, read once.
pub(in crate::model) struct InstructionsQuestion<'a> {
    pub(in crate::model) filter: &'a SkillFilter,
    pub(in crate::model) client_tools: Vec<&'a str>,
    pub(in crate::model) max_tools: Option<usize>,
    pub(in crate::model) turns: Vec<Vec<&'a str>>,
    pub(in crate::model) calls: Vec<HistoryCall<'a>>,
    pub(in crate::model) can_confirm: bool,
}

impl InstructionsQuestion<'_> {
    pub(in crate::model) fn as_request(&self) -> InstructionsRequest<'_> {
        let Self { filter, client_tools, max_tools, turns, calls, can_confirm } = self;
        InstructionsRequest {
            filter,
            client_tools,
            max_tools: *max_tools,
            turns,
            calls,
            can_confirm: *can_confirm,
        }
    }
}
