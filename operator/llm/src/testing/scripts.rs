//! Random rounds of each provider, and readers as strict as an SDK.

pub(super) mod anthropic;
pub(super) mod gemini;
pub(super) mod openai_chat;
pub(super) mod openai_responses;

use serde_json::Value;

use crate::sse::{EventSplitter, RawEvent};
use skillet_core::test_rng::TestRng;

/// The events of a stream. The last one must be whole.
fn events(bytes: &[u8]) -> Vec<RawEvent> {
    let mut splitter = EventSplitter::default();
    let events = splitter.feed(bytes).unwrap();
    assert_eq!(splitter.rest(), None);
    events
}

fn json_of(event: &RawEvent) -> Value {
    serde_json::from_str(&event.data().unwrap()).unwrap()
}

/// One of the items.
fn pick<'a, T>(rng: &mut TestRng, items: &'a [T]) -> &'a T {
    &items[rng.below(u32::try_from(items.len()).unwrap()) as usize]
}

/// Pieces of a text, cut between characters.
fn pieces(rng: &mut TestRng, text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for letter in text.chars() {
        if rng.below(6) == 0 {
            pieces.push(String::new());
        }
        pieces.last_mut().unwrap().push(letter);
    }
    pieces
}
