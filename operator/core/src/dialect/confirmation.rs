//! Calls of `hybrid` skills: a person says yes or no, in the next request, and nothing is remembered in between.
//!
//! The model's call goes to the client as it is, with its id, and a text beside it asks the person (`question`). The text
//! has a token in it: which skill would run, and a code over who called it with which arguments until when, under a key
//! that only gateways have. The next request says yes with the token, or no (`answer`).
//!
//! A token says that a person may confirm this call, not that it runs once. Every question has a code of its own, also two
//! about calls that are alike in everything: whoever runs calls keeps them apart by the code.

pub mod answer;
pub mod question;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::{ToolCall, names::SkillIdentity};
use crate::content::write_canonical;

/// Fewest bytes of a key.
pub const KEY_MINIMUM_BYTES: usize = 32;

/// Bytes that keep two questions apart.
pub const NONCE_BYTES: usize = 12;

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

/// A call that waits for a person's word, as both the answer and the next request have it.
#[derive(Clone, Copy, Debug)]
pub struct PendingCall<'a> {
    /// Who asked the model: the identity under which the skill would run.
    pub caller: &'a str,
    /// The provider's id of the call; empty where it gave none.
    pub call_id: &'a str,
    /// The name under which the model called it.
    pub tool: &'a str,
    pub arguments: &'a Value,
}

/// What a valid token confirms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmed {
    pub namespace: String,
    pub skill: String,
    pub version: String,
    /// The token's code, by which this question is told from every other.
    pub code: String,
    /// It may be looked for, but not begun any more.
    pub is_expired: bool,
}

/// Why a call is not confirmed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ConfirmationError {
    #[error("the confirmation token is not one of this gateway's")]
    Malformed,
    /// Another call, caller or arguments, or a token that was made elsewhere.
    #[error("the confirmation token is not for this call")]
    NotThisCall,
    #[error("the confirmation token is no longer valid")]
    Expired,
    #[error("the request holds the confirmation without the call that it confirms")]
    NoCall,
    #[error("this gateway has no key to confirm calls with")]
    NoKey,
}

impl ConfirmationKey {
    pub fn new(secret: &[u8]) -> Result<Self, KeyTooShort> {
        let too_short = KeyTooShort { bytes: secret.len() };
        if secret.len() < KEY_MINIMUM_BYTES {
            return Err(too_short);
        }
        Hmac::new_from_slice(secret).map(Self).map_err(|_| too_short)
    }

    /// The token that lets `call` run `skill` before `expires`, in seconds since 1970: printable, without blanks.
    pub fn make(
        &self,
        call: &PendingCall<'_>,
        skill: SkillIdentity<'_>,
        expires: u64,
        nonce: [u8; NONCE_BYTES],
    ) -> String {
        // None of the three has a slash in it.
        let skill = format!("{}/{}/{}", skill.namespace, skill.name, skill.version);
        let open = format!("{expires}.{}.{}", URL_SAFE_NO_PAD.encode(nonce), URL_SAFE_NO_PAD.encode(skill));
        let code = URL_SAFE_NO_PAD.encode(self.code(call, &open).finalize().into_bytes());
        format!("{open}.{code}")
    }

    /// What `token` confirms of `call` at `now`, in seconds since 1970.
    pub fn verify(
        &self,
        token: &str,
        call: &PendingCall<'_>,
        now: u64,
    ) -> Result<Confirmed, ConfirmationError> {
        let malformed = ConfirmationError::Malformed;
        let (open, code) = token.rsplit_once('.').ok_or(malformed)?;
        let given = URL_SAFE_NO_PAD.decode(code).map_err(|_| malformed)?;
        // In constant time, and before anything of it is believed.
        self.code(call, open).verify_slice(&given).map_err(|_| ConfirmationError::NotThisCall)?;
        let mut parts = open.split('.');
        let expires: u64 = parts.next().and_then(|part| part.parse().ok()).ok_or(malformed)?;
        let skill = parts.nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok()).ok_or(malformed)?;
        let skill = String::from_utf8(skill).map_err(|_| malformed)?;
        let mut names = skill.splitn(3, '/').map(ToOwned::to_owned);
        let (Some(namespace), Some(skill), Some(version)) = (names.next(), names.next(), names.next()) else {
            return Err(malformed);
        };
        Ok(Confirmed { namespace, skill, version, code: code.to_owned(), is_expired: now >= expires })
    }

    /// Over all that `open`, the token without its code, says, and over the call.
    fn code(&self, call: &PendingCall<'_>, open: &str) -> Hmac<Sha256> {
        let PendingCall { caller, call_id, tool, arguments } = call;
        // A client may write the same arguments in another order or number form when it sends the call back.
        let mut canonical = String::new();
        write_canonical(arguments, &mut canonical);
        let digest = Sha256::digest(canonical.as_bytes());
        let mut code = self.0.clone();
        for part in [PURPOSE, caller, call_id, tool, open].map(str::as_bytes) {
            // With its length, no part can end where another begins.
            code.update(&(part.len() as u64).to_be_bytes());
            code.update(part);
        }
        code.update(&digest);
        code
    }
}

/// The id of a call that `answer` has, where the provider gave it one. An id that was made here the client never sees.
pub fn given_id<'a>(answer: &Value, call: &'a ToolCall) -> &'a str {
    if holds_id(answer, &call.id) { &call.id } else { "" }
}

fn holds_id(value: &Value, id: &str) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            (matches!(name.as_str(), "id" | "call_id") && value == id) || holds_id(value, id)
        }),
        Value::Array(items) => items.iter().any(|item| holds_id(item, id)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
#[path = "confirmation/tests.rs"]
mod tests;
