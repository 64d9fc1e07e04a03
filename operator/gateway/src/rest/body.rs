//! A JSON body: bounded in size and time, and refused with the field that is at fault.

use axum::extract::{FromRequest, Request};
use http::StatusCode;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_path_to_error::{Path, Segment};
use skillet_api::Reason;
use skillet_core::exact_json::find_inexact;

use crate::{
    error::ApiError,
    memory::{BodyBudget, MemoryReservation},
    service::SkillService,
};

/// Most bytes of a body; a SkillExecution of more the cluster would not keep. An input is held in the request and in the
/// execution that is made.
pub(crate) const BODY_BUDGET: BodyBudget =
    BodyBudget { max_bytes: 1 << 20, text_copies: 2, parsed_copies: 2 };

/// The body of a request, read as JSON whatever its content type says, and what it takes of the memory for all.
pub(crate) struct Body<T>(pub(crate) T, pub(crate) MemoryReservation);

impl<T: DeserializeOwned> FromRequest<SkillService> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, service: &SkillService) -> Result<Self, ApiError> {
        let (head, body) = request.into_parts();
        let caller = service.authenticate(&head.headers).await?;
        let (bytes, memory) = service.memory.read(&caller.namespace, body, BODY_BUDGET).await?;
        let body = read(&bytes)?;
        refuse_inexact(&bytes)?;
        Ok(Self(body, memory))
    }
}

/// Refuses JSON that Kubernetes would change.
fn refuse_inexact(bytes: &[u8]) -> Result<(), ApiError> {
    match std::str::from_utf8(bytes).ok().and_then(find_inexact) {
        None => Ok(()),
        Some(inexact) => {
            let message = inexact.to_string();
            let code = Reason::InputInvalid.as_str();
            Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, code, message).at(inexact.pointer))
        }
    }
}

/// A JSON object that is all of `bytes`.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // A list would be read as the fields in their order, which nobody means.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(ApiError::bad_request("the body does not fit the schema: it must be a JSON object"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let pointer = pointer(error.path());
        let inner = error.into_inner();
        let inner_text = inner.to_string();
        // The place in the text says less than the pointer.
        let words =
            inner_text.rsplit_once(" at line ").map_or(&*inner_text, |(words, _)| words).replace('`', "");
        // serde_json reports a number or a boolean in the place of a word as a fault of the text.
        let is_other_type = words == "expected value" && serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
        let words = if is_other_type { "a value of another type is expected" } else { &*words };
        let is_data = inner.is_data() || is_other_type;
        if is_data && !pointer.is_empty() {
            ApiError::bad_request(format!("the body does not fit the schema: {words}")).at(pointer)
        } else if is_data {
            ApiError::bad_request(format!("the body does not fit the schema: {words}"))
        } else {
            ApiError::bad_request(format!("the body is not JSON: {inner}"))
        }
    })?;
    json.end().map_err(|error| ApiError::bad_request(format!("the body is not JSON: {error}")))?;
    Ok(read)
}

fn pointer(path: &Path) -> String {
    let text = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
        Segment::Enum { .. } | Segment::Unknown => String::new(),
    };
    path.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        count: u8,
        #[serde(default)]
        names: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Off,
    }

    #[test]
    fn a_boolean_in_the_place_of_a_word_is_no_fault_of_the_json() {
        #[derive(Debug, Deserialize)]
        struct Switch {
            mode: Word,
        }
        assert!(matches!(read::<Switch>(br#"{"mode": "off"}"#).unwrap().mode, Word::Off));
        let error = read::<Switch>(br#"{"mode": false}"#).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("/mode"));
        assert!(error.message.contains("a value of another type is expected"), "{}", error.message);
    }

    fn refused(body: &[u8]) -> (String, Option<String>) {
        let error = read::<Asked>(body).unwrap_err();
        assert_eq!(error.status, StatusCode::BAD_REQUEST);
        (error.message, error.field)
    }

    #[test]
    fn a_body_is_read_to_its_end() {
        assert_eq!(read::<Asked>(br#" {"count": 3} "#).unwrap(), Asked { count: 3, names: Vec::new() });
        assert!(refused(br#"{"count": 3} {}"#).0.starts_with("the body is not JSON"));
    }

    #[test]
    fn the_field_at_fault_is_named() {
        for (body, field) in [
            (r#"{"count": "x"}"#, Some("/count")),
            (r#"{"count": 1, "names": ["a", 2]}"#, Some("/names/1")),
            (r#"{"count": 1, "a/b": 2}"#, Some("/a~1b")),
            ("{}", None),
            ("[]", None),
            (" [3, []]", None),
        ] {
            let (message, found) = refused(body.as_bytes());
            assert_eq!(found.as_deref(), field, "{body}");
            assert!(message.starts_with("the body does not fit the schema"), "{message}");
        }
    }

    #[test]
    fn json_that_kubernetes_would_change_is_refused_with_its_pointer() {
        let error = refuse_inexact(br#"{"input": {"n": [1, 12345678901234567890]}}"#).unwrap_err();
        assert_eq!((error.status.as_u16(), error.code.as_str()), (422, "InputInvalid"));
        assert_eq!(error.field.as_deref(), Some("/input/n/1"));
        assert!(refuse_inexact(br#"{"input": 1}"#).is_ok());
    }

    #[test]
    fn what_is_no_json_is_no_field_at_fault() {
        for body in [&b""[..], b"{", b"\xff", br#"{"count": 1"#] {
            let (message, field) = refused(body);
            assert!(message.starts_with("the body is not JSON"), "{message}");
            assert_eq!(field, None);
        }
    }
}
