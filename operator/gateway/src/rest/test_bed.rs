//! The routes over a catalogue, rights and an API server of this process.
//!
//! Namespaces: `team` is the caller's, then `platform`, then `shop`. A token is `<namespace>/<name>`.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Body};
use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderMap, Request, header};
use serde_json::{Value, json};
use skillet_api::{Skill, SkillPolicySpec, SkillVersion};
use skillet_kube::testing::FakeApiServer;
use tower::ServiceExt as _;

use tokio_util::sync::CancellationToken;

use super::{Catalogue, Rest, Rights, routes_of};
use crate::{
    auth::{AuthError, Caller, Verb},
    catalog::{CachedSkill, CachedVersion, CatalogEntry, Versions},
    executions::ExecutionClient,
    memory::MemoryPool,
};

pub(crate) const TOKEN: &str = "team/agent";

/// What a user, or any, may not: a verb with one skill of a namespace, or with any.
struct Rule {
    user: Option<&'static str>,
    namespace: &'static str,
    skill: Option<&'static str>,
    verb: Verb,
}

impl Rule {
    fn is_meant(&self, caller: &Caller, verb: Verb, namespace: &str, skill: Option<&str>) -> bool {
        self.user.is_none_or(|user| caller.user.ends_with(&format!(":{user}")))
            && (self.namespace, self.verb) == (namespace, verb)
            && (self.skill.is_none() || self.skill == skill)
    }
}

#[derive(Default)]
struct Rules {
    denied: Mutex<Vec<Rule>>,
    is_unreachable: Mutex<bool>,
}

impl Rights for Rules {
    fn caller<'a>(&'a self, headers: &'a HeaderMap) -> BoxFuture<'a, Result<Caller, AuthError>> {
        async move {
            let token = headers.get(header::AUTHORIZATION).ok_or(AuthError::Missing)?;
            let token = token.to_str().unwrap().strip_prefix("Bearer ").unwrap();
            let (namespace, name) = token.split_once('/').ok_or(AuthError::Unknown)?;
            let user = format!("system:serviceaccount:{namespace}:{name}");
            Ok(Caller { namespace: namespace.into(), user: user.into(), groups: [].into() })
        }
        .boxed()
    }

    fn check<'a>(
        &'a self,
        caller: &'a Caller,
        verb: Verb,
        namespace: &'a str,
        skill: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AuthError>> {
        async move {
            if *self.is_unreachable.lock().unwrap() {
                return Err(AuthError::Unreachable("no".into()));
            }
            let denied = self.denied.lock().unwrap();
            let is_denied = denied.iter().any(|rule| rule.is_meant(caller, verb, namespace, skill));
            // A caller that no token has made may nothing, and each only in its own namespace and the shared ones.
            let is_known = caller.user.starts_with(&format!("system:serviceaccount:{}:", caller.namespace));
            let is_near = [&*caller.namespace, "platform", "shop"].contains(&namespace);
            if is_known && is_near && !is_denied {
                return Ok(());
            }
            Err(AuthError::Forbidden { verb, namespace: namespace.into() })
        }
        .boxed()
    }
}

#[derive(Default)]
struct Shelf(Mutex<Vec<Arc<CatalogEntry>>>);

impl Catalogue for Shelf {
    fn policy(&self) -> Arc<SkillPolicySpec> {
        let mut policy = SkillPolicySpec::default();
        policy.gateway.platform_namespaces = vec!["platform".into()];
        policy.gateway.catalog_namespaces = vec!["shop".into()];
        Arc::new(policy)
    }

    fn namespaces(&self, caller: &Caller) -> Vec<Arc<str>> {
        vec![caller.namespace.clone(), "platform".into(), "shop".into()]
    }

    fn get(&self, namespace: &str, name: &str) -> Option<Arc<CatalogEntry>> {
        self.list(namespace).into_iter().find(|known| *known.skill.name == *name)
    }

    fn list(&self, namespace: &str) -> Vec<Arc<CatalogEntry>> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|known| *known.skill.namespace == *namespace).cloned().collect()
    }
}

pub(crate) struct Bed {
    pub(crate) api: FakeApiServer,
    rules: Arc<Rules>,
    shelf: Arc<Shelf>,
    pub(crate) room: Arc<MemoryPool>,
    router: Router,
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
        let (api, rules, shelf) =
            (FakeApiServer::default(), Arc::<Rules>::default(), Arc::<Shelf>::default());
        let executor = Arc::new(ExecutionClient::new(api.client()));
        tokio::spawn(executor.clone().watch_all());
        let room = Arc::<MemoryPool>::default();
        let rest = Rest {
            rights: rules.clone(),
            catalogue: shelf.clone(),
            executor,
            client: api.client(),
            room: room.clone(),
            stop: CancellationToken::new(),
        };
        let stop = rest.stop.clone();
        Self { api, rules, shelf, room, router: routes_of::<Rest>().with_state(rest), stop }
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
        let skill: Skill = serde_json::from_value(skill).unwrap();
        let version: SkillVersion = serde_json::from_value(version).unwrap();
        self.shelve(&skill, Versions::default().with(CachedVersion::of(&version).unwrap()));
    }

    pub(crate) fn remove_skills(&self) {
        self.shelf.0.lock().unwrap().clear();
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
        self.shelve(&serde_json::from_value(skill).unwrap(), Versions::default());
    }

    fn shelve(&self, skill: &Skill, versions: Versions) {
        let known = CatalogEntry::new(Arc::new(CachedSkill::of(skill).unwrap()), versions);
        self.shelf.0.lock().unwrap().push(Arc::new(known));
    }

    pub(crate) fn deny(&self, namespace: &'static str, skill: Option<&'static str>, verb: Verb) {
        self.rules.denied.lock().unwrap().push(Rule { user: None, namespace, skill, verb });
    }

    /// Only this account of the callers' namespaces.
    pub(crate) fn deny_user(
        &self,
        user: &'static str,
        namespace: &'static str,
        skill: Option<&'static str>,
        verb: Verb,
    ) {
        self.rules.denied.lock().unwrap().push(Rule { user: Some(user), namespace, skill, verb });
    }

    pub(crate) fn lose_the_cluster(&self) {
        *self.rules.is_unreachable.lock().unwrap() = true;
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
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 24).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: parts.status.as_u16(), headers: parts.headers, text }
    }
}
