//! The name server that a program finds at port 53 of any address. Pure: a query in, a response out.
//!
//! It knows the names that the run may connect to, each with one IPv4 address, and no other. It asks nobody.

use super::names::{Lookup, MAX_NAME};

const HEADER: usize = 12;
const TYPE_A: u16 = 1;
const TYPE_ANY: u16 = 255;
const CLASS_IN: u16 = 1;
const CLASS_ANY: u16 = 255;

/// The address holds for the run, so a short time only keeps caches of programs small.
const TIME_TO_LIVE: u32 = 60;

const NO_ERROR: u8 = 0;
const FORMAT_ERROR: u8 = 1;
const SERVER_FAILURE: u8 = 2;
const NO_NAME: u8 = 3;
const NOT_IMPLEMENTED: u8 = 4;

struct Question<'a> {
    name: String,
    kind: u16,
    class: u16,
    /// The question as the program wrote it.
    bytes: &'a [u8],
}

/// Returns the response to `query`, or `None` to what is no query.
pub(crate) fn respond(query: &[u8], mut look_up: impl FnMut(&str) -> Lookup) -> Option<Vec<u8>> {
    let header: &[u8; HEADER] = query.first_chunk()?;
    // A response is no query: two name servers would talk forever.
    if header[2] & 0x80 != 0 {
        return None;
    }
    if header[2] & 0x78 != 0 {
        return Some(response(header, NOT_IMPLEMENTED, &[], None));
    }
    let Some(question) = question(query) else {
        return Some(response(header, FORMAT_ERROR, &[], None));
    };
    if !matches!(question.class, CLASS_IN | CLASS_ANY) {
        return Some(response(header, NO_NAME, question.bytes, None));
    }
    let (code, address) = match look_up(&question.name) {
        Lookup::Address(ip) if matches!(question.kind, TYPE_A | TYPE_ANY) => (NO_ERROR, Some(ip.octets())),
        Lookup::Address(_) => (NO_ERROR, None),
        Lookup::NotAllowed => (NO_NAME, None),
        Lookup::Full => (SERVER_FAILURE, None),
    };
    Some(response(header, code, question.bytes, address))
}

/// Reads the one question of a query.
fn question(query: &[u8]) -> Option<Question<'_>> {
    if query.get(4..6)? != [0, 1] {
        return None;
    }
    let mut name = String::new();
    let mut at = HEADER;
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        // A pointer or a reserved kind of label: no query needs one.
        if length > 63 {
            return None;
        }
        let label = query.get(at..at + length)?;
        at += length;
        if !name.is_empty() {
            name.push('.');
        }
        // A dot within a label would read as a border, and every other odd byte is refused by the rules for names.
        name.extend(label.iter().map(|byte| match byte {
            b'.' => '\0',
            byte => char::from(byte.to_ascii_lowercase()),
        }));
        if name.chars().count() > MAX_NAME {
            return None;
        }
    }
    let number = |at: usize| query.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    Some(Question { name, kind: number(at)?, class: number(at + 2)?, bytes: query.get(HEADER..at + 4)? })
}

fn response(header: &[u8; HEADER], code: u8, question: &[u8], address: Option<[u8; 4]>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + question.len() + 16);
    bytes.extend_from_slice(&header[..2]);
    // A response with authority, recursion as desired; recursion is available.
    bytes.extend([0x84 | header[2] & 0x01, 0x80 | code]);
    let count = |is_there: bool| [0, u8::from(is_there)];
    bytes.extend(count(!question.is_empty()));
    bytes.extend(count(address.is_some()));
    bytes.extend([0; 4]);
    bytes.extend_from_slice(question);
    if let Some(address) = address {
        // The name is that of the question.
        bytes.extend([0xc0, 0x0c]);
        bytes.extend(TYPE_A.to_be_bytes());
        bytes.extend(CLASS_IN.to_be_bytes());
        bytes.extend(TIME_TO_LIVE.to_be_bytes());
        bytes.extend([0, 4]);
        bytes.extend(address);
    }
    bytes
}

#[cfg(test)]
mod tests;
