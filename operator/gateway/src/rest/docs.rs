//! The description of these routes, and a page to read it and try it on. Neither needs a token: they say nothing of
//! the cluster.

use std::sync::LazyLock;

use axum::response::{Html, IntoResponse, Response};
use http::{HeaderValue, header};

use crate::rest::openapi;

static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi::document().to_json().unwrap_or_default());

/// The page loads nothing from anywhere and talks to this gateway alone.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

pub(crate) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

pub(crate) async fn page() -> Response {
    let mut response = Html(include_str!("docs.html")).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

#[cfg(test)]
mod tests;
