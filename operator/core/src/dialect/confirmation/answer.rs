//! What the next request says of a call that waits: in the result of the very call, or in a header.
//!
//! A result says `{"skillet": "confirm", "token": "..."}` or `{"skillet": "refuse"}`, and may be wrapped as libraries do.

use serde_json::Value;

use super::{ConfirmationError, ConfirmationKey, Confirmed, PendingCall};
use crate::dialect::sent::SentCall;

/// The request header that confirms, with one token or several between commas.
pub const HEADER: &str = "x-skillet-confirm";

/// Most bytes of a result that is read as an answer. A token takes some hundreds.
const ANSWER_LIMIT_BYTES: usize = 8192;

/// How many tokens of a header are tried.
const HEADER_LIMIT_TOKENS: usize = 32;

/// How deep an answer may be wrapped: as a text, in a field, as a text again.
const WRAPS: u8 = 3;

/// What becomes of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    Confirmed(Confirmed),
    Refused,
    /// The request says nothing of this call.
    Missing,
    /// The request says yes in a way that does not count.
    Invalid(ConfirmationError),
}

/// What a result says.
enum Decision {
    Confirm {
        token: String,
    },
    Refuse,
    /// It speaks of confirmation and says neither.
    Unclear,
}

/// The tokens of a header, which do not say whose they are.
pub fn tokens(header: Option<&str>) -> Vec<String> {
    let tokens = header.into_iter().flat_map(|header| header.split(',')).map(str::trim);
    tokens.filter(|token| !token.is_empty()).take(HEADER_LIMIT_TOKENS).map(Into::into).collect()
}

/// What the request of `caller` says about `call` at `now`, in seconds since 1970. Its result counts before the header.
pub fn word(
    key: Option<&ConfirmationKey>,
    caller: &str,
    call: &SentCall<'_>,
    header: &[String],
    now: u64,
) -> Word {
    let check = |token: &str| {
        let key = key.ok_or(ConfirmationError::NoKey)?;
        let arguments = call.arguments().ok_or(ConfirmationError::NoCall)?;
        let pending = PendingCall { caller, call_id: call.id, tool: call.name, arguments: &arguments };
        key.verify(token, &pending, now)
    };
    match decision(call.result, WRAPS) {
        Some(Decision::Refuse) => Word::Refused,
        Some(Decision::Unclear) => Word::Invalid(ConfirmationError::Malformed),
        Some(Decision::Confirm { token }) => check(&token).map_or_else(Word::Invalid, Word::Confirmed),
        None => {
            // Those of other calls are not at fault, and one that still counts goes before one that does not.
            let valid: Vec<Confirmed> = header.iter().filter_map(|token| check(token).ok()).collect();
            let newest = valid.iter().find(|confirmed| !confirmed.is_expired).or_else(|| valid.first());
            newest.cloned().map_or(Word::Missing, Word::Confirmed)
        }
    }
}

fn decision(result: &Value, wraps: u8) -> Option<Decision> {
    match result {
        Value::String(text) => read(text, wraps),
        Value::Array(parts) => {
            let mut text = String::new();
            for part in parts {
                text.push_str(part["text"].as_str().unwrap_or_default());
                if text.len() > ANSWER_LIMIT_BYTES {
                    return None;
                }
            }
            read(&text, wraps)
        }
        Value::Object(fields) => match fields.get("skillet") {
            Some(word) => Some(match (word.as_str(), fields.get("token").and_then(Value::as_str)) {
                (Some("confirm"), Some(token)) => Decision::Confirm { token: token.to_owned() },
                (Some("refuse"), _) => Decision::Refuse,
                _ => Decision::Unclear,
            }),
            None if fields.len() == 1 => {
                let inner = fields.get("result").or_else(|| fields.get("output"))?;
                decision(inner, wraps.checked_sub(1)?)
            }
            None => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn read(text: &str, wraps: u8) -> Option<Decision> {
    if text.len() > ANSWER_LIMIT_BYTES || !text.contains("skillet") {
        return None;
    }
    decision(&serde_json::from_str(text).ok()?, wraps.checked_sub(1)?)
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
