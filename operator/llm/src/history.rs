//! Tool calls of earlier responses that a request sends back, each with the client's result for it.
//!
//! The dialects read them with `CallPairing`. This module does not interpret results.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
};

use serde_json::{Map, Value};

use crate::ToolResult;

static NOTHING: Value = Value::Null;

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
    pub fn arguments(&self) -> Option<Cow<'_, Value>> {
        match self.arguments? {
            Value::Null => Some(Cow::Owned(Value::Object(Map::new()))),
            Value::String(text) if text.trim().is_empty() => Some(Cow::Owned(Value::Object(Map::new()))),
            Value::String(text) => serde_json::from_str(text).ok().map(Cow::Owned),
            value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                Some(Cow::Borrowed(value))
            }
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
    sent: Vec<(usize, HistoryCall<'a>)>,
}

impl<'a> CallPairing<'a> {
    /// Begins a turn of the model. Its earlier calls get no more results.
    pub(super) fn begin_turn(&mut self) {
        self.go_on();
        self.waiting.clear();
        // Emptied, they would keep the size of the largest turn, and each turn would pay for it.
        self.by_id = HashMap::new();
        self.by_name = HashMap::new();
    }

    /// Begins a turn of the model whose earlier calls may still get results.
    pub(super) fn go_on(&mut self) {
        self.turn += 1;
    }

    pub(super) fn call(&mut self, id: &'a str, name: &'a str, arguments: Option<&'a Value>) {
        let place = self.waiting.len();
        self.by_id.entry(id).or_default().push_back(place);
        self.by_name.entry(name).or_default().push_back(place);
        let arguments = arguments.unwrap_or(&NOTHING);
        self.waiting.push(Waiting { id, name, arguments, is_answered: false });
    }

    /// Adds a result. Its id says to which call it belongs, else its name: the first call of that name first.
    pub(super) fn result(&mut self, id: &'a str, name: &'a str, result: &'a Value, location: ResultLocation) {
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

/// Results by the ids of their calls. Of several with one id the first comes first.
pub(super) struct ResultsById<'a>(HashMap<&'a str, VecDeque<&'a ToolResult>>);

impl<'a> ResultsById<'a> {
    pub(super) fn of(results: &'a [ToolResult]) -> Self {
        let mut by_id: HashMap<&str, VecDeque<&ToolResult>> = HashMap::new();
        for result in results {
            by_id.entry(result.id.as_str()).or_default().push_back(result);
        }
        Self(by_id)
    }

    pub(super) fn take(&mut self, id: &str) -> Option<&'a ToolResult> {
        self.0.get_mut(id)?.pop_front()
    }
}

#[cfg(test)]
mod tests;
