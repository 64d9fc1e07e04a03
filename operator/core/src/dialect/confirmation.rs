//! Calls of `hybrid` skills: a person says yes or no, in the next request, and nothing is remembered in between.
//!
//! The model's call goes to the client as it is, with its id, and a text beside it asks the person (`question`). The text
//! has a token in it: a code over who called what with which arguments until when, under a key that only gateways have.
//! The next request says yes with the token, or no. It does so in the result of the very call, as
//! `{"skillet": "confirm", "token": "..."}` or `{"skillet": "refuse"}`, or says yes in the header `x-skillet-confirm`.
//!
//! A token says that a person may confirm this call, not that it runs once: the call's id is in it, and whoever runs calls
//! keeps them apart by that id.

pub mod question;

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::content::write_canonical;

/// The request header that confirms, with one token or several between commas.
pub const HEADER: &str = "x-skillet-confirm";

/// Fewest bytes of a key.
pub const KEY_MINIMUM_BYTES: usize = 32;

/// Most bytes of a result that is read as an answer. A token takes about 60.
const ANSWER_LIMIT_BYTES: usize = 4096;

/// How many tokens of a header are tried.
const HEADER_LIMIT_TOKENS: usize = 32;

/// Keeps the codes apart from any other that is made with the same key.
const PURPOSE: &str = "skillet confirmation 1";

/// The key of all gateways of an installation. It has no Debug form: it is a secret.
#[derive(Clone)]
pub struct ConfirmationKey(Hmac<Sha256>);

/// A key that could be guessed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a confirmation key of {bytes} bytes is too short: it takes at least {KEY_MINIMUM_BYTES}")]
pub struct KeyTooShort {
    pub bytes: usize,
}

/// A call that waits for a person's word.
#[derive(Clone, Copy, Debug)]
pub struct PendingCall<'a> {
    /// Who asked the model: the identity under which the skill would run.
    pub caller: &'a str,
    /// The provider's id of the call.
    pub call_id: &'a str,
    /// Namespace and name, so that a nearer skill of the same name is not run instead.
    pub skill: &'a str,
    pub version: &'a str,
    pub arguments: &'a Value,
}

/// Why a token does not confirm a call.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ConfirmationError {
    #[error("the confirmation token is not one of this gateway's")]
    Malformed,
    /// Another call, caller, version or arguments, or a token that was made elsewhere.
    #[error("the confirmation token is not for this call")]
    NotThisCall,
    /// Seconds since 1970.
    #[error("the confirmation token is no longer valid")]
    Expired { at: u64 },
}

impl ConfirmationKey {
    pub fn new(secret: &[u8]) -> Result<Self, KeyTooShort> {
        let too_short = KeyTooShort { bytes: secret.len() };
        if secret.len() < KEY_MINIMUM_BYTES {
            return Err(too_short);
        }
        Hmac::new_from_slice(secret).map(Self).map_err(|_| too_short)
    }

    /// The token that confirms `call` before `expires`, in seconds since 1970: printable, without blanks, under 80 bytes.
    pub fn make(&self, call: &PendingCall<'_>, expires: u64) -> String {
        format!("{expires}.{}", URL_SAFE_NO_PAD.encode(self.code(call, expires).finalize().into_bytes()))
    }

    /// Whether `token` confirms `call` at `now`, in seconds since 1970.
    pub fn verify(&self, token: &str, call: &PendingCall<'_>, now: u64) -> Result<(), ConfirmationError> {
        let (expires, code) = token.split_once('.').ok_or(ConfirmationError::Malformed)?;
        let at: u64 = expires.parse().map_err(|_| ConfirmationError::Malformed)?;
        let code = URL_SAFE_NO_PAD.decode(code).map_err(|_| ConfirmationError::Malformed)?;
        // In constant time, and before the date is believed.
        self.code(call, at).verify_slice(&code).map_err(|_| ConfirmationError::NotThisCall)?;
        if now < at { Ok(()) } else { Err(ConfirmationError::Expired { at }) }
    }

    fn code(&self, call: &PendingCall<'_>, expires: u64) -> Hmac<Sha256> {
        let PendingCall { caller, call_id, skill, version, arguments } = call;
        // A client may write the same arguments in another order or number form when it sends the call back.
        let mut canonical = String::new();
        write_canonical(arguments, &mut canonical);
        let digest = Sha256::digest(canonical.as_bytes());
        let mut code = self.0.clone();
        for part in [PURPOSE, caller, call_id, skill, version].map(str::as_bytes) {
            // With its length, no part can end where another begins.
            code.update(&(part.len() as u64).to_be_bytes());
            code.update(part);
        }
        code.update(&expires.to_be_bytes());
        code.update(&digest);
        code
    }
}

/// A tool result that the client sends, of whatever dialect.
#[derive(Clone, Copy, Debug)]
pub struct ClientResult<'a> {
    pub call_id: &'a str,
    /// Text, or the JSON text of what the dialect has as an object.
    pub content: &'a str,
}

/// What a result says about a call that waits for a person's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Confirm {
        token: String,
    },
    Refuse,
    /// It speaks of confirmation and says neither, or both.
    Unclear,
}

/// All that a request says about calls that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// By the call's id.
    pub decisions: BTreeMap<String, Decision>,
    /// Tokens of the header, which do not say whose they are.
    pub tokens: Vec<String>,
}

/// What becomes of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Confirmed,
    Refused,
    /// The request says nothing of this call: it goes on waiting.
    Missing,
    /// The request says yes in a way that does not count.
    Invalid(ConfirmationError),
}

/// Reads the answers out of the client's tool results and the header. Every other result is none of ours.
pub fn find_answers(results: &[ClientResult<'_>], header: Option<&str>) -> Answers {
    let mut answers = Answers::default();
    for result in results {
        let Some(decision) = decision(result.content) else { continue };
        let known = answers.decisions.entry(result.call_id.to_owned()).or_insert_with(|| decision.clone());
        if *known != decision {
            *known = Decision::Unclear;
        }
    }
    let tokens = header.into_iter().flat_map(|header| header.split(',')).map(str::trim);
    answers.tokens =
        tokens.filter(|token| !token.is_empty()).take(HEADER_LIMIT_TOKENS).map(Into::into).collect();
    answers
}

/// What the request says about `call`. Its result counts before the header.
pub fn word(key: &ConfirmationKey, call: &PendingCall<'_>, answers: &Answers, now: u64) -> Word {
    match answers.decisions.get(call.call_id) {
        Some(Decision::Refuse) => Word::Refused,
        Some(Decision::Unclear) => Word::Invalid(ConfirmationError::Malformed),
        Some(Decision::Confirm { token }) => match key.verify(token, call, now) {
            Ok(()) => Word::Confirmed,
            Err(error) => Word::Invalid(error),
        },
        None => answers.tokens.iter().fold(Word::Missing, |word, token| match key.verify(token, call, now) {
            Ok(()) => Word::Confirmed,
            Err(error @ ConfirmationError::Expired { .. }) if word == Word::Missing => Word::Invalid(error),
            // It may be another call's.
            Err(_) => word,
        }),
    }
}

fn decision(content: &str) -> Option<Decision> {
    if content.len() > ANSWER_LIMIT_BYTES || !content.contains("skillet") {
        return None;
    }
    let mut value: Value = serde_json::from_str(content).ok()?;
    // Libraries write a function's result as JSON once more, or into a field.
    for _ in 0..2 {
        value = match value {
            Value::String(text) => serde_json::from_str(&text).ok()?,
            Value::Object(mut fields) if fields.len() == 1 && !fields.contains_key("skillet") => {
                fields.remove("result").or_else(|| fields.remove("output"))?
            }
            other => other,
        };
    }
    match (value.get("skillet")?.as_str(), value["token"].as_str()) {
        (Some("confirm"), Some(token)) => Some(Decision::Confirm { token: token.to_owned() }),
        (Some("refuse"), _) => Some(Decision::Refuse),
        _ => Some(Decision::Unclear),
    }
}

#[cfg(test)]
#[path = "confirmation/tests.rs"]
mod tests;
