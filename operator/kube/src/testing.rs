//! An API server inside the test's process: objects, watches, reviews and faults, without a network.
//!
//! It creates, gets, lists, patches, replaces, deletes and watches objects of any kind. It knows no schemas and no defaults, and a
//! merge patch changes only the fields of `spec` or `status`, labels and annotations. Tests add objects, tokens and rights, make requests fail, and count requests.

mod reviews;
mod state;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::body::Body;
use http::{Method, Request, Response};
use serde_json::Value;
use tokio::sync::watch;
use tower::service_fn;

pub use self::reviews::token;
use self::state::{State, failure, respond};
use crate::lock;

/// A handle to the server. Clones share its state.
#[derive(Clone)]
pub struct FakeApiServer {
    state: Arc<Mutex<State>>,
    is_reviewing: watch::Sender<bool>,
}

const GROUP: &str = "/apis/skillet.dev/v1alpha1";

/// The path of one of Skillet's objects.
pub fn path(namespace: &str, plural: &str, name: &str) -> String {
    format!("{GROUP}/namespaces/{namespace}/{plural}/{name}")
}

impl Default for FakeApiServer {
    fn default() -> Self {
        Self { state: Arc::default(), is_reviewing: watch::channel(true).0 }
    }
}

impl FakeApiServer {
    /// Returns a client of this server.
    pub fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.handle(request).await) }
        });
        kube::Client::new(service, "default")
    }

    /// Stores one of Skillet's objects, as another client would.
    pub fn put(&self, plural: &str, object: Value) {
        let at = path(text(&object, "namespace"), plural, text(&object, "name"));
        self.state().store(&at, object);
    }

    /// Stores a Secret, as another client would.
    pub fn put_secret(&self, secret: Value) {
        let at =
            format!("/api/v1/namespaces/{}/secrets/{}", text(&secret, "namespace"), text(&secret, "name"));
        self.state().store(&at, secret);
    }

    /// Publishes these keys of service-account tokens.
    pub fn put_jwks(&self, keys: Value) {
        self.state().store("/openid/v1/jwks", keys);
    }

    /// Sets the status of an execution.
    pub fn set_status(&self, namespace: &str, name: &str, status: Value) {
        let mut state = self.state();
        let at = path(namespace, "skillexecutions", name);
        let mut object = state.objects[&at].clone();
        object["status"] = status;
        state.store(&at, object);
    }

    /// Deletes the object of a path, if there is one.
    pub fn delete(&self, at: &str) {
        let mut state = self.state();
        if let Some(object) = state.objects.remove(at) {
            state.record("DELETED", at, &object);
        }
    }

    pub fn object(&self, at: &str) -> Option<Value> {
        self.state().objects.get(at).cloned()
    }

    /// Returns every execution.
    pub fn executions(&self) -> Vec<Value> {
        let state = self.state();
        let all = state.objects.iter().filter(|(at, _)| at.contains("/skillexecutions/"));
        all.map(|(_, object)| object.clone()).collect()
    }

    /// Gives this status to every execution right after its creation.
    pub fn set_status_on_create(&self, status: Value) {
        self.answer_on_create(move |_| Some(status.clone()));
    }

    /// Gives an execution the status that `answer` returns, right after its creation.
    pub fn answer_on_create(&self, answer: impl Fn(&Value) -> Option<Value> + Send + 'static) {
        self.state().status_on_create = Some(Box::new(answer));
    }

    /// Fails the next request whose line begins with `request`.
    pub fn fail_next(&self, request: &str, code: u16, message: &str) {
        self.state().faults.push((request.into(), code, message.into()));
    }

    /// Ends all watches and forgets the history, so that each client must list again.
    pub fn end_watches(&self) {
        let mut state = self.state();
        state.compacted = state.revision;
        state.revision += 1;
        state.watches.clear();
    }

    /// Keeps watches open without events, like a lost connection that nobody notices.
    pub fn mute_watches(&self) {
        self.state().are_watches_muted = true;
    }

    /// Counts the requests whose line begins with `request`.
    pub fn count(&self, request: &str) -> usize {
        self.state().requests.iter().filter(|line| line.starts_with(request)).count()
    }

    /// Returns the lines of all requests.
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    async fn handle(&self, request: Request<kube::client::Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let query = axum::extract::Query::<BTreeMap<String, String>>::try_from_uri(&parts.uri);
        let query = query.map(|query| query.0).unwrap_or_default();
        let find = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
        let at = parts.uri.path().to_owned();
        let line = format!("{} {}", parts.method, parts.uri);
        self.state().requests.push(line.clone());
        let is_review = at.ends_with("reviews");
        if is_review {
            // The sender lives as long as this server.
            self.is_reviewing.subscribe().wait_for(|is_reviewing| *is_reviewing).await.ok();
        }
        let mut state = self.state();
        if let Some(fault) = state.faults.iter().position(|(begin, ..)| line.starts_with(begin)) {
            let (_, code, message) = state.faults.remove(fault);
            let reason = if code == 404 { "NotFound" } else { "" };
            return failure(code, reason, &message);
        }
        match parts.method {
            Method::POST if is_review => state.reviews.handle(&at, &body),
            Method::POST => state.create(&at, body),
            Method::PATCH => state.patch(&at, &body),
            Method::PUT => state.replace(&at, body),
            _ if query.contains_key("watch") => {
                state.watch(&at, find("resourceVersion"), find("labelSelector"))
            }
            _ if is_collection(&at) => state.list(&at, find("labelSelector"), find("fieldSelector")),
            _ => state.objects.get(&at).map_or_else(|| failure(404, "NotFound", "not found"), respond),
        }
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Tells a path of many objects from the path of one, which has a name after the plural.
fn is_collection(at: &str) -> bool {
    let parts: Vec<&str> = at.trim_matches('/').split('/').collect();
    let start = if parts.first() == Some(&"api") { 2 } else { 3 };
    match parts.get(start..) {
        Some(["namespaces", _, _] | [_]) => true,
        Some(_) | None => false,
    }
}

/// Waits until `is_so` holds, at most ten seconds.
///
/// # Panics
/// If `is_so` does not hold in time.
pub async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), wait).await.is_ok(), "never so: {what}");
}
