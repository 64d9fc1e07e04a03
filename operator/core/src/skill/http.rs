//! Validation of `run.http`.

use skillet_api::http::Http;

use super::field_error::FieldErrors;
use crate::{content::Content, http::HttpProgram};

/// Returns `None` only if it added an error.
pub(super) fn read(http: &Http, _content: Content<'_>, errors: &mut FieldErrors) -> Option<HttpProgram> {
    if http.url.is_empty() {
        errors.not_empty("spec.run.http.url", &http.url);
        return None;
    }
    Some(HttpProgram { spec: http.clone() })
}
