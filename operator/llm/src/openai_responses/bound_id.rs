//! Ids of what the provider stores, bound to one namespace. With a key that tenants share, a bare id reaches the object of
//! any tenant.
//!
//! Each id that a client gets ends with a tag, a signature of the id and the namespace. A client returns ids unchanged;
//! the tag is removed before the provider gets them. An id without a valid tag is not the namespace's.

use std::collections::HashSet;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac as _};
use serde_json::Value;
use sha2::Sha256;

/// The first characters of a tag.
const MARK: &str = "_sk1";
/// Bytes of the signature: 20 characters.
const CODE_BYTES: usize = 15;
const TAG_LENGTH: usize = MARK.len() + CODE_BYTES / 3 * 4;
/// Longer texts are no ids of the provider: its own have 64 characters or fewer.
const LONGEST_ID: usize = 128;
/// Fields whose value is the id of a response, a conversation or an item.
const ID_FIELDS: [&[u8]; 6] =
    [b"id", b"item_id", b"response_id", b"previous_response_id", b"first_id", b"last_id"];
/// Fields of the client's own data, which the provider returns as they are.
const CLIENT_FIELDS: [&[u8]; 3] = [b"metadata", b"tools", b"schema"];
/// Lists of items in a request.
pub const ITEM_LISTS: [&str; 2] = ["input", "items"];

/// Signs the ids of one namespace. It holds a secret, so it has no Debug form.
#[derive(Clone)]
pub struct IdBinding(Hmac<Sha256>);

/// The ids of a request whose tags were valid, without the tags.
#[derive(Debug, Default)]
pub struct BoundIds {
    ids: HashSet<String>,
    /// True if a tag was removed, valid or not.
    pub is_changed: bool,
}

impl BoundIds {
    /// Returns true if the namespace got this id from the gateway.
    pub fn contains(&self, id: &str) -> bool {
        self.ids.contains(id)
    }
}

impl IdBinding {
    /// `code` is the key after the purpose and the namespace were added.
    pub(crate) fn new(code: Hmac<Sha256>) -> Self {
        Self(code)
    }

    /// The tag of an id.
    fn tag(&self, id: &[u8]) -> String {
        let mut code = self.0.clone();
        code.update(id);
        let code = code.finalize().into_bytes();
        format!("{MARK}{}", URL_SAFE_NO_PAD.encode(code.get(..CODE_BYTES).unwrap_or_default()))
    }

    /// Returns an id without its tag, and true if the tag is valid. `None` if it has no tag.
    fn split<'a>(&self, tagged: &'a str) -> Option<(&'a str, bool)> {
        let (id, tag) = tagged.split_at_checked(tagged.len().checked_sub(TAG_LENGTH)?)?;
        let code = URL_SAFE_NO_PAD.decode(tag.strip_prefix(MARK)?).ok()?;
        let mut expected = self.0.clone();
        expected.update(id.as_bytes());
        Some((id, expected.verify_truncated_left(&code).is_ok()))
    }

    /// Removes the tags of a request's ids: of the history before it, and of its items.
    pub fn unbind(&self, request: &mut Value) -> BoundIds {
        let mut bound = BoundIds::default();
        for pointer in ["/previous_response_id", "/conversation", "/conversation/id"] {
            self.unbind_id(request, pointer, &mut bound);
        }
        for list in ITEM_LISTS {
            let items = request.get_mut(list).and_then(Value::as_array_mut);
            for item in items.into_iter().flatten() {
                self.unbind_id(item, "/id", &mut bound);
            }
        }
        bound
    }

    fn unbind_id(&self, value: &mut Value, pointer: &str, bound: &mut BoundIds) {
        let Some(Value::String(id)) = value.pointer_mut(pointer) else { return };
        let Some((bare, is_valid)) = self.split(id) else { return };
        let length = bare.len();
        id.truncate(length);
        bound.is_changed = true;
        if is_valid {
            bound.ids.insert(id.clone());
        }
    }

    /// Removes the tags of the ids in a path and its query.
    pub fn unbind_path(&self, path: &str) -> (String, BoundIds) {
        let (mut out, mut bound) = (String::new(), BoundIds::default());
        for part in path.split_inclusive(['/', '?', '&', '=']) {
            let (text, end) = match part.char_indices().next_back() {
                Some((at, '/' | '?' | '&' | '=')) => part.split_at(at),
                _ => (part, ""),
            };
            let mut id = Value::String(text.to_owned());
            self.unbind_id(&mut id, "", &mut bound);
            out.push_str(id.as_str().unwrap_or_default());
            out.push_str(end);
        }
        (out, bound)
    }

    /// Returns a writer of tags for one response, whole or streamed.
    pub fn tagger(self) -> IdTagger {
        IdTagger { binding: self, text: JsonText::default() }
    }
}

/// Adds tags to the ids of a response, as its bytes come. It reads no more of JSON than its strings and depth.
pub struct IdTagger {
    binding: IdBinding,
    text: JsonText,
}

/// The position in a JSON text.
#[derive(Default)]
struct JsonText {
    is_in_string: bool,
    is_escaped: bool,
    /// The last string, as far as it can be an id or the name of a field.
    string: Vec<u8>,
    /// The field whose value comes next.
    field: Field,
    depth: u32,
    /// The depth of the field of the client's own data that is being read.
    client_data: Option<u32>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Field {
    /// No field: a name or an element of an array comes next.
    #[default]
    None,
    Id,
    ClientData,
    Other,
}

impl IdTagger {
    /// Writes the next bytes of a response to `out`, with tags.
    pub fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for byte in bytes {
            if self.text.ends_id(*byte) {
                out.extend_from_slice(self.binding.tag(&self.text.string).as_bytes());
            }
            out.push(*byte);
            self.text.read(*byte);
        }
    }
}

impl JsonText {
    /// Returns true if `byte` ends the value of a field of ids.
    fn ends_id(&self, byte: u8) -> bool {
        byte == b'"'
            && self.is_in_string
            && self.field == Field::Id
            && self.client_data.is_none()
            && is_id(&self.string)
    }

    fn read(&mut self, byte: u8) {
        match byte {
            // No string of JSON has a line feed: this is a comment of the event stream, or no JSON.
            b'\n' => (self.is_in_string, self.is_escaped) = (false, false),
            _ if self.is_in_string => self.read_in_string(byte),
            b'"' => {
                self.is_in_string = true;
                self.string.clear();
            }
            b':' => {
                self.field = field(&self.string);
                self.string.clear();
            }
            b'{' | b'[' => {
                if self.field == Field::ClientData && self.client_data.is_none() {
                    self.client_data = Some(self.depth);
                }
                self.depth += 1;
                self.field = Field::None;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.client_data == Some(self.depth) {
                    self.client_data = None;
                }
                self.field = Field::None;
            }
            b',' => self.field = Field::None,
            _ => {}
        }
    }

    fn read_in_string(&mut self, byte: u8) {
        match byte {
            b'"' if !self.is_escaped => self.is_in_string = false,
            _ => {
                self.is_escaped = byte == b'\\' && !self.is_escaped;
                // One more than the longest, so that a longer text is no id.
                if self.string.len() <= LONGEST_ID {
                    self.string.push(byte);
                }
            }
        }
    }
}

fn field(name: &[u8]) -> Field {
    if ID_FIELDS.contains(&name) {
        Field::Id
    } else if CLIENT_FIELDS.contains(&name) {
        Field::ClientData
    } else {
        Field::Other
    }
}

/// Returns true for an id such as `resp_0a1b`: a word, an underscore, and more.
fn is_id(text: &[u8]) -> bool {
    let word = text.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    let is_rest = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (2..=12).contains(&word)
        && text.len() <= LONGEST_ID
        && text.get(word) == Some(&b'_')
        && text.get(word + 1..).is_some_and(|rest| !rest.is_empty() && rest.iter().all(is_rest))
}

#[cfg(test)]
mod tests;
