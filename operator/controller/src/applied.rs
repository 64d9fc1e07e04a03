//! Server-side apply of a status, whatever its texts hold.
//!
//! The API server reads the body as YAML. JSON is YAML with exceptions, and what programs print finds them: YAML refuses some
//! control characters, folds some line ends, and takes a key for one only up to 1024 characters. So the body is written as
//! the YAML that is read as the same everywhere.

use std::io;

use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
    core::Request,
};
use serde::{Serialize, de::IgnoredAny};
use serde_json::ser::{Formatter, Serializer};
use skillet_api::names;

/// Applies `object`, of which only the status counts, as the operator's own.
pub async fn apply_status<K: Resource>(
    client: &Client,
    api: &Api<K>,
    name: &str,
    object: &impl Serialize,
) -> Result<(), kube::Error> {
    let params = PatchParams::apply(names::FIELD_MANAGER).force();
    let request = Request::new(api.resource_url()).patch_subresource(
        "status",
        name,
        &params,
        &Patch::Apply(&serde_json::Value::Null),
    );
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    *request.body_mut() = yaml(object).map_err(kube::Error::SerdeError)?;
    client.request::<IgnoredAny>(request).await.map(drop)
}

fn yaml(object: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut body = Vec::new();
    object.serialize(&mut Serializer::with_formatter(&mut body, PlainYaml))?;
    Ok(body)
}

/// JSON with marked keys, and with escapes for what YAML would misread.
struct PlainYaml;

impl Formatter for PlainYaml {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for part in fragment.split_inclusive(is_misread) {
            match (part.strip_suffix(is_misread), part.chars().next_back()) {
                (Some(plain), Some(last)) => {
                    writer.write_all(plain.as_bytes())?;
                    write!(writer, "\\u{:04x}", u32::from(last))?;
                }
                (None, _) | (_, None) => writer.write_all(part.as_bytes())?,
            }
        }
        Ok(())
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        writer.write_all(if is_first { b"? " } else { b", ? " })
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" : ")
    }
}

/// Control characters after ASCII's own, line ends that are folded, the byte order mark, and what is no character.
fn is_misread(character: char) -> bool {
    matches!(character, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_yaml_would_misread_is_escaped_and_keys_are_marked() {
        let text = |value: &serde_json::Value| String::from_utf8(yaml(value).unwrap()).unwrap();
        assert_eq!(text(&json!({"a": 1, "b": {}})), r#"{? "a" : 1, ? "b" : {}}"#);
        assert_eq!(text(&json!("a\u{7f}\u{85}b\u{feff}")), r#""a\u007f\u0085b\ufeff""#);
        let plain = "größer, 日本, 🙂 \u{a0}\u{fffd}";
        assert_eq!(text(&json!(plain)), format!("\"{plain}\""));
    }

    #[test]
    fn every_character_is_read_as_it_was() {
        let all: String = (0..=0x1_ffff).filter_map(char::from_u32).collect();
        let value = json!({ "all": all });
        let body = String::from_utf8(yaml(&value).unwrap()).unwrap();
        assert_eq!(serde_saphyr::from_str::<serde_json::Value>(&body).unwrap(), value);
    }
}
