//! A person's reply in the next request: in the result of the call, or in a header.
//!
//! A result says `{"skillet": "confirm", "token": "..."}` or `{"skillet": "refuse"}`, and may be wrapped as libraries do.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use serde_json::Value;
use thiserror::Error;

use super::token::{CallDigest, ConfirmationError, ConfirmationKey, Confirmed, PendingCall, Token};
use crate::history::HistoryCall;

/// The request header that confirms, with one token or several between commas.
pub const HEADER: &str = "x-skillet-confirm";

/// Most bytes of a result that is read as a reply. A token takes some hundreds.
const ANSWER_LIMIT_BYTES: usize = 8192;

/// Most tokens of a request's headers. A request may hold fewer confirmed calls than that.
const HEADER_LIMIT_TOKENS: usize = 256;

/// Different calls for which the header is tried, the newest first.
const HEADER_LIMIT_CALLS: usize = 64;

/// Levels of wrapping around a reply: as a text, in a field, as a text again.
const WRAPS: u8 = 3;

/// The reply to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Confirmed(Confirmed),
    Refused,
    /// The request has no reply to this call.
    Missing,
    /// The request confirms in a way that does not count.
    Invalid(ConfirmationError),
    /// The result has the key of a confirmation and neither confirms nor refuses. Other programs may write that too.
    Unclear,
    /// The header was not tried for this call, because too many calls come after it.
    NotTried,
}

/// Headers with more tokens than any request may need.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("more than {HEADER_LIMIT_TOKENS} tokens")]
pub struct TooManyTokens;

/// A result's own decision.
enum Decision {
    Confirm {
        token: String,
    },
    Refuse,
    /// The result has the key of a confirmation and neither value.
    Unclear,
}

/// The tokens of all headers of that name, each once. A header does not say to which call a token belongs.
pub fn read_tokens<'a>(headers: impl IntoIterator<Item = &'a str>) -> Result<Vec<String>, TooManyTokens> {
    let all = headers.into_iter().flat_map(|header| header.split(',')).map(str::trim);
    let mut seen = HashSet::new();
    let mut tokens = Vec::new();
    for token in all.filter(|token| !token.is_empty() && seen.insert(*token)) {
        if tokens.len() == HEADER_LIMIT_TOKENS {
            return Err(TooManyTokens);
        }
        tokens.push(token.to_owned());
    }
    Ok(tokens)
}

/// Reads the reply of `caller` to each of its `calls` at `now`, in seconds since 1970. A result counts before the
/// header. Each token of the header counts for one call; of equal calls the oldest gets the first token.
pub fn read_replies(
    key: Option<&ConfirmationKey>,
    caller: &str,
    calls: &[HistoryCall<'_>],
    header: &[String],
    now: u64,
) -> Vec<Reply> {
    let decisions: Vec<Option<Decision>> =
        calls.iter().map(|call| read_decision(call.result, WRAPS)).collect();
    let mut by_header = by_header(key, caller, calls, &decisions, header, now);
    let replies = calls.iter().zip(decisions).enumerate().map(|(place, (call, decision))| match decision {
        Some(Decision::Confirm { token }) => {
            verify(key, caller, call, &token, now).map_or_else(Reply::Invalid, Reply::Confirmed)
        }
        Some(Decision::Refuse) => Reply::Refused,
        Some(Decision::Unclear) => Reply::Unclear,
        None => by_header.remove(&place).unwrap_or(Reply::Missing),
    });
    replies.collect()
}

fn verify(
    key: Option<&ConfirmationKey>,
    caller: &str,
    call: &HistoryCall<'_>,
    token: &str,
    now: u64,
) -> Result<Confirmed, ConfirmationError> {
    let key = key.ok_or(ConfirmationError::NoKey)?;
    let token = Token::read(token)?;
    let digested = digest(key, caller, call).ok_or(ConfirmationError::NoCall)?;
    digested.verify(&token, now)
}

/// None if the request does not hold the call.
fn digest(key: &ConfirmationKey, caller: &str, call: &HistoryCall<'_>) -> Option<CallDigest> {
    let arguments = call.arguments()?;
    Some(key.digest(&PendingCall { caller, call_id: call.id, tool: call.name, arguments: &arguments }))
}

/// Replies by the header for calls whose results have none, by index in `calls`.
fn by_header(
    key: Option<&ConfirmationKey>,
    caller: &str,
    calls: &[HistoryCall<'_>],
    decisions: &[Option<Decision>],
    header: &[String],
    now: u64,
) -> HashMap<usize, Reply> {
    // A token that some result gives is of that call, and not of another that is alike.
    let given: HashSet<&str> = decisions.iter().flatten().filter_map(Decision::token).collect();
    let free = header.iter().filter(|token| !given.contains(token.as_str()));
    let mut tokens: Vec<Token> = free.filter_map(|token| Token::read(token).ok()).collect();
    let mut replies = HashMap::new();
    let Some(key) = key.filter(|_| !tokens.is_empty()) else { return replies };
    let mut alike: HashMap<_, Alike> = HashMap::new();
    let silent = calls.iter().zip(decisions).enumerate().filter(|(_, (_, decision))| decision.is_none());
    for (place, (call, _)) in silent.rev() {
        let Some(digested) = digest(key, caller, call) else { continue };
        let number = alike.len();
        match alike.entry((call.id, call.name, digested.arguments)) {
            Entry::Occupied(known) => known.into_mut().places.push(place),
            Entry::Vacant(new) if number < HEADER_LIMIT_CALLS => {
                new.insert(Alike { places: vec![place], confirmed: take(&mut tokens, &digested, now) });
            }
            Entry::Vacant(_) if tokens.is_empty() => {}
            Entry::Vacant(_) => drop(replies.insert(place, Reply::NotTried)),
        }
    }
    for Alike { places, confirmed } in alike.into_values() {
        let confirmed = confirmed.into_iter().map(Reply::Confirmed);
        replies.extend(places.into_iter().rev().zip(confirmed));
    }
    replies
}

/// Calls with the same id, name and arguments, the newest first, and the confirmations of the header for them, in its
/// order.
struct Alike {
    places: Vec<usize>,
    confirmed: Vec<Confirmed>,
}

/// Removes and returns the tokens of one call.
fn take(tokens: &mut Vec<Token>, call: &CallDigest, now: u64) -> Vec<Confirmed> {
    let mut taken = Vec::new();
    tokens.retain(|token| match call.verify(token, now) {
        Ok(confirmed) => {
            taken.push(confirmed);
            false
        }
        Err(_) => true,
    });
    taken
}

impl Decision {
    fn token(&self) -> Option<&str> {
        match self {
            Self::Confirm { token } => Some(token),
            Self::Refuse | Self::Unclear => None,
        }
    }
}

fn read_decision(result: &Value, wraps: u8) -> Option<Decision> {
    match result {
        Value::String(text) => parse_decision(text, wraps),
        Value::Array(parts) => {
            let mut text = String::new();
            for part in parts {
                text.push_str(part["text"].as_str().unwrap_or_default());
                if text.len() > ANSWER_LIMIT_BYTES {
                    return None;
                }
            }
            parse_decision(&text, wraps)
        }
        Value::Object(fields) => match fields.get("skillet") {
            Some(word) => Some(match (word.as_str(), fields.get("token").and_then(Value::as_str)) {
                (Some("confirm"), Some(token)) => Decision::Confirm { token: token.to_owned() },
                (Some("refuse"), _) => Decision::Refuse,
                _ => Decision::Unclear,
            }),
            None if fields.len() == 1 => {
                let inner = fields.get("result").or_else(|| fields.get("output"))?;
                read_decision(inner, wraps.checked_sub(1)?)
            }
            None => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn parse_decision(text: &str, wraps: u8) -> Option<Decision> {
    if text.len() > ANSWER_LIMIT_BYTES || !text.contains("skillet") {
        return None;
    }
    read_decision(&serde_json::from_str(text).ok()?, wraps.checked_sub(1)?)
}

#[cfg(test)]
mod tests;
