//! The thought signature of a call that is removed.

use serde_json::Value;

use super::either;

/// Of parallel calls only the first has the thought signature, without which the provider takes no call back. If that
/// one is a skill's, the client's next call must carry it.
#[derive(Clone, Debug, Default)]
pub(super) struct Signature(Option<(String, Value)>);

impl Signature {
    /// Takes the signature of a call that is removed.
    pub(super) fn take_from(&mut self, part: &Value) {
        if self.0.is_none() {
            let names = ["thoughtSignature", "thought_signature"];
            self.0 = names.iter().find_map(|name| Some(((*name).to_owned(), part.get(name)?.clone())));
        }
    }

    /// Puts the signature on a call that stays. Returns true if that changed the call.
    pub(super) fn apply_to(&mut self, part: &mut Value) -> bool {
        let is_signed = !either(part, "thoughtSignature", "thought_signature").is_null();
        match (self.0.take(), part.as_object_mut()) {
            (Some((name, signature)), Some(part)) if !is_signed => {
                part.insert(name, signature);
                true
            }
            _ => false,
        }
    }
}
