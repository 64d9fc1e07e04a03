//! Tokens that confirm a call, and the key that signs them.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::{continuation::ContinuationKey, tool_names::SkillIdentity};
use skillet_core::content::write_canonical;

/// Fewest bytes of a key.
pub const KEY_MINIMUM_BYTES: usize = 32;

/// Random bytes that make each token unique.
pub const NONCE_BYTES: usize = 12;

const CODE_BYTES: usize = 32;

/// Domain separation: codes differ from any other code under the same key.
const PURPOSE: &str = "skillet confirmation 1";

/// The key of all gateways of an installation. It is secret, so it has no Debug form.
#[derive(Clone)]
pub struct ConfirmationKey(Hmac<Sha256>);

/// A key that could be guessed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a confirmation key of {bytes} bytes is too short: it takes at least {KEY_MINIMUM_BYTES}")]
pub struct KeyTooShort {
    pub bytes: usize,
}

/// A call that awaits confirmation, as both the response and the next request have it.
#[derive(Clone, Copy, Debug)]
pub struct PendingCall<'a> {
    /// The identity under which the skill would run.
    pub caller: &'a str,
    /// The provider's id of the call; empty where it gave none.
    pub call_id: &'a str,
    /// The tool's name as the model called it.
    pub tool: &'a str,
    pub arguments: &'a Value,
}

/// The skill call that a valid token confirms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmed {
    pub namespace: String,
    pub skill: String,
    pub version: String,
    /// The token's code, unique for each prompt.
    pub code: String,
    /// True if its run may be looked up, but not started any more.
    pub is_expired: bool,
}

/// An invalid confirmation.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ConfirmationError {
    #[error("the confirmation token is not one of this gateway's")]
    Malformed,
    /// Another call, caller or arguments, or a token of another installation.
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
    /// The key of continuations, from the same secret.
    pub fn continuation_key(&self) -> ContinuationKey {
        ContinuationKey::from_secret(self.0.clone())
    }

    pub fn new(secret: &[u8]) -> Result<Self, KeyTooShort> {
        let too_short = KeyTooShort { bytes: secret.len() };
        if secret.len() < KEY_MINIMUM_BYTES {
            return Err(too_short);
        }
        Hmac::new_from_slice(secret).map(Self).map_err(|_| too_short)
    }

    /// Signs a token that lets `call` run `skill` before `expires`, in seconds since 1970. It is printable and has no
    /// blanks.
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

    /// Verifies that `token` confirms `call` at `now`, in seconds since 1970.
    pub fn verify(
        &self,
        token: &str,
        call: &PendingCall<'_>,
        now: u64,
    ) -> Result<Confirmed, ConfirmationError> {
        // Its form first: the arguments may be long.
        let token = Token::read(token)?;
        self.digest(call).verify(&token, now)
    }

    fn code(&self, call: &PendingCall<'_>, open: &str) -> Hmac<Sha256> {
        self.digest(call).code(open)
    }

    /// Digests the part of a code that is about the call.
    pub(super) fn digest(&self, call: &PendingCall<'_>) -> CallDigest {
        let PendingCall { caller, call_id, tool, arguments } = call;
        // A client may write the same arguments in another order or number form when it sends the call back.
        let mut canonical = String::new();
        write_canonical(arguments, &mut canonical);
        let mut prefix = self.0.clone();
        for part in [PURPOSE, caller, call_id, tool] {
            add(&mut prefix, part);
        }
        CallDigest { prefix, arguments: Sha256::digest(canonical.as_bytes()).into() }
    }
}

/// The digest of a call: computed once, and compared with any number of tokens.
#[derive(Clone)]
pub(super) struct CallDigest {
    /// The code over all that precedes the token's own part.
    prefix: Hmac<Sha256>,
    pub(super) arguments: [u8; 32],
}

impl CallDigest {
    /// The code over the call and `open`, the token without its code.
    fn code(&self, open: &str) -> Hmac<Sha256> {
        let mut code = self.prefix.clone();
        add(&mut code, open);
        code.update(&self.arguments);
        code
    }

    pub(super) fn verify(&self, token: &Token, now: u64) -> Result<Confirmed, ConfirmationError> {
        // In constant time, and before anything of it is believed.
        let is_valid = self.code(&token.open).verify_slice(&token.given);
        is_valid.map_err(|_| ConfirmationError::NotThisCall)?;
        let Token { open: _, given: _, code, expires, namespace, skill, version } = token.clone();
        Ok(Confirmed { namespace, skill, version, code, is_expired: now >= expires })
    }
}

/// Adds a part with its length, so that no part can end where another begins.
fn add(code: &mut Hmac<Sha256>, part: &str) {
    code.update(&(part.len() as u64).to_be_bytes());
    code.update(part.as_bytes());
}

/// A token of the right form, not yet verified.
#[derive(Clone)]
pub(super) struct Token {
    /// All but the code.
    open: String,
    given: Vec<u8>,
    code: String,
    expires: u64,
    namespace: String,
    skill: String,
    version: String,
}

impl Token {
    pub(super) fn read(token: &str) -> Result<Self, ConfirmationError> {
        Self::parts(token).ok_or(ConfirmationError::Malformed)
    }

    fn parts(token: &str) -> Option<Self> {
        let (open, code) = token.rsplit_once('.')?;
        let [expires, nonce, skill] = open.splitn(3, '.').collect::<Vec<_>>().try_into().ok()?;
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        decoded(nonce).filter(|nonce| nonce.len() == NONCE_BYTES)?;
        let skill = String::from_utf8(decoded(skill)?).ok()?;
        let [namespace, skill, version] = skill.splitn(3, '/').collect::<Vec<_>>().try_into().ok()?;
        Some(Self {
            given: decoded(code).filter(|given| given.len() == CODE_BYTES)?,
            expires: expires.parse().ok()?,
            open: open.to_owned(),
            code: code.to_owned(),
            namespace: namespace.to_owned(),
            skill: skill.to_owned(),
            version: version.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
