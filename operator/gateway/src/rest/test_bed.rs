//! The routes over the real services, a fake API server and fake reviews.
//!
//! Namespaces: `team` is the caller's, then `platform`, then `shop`. A token is `<namespace>/<name>`.

use std::sync::Arc;

use axum::body::Body;
use http::{HeaderMap, Request, header};
use serde_json::{Value, json};
use skillet_api::SkillPolicySpec;
use skillet_kube::testing::{FakeApiServer, token};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::routes;
use crate::{
    auth::{Auth, Verb},
    gateway_bed,
    memory::MemoryPool,
    state::GatewayState,
};

pub(crate) const TOKEN: &str = "team/agent";

pub(crate) struct Bed {
    pub(crate) api: FakeApiServer,
    gateway: GatewayState,
    pub(crate) room: Arc<MemoryPool>,
    pub(crate) stop: CancellationToken,
}

/// An answer of the routes.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Status, code and field of an error.
    pub(crate) fn error(&self) -> (u16, String, String) {
        let error = &self.json()["error"];
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        assert!(!text("message").is_empty(), "{self:?}");
        (self.status, text("code"), text("field"))
    }
}

impl Bed {
    pub(crate) fn new() -> Self {
        let api = FakeApiServer::default();
        api.open(&["platform", "shop"]);
        let mut gateway = gateway_bed::gateway(&api, None);
        gateway.auth = Arc::new(Auth::uncached(api.client()));
        let mut policy = SkillPolicySpec::default();
        policy.gateway.platform_namespaces = vec!["platform".into()];
        policy.gateway.catalog_namespaces = vec!["shop".into()];
        gateway.catalog.set_policy(policy);
        let (room, stop) = (gateway.memory.clone(), gateway.stop.clone());
        Self { api, gateway, room, stop }
    }

    /// A skill of version 1.0.0, sealed unless `spec` is not to be.
    pub(crate) fn skill(&self, namespace: &str, name: &str, spec: &Value) {
        let mut skill = json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill",
            "metadata": { "namespace": namespace, "name": name, "uid": format!("{namespace}-{name}") },
            "spec": { "version": "1.0.0", "run": {} },
            "status": { "latestVersion": "1.0.0", "versions": ["1.0.0", "0.9.0"], "conditions": [
                { "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }
            ] },
        });
        for (field, value) in spec.as_object().unwrap() {
            skill["spec"][field] = value.clone();
        }
        self.api.put("skills", skill.clone());
        let mut version = json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillVersion",
            "metadata": { "namespace": namespace, "name": format!("{name}-1.0.0") },
            "spec": { "skill": name, "version": "1.0.0", "digest": "d", "run": {}, "description": skill["spec"]["description"] },
        });
        version["spec"]["description"] = json!(skill["spec"]["description"].as_str().unwrap_or_default());
        version["spec"]["tool"] = skill["spec"]["tool"].clone();
        self.gateway.catalog.put_skill(&serde_json::from_value(skill).unwrap());
        self.gateway.catalog.put_version(&serde_json::from_value(version).unwrap());
    }

    pub(crate) fn remove_skills(&self) {
        for namespace in ["team", "platform", "shop"] {
            for skill in self.gateway.catalog.list(namespace) {
                self.gateway.catalog.remove_skill(namespace, &skill.skill.name);
            }
        }
    }

    /// A skill of which nothing can run.
    pub(crate) fn broken_skill(&self, name: &str) {
        let skill = json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill",
            "metadata": { "namespace": "team", "name": name },
            "spec": { "version": "1.0.0", "run": {} },
            "status": { "conditions": [
                { "type": "Ready", "status": "False", "reason": "SpecInvalid", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }
            ] },
        });
        self.gateway.catalog.put_skill(&serde_json::from_value(skill).unwrap());
    }

    pub(crate) fn deny(&self, namespace: &str, skill: Option<&str>, verb: Verb) {
        self.api.deny("", verb.as_str(), namespace, skill);
    }

    /// Denies only this account of the callers' namespaces.
    pub(crate) fn deny_user(&self, user: &str, namespace: &str, skill: Option<&str>, verb: Verb) {
        self.api.deny(user, verb.as_str(), namespace, skill);
    }

    pub(crate) fn lose_the_cluster(&self) {
        self.api.fail_access_reviews();
    }

    /// An execution as someone may have made it.
    pub(crate) fn execution(&self, namespace: &str, name: &str, of: &str, phase: &str) {
        let mut execution = json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution",
            "metadata": { "namespace": namespace, "name": name, "labels": { "skillet.dev/caller-namespace": of } },
            "spec": { "skill": "sum" },
        });
        if !phase.is_empty() {
            execution["status"] = json!({ "phase": phase, "attempts": 1, "truncated": false });
        }
        self.api.put("skillexecutions", execution);
    }

    pub(crate) async fn get(&self, uri: &str) -> Answer {
        self.send("GET", uri, Some(TOKEN), &[], "").await
    }

    pub(crate) async fn with_body(&self, method: &str, uri: &str, body: &Value) -> Answer {
        self.send(method, uri, Some(TOKEN), &[], &body.to_string()).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        uri: &str,
        token: Option<&str>,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        self.send_body(method, uri, token, headers, Body::from(body.to_owned())).await
    }

    pub(crate) async fn send_body(
        &self,
        method: &str,
        uri: &str,
        token: Option<&str>,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(token) = token {
            let token = self.token(token);
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).unwrap();
        let router = routes().with_state(self.gateway.clone());
        let response = router.oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 24).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: parts.status.as_u16(), headers: parts.headers, text }
    }

    /// Returns a service account's token that the API server knows, and any other text as it is.
    fn token(&self, account: &str) -> String {
        let Some((namespace, name)) = account.split_once('/') else { return account.to_owned() };
        let claims = json!({ "aud": ["skillet"], "exp": 4_000_000_000_i64 });
        let token = token(&format!("{namespace}-{name}"), &claims);
        self.api.add_token(&token, namespace, name);
        token
    }
}
