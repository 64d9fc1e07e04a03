//! What a JSON text takes as a parsed document, told from the text before it is parsed.
//!
//! The figures are for `serde_json::Value` on 64 bits: a value is 32 bytes; a list begins with room for four and
//! doubles; a map is a B-tree whose smallest node has room for eleven entries; each text is an allocation of its own.
//! They are rounded up, and a test of the whole process's memory holds them to the truth.

/// A map with one node, however few entries are in it.
const OBJECT: usize = 672;
/// A list of up to four values.
const LIST: usize = 176;
/// An entry of a map, beside what stands for the comma: nodes of large maps are half empty.
const ENTRY: usize = 24;
/// A further value in a list or a map: lists are up to half empty.
const FURTHER: usize = 64;
/// A text or a key beside its bytes.
const TEXT: usize = 40;

/// Bytes of the document that the text is parsed to. Of a text that is no JSON it means nothing.
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
                pass_text(&mut bytes);
                TEXT
            }
            _ => 0,
        };
    }
    cost
}

/// What stands in a text is no value.
fn pass_text(bytes: &mut std::slice::Iter<'_, u8>) {
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
    fn what_stands_in_a_text_counts_as_its_bytes_only() {
        let text = |inside: &str| parsed_size(format!("\"{inside}\"").as_bytes());
        assert_eq!(text("{[,:{[,:"), text("aaaaaaaa"));
        assert_eq!(text(r#"\"{{{{\\"#), text("aaaaaaaa"), "an escaped quote does not end it");
        assert_eq!(parsed_size(b"\"a\",{}"), parsed_size(b"\"a\"") + parsed_size(b",") + parsed_size(b"{}"));
        assert_eq!(parsed_size(b"\"a\\"), 3 + TEXT, "it breaks off");
        assert_eq!((parsed_size(b"{}"), parsed_size(b"[]")), (2, 2), "what is empty allocates nothing");
    }
}
