//! One gateway for all tests: the real services over a fake API server, and a model provider that a test scripts.
//!
//! Namespace `team` is the usual caller's, `platform` is the platform's and `shop` is a catalog. A service account may do
//! everything in its own namespace and in these two, unless a test denies it. Accounts are written `<namespace>/<name>`.

mod embeddings_server;
mod provider;
pub(crate) mod scripts;

use std::sync::Arc;

use axum::{body::Body, extract::Request, middleware, response::Response};
use http::{HeaderMap, Uri, header, request};
use serde_json::{Value, json};
use skillet_api::{SkillPolicySpec, gateway::OfferMatching};
use skillet_kube::testing::{self, FakeApiServer};
use skillet_llm::confirmation::ConfirmationKey;
use tower::ServiceExt as _;

pub(crate) use self::{
    embeddings_server::{Behavior, EmbeddingsServer},
    provider::Provider,
};
use crate::{
    auth::{Auth, Caller, Verb},
    error::ApiError,
    memory::MemoryPool,
    model::{ModelState, error_form, inject, proxy, upstream::ProviderClient},
    rest,
    service::SkillService,
};

/// The usual caller.
pub(crate) const AGENT: &str = "team/agent";

pub(crate) struct TestGateway {
    pub(crate) api: FakeApiServer,
    pub(crate) provider: Arc<Provider>,
    pub(crate) service: SkillService,
    pub(crate) model: ModelState,
}

/// A response of the gateway.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl TestResponse {
    async fn read(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 24).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Self { status: parts.status.as_u16(), headers: parts.headers, text }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Returns a header as text, empty if it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// Returns status, code and field of an error, which has a message.
    pub(crate) fn error(&self) -> (u16, String, String) {
        let error = &self.json()["error"];
        // Each dialect has its own places for them.
        let text = |places: &[&str]| {
            let found = places.iter().find_map(|place| error.pointer(place)?.as_str());
            found.unwrap_or_default().to_owned()
        };
        assert!(!text(&["/message"]).is_empty(), "{self:?}");
        let code = text(&["/details/error_code", "/details/0/reason", "/code"]);
        (self.status, code, text(&["/details/field", "/details/0/metadata/field", "/param", "/field"]))
    }
}

impl TestGateway {
    pub(crate) fn new() -> Self {
        Self::with_confirmation(None)
    }

    pub(crate) fn with_confirmation(confirmation: Option<ConfirmationKey>) -> Self {
        Self::build(confirmation, Auth::new)
    }

    /// Asks the API server for each token and each right, so that a test may change them at any time.
    pub(crate) fn without_auth_cache() -> Self {
        Self::build(None, Auth::uncached)
    }

    fn build(confirmation: Option<ConfirmationKey>, auth: fn(kube::Client) -> Auth) -> Self {
        let api = FakeApiServer::default();
        api.open(&["platform", "shop"]);
        let (provider, url) = Provider::serve();
        let mut service = SkillService::new(api.client(), MemoryPool::default());
        service.auth = Arc::new(auth(api.client()));
        tokio::spawn(service.executions.clone().watch_all());
        let providers = ProviderClient::new(api.client(), "skillet-system").unwrap();
        let model = ModelState::new(&service, Arc::default(), providers, confirmation);
        let gateway = Self { api, provider, service, model };
        gateway.change_policy(|policy| {
            policy.gateway.platform_namespaces = vec!["platform".into()];
            policy.gateway.catalog_namespaces = vec!["shop".into()];
            // Texts of these tests name a skill somewhere.
            policy.gateway.offer.matching = OfferMatching::Substring;
            let providers = &mut policy.gateway.providers;
            for provider in [&mut providers.openai, &mut providers.anthropic, &mut providers.gemini] {
                provider.base_url.clone_from(&url);
            }
        });
        gateway
    }

    pub(crate) fn change_policy(&self, change: impl FnOnce(&mut SkillPolicySpec)) {
        let mut policy = SkillPolicySpec::clone(&self.service.catalog.policy());
        change(&mut policy);
        self.service.catalog.set_policy(policy);
    }

    /// Adds a sealed skill, or changes it. `spec` has the fields beside those that every skill needs.
    pub(crate) fn skill(&self, namespace: &str, name: &str, spec: &Value) {
        let mut skill = json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill",
            "metadata": { "namespace": namespace, "name": name, "uid": format!("{namespace}-{name}") },
            "spec": { "version": "1.0.0", "run": {} },
        });
        for (field, value) in spec.as_object().unwrap() {
            skill["spec"][field] = value.clone();
        }
        let number = skill["spec"]["version"].as_str().unwrap().to_owned();
        skill["status"] = json!({ "latestVersion": number, "versions": [number, "0.9.0"], "conditions": [
            { "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }
        ] });
        let described = skill["spec"]["description"].as_str().map(str::to_owned);
        let version = json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillVersion",
            "metadata": { "namespace": namespace, "name": format!("{name}-{number}") },
            "spec": { "skill": name, "version": number, "digest": "d", "run": {}, "tool": skill["spec"]["tool"],
                "description": described.unwrap_or_else(|| format!("{name} of {namespace}")) },
        });
        let mut version = version;
        for field in ["run", "instructions", "files"] {
            version["spec"][field] = skill["spec"][field].clone();
        }
        if version["spec"]["files"].is_null() {
            version["spec"]["files"] = json!([]);
        } else {
            // Files alone are read from the API server.
            self.api.put("skillversions", version.clone());
        }
        self.put_skill(skill);
        self.service.catalog.put_version(&serde_json::from_value(version).unwrap());
    }

    /// Adds a skill that every model request is offered.
    pub(crate) fn offer(&self, namespace: &str, name: &str, invocation: &str) {
        self.skill(namespace, name, &json!({ "mode": "on", "invocation": invocation }));
    }

    /// Adds or changes a Skill without its versions.
    pub(crate) fn put_skill(&self, skill: Value) {
        self.api.put("skills", skill.clone());
        self.service.catalog.put_skill(&serde_json::from_value(skill).unwrap());
    }

    pub(crate) fn remove_skills(&self) {
        for namespace in ["team", "platform", "shop"] {
            for entry in self.service.catalog.list(namespace) {
                self.service.catalog.remove_skill(namespace, &entry.skill.name);
            }
        }
    }

    /// Adds an execution that somebody has created.
    pub(crate) fn execution(&self, namespace: &str, name: &str, caller_namespace: &str, phase: &str) {
        let mut execution = json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution",
            "metadata": { "namespace": namespace, "name": name,
                "labels": { "skillet.dev/caller-namespace": caller_namespace } },
            "spec": { "skill": "sum" },
        });
        if !phase.is_empty() {
            execution["status"] = json!({ "phase": phase, "attempts": 1, "truncated": false });
        }
        self.api.put("skillexecutions", execution);
    }

    /// Returns the number of requests that create an execution.
    pub(crate) fn created(&self) -> usize {
        self.api.count("POST /apis/skillet.dev/v1alpha1/namespaces/")
    }

    /// Denies every account this verb with one skill, or with all skills of the namespace.
    pub(crate) fn deny(&self, namespace: &str, skill: Option<&str>, verb: Verb) {
        self.api.deny("", verb.as_str(), namespace, skill);
    }

    /// Denies only accounts of this name.
    pub(crate) fn deny_user(&self, name: &str, namespace: &str, skill: Option<&str>, verb: Verb) {
        self.api.deny(name, verb.as_str(), namespace, skill);
    }

    /// Returns a service account as the gateway sees it.
    pub(crate) fn caller(account: &str) -> Caller {
        let (namespace, name) = account.split_once('/').unwrap();
        let user = format!("system:serviceaccount:{namespace}:{name}");
        Caller { namespace: namespace.into(), user: user.into(), groups: [].into() }
    }

    /// Returns a service account's token that the API server knows, and any other text as it is.
    pub(crate) fn token(&self, account: &str) -> String {
        let Some((namespace, name)) = account.split_once('/') else { return account.to_owned() };
        let claims = json!({ "aud": ["skillet"], "exp": 4_000_000_000_i64 });
        let token = testing::token(&format!("{namespace}-{name}"), &claims);
        self.api.add_token(&token, namespace, name);
        token
    }

    /// Sends a request through the routes of REST and of models.
    pub(crate) async fn oneshot(&self, request: Request) -> Response {
        let routes = proxy::routes().merge(inject::routes()).with_state(self.model.clone());
        let routes = routes
            .merge(rest::routes().with_state(self.service.clone()))
            .fallback(async |uri: Uri| ApiError::no_path(&uri))
            .layer(middleware::from_fn(error_form::write));
        routes.oneshot(request).await.unwrap()
    }

    pub(crate) async fn raw(&self, request: Request) -> TestResponse {
        TestResponse::read(self.oneshot(request).await).await
    }

    fn request(&self, method: &str, uri: &str, token: Option<&str>) -> request::Builder {
        let request = Request::builder().method(method).uri(uri);
        match token {
            Some(token) => request.header(header::AUTHORIZATION, format!("Bearer {}", self.token(token))),
            None => request,
        }
    }

    pub(crate) async fn send_body(
        &self,
        method: &str,
        uri: &str,
        token: Option<&str>,
        headers: &[(&str, &[u8])],
        body: Body,
    ) -> TestResponse {
        let request = self.request(method, uri, token);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        self.raw(request.body(body).unwrap()).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        uri: &str,
        token: Option<&str>,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TestResponse {
        let headers: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        self.send_body(method, uri, token, &headers, Body::from(body.to_owned())).await
    }

    pub(crate) async fn get(&self, uri: &str) -> TestResponse {
        self.send("GET", uri, Some(AGENT), &[], "").await
    }

    pub(crate) async fn with_body(&self, method: &str, uri: &str, body: &Value) -> TestResponse {
        self.send(method, uri, Some(AGENT), &[], &body.to_string()).await
    }

    pub(crate) async fn post(&self, uri: &str, body: &Value) -> TestResponse {
        self.with_body("POST", uri, body).await
    }

    /// Returns the response before its body is complete.
    pub(crate) async fn respond(&self, uri: &str, body: &Value) -> Response {
        self.oneshot(self.request("POST", uri, Some(AGENT)).body(body.to_string().into()).unwrap()).await
    }
}
