//! Carried turns: the turns of skill calls travel with the client's history, since the gateway keeps nothing.
//!
//! A client never sees a skill's call or its result, but the provider needs both, thinking and signatures included, when
//! the conversation continues. A [`Continuation`] holds these turns as the provider made them. Sealed, it is one opaque
//! text in a field that clients send back unchanged: a call's id, the content of a reasoning item, a signature.
//! [`restore()`] puts the turns back in their place and removes every seal.
//!
//! # Guarantees
//!
//! - A seal opens only under the key, the caller's namespace and the dialect that it was made with.
//! - A seal that does not open is removed. It never reaches a provider.
//! - A history without its seals stays one that the provider accepts: the answer's text alone.
//!
//! A seal is signed and not encrypted: it holds only what its caller may read.

mod anthropic;
pub(crate) mod gemini;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;
mod restore;
#[cfg(test)]
mod tests;

use std::io::{Read as _, Write as _};

use base64::{
    Engine as _, engine::general_purpose::STANDARD_NO_PAD, engine::general_purpose::URL_SAFE_NO_PAD,
};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{DialectName, openai_responses::bound_id::IdBinding};

use restore::Seals;
pub use restore::{carried_bytes, carried_session, restore};

/// Longest text of a seal, in bytes. Larger ones leave out results, the largest first.
const LIMIT_BYTES: usize = 64 * 1024;
/// Most bytes of all opened continuations of one request. A client may repeat a seal, and a small seal may hold much.
const OPEN_LIMIT_BYTES: u64 = 8 * 1024 * 1024;
/// The first bytes of each seal. Nine, so that its base64 is the same in every seal. The last is the version.
const MAGIC: &[u8; 9] = b"skilletc2";
/// The base64 form of [`MAGIC`], alike in both alphabets.
const MAGIC_TEXT: &str = "c2tpbGxldGMy";
/// The beginning that seals of every version share.
const ANY_MAGIC_TEXT: &str = "c2tpbGxldGM";
/// Characters of a seal up to the size of its continuation: 45 bytes.
const HEAD_CHARACTERS: usize = 60;
/// The text of a thought that carries a seal. Some clients drop a thought without text.
pub(crate) const SEAL_THOUGHT: &str = "Skills ran.";
/// Clients may put this before an id.
const ID_PREFIX: &str = "rs_";
const CODE_BYTES: usize = 32;
/// Bytes of the number that says the size of a continuation. They stand before its compressed text.
const SIZE_BYTES: usize = 4;
/// Domain separation: codes differ from any other code under the same secret.
const PURPOSE: &str = "skillet continuation 1";
const ID_PURPOSE: &str = "skillet stored id 1";

/// The turns that a client does not see, in the provider's own form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    /// Turns of the model and of the results, in order.
    #[serde(rename = "t")]
    pub turns: Vec<Value>,
    /// The provider's id of the client's call that carries the seal. If set, the turns hold the model's last turn too.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The id of the conversation's sessions with MCP servers.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// The key of all gateways of an installation. It is secret, so it has no Debug form.
#[derive(Clone)]
pub struct ContinuationKey(Hmac<Sha256>);

impl ContinuationKey {
    pub(crate) fn from_secret(secret: Hmac<Sha256>) -> Self {
        Self(secret)
    }

    /// Seals `continuation` for callers of `namespace`. Returns none if it is too large even without its results.
    pub fn seal(&self, namespace: &str, dialect: DialectName, continuation: &Continuation) -> Option<Seal> {
        let mut continuation = continuation.clone();
        loop {
            let seal = self.sign(namespace, dialect, &compress(&continuation)?);
            if seal.0.len() <= LIMIT_BYTES {
                return Some(seal);
            }
            leave_out_largest(dialect, &mut continuation.turns)?;
        }
    }

    /// Opens a seal that [`ContinuationKey::seal`] made for the same namespace and dialect. Takes its size from `left`,
    /// the bytes that may still be opened; returns none if it is larger.
    fn open(
        &self,
        namespace: &str,
        dialect: DialectName,
        seal: &str,
        left: &mut u64,
    ) -> Option<Continuation> {
        let bytes = decode(last(seal)?)?;
        let (code, data) = bytes.strip_prefix(MAGIC)?.split_at_checked(CODE_BYTES)?;
        self.code(namespace, dialect, data).verify_slice(code).ok()?;
        let (size, text) = data.split_first_chunk::<SIZE_BYTES>()?;
        let size = u64::from(u32::from_be_bytes(*size));
        *left = left.checked_sub(size)?;
        let mut json = Vec::new();
        DeflateDecoder::new(text).take(size).read_to_end(&mut json).ok()?;
        serde_json::from_slice(&json).ok()
    }

    fn sign(&self, namespace: &str, dialect: DialectName, data: &[u8]) -> Seal {
        let code = self.code(namespace, dialect, data).finalize().into_bytes();
        Seal(URL_SAFE_NO_PAD.encode([MAGIC.as_slice(), code.as_slice(), data].concat()))
    }

    /// The signature of ids of what a provider stores for callers of `namespace`.
    pub fn bind_ids(&self, namespace: &str) -> IdBinding {
        IdBinding::new(self.code_of(&[ID_PURPOSE.as_bytes(), namespace.as_bytes()]))
    }

    fn code(&self, namespace: &str, dialect: DialectName, data: &[u8]) -> Hmac<Sha256> {
        let dialect = format!("{dialect:?}");
        self.code_of(&[PURPOSE.as_bytes(), namespace.as_bytes(), dialect.as_bytes(), data])
    }

    fn code_of(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut code = self.0.clone();
        for part in parts {
            // With its length, so that no part can end where another begins.
            code.update(&(part.len() as u64).to_be_bytes());
            code.update(part);
        }
        code
    }
}

/// A sealed continuation, as text of the characters `A-Z a-z 0-9 _ -`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal(String);

impl Seal {
    /// The text of the seal.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The seal in the standard alphabet of base64, padded: SDKs decode a field of bytes and encode it again.
    pub fn to_bytes_field(&self) -> String {
        let mut text: String = self.0.chars().map(to_standard_alphabet).collect();
        text.extend(std::iter::repeat_n('=', (4 - text.len() % 4) % 4));
        text
    }

    /// The seal as the id of an item. The items of one response have ids of their own: `number` tells them apart.
    pub fn to_item_id(&self, number: u32) -> String {
        match number {
            0 => format!("{ID_PREFIX}{}", self.0),
            _ => format!("{ID_PREFIX}{number}_{}", self.0),
        }
    }
}

/// Puts `seal` into a whole response for the client. With `call_id` it takes the place of this id of a client's call,
/// else it stands before the answer. Returns false, and changes nothing, if the response has no place for it.
pub fn insert(dialect: DialectName, response: &mut Value, seal: &Seal, call_id: Option<&str>) -> bool {
    match (dialect, call_id) {
        (DialectName::Gemini, Some(_)) => gemini::seal_call(response, &seal.to_bytes_field()),
        (_, Some(id)) => replace_strings(response, id, seal.as_str()),
        (dialect, None) => (Format::of(dialect).insert)(response, seal),
    }
}

/// Replaces every string that equals `from`. Returns true if there was one.
fn replace_strings(value: &mut Value, from: &str, to: &str) -> bool {
    match value {
        Value::String(text) if text == from => {
            to.clone_into(text);
            true
        }
        Value::Array(items) => replace_in(items.iter_mut(), from, to),
        Value::Object(fields) => replace_in(fields.values_mut(), from, to),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn replace_in<'a>(values: impl Iterator<Item = &'a mut Value>, from: &str, to: &str) -> bool {
    // Every value is visited, after the first replacement too.
    values.map(|value| replace_strings(value, from, to)).filter(|is_replaced| *is_replaced).count() > 0
}

/// One dialect's places for seals.
struct Format {
    /// The field of a request with the turns of the conversation.
    field: &'static str,
    restore: fn(Vec<Value>, &mut Seals<'_>) -> Vec<Value>,
    /// The contents of the results in a turn.
    results: fn(&mut Value) -> Vec<&mut Value>,
    /// Puts a seal into a whole response that ends in text. Returns false if it has no place.
    insert: fn(&mut Value, &Seal) -> bool,
}

impl Format {
    fn of(dialect: DialectName) -> &'static Self {
        match dialect {
            DialectName::OpenAiChat => &openai_chat::FORMAT,
            DialectName::OpenAiResponses => &openai_responses::FORMAT,
            DialectName::Anthropic => &anthropic::FORMAT,
            DialectName::Gemini => &gemini::FORMAT,
        }
    }
}

/// Returns true if `text` is a seal, of this installation or another.
pub(crate) fn is_seal(text: &str) -> bool {
    strip(text).starts_with(ANY_MAGIC_TEXT)
}

/// A text without the prefix and the number of an item's id.
fn strip(text: &str) -> &str {
    let Some(rest) = text.strip_prefix(ID_PREFIX) else { return text };
    match rest.split_once('_') {
        Some((number, seal)) if number.bytes().all(|byte| byte.is_ascii_digit()) => seal,
        _ => rest,
    }
}

/// The last seal of a text. A client that joins the pieces of a stream may have joined seals; the last holds what the
/// others hold.
fn last(seal: &str) -> Option<&str> {
    seal.get(seal.rfind(MAGIC_TEXT)?..)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let text: String = text.chars().map(to_standard_alphabet).collect();
    STANDARD_NO_PAD.decode(text.trim_end_matches('=')).ok()
}

/// The bytes that the continuation of a seal takes as text.
fn opened_bytes(seal: &str) -> Option<usize> {
    let head = decode(last(seal)?.get(..HEAD_CHARACTERS)?)?;
    let size = head.last_chunk::<SIZE_BYTES>()?;
    usize::try_from(u32::from_be_bytes(*size)).ok()
}

/// The id that a provider gets in the place of a seal that does not open.
pub(crate) fn replacement_id(seal: &str) -> String {
    let digest = format!("{:x}", Sha256::digest(strip(seal).as_bytes()));
    format!("call_{}", digest.get(..24).unwrap_or_default())
}

fn to_standard_alphabet(character: char) -> char {
    match character {
        '-' => '+',
        '_' => '/',
        other => other,
    }
}

fn compress(continuation: &Continuation) -> Option<Vec<u8>> {
    let json = serde_json::to_vec(continuation).ok()?;
    let size = u32::try_from(json.len()).ok()?.to_be_bytes();
    let mut encoder = DeflateEncoder::new(size.to_vec(), Compression::default());
    encoder.write_all(&json).ok()?;
    encoder.finish().ok()
}

/// Replaces the largest result that is still there by a note of its size. None if no result is left to leave out.
fn leave_out_largest(dialect: DialectName, turns: &mut [Value]) -> Option<()> {
    let results = turns.iter_mut().flat_map(Format::of(dialect).results);
    let largest = results.max_by_key(|result| size(result))?;
    let note = json!({"error": {
        "reason": "ResultNotCarried",
        "message": format!("the result of {} bytes is too large to be sent back; call the tool again", size(largest)),
    }});
    // A note in the place of a smaller result would make the seal larger.
    (size(largest) > size(&note)).then_some(())?;
    *largest = if largest.is_object() { note } else { note.to_string().into() };
    Some(())
}

fn size(result: &Value) -> usize {
    match result {
        Value::String(text) => text.len(),
        other => other.to_string().len(),
    }
}
