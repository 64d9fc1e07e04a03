//! Responses: a seal is the content or id of a reasoning item before the answer, or the id of the first client call.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Continuation, Format, Seal, is_seal, replacement_id, restore::Seals};
use crate::{
    codec::Codec as _,
    openai_responses::{OpenAiResponses, item::is_own_reference},
};

pub(super) const FORMAT: Format = Format { field: "input", restore, results, insert };

fn restore(input: Vec<Value>, seals: &mut Seals<'_>) -> Vec<Value> {
    let mut restored = Restored::default();
    for item in input {
        restored.take(item, seals);
    }
    restored.items
}

#[derive(Default)]
struct Restored {
    items: Vec<Value>,
    /// The index of the first item of the current response.
    begin: usize,
    /// Ids of the calls and items that the carried turns of the current response hold.
    carried: HashSet<String>,
}

impl Restored {
    fn take(&mut self, mut item: Value, seals: &mut Seals<'_>) {
        if is_own_reference(&item) {
            return;
        }
        if !OpenAiResponses::is_model_turn(&item) {
            if item["type"] == "function_call_output" {
                self.add_missing_turns(&item, seals);
            }
            seals.put_id(&mut item, "call_id");
            self.items.push(item);
            self.begin = self.items.len();
            self.carried.clear();
            return;
        }
        let fields = ["encrypted_content", "id", "call_id"];
        let seal = fields.iter().filter_map(|field| item[*field].as_str()).find(|text| is_seal(text));
        let Some(seal) = seal.map(str::to_owned) else {
            let is_carried = ["call_id", "id"]
                .iter()
                .any(|field| item[*field].as_str().is_some_and(|id| self.carried.contains(id)));
            if !is_carried {
                self.items.push(item);
            }
            return;
        };
        if let Some(continuation) = seals.open(&seal) {
            seals.learn(&seal, &continuation);
            self.replace(continuation);
        } else if item["type"] == "function_call" {
            seals.put_id(&mut item, "call_id");
            self.items.push(item);
        }
    }

    /// Puts the carried turns in the place of all that the response had before the seal.
    fn replace(&mut self, continuation: Continuation) {
        self.items.truncate(self.begin);
        let ids = |item: &Value| {
            ["call_id", "id"]
                .into_iter()
                .filter_map(|field| item[field].as_str().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        self.carried = continuation.turns.iter().flat_map(ids).collect();
        self.items.extend(continuation.turns);
    }

    /// Adds the outputs of skills if a client sends only its own output: the provider keeps the calls themselves.
    fn add_missing_turns(&mut self, output: &Value, seals: &mut Seals<'_>) {
        let Some(seal) = output["call_id"].as_str().filter(|id| is_seal(id)) else { return };
        if seals.knows(seal) {
            return;
        }
        if let Some(continuation) = seals.open(seal) {
            seals.learn(seal, &continuation);
            let turns = continuation.turns;
            let last_call = turns.iter().rposition(OpenAiResponses::is_model_turn).map_or(0, |last| last + 1);
            let begin = if seals.is_history_stored { last_call } else { 0 };
            self.items.extend(turns.into_iter().skip(begin));
        }
    }
}

fn results(item: &mut Value) -> Vec<&mut Value> {
    if item["type"] != "function_call_output" {
        return Vec::new();
    }
    item.get_mut("output").into_iter().collect()
}

/// The reasoning item that carries a seal, the first of a response or a further one. If the provider stores responses,
/// clients may send its id alone.
pub(crate) fn sealed_item(seal: &Seal, is_stored: bool, number: u32) -> Value {
    let id = if is_stored {
        seal.to_item_id(number)
    } else {
        replacement_id(&format!("{}{number}", seal.as_str())).replace("call_", "rs_")
    };
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": seal.as_str()})
}

fn insert(response: &mut Value, seal: &Seal) -> bool {
    let response = if response["output"].is_array() { response } else { &mut response["response"] };
    let is_stored = response["store"] != false;
    let Some(output) = response.get_mut("output").and_then(Value::as_array_mut) else { return false };
    output.insert(0, sealed_item(seal, is_stored, 0));
    true
}
