//! Tool calls of earlier responses that a request sends back, each with the client's result for it.
//!
//! This module pairs calls and results; it does not interpret them.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::{
    Arguments,
    codec::{RawCall, RawResult},
};

/// The location of a result: the message, item or content, and the part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultLocation {
    pub turn: usize,
    pub part: usize,
}

/// A call with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryCall<'a> {
    /// As the client sends it back; empty if it has none.
    pub id: &'a str,
    /// Empty if the request does not say it.
    pub name: &'a str,
    /// None if the request holds the result without its call.
    arguments: Option<&'a Value>,
    pub result: &'a Value,
    pub location: ResultLocation,
    /// True if no turn of the model comes after the result: the model has not read it yet.
    pub is_newest: bool,
}

impl HistoryCall<'_> {
    /// None if the request does not hold the call, or its arguments are not JSON.
    pub fn arguments(&self) -> Option<Value> {
        match Arguments::read(self.arguments?) {
            Arguments::Json(arguments) => Some(arguments),
            Arguments::NotJson(_) => None,
        }
    }
}

/// A call of the current turn that may still get its result.
struct Waiting<'a> {
    id: &'a str,
    name: &'a str,
    arguments: &'a Value,
    is_answered: bool,
}

/// Pairs calls and results in one pass over a request.
#[derive(Default)]
pub(super) struct CallPairing<'a> {
    waiting: Vec<Waiting<'a>>,
    by_id: HashMap<&'a str, VecDeque<usize>>,
    by_name: HashMap<&'a str, VecDeque<usize>>,
    turn: usize,
    /// True if the current turn has a result.
    is_answered: bool,
    sent: Vec<(usize, HistoryCall<'a>)>,
}

impl<'a> CallPairing<'a> {
    /// Begins a turn of the model. Its earlier calls get no more results, unless turns are split: then a turn lasts
    /// until it has a result, and every call keeps waiting.
    pub(super) fn begin_turn(&mut self, has_split_turns: bool) {
        let is_answered = std::mem::take(&mut self.is_answered);
        if has_split_turns {
            self.turn += usize::from(is_answered);
            return;
        }
        self.turn += 1;
        self.waiting.clear();
        // Emptied, they would keep the size of the largest turn, and each turn would pay for it.
        self.by_id = HashMap::new();
        self.by_name = HashMap::new();
    }

    pub(super) fn call(&mut self, call: &RawCall<'a>) {
        let (id, name, place) = (call.id, call.plain_name(), self.waiting.len());
        self.by_id.entry(id).or_default().push_back(place);
        self.by_name.entry(name).or_default().push_back(place);
        self.waiting.push(Waiting { id, name, arguments: call.arguments, is_answered: false });
    }

    /// Adds a result. Its id says to which call it belongs, else its name: the first call of that name first.
    pub(super) fn result(&mut self, result: &RawResult<'a>, location: ResultLocation) {
        let RawResult { id, name, content: result } = *result;
        self.is_answered = true;
        let queue = if id.is_empty() { self.by_name.get_mut(name) } else { self.by_id.get_mut(id) };
        let mut found = None;
        if let Some(queue) = queue {
            while let Some(next) = queue.pop_front() {
                if let Some(call) = self.waiting.get_mut(next).filter(|call| !call.is_answered) {
                    call.is_answered = true;
                    found = Some((call.id, call.name, Some(call.arguments)));
                    break;
                }
            }
        }
        let (id, name, arguments) = found.unwrap_or((id, name, None));
        let sent = HistoryCall { id, name, arguments, result, location, is_newest: false };
        self.sent.push((self.turn, sent));
    }

    pub(super) fn into_calls(self) -> Vec<HistoryCall<'a>> {
        let Self { turn, sent, .. } = self;
        sent.into_iter().map(|(of, call)| HistoryCall { is_newest: of == turn, ..call }).collect()
    }
}

#[cfg(test)]
mod tests;
