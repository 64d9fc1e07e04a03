//! `image_normalise`: the image that a built-in skill runs.

use serde_json::json;
use skillet_core::image::normalise_image;

use crate::{case::Case, judge::Answer};

pub(super) fn image_normalise(case: &Case) -> Result<Answer, String> {
    let value = match normalise_image(case.given("image"), case.text("fallback"), case.text("extraAllowed")) {
        Ok(image) => json!({"ok": true, "image": image}),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    };
    Ok(Answer::by_fields(case, value, &["ok", "image"]))
}
