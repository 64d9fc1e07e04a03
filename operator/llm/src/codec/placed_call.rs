//! The calls of a whole response, each with its place and an id.

use std::collections::HashSet;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Codec, MISSING};
use crate::{Arguments, ToolCall, wire::items};

/// Pointers to a response's own id, in all dialects.
const RESPONSE_IDS: [&str; 3] = ["/id", "/responseId", "/response/id"];

/// A call as a part of a turn has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawCall<'a> {
    /// Empty if the part has none.
    pub(crate) id: &'a str,
    /// The kind or the namespace of a call that is no plain function call. Such a call is never a skill's.
    pub(crate) kind: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a Value,
}

impl<'a> RawCall<'a> {
    /// The name of a plain function call; empty for any other call.
    pub(crate) fn plain_name(&self) -> &'a str {
        if self.kind.is_none() { self.name } else { "" }
    }

    /// The name in which a caller looks for a skill. No offered name has a dot.
    fn full_name(&self) -> String {
        self.kind.map_or_else(|| self.name.to_owned(), |kind| format!("{kind}.{}", self.name))
    }

    /// An id for a call without one. Equal responses give equal ids, different responses different ones: results of
    /// two rounds stay apart.
    fn generate_id(&self, response: &Value, number: usize, taken: &HashSet<String>) -> String {
        let response_id: String =
            RESPONSE_IDS.iter().filter_map(|id| response.pointer(id)?.as_str()).collect();
        let seed = format!("{response_id}\0{number}\0{}\0{}", self.name, self.arguments);
        let id = |attempt: u32| {
            let digest = format!("{:x}", Sha256::digest(format!("{attempt}\0{seed}")));
            format!("call_{}", digest.get(..24).unwrap_or(&digest))
        };
        (0..=u32::MAX).map(id).find(|id| !taken.contains(id)).unwrap_or_default()
    }
}

/// A call and its place in a whole response.
#[derive(Clone, Debug)]
pub(crate) struct PlacedCall {
    /// The JSON pointer of the list that holds it.
    pub(crate) list: String,
    pub(crate) index: usize,
    /// True if the provider gave the id.
    pub(crate) has_own_id: bool,
    pub(crate) call: ToolCall,
}

/// Every call of a response, in order, each with an id that no other call has.
pub(crate) fn placed_calls<C: Codec>(response: &Value) -> Vec<PlacedCall> {
    let lists = C::call_lists(response);
    let in_list = |list| C::calls(items(response.pointer(list).unwrap_or(&MISSING)));
    place(response, lists.iter().flat_map(|list| in_list(list).into_iter().map(move |call| (&**list, call))))
}

/// Reads calls of these lists and gives an id to each that has none of its own.
pub(crate) fn place<'a>(
    response: &Value,
    calls: impl Iterator<Item = (&'a str, (usize, RawCall<'a>))>,
) -> Vec<PlacedCall> {
    let calls: Vec<_> = calls.collect();
    let mut taken: HashSet<String> = calls.iter().map(|(_, (_, call))| call.id.to_owned()).collect();
    let mut used = HashSet::new();
    let mut placed = Vec::with_capacity(calls.len());
    for (number, (list, (index, raw))) in calls.into_iter().enumerate() {
        let has_own_id = !raw.id.is_empty() && used.insert(raw.id);
        let id = if has_own_id { raw.id.to_owned() } else { raw.generate_id(response, number, &taken) };
        taken.insert(id.clone());
        let call = ToolCall { id, name: raw.full_name(), arguments: Arguments::read(raw.arguments) };
        placed.push(PlacedCall { list: list.to_owned(), index, has_own_id, call });
    }
    placed
}
