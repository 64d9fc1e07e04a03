//! Writes a status by server-side apply, whatever characters its texts hold.
//!
//! Readers of YAML refuse a document with a control character, so that one status would keep `kubectl get -o yaml` from showing
//! a whole namespace. U+FFFD replaces such characters.
//!
//! The API server reads the body as YAML. JSON is YAML with exceptions, and what programs print contains them: YAML
//! refuses some control characters, folds some line ends, and accepts keys of at most 1024 characters. The body is
//! therefore written in the part of YAML that every reader reads alike.

use std::{borrow::Cow, io};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::{
    Client, Resource,
    api::{Patch, PatchParams},
    core::{Request, Status},
};
use serde::{Serialize, de::IgnoredAny};
use serde_json::{
    json,
    ser::{Formatter, Serializer},
};
use skillet_api::names;

/// Applies the status of an object of kind `K` as the operator's own.
///
/// An object that was deleted, or created again under the same name, is refused with 404, 409 or 422.
pub async fn apply_status<K: Resource<DynamicType = ()>>(
    client: &Client,
    object: &ObjectReference,
    status: &impl Serialize,
) -> Result<(), kube::Error> {
    apply_status_as::<K>(client, names::FIELD_MANAGER, object, status).await
}

/// Applies the status of an object as the own of a field manager, as [`apply_status`] does.
pub async fn apply_status_as<K: Resource<DynamicType = ()>>(
    client: &Client,
    manager: &str,
    object: &ObjectReference,
    status: &impl Serialize,
) -> Result<(), kube::Error> {
    let ObjectReference { namespace, name, uid, .. } = object;
    let patch = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": { "name": name, "uid": uid },
        "status": status,
    });
    let params = PatchParams::apply(manager).force();
    let name = name.as_deref().unwrap_or_default();
    let request = Request::new(K::url_path(&(), namespace.as_deref()));
    let request = request.patch_subresource("status", name, &params, &Patch::Apply(&serde_json::Value::Null));
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    *request.body_mut() = yaml(&patch).map_err(kube::Error::SerdeError)?;
    client.request::<IgnoredAny>(request).await.map(drop)
}

/// Tells from the response to a status whether the object was deleted, also if it was created again under the same name.
/// Another conflict is contention, and passes. An object's name may contain `uid`, so only the server's own words count.
pub fn is_gone(response: &Status) -> bool {
    match response.code {
        404 => true,
        409 => {
            ["Precondition failed: UID", "uid mismatch: "].iter().any(|text| response.message.contains(text))
        }
        422 => {
            let causes = response.details.iter().flat_map(|details| &details.causes);
            causes.into_iter().any(|cause| cause.field == "metadata.uid")
        }
        _ => false,
    }
}

/// Tells from the response to a status that the object's own content is not of the types of its definition, as after it was
/// stored under an older one. The API server takes no status of such an object.
pub fn is_of_other_types(response: &Status) -> bool {
    response.code == 500 && response.message.contains("failed to create typed live object")
}

/// Builds the conditions of one object's new status.
pub struct Conditions<'a> {
    /// The conditions that the object has.
    pub old: &'a [Condition],
    pub generation: Option<i64>,
    pub now: Timestamp,
}

impl Conditions<'_> {
    /// Returns a condition. It keeps its transition time if the object has it with the same status.
    pub fn build(&self, type_: &str, status: &str, reason: &str, message: &str) -> Condition {
        let before = find_condition(self.old, type_).filter(|condition| condition.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: self.generation,
            last_transition_time: before
                .map_or(Time(self.now), |condition| condition.last_transition_time.clone()),
        }
    }
}

/// Returns the condition of a type.
pub fn find_condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

fn yaml(object: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut body = Vec::new();
    object.serialize(&mut Serializer::with_formatter(&mut body, PlainYaml))?;
    Ok(body)
}

/// Replaces the characters with which YAML cannot be read by U+FFFD.
pub fn replace_unprintable(text: &str) -> Cow<'_, str> {
    if text.contains(is_unprintable) {
        Cow::Owned(text.replace(is_unprintable, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Tells if YAML refuses a character that JSON takes unescaped: DEL, C1 controls other than NEL, and noncharacters.
fn is_unprintable(character: char) -> bool {
    matches!(character, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
}

/// Writes JSON with marked keys. Replaces the characters that YAML refuses, and escapes those that it misreads.
struct PlainYaml;

impl Formatter for PlainYaml {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for part in replace_unprintable(fragment).split_inclusive(is_misread) {
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

/// Tells if YAML misreads a character that it takes: folded line ends and the byte order mark.
fn is_misread(character: char) -> bool {
    matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn characters_that_yaml_misreads_are_escaped_or_replaced_and_keys_are_marked() {
        let text = |value: &serde_json::Value| String::from_utf8(yaml(value).unwrap()).unwrap();
        assert_eq!(text(&json!({"a": 1, "b": {}})), r#"{? "a" : 1, ? "b" : {}}"#);
        assert_eq!(text(&json!("a\u{7f}\u{85}b\u{feff}")), "\"a\u{fffd}\\u0085b\\ufeff\"");
        let plain = "größer, 日本, 🙂 \u{a0}\u{fffd}";
        assert_eq!(text(&json!(plain)), format!("\"{plain}\""));
    }

    #[test]
    fn only_a_response_about_the_uid_says_that_the_object_is_gone() {
        let check = |code: u16, message: &str, causes: &serde_json::Value| {
            let response = json!({ "code": code, "message": message, "details": { "causes": causes } });
            is_gone(&serde_json::from_value(response).unwrap())
        };
        let conflict = r#"Operation cannot be fulfilled on skillexecutions.skillet.dev "uuid-7": "#;
        assert!(check(404, "not found", &json!([])));
        assert!(check(
            409,
            &format!("{conflict}Precondition failed: UID in precondition: a, UID in object meta: b"),
            &json!([])
        ));
        assert!(check(
            409,
            &format!(
                "{conflict}uid mismatch: the provided object specified uid a, and no existing object was found"
            ),
            &json!([])
        ));
        assert!(check(
            422,
            "invalid",
            &json!([{ "field": "metadata.uid", "message": "field is immutable" }])
        ));
        assert!(!check(409, &format!("{conflict}the object has been modified"), &json!([])));
        assert!(!check(422, r#"SkillExecution "druid-1" is invalid"#, &json!([{ "field": "status.phase" }])));
        assert!(!check(500, "uid mismatch: ", &json!([])));
    }

    #[test]
    fn only_content_of_other_types_keeps_a_status_from_being_applied() {
        let check = |code: u16, message: &str| {
            is_of_other_types(&serde_json::from_value(json!({ "code": code, "message": message })).unwrap())
        };
        let message = "failed to create typed live object (team/e; skillet.dev/v1alpha1, Kind=SkillExecution): .spec.timeout: expected string, got &value.valueUnstructured{Value:10}: ";
        assert!(check(500, message));
        assert!(!check(422, message));
        assert!(!check(500, "etcdserver: request timed out"));
    }

    #[test]
    fn yaml_reads_every_other_character_as_it_was_written() {
        let all: String = (0..=0x1_ffff).filter_map(char::from_u32).collect();
        let body = String::from_utf8(yaml(&json!({ "all": all })).unwrap()).unwrap();
        let read: serde_json::Value = serde_saphyr::from_str(&body).unwrap();
        let text = read["all"].as_str().unwrap();
        assert_eq!(text.chars().count(), all.chars().count());
        // The characters of the YAML specification, c-printable, and the controls that JSON escapes.
        let is_taken = |c: char| matches!(c, '\0'..='\u{7e}' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        for (written, read) in all.chars().zip(text.chars()) {
            assert_eq!(read, if is_taken(written) { written } else { '\u{fffd}' }, "{written:?}");
        }
    }
}
