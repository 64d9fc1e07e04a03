//! A whole gateway for tests of its routes for models: callers and rights of this process, an API server of this
//! process, and a provider that answers what a test says.
//!
//! The caller is `system:serviceaccount:team:agent` and may do everything with the skills of `team`.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use skillet_api::{SkillPolicySpec, gateway::KeySecret};
use skillet_kube::testing::{FakeApiServer, token};
use skillet_llm::confirmation::ConfirmationKey;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::{
    auth::Auth,
    catalog::SkillCatalog,
    executions::ExecutionClient,
    model::{inject, proxy, upstream},
    state::GatewayState,
};

/// The requests that the provider received, and its next responses; `{}` if a test set none.
#[derive(Default)]
pub(crate) struct Provider {
    answers: Mutex<VecDeque<(HeaderMap, Value)>>,
    pub(crate) asked: Mutex<Vec<(HeaderMap, Value)>>,
}

pub(crate) struct Bed {
    pub(crate) api: FakeApiServer,
    pub(crate) provider: Arc<Provider>,
    pub(crate) gateway: GatewayState,
    token: String,
}

/// An answer of the routes.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    /// A header as text, empty where it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// Status, code and field of an error.
    pub(crate) fn error(&self) -> (u16, &str, &str) {
        let text = |name: &str| self.body["error"][name].as_str().unwrap_or_default();
        (self.status, text("code"), text("field"))
    }
}

/// A gateway over these, with the default policy and without skills.
pub(crate) fn gateway(api: &FakeApiServer, confirmation: Option<ConfirmationKey>) -> GatewayState {
    let executor = Arc::new(ExecutionClient::new(api.client()));
    tokio::spawn(executor.clone().watch_all());
    GatewayState {
        auth: Arc::new(Auth::new(api.client())),
        catalog: Arc::new(SkillCatalog::default()),
        executions: executor,
        metrics: Arc::default(),
        memory: Arc::default(),
        upstream: upstream::client().unwrap(),
        provider_keys: Arc::default(),
        namespace: "skillet-system".into(),
        stop: CancellationToken::new(),
        client: api.client(),
        confirmation: confirmation.map(Arc::new),
    }
}

/// A skill that is always offered where it can be.
pub(crate) fn put_skill(gateway: &GatewayState, namespace: &str, name: &str, invocation: &str) {
    let run = json!({ "sandbox": { "runtime": "shell", "script": "cat" } });
    let skill = json!({
        "metadata": { "namespace": namespace, "name": name },
        "spec": { "version": "1.0.0", "mode": "on", "invocation": invocation, "run": run },
    });
    let version = json!({
        "metadata": { "namespace": namespace, "name": format!("{name}-1.0.0") },
        "spec": { "skill": name, "version": "1.0.0", "digest": "d", "description": "does it", "run": run },
    });
    gateway.catalog.put_skill(&serde_json::from_value(skill).unwrap());
    gateway.catalog.put_version(&serde_json::from_value(version).unwrap());
}

impl Bed {
    pub(crate) async fn new() -> Self {
        let api = FakeApiServer::default();
        let token = token("agent", &json!({ "aud": ["skillet"], "exp": 4_000_000_000_i64 }));
        api.add_token(&token, "team", "agent");
        for verb in ["get", "execute"] {
            for skill in [None, Some("sum"), Some("fetch")] {
                api.allow("system:serviceaccount:team:agent", verb, "team", skill);
            }
        }
        let gateway = gateway(&api, None);
        let provider = Arc::<Provider>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let mut policy = SkillPolicySpec::default();
        for of in [&mut policy.gateway.providers.openai, &mut policy.gateway.providers.gemini] {
            of.base_url.clone_from(&url);
        }
        gateway.catalog.set_policy(policy);
        Self { api, provider, gateway, token }
    }

    /// The provider is asked with a key of the platform's from now on.
    pub(crate) fn use_platform_key(&self, name: &str) {
        let mut policy = SkillPolicySpec::clone(&self.gateway.catalog.policy());
        policy.gateway.providers.openai.key_secret =
            Some(KeySecret { name: name.to_owned(), key: "apiKey".to_owned() });
        self.gateway.catalog.set_policy(policy);
    }

    /// A skill of the team's that every request is offered.
    pub(crate) fn skill(&self, name: &str) {
        put_skill(&self.gateway, "team", name, "auto");
    }

    /// Sets the provider's next response.
    pub(crate) fn will_answer(&self, headers: &[(&'static str, &'static str)], body: Value) {
        self.provider.answers.lock().unwrap().push_back((named(headers), body));
    }

    pub(crate) async fn post(&self, uri: &str, body: &Value) -> Answer {
        self.send(uri, &[], Body::from(body.to_string())).await
    }

    /// With headers beside the caller's token.
    pub(crate) async fn send(&self, uri: &str, headers: &[(&str, &[u8])], body: Body) -> Answer {
        let mut request = Request::builder().method("POST").uri(uri).header("x-skillet-token", &self.token);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.raw(request.body(body).unwrap()).await
    }

    pub(crate) async fn raw(&self, request: Request) -> Answer {
        let router = proxy::routes().merge(inject::routes()).with_state(self.gateway.clone());
        let (parts, body) = router.oneshot(request).await.unwrap().into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 24).await.unwrap();
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }
}

fn named(headers: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    headers.iter().map(pair).collect()
}

async fn answer(State(provider): State<Arc<Provider>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 24).await.unwrap();
    let asked = serde_json::from_slice(&bytes).unwrap_or_default();
    provider.asked.lock().unwrap().push((parts.headers, asked));
    let (headers, body) =
        provider.answers.lock().unwrap().pop_front().unwrap_or((HeaderMap::new(), json!({})));
    let mut response = Response::new(Body::from(body.to_string()));
    response.headers_mut().extend(headers);
    response
}
