//! The ids that a provider gave to calls. Ids that this crate makes never reach the client.

use std::collections::HashSet;

use serde_json::Value;

use crate::ToolCall;

/// The ids in a response, of calls and of all else.
#[derive(Debug, Default)]
pub struct ProviderIds<'a>(HashSet<&'a str>);

impl<'a> ProviderIds<'a> {
    pub fn of(response: &'a Value) -> Self {
        let mut ids = Self::default();
        ids.add(response);
        ids
    }

    fn add(&mut self, value: &'a Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if matches!(name.as_str(), "id" | "call_id") {
                        self.0.extend(value.as_str());
                    }
                    self.add(value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The id of a call of this response if the provider gave it, else an empty text.
    pub fn of_call<'b>(&self, call: &'b ToolCall) -> &'b str {
        if self.0.contains(call.id.as_str()) { &call.id } else { "" }
    }
}
