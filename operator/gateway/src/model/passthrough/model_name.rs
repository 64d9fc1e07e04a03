//! The model of a passed request: in its path (Gemini) or in its JSON body. No I/O.

use http::{HeaderMap, header::CONTENT_TYPE};
use serde::Deserialize;
use skillet_llm::DialectName;

/// The fields of a body that are read.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    model: String,
}

/// Returns the model that Gemini's paths name.
pub(super) fn in_path(dialect: DialectName, path: &str) -> Option<&str> {
    let rest = match dialect {
        DialectName::Gemini => path.split_once("/models/")?.1,
        DialectName::OpenAiChat | DialectName::OpenAiResponses | DialectName::Anthropic => return None,
    };
    rest.split(['/', ':']).next()
}

/// Returns the model of a JSON body, empty if it names none.
pub(super) fn in_body(body: &[u8]) -> String {
    serde_json::from_slice::<Named>(body).map(|named| named.model).unwrap_or_default()
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_read_from_path_or_body() {
        for (path, expected) in [
            ("/v1beta/models/gemini-x:countTokens", Some("gemini-x")),
            ("/v1beta/models/gemini-x", Some("gemini-x")),
            ("/v1beta/models/veo/operations/1", Some("veo")),
            ("/v1beta/models", None),
            ("/v1beta/files/x", None),
        ] {
            assert_eq!(in_path(DialectName::Gemini, path), expected, "{path}");
        }
        assert_eq!(in_path(DialectName::OpenAiChat, "/v1/models/x"), None);
        for (body, expected) in
            [(r#"{"a": [1], "model": "m"}"#, "m"), ("{}", ""), ("[", ""), (r#"{"model": 1}"#, "")]
        {
            assert_eq!(in_body(body.as_bytes()), expected, "{body}");
        }
    }
}
