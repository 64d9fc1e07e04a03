//! Paths of the providers that have nothing to do with skills: they pass as they are, streamed both ways.
//!
//! A JSON body is read for its model.
//!
//! The caller is authenticated and its token removed as on every other route. What a provider keeps (files, batches) is
//! reached with a client's own key only: the platform's key would reach the objects of every tenant. Of responses and
//! conversations the gateway signs the ids, so that a caller reaches its own.

mod model_name;
mod stored_ids;

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, HttpBody as _},
    extract::{Request, State},
    response::{IntoResponse as _, Response},
    routing::any,
};
use http::{HeaderMap, Method, header::CONTENT_TYPE};
use skillet_api::gateway::StoredObjects;
use skillet_llm::DialectName;

use self::{
    model_name::{in_body, in_path, is_json},
    stored_ids::{StoredIds, has_bound_ids},
};
use super::{
    BODY_BUDGET, ModelState,
    request_record::RequestRecord,
    response_ids::bind_ids,
    shared_key::stored_object_forbidden,
    upstream::{ProviderRequest, SharedKeyRules, response_headers},
};
use crate::{auth::Caller, compute::compute, error::ApiError};

/// Path families of which a provider keeps nothing.
const STATELESS: [&str; 6] =
    ["/v1/audio", "/v1/completions", "/v1/embeddings", "/v1/images", MODELS, "/v1/moderations"];
const MODELS: &str = "/v1/models";
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
        if family != MODELS {
            routes = routes.route(&format!("{family}/{{*rest}}"), any(pass));
        }
    }
    GEMINI.into_iter().fold(routes, |routes, family| routes.route(family, any(pass)))
}

/// A request on its way to a provider.
struct Passed<'a> {
    caller: &'a Caller,
    method: Method,
    /// The path without its query.
    bare_path: &'a str,
    request: ProviderRequest<'a>,
    body: reqwest::Body,
    /// The length of a streamed body, if the client sends one. Some providers refuse a body without it.
    length: Option<u64>,
    ids: StoredIds,
}

/// Passes a request on, and its response back.
pub(super) async fn pass(State(gateway): State<ModelState>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let authenticated = gateway.auth.authenticate(&parts.headers, parts.uri.query()).await?;
    let mut headers = parts.headers.clone();
    authenticated.strip_token(&mut headers);
    let mut path = authenticated.path_without_token(&parts.uri);
    let caller = &authenticated.caller;
    if has_dots(parts.uri.path()) {
        return Err(ApiError::no_path(&parts.uri));
    }
    let binding = if has_bound_ids(parts.uri.path()) { gateway.id_binding(&caller.namespace) } else { None };
    let mut ids = binding.map(|binding| StoredIds::unbind_path(binding, &mut path)).unwrap_or_default();
    let bare_path = path.split('?').next().unwrap_or_default();
    let dialect = dialect(bare_path, &headers);
    // A streamed body has no length: where the client sends none, there is none.
    let has_body = parts.method == Method::POST || parts.headers.contains_key(CONTENT_TYPE);
    let mut model = in_path(dialect, bare_path).map(ToOwned::to_owned);
    let (mut reservation, mut sent, mut length) = (None, reqwest::Body::default(), None);
    if has_body && runs_model(dialect, &parts.method, bare_path) && is_json(&headers) {
        let (bytes, held) = gateway.memory.read(&caller.namespace, body, BODY_BUDGET).await?;
        model = Some(in_body(&bytes));
        (reservation, sent) = (Some(held), bytes.into());
    } else if has_body && has_bound_ids(bare_path) {
        let (bytes, held) = gateway.memory.read(&caller.namespace, body, BODY_BUDGET).await?;
        let bytes = compute(bytes.len(), || ids.unbind_body(bytes));
        (reservation, sent) = (Some(held), bytes.into());
    } else if has_body {
        // A model that cannot be read is one that only a provider of all models takes.
        model = model.or_else(|| runs_model(dialect, &parts.method, bare_path).then(String::new));
        length = body.size_hint().exact();
        sent = reqwest::Body::wrap_stream(body.into_data_stream());
    }
    let request =
        ProviderRequest { dialect, model: model.as_deref(), fallbacks: &[], path: &path, headers: &headers };
    let record = gateway.record(caller, dialect, request.model.unwrap_or_default());
    let passed = Passed { caller, method: parts.method.clone(), bare_path, request, body: sent, length, ids };
    let response = forward(&gateway, passed, &record).await;
    drop(reservation);
    record.respond(&response);
    response
}

async fn forward(
    gateway: &ModelState,
    passed: Passed<'_>,
    record: &Arc<RequestRecord>,
) -> Result<Response, ApiError> {
    let Passed { caller, method, bare_path, request, body, length, ids } = passed;
    let upstream = gateway.admit(caller, &request, record).await?;
    let mut binding = None;
    if let Some(rules) = upstream.shared_key()
        && !is_stateless(&method, bare_path)
    {
        check_stored(rules, &ids, &method, bare_path)?;
        binding = ids.into_binding();
    }
    let response = upstream.send_request(method, body, length).await?;
    let (status, headers) = (response.status(), response_headers(response.headers()));
    let response = (status, headers, Body::from_stream(response.into_stream())).into_response();
    Ok(bind_ids(response, binding))
}

/// Refuses a request with the platform's key for what the provider keeps, unless it is the caller's own.
fn check_stored(
    rules: SharedKeyRules,
    ids: &StoredIds,
    method: &Method,
    bare_path: &str,
) -> Result<(), ApiError> {
    let is_own = rules.stored_objects == StoredObjects::Bind && ids.is_of_caller(method, bare_path);
    match ids.foreign() {
        None if is_own => Ok(()),
        Some(field) if is_own => Err(stored_object_forbidden().at(field)),
        _ => {
            let message = "the platform's key reaches what the provider keeps of all tenants; send a key of your own, \
                           which spec.gateway.providers of the SkillPolicy must allow";
            Err(ApiError::forbidden(message))
        }
    }
}

/// A path of dots would lead out of the one that the policy gives.
fn has_dots(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    ["..", "%2e", "%2f", "%5c", "\\", "//"].iter().any(|part| path.contains(part))
}

/// The dialect of the provider that a path belongs to.
pub(super) fn dialect(path: &str, headers: &HeaderMap) -> DialectName {
    if ["/v1alpha/", "/v1beta/", "/upload/"].iter().any(|family| path.starts_with(family)) {
        DialectName::Gemini
    } else if path.starts_with("/v1/messages") || headers.contains_key(ANTHROPIC_VERSION) {
        DialectName::Anthropic
    } else {
        DialectName::OpenAiChat
    }
}

/// Returns true for a request that runs the model of its body.
fn runs_model(dialect: DialectName, method: &Method, path: &str) -> bool {
    dialect != DialectName::Gemini && method == Method::POST && is_stateless(method, path)
}

fn is_in(path: &str, family: &str) -> bool {
    path.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns true if the provider keeps nothing of such a request, and it reaches nothing that the provider keeps.
fn is_stateless(method: &Method, path: &str) -> bool {
    let is_in = |family: &str| is_in(path, family);
    let runs = |family: &&str| *family != MODELS && is_in(family);
    match *method {
        Method::GET | Method::HEAD => is_in(MODELS) || lists_gemini_models(path),
        Method::POST => {
            STATELESS.iter().any(runs) || is_in("/v1/messages/count_tokens") || is_stateless_method(path)
        }
        _ => false,
    }
}

/// `/v1beta/models`, or one model. Operations of a model are paths below it.
fn lists_gemini_models(path: &str) -> bool {
    let rest = ["/v1beta/models", "/v1alpha/models"].iter().find_map(|family| path.strip_prefix(family));
    rest.is_some_and(|rest| rest.rfind('/').unwrap_or_default() == 0)
}

/// A method of a Gemini model that starts no batch and no operation.
fn is_stateless_method(path: &str) -> bool {
    let method = path.rsplit_once(':').map(|(_, method)| method);
    lists_gemini_models(path)
        && method.is_some_and(|method| {
            ["countTokens", "embedContent", "batchEmbedContents", "predict"].contains(&method)
        })
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
            ("POST", "/v1beta/cachedContents"),
        ] {
            gateway.provider.will_say(&json!({ "path": path }));
            assert_eq!(send(&gateway, method, path, &[]).await, (200, json!({ "path": path })));
            let body = if method == "POST" { "{\"a\": 1}" } else { "" };
            assert_eq!(gateway.provider.texts().pop().unwrap(), body, "{path}");
        }
    }

    #[tokio::test]
    async fn a_form_passes_with_its_length_if_the_client_says_it() {
        let gateway = TestGateway::new();
        let form: (&str, &[u8]) = ("content-type", b"multipart/form-data; boundary=x");
        let stream = futures::stream::iter([Ok::<_, std::io::Error>("--x--")]);
        for (body, length) in [(Body::from("--x--"), Some("5")), (Body::from_stream(stream), None)] {
            gateway.send_body("POST", "/v1/audio/transcriptions", Some(AGENT), &[form], body).await;
            let (headers, text) = gateway.provider.requests().pop().unwrap();
            let sent = headers.get("content-length").map(|length| length.to_str().unwrap());
            assert_eq!((sent, &*text), (length, "--x--"));
            assert_eq!(headers.contains_key("transfer-encoding"), length.is_none());
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
        for (method, path, expected) in [
            ("POST", "/v1/files", 403),
            ("GET", "/v1/conversations/conv_1", 403),
            ("DELETE", "/v1/models/ft:gpt-x:theirs", 403),
            ("GET", "/v1/models/gpt-x", 200),
            ("POST", "/v1/embeddings", 200),
        ] {
            assert_eq!(send(&gateway, method, path, &[]).await.0, expected, "{path}");
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
    }

    #[test]
    fn a_provider_keeps_nothing_of_listed_methods_alone() {
        for (method, path, expected) in [
            (Method::GET, "/v1/models/x", true),
            (Method::DELETE, "/v1/models/x", false),
            (Method::GET, "/v1/modelsx", false),
            (Method::POST, "/v1/messages/count_tokens", true),
            (Method::POST, "/v1/messages/batches", false),
            (Method::POST, "/v1/audio/speech", true),
            (Method::GET, "/v1/audio/voices", false),
            (Method::GET, "/v1beta/models", true),
            (Method::GET, "/v1beta/models/gemini-x", true),
            (Method::GET, "/v1beta/models/veo/operations/1", false),
            (Method::POST, "/v1beta/models/gemini-x:countTokens", true),
            (Method::POST, "/v1beta/models/gemini-x:batchGenerateContent", false),
            (Method::POST, "/v1beta/models/veo:predictLongRunning", false),
            (Method::POST, "/v1beta/files/x:embedContent", false),
        ] {
            assert_eq!(is_stateless(&method, path), expected, "{method} {path}");
        }
    }

    #[tokio::test]
    async fn a_model_in_a_body_is_read() {
        let gateway = TestGateway::new();
        gateway.change_policy(|policy| policy.gateway.providers.openai.models = vec!["text-*".into()]);
        let json: (&str, &[u8]) = ("content-type", b"application/json");
        let body = |model: &str| Body::from(format!("{{\"input\": [], \"model\": \"{model}\"}}"));
        for (model, expected) in [("text-small", 200), ("large", 403)] {
            let answer = gateway.send_body("POST", "/v1/embeddings", Some(AGENT), &[json], body(model)).await;
            assert_eq!(answer.status, expected, "{model}");
        }
        assert_eq!(gateway.provider.texts(), ["{\"input\": [], \"model\": \"text-small\"}"]);
        let form: (&str, &[u8]) = ("content-type", b"multipart/form-data; boundary=x");
        let answer =
            gateway.send_body("POST", "/v1/audio/transcriptions", Some(AGENT), &[form], body("text-x")).await;
        assert_eq!(answer.error(), (403, "ModelNotAllowed".into(), String::new()));
        assert_eq!(send(&gateway, "GET", "/v1/models", &[]).await.0, 200);
    }
}
