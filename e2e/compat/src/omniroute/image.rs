//! `image_normalise`: the image that one of OmniRoute's built-in skills runs. Skillet has no such skills.

use serde_json::{Value, json};
use skillet_core::text::trim;

use crate::{case::Case, judge::Answer};

pub(super) fn replay(case: &Case) -> Result<Answer, String> {
    let value = match normalize_image(case.given("image"), case.text("fallback"), case.text("extraAllowed")) {
        Ok(image) => json!({"ok": true, "image": image}),
        Err(error) => json!({"ok": false, "error": error}),
    };
    Ok(Answer::by_fields(case, value, &["ok", "image"]))
}

/// Images that OmniRoute's built-in skills may always run.
const BUILTIN_IMAGES: [&str; 3] = ["alpine:3.20", "node:22-alpine", "python:3.12-alpine"];

/// Returns the image of a built-in skill: the given text, trimmed, else `fallback`.
///
/// `extra_allowed` is a comma list beside [`BUILTIN_IMAGES`]. Both are compared exactly, without prefixes, tags or digests.
fn normalize_image(image: Option<&Value>, fallback: &str, extra_allowed: &str) -> Result<String, String> {
    let given = image.and_then(Value::as_str).map(trim).filter(|text| !text.is_empty());
    let image = given.unwrap_or(fallback);
    let is_extra = || extra_allowed.split(',').map(trim).any(|extra| extra == image && !extra.is_empty());
    if BUILTIN_IMAGES.contains(&image) || is_extra() {
        Ok(image.to_owned())
    } else {
        Err(format!("Sandbox image is not allowed: {image}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(image: &str) -> String {
        format!("Sandbox image is not allowed: {image}")
    }

    #[test]
    fn a_builtin_skill_runs_the_given_image_if_it_is_listed() {
        let check = |image: Value, extra: &str| normalize_image(Some(&image), "alpine:3.20", extra);
        assert_eq!(check(json!(" node:22-alpine "), "").unwrap(), "node:22-alpine");
        assert_eq!(check(json!("own:1"), "other:2, own:1 ,").unwrap(), "own:1");
        assert_eq!(check(json!("own:2"), "own:1").unwrap_err(), "Sandbox image is not allowed: own:2");
        assert_eq!(check(json!("own/x:1"), "own/*").unwrap_err(), refused("own/x:1"));
        assert_eq!(check(json!("Alpine:3.20"), "").unwrap_err(), refused("Alpine:3.20"));
        let digest = format!("alpine:3.20@sha256:{}", "0".repeat(64));
        assert_eq!(check(json!(digest), "").unwrap_err(), refused(&digest));
    }

    #[test]
    fn a_builtin_skill_without_an_image_runs_its_fallback() {
        for image in [json!(null), json!(""), json!("  "), json!(5), json!(["node:22-alpine"]), json!({})] {
            assert_eq!(normalize_image(Some(&image), "alpine:3.20", "").unwrap(), "alpine:3.20");
        }
        assert_eq!(normalize_image(None, "python:3.12-alpine", "").unwrap(), "python:3.12-alpine");
        assert_eq!(normalize_image(None, "own:1", ",").unwrap_err(), refused("own:1"));
    }
}
