//! Paths of the providers that have nothing to do with skills: they pass as they are, streamed both ways.
//!
//! The caller is authenticated and its token removed as on every other route. What a provider keeps (files, batches,
//! conversations, stored responses) is reached with a client's own key only: the platform's key would reach the objects
//! of every tenant.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
    routing::any,
};
use http::{HeaderMap, Method, header::CONTENT_TYPE};
use skillet_llm::DialectName;

use super::{ModelState, upstream::response_headers};
use crate::error::ApiError;

/// Path families of which a provider keeps nothing.
const STATELESS: [&str; 6] =
    ["/v1/audio", "/v1/completions", "/v1/embeddings", "/v1/images", "/v1/models", "/v1/moderations"];
/// Path families of what a provider keeps.
const STORED: [&str; 5] = ["/v1/batches", "/v1/conversations", "/v1/files", "/v1/responses", "/v1/uploads"];
const GEMINI: [&str; 3] = ["/upload/v1beta/{*rest}", "/v1alpha/{*rest}", "/v1beta/{*rest}"];
/// A header of each request of Anthropic's SDKs, which share paths with OpenAI's.
const ANTHROPIC_VERSION: &str = "anthropic-version";

/// The routes.
pub(super) fn routes() -> Router<ModelState> {
    let mut routes = Router::new().route("/v1/messages/{*rest}", any(pass));
    for family in STATELESS.into_iter().chain(STORED) {
        // The model routes have some of these already.
        if !matches!(family, "/v1/responses") {
            routes = routes.route(family, any(pass));
        }
        if family != "/v1/models" {
            routes = routes.route(&format!("{family}/{{*rest}}"), any(pass));
        }
    }
    GEMINI.into_iter().fold(routes, |routes, family| routes.route(family, any(pass)))
}

/// Passes a request on, and its response back.
pub(super) async fn pass(State(gateway): State<ModelState>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let authenticated = gateway.auth.authenticate(&parts.headers, parts.uri.query()).await?;
    let mut headers = parts.headers.clone();
    authenticated.strip_token(&mut headers);
    let path = authenticated.path_without_token(&parts.uri);
    if has_dots(parts.uri.path()) {
        return Err(ApiError::not_found("there is no such path"));
    }
    let dialect = dialect(parts.uri.path(), &headers);
    let upstream = gateway.admit(&authenticated.caller, dialect, &path, &headers).await?;
    if upstream.has_platform_key() && !is_stateless(parts.uri.path()) {
        let message = "the platform's key reaches what the provider keeps of all tenants; send a key of your own, \
                       which spec.gateway.providers of the SkillPolicy must allow";
        return Err(ApiError::forbidden(message));
    }
    // A streamed body has no length: where the client sends none, there is none.
    let has_body = parts.method == Method::POST || parts.headers.contains_key(CONTENT_TYPE);
    let body =
        if has_body { reqwest::Body::wrap_stream(body.into_data_stream()) } else { reqwest::Body::default() };
    let response = upstream.send_request(parts.method, body).await?;
    let (status, headers) = (response.status(), response_headers(response.headers()));
    Ok((status, headers, Body::from_stream(response.bytes_stream())).into_response())
}

/// A path of dots would lead out of the one that the policy gives.
fn has_dots(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    ["..", "%2e", "%2f", "%5c", "\\", "//"].iter().any(|part| path.contains(part))
}

fn dialect(path: &str, headers: &HeaderMap) -> DialectName {
    if ["/v1alpha/", "/v1beta/", "/upload/"].iter().any(|family| path.starts_with(family)) {
        DialectName::Gemini
    } else if path.starts_with("/v1/messages/") || headers.contains_key(ANTHROPIC_VERSION) {
        DialectName::Anthropic
    } else {
        DialectName::OpenAiChat
    }
}

fn is_stateless(path: &str) -> bool {
    let is_in = |family: &&str| {
        path.strip_prefix(*family).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let others = ["/v1/messages/count_tokens", "/v1beta/models", "/v1alpha/models"];
    STATELESS.iter().chain(&others).any(is_in)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use serde_json::{Value, json};
    use skillet_api::gateway::KeySecret;

    use super::*;
    use crate::testing::{AGENT, TestGateway};

    async fn send(
        gateway: &TestGateway,
        method: &str,
        path: &str,
        headers: &[(&str, &[u8])],
    ) -> (u16, Value) {
        let answer = gateway.send_body(method, path, Some(AGENT), headers, Body::from("{\"a\": 1}")).await;
        (answer.status, answer.json())
    }

    #[tokio::test]
    async fn paths_without_skills_pass_byte_for_byte() {
        let gateway = TestGateway::new();
        gateway.offer("team", "sum", "auto");
        for (method, path) in [
            ("POST", "/v1/embeddings"),
            ("GET", "/v1/models"),
            ("GET", "/v1/models/gpt-x"),
            ("POST", "/v1/conversations"),
            ("DELETE", "/v1/responses/resp_1"),
            ("POST", "/v1/messages/count_tokens"),
            ("POST", "/v1beta/models/gemini-x:countTokens"),
            ("POST", "/v1beta/cachedContents"),
        ] {
            gateway.provider.will_say(&json!({ "path": path }));
            assert_eq!(send(&gateway, method, path, &[]).await, (200, json!({ "path": path })));
            let body = if method == "POST" { "{\"a\": 1}" } else { "" };
            assert_eq!(gateway.provider.texts().pop().unwrap(), body, "{path}");
        }
    }

    #[tokio::test]
    async fn the_platforms_key_does_not_reach_what_a_provider_keeps() {
        let gateway = TestGateway::new();
        gateway.change_policy(|policy| {
            policy.gateway.providers.openai.key_secret =
                Some(KeySecret { name: "k".into(), key: "k".into() });
        });
        let meta = json!({ "namespace": "skillet-system", "name": "k" });
        gateway.api.put_secret(json!({ "metadata": meta, "data": { "k": "cGxhdGZvcm0=" } }));
        for (path, expected) in [("/v1/files", 403), ("/v1/embeddings", 200)] {
            assert_eq!(send(&gateway, "POST", path, &[]).await.0, expected, "{path}");
        }
    }

    #[tokio::test]
    async fn a_path_of_dots_is_not_found() {
        let gateway = TestGateway::new();
        for path in ["/v1/files/..%2fadmin", "/v1/files/%2e%2e/admin", "/v1/files//x"] {
            assert_eq!(send(&gateway, "GET", path, &[]).await.0, 404, "{path}");
        }
        assert!(gateway.provider.requests().is_empty());
    }

    #[test]
    fn a_shared_path_is_the_providers_whose_client_asks() {
        let anthropic = HeaderMap::from_iter([(
            http::HeaderName::from_static(ANTHROPIC_VERSION),
            http::HeaderValue::from_static("2023-06-01"),
        )]);
        assert_eq!(dialect("/v1/models", &anthropic), DialectName::Anthropic);
        assert_eq!(dialect("/v1/models", &HeaderMap::new()), DialectName::OpenAiChat);
        assert_eq!(dialect("/v1/messages/batches", &HeaderMap::new()), DialectName::Anthropic);
        assert_eq!(dialect("/v1beta/files", &HeaderMap::new()), DialectName::Gemini);
        assert!(
            is_stateless("/v1/models/x")
                && !is_stateless("/v1/modelsx")
                && !is_stateless("/v1/messages/batches")
        );
    }
}
