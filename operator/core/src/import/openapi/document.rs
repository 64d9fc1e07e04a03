//! References inside of a document.

use serde_json::Value;

/// Most references that lead from one to the next.
const MAX_CHAIN: usize = 16;

/// The whole document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Document<'a> {
    pub(super) root: &'a Value,
}

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root }
    }

    /// Follows `$ref` until there is none.
    pub(super) fn resolve(self, value: &'a Value) -> Result<&'a Value, String> {
        let mut value = value;
        for _ in 0..MAX_CHAIN {
            match value["$ref"].as_str() {
                None => return Ok(value),
                Some(reference) => value = self.find(reference)?,
            }
        }
        Err("references lead in a circle".to_owned())
    }

    /// Returns the part that a reference names.
    pub(super) fn find(self, reference: &str) -> Result<&'a Value, String> {
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(format!("{reference} is outside of the document; bundle the document into one file"));
        };
        let pointer = percent_decoded(pointer);
        self.root.pointer(&pointer).ok_or_else(|| format!("{reference} names nothing in the document"))
    }
}

fn percent_decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let hex =
            after.get(..2).filter(|_found| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed_inside_of_the_document() {
        let root = json!({"a": {"$ref": "#/b/c~1d%20e"}, "b": {"c/d e": {"x": 1}, "loop": {"$ref": "#/b/loop"}},
            "out": {"$ref": "other.yaml#/x"}, "gone": {"$ref": "#/gone/x"}});
        let document = Document::new(&root);
        assert_eq!(document.resolve(&root["a"]), Ok(&json!({"x": 1})));
        assert!(document.resolve(&root["b"]["loop"]).unwrap_err().contains("in a circle"));
        assert!(document.resolve(&root["out"]).unwrap_err().contains("outside of the document"));
        assert!(document.resolve(&root["gone"]).unwrap_err().contains("names nothing"));
    }
}
