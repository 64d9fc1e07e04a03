//! An estimate of the memory that a JSON text takes once it is parsed, from the text alone.
//!
//! The figures are for `serde_json::Value` on 64 bits. A value takes 32 bytes. A list begins with space for four values
//! and doubles. A map is a B-tree whose smallest node has space for eleven entries. Each string is an allocation of its
//! own. The figures are rounded up, and a test of a whole process's memory checks them.

/// A map with one node.
const OBJECT: usize = 672;
/// A list of up to four values.
const LIST: usize = 176;
/// An entry of a map, beside its comma: nodes of large maps are half empty.
const ENTRY: usize = 24;
/// A further value in a list or a map: lists are up to half empty.
const FURTHER: usize = 64;
/// A string or a key, beside its bytes.
const TEXT: usize = 40;

/// Returns the bytes that the parsed text takes. For a text that is no JSON the figure has no meaning.
pub fn parsed_size(text: &[u8]) -> usize {
    let mut bytes = text.iter();
    let mut cost = text.len();
    while let Some(byte) = bytes.next() {
        cost += match byte {
            b'{' if bytes.as_slice().first() != Some(&b'}') => OBJECT,
            b'[' if bytes.as_slice().first() != Some(&b']') => LIST,
            b':' => ENTRY,
            b',' => FURTHER,
            b'"' => {
                skip_string(&mut bytes);
                TEXT
            }
            _ => 0,
        };
    }
    cost
}

/// Skips a string, whose characters are no values.
fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_maps_and_lists_take_far_more_than_their_text() {
        for (text, least) in [("{\"\":0}", 690), ("[0]", 170), ("\"a\"", 32), ("0", 0)] {
            assert!(parsed_size(text.as_bytes()) >= least, "{text}");
        }
    }

    #[test]
    fn the_characters_of_a_string_count_as_bytes_only() {
        let text = |inside: &str| parsed_size(format!("\"{inside}\"").as_bytes());
        assert_eq!(text("{[,:{[,:"), text("aaaaaaaa"));
        assert_eq!(text(r#"\"{{{{\\"#), text("aaaaaaaa"), "an escaped quote does not end it");
        assert_eq!(parsed_size(b"\"a\",{}"), parsed_size(b"\"a\"") + parsed_size(b",") + parsed_size(b"{}"));
        assert_eq!(parsed_size(b"\"a\\"), 3 + TEXT, "the string does not end");
        assert_eq!((parsed_size(b"{}"), parsed_size(b"[]")), (2, 2), "empty values allocate nothing");
    }
}
