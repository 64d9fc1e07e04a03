//! Calls that have results leave a whole response: the client never sees them.

use std::collections::HashMap;

use serde_json::Value;

use super::{ClientText, Codec, PlacedCall, lists, pair, placed_calls};
use crate::ToolResult;

/// The response without the calls that have results; `replace` gets each list of them and the results as texts.
pub(super) fn replace_calls<C: Codec>(
    response: &Value,
    results: &[ToolResult],
    replace: impl Fn(&mut Value, &str, &[ClientText]),
) -> Value {
    let mut mixed = response.clone();
    let calls = placed_calls::<C>(response);
    let answered = pair(&calls, results);
    for list in lists(answered.iter().map(|(placed, _)| *placed)) {
        let texts = remove_calls::<C>(&mut mixed, list, &answered);
        replace(&mut mixed, list, &texts);
    }
    if !answered.is_empty() {
        C::settle(&mut mixed, &answered);
    }
    mixed
}

/// Removes the calls of a list that have results. Returns the results as texts.
fn remove_calls<C: Codec>(
    response: &mut Value,
    list: &str,
    answered: &[(&PlacedCall, &ToolResult)],
) -> Vec<ClientText> {
    let ours: HashMap<usize, &ToolResult> = answered
        .iter()
        .filter(|(placed, _)| placed.list == list)
        .map(|(p, result)| (p.index, *result))
        .collect();
    let mut texts = Vec::new();
    let Some(parts) = response.pointer_mut(list).and_then(Value::as_array_mut) else { return texts };
    let (mut kept, mut removed) = (Vec::new(), Vec::new());
    for (index, mut part) in std::mem::take(parts).into_iter().enumerate() {
        if let Some(result) = ours.get(&index) {
            texts.push(ClientText { id: result.id.clone(), text: result.to_text() });
            removed.push(part);
            continue;
        }
        if C::read_call(&part).is_some() {
            C::inherit(&std::mem::take(&mut removed), &mut part);
        }
        kept.push(part);
    }
    // Without the call after it the provider would not take such a part back.
    while kept.last().is_some_and(C::needs_follower) {
        kept.pop();
    }
    *parts = kept;
    texts
}
