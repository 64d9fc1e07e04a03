//! Models whose provider lately refused tools. For a while their requests are offered nothing.

use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use skillet_kube::lock;
use skillet_llm::DialectName;

/// The time for which a refusal counts.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);
/// Most models that are remembered. Clients name models freely.
const MAX_MODELS: usize = 1_000;
/// Longest name of a model that is remembered, in bytes.
const MAX_NAME: usize = 256;

/// The refusals of one gateway.
#[derive(Default)]
pub struct ToolRefusals(Mutex<HashMap<(DialectName, String), Instant>>);

impl ToolRefusals {
    /// Notes that the provider of `dialect` refused a request for `model` because of its tools.
    pub fn add(&self, dialect: DialectName, model: &str, now: Instant) {
        let mut refusals = lock(&self.0);
        if refusals.len() >= MAX_MODELS {
            refusals.retain(|_, at| now.duration_since(*at) < REMEMBERED_FOR);
        }
        if refusals.len() < MAX_MODELS && model.len() <= MAX_NAME {
            refusals.insert((dialect, model.to_owned()), now);
        }
    }

    /// Returns true if such a refusal is not too long ago.
    pub fn has(&self, dialect: DialectName, model: &str, now: Instant) -> bool {
        let refusals = lock(&self.0);
        let at = refusals.get(&(dialect, model.to_owned()));
        at.is_some_and(|at| now.duration_since(*at) < REMEMBERED_FOR)
    }
}

/// Returns true if the text of an error names tools as its cause, and not a call of the history.
pub fn names_tools(error: &[u8]) -> bool {
    let text = String::from_utf8_lossy(error).to_ascii_lowercase();
    let is_of_history = text.contains("no tool output found");
    !is_of_history && ["tool", "function"].iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_counts_for_its_model_and_for_a_while() {
        let (refusals, now) = (ToolRefusals::default(), Instant::now());
        refusals.add(DialectName::OpenAiChat, "old", now);
        assert!(refusals.has(DialectName::OpenAiChat, "old", now + REMEMBERED_FOR / 2));
        assert!(!refusals.has(DialectName::OpenAiChat, "old", now + REMEMBERED_FOR));
        assert!(!refusals.has(DialectName::OpenAiChat, "new", now));
        assert!(!refusals.has(DialectName::Gemini, "old", now));
    }

    #[test]
    fn names_that_clients_invent_do_not_fill_the_memory() {
        let (refusals, now) = (ToolRefusals::default(), Instant::now());
        for number in 0..2 * MAX_MODELS {
            refusals.add(DialectName::OpenAiChat, &number.to_string(), now);
        }
        assert_eq!(lock(&refusals.0).len(), MAX_MODELS);
        refusals.add(DialectName::OpenAiChat, "later", now + REMEMBERED_FOR);
        assert_eq!(lock(&refusals.0).len(), 1);
        refusals.add(DialectName::OpenAiChat, &"x".repeat(MAX_NAME + 1), now);
        assert_eq!(lock(&refusals.0).len(), 1);
    }

    #[test]
    fn an_error_about_tools_is_known_by_its_words() {
        assert!(names_tools(br#"{"error":{"message":"This model does not support Function calling"}}"#));
        assert!(names_tools(b"`tools` is not supported"));
        assert!(!names_tools(b"max_tokens is too large"));
        assert!(!names_tools(b"No tool output found for function call call_1."));
    }
}
