//! An API server inside the test's process: objects, watches, reviews and faults, without a network.
//!
//! It creates, gets, lists, patches, deletes and watches objects of any kind. It knows no schemas and no defaults, and a
//! merge patch changes only `spec`. Tests add objects, tokens and rights, make requests fail, and count requests.

mod reviews;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt as _, channel::mpsc, stream};
use http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::service_fn;

use self::reviews::Reviews;
pub use self::reviews::token;
use crate::lock;

/// A handle to the server. Clones share its state.
#[derive(Clone)]
pub struct FakeApiServer {
    state: Arc<Mutex<State>>,
    is_reviewing: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    revision: u64,
    /// By path, as in `/apis/skillet.dev/v1alpha1/namespaces/ns/skillexecutions/a`.
    objects: BTreeMap<String, Value>,
    history: Vec<Change>,
    /// Revisions up to this one can no longer be watched.
    compacted: u64,
    watches: Vec<Watch>,
    /// Requests seen, as `GET /path?query`.
    requests: Vec<String>,
    /// The beginning of a request's line, and the status and message of the response to the next such request.
    faults: Vec<(String, u16, String)>,
    /// The status that each execution gets right after its creation.
    status_on_create: Option<Value>,
    are_watches_muted: bool,
    reviews: Reviews,
}

struct Change {
    revision: u64,
    path: String,
    event: Value,
}

struct Watch {
    collection: String,
    labels: String,
    events: mpsc::UnboundedSender<Bytes>,
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
        let (namespace, name) = (text(&object, "namespace"), text(&object, "name"));
        self.state().store(&path(namespace, plural, name), object.clone());
    }

    /// Stores a Secret, as another client would.
    pub fn put_secret(&self, secret: Value) {
        self.state().store(&secret_path(&secret), secret.clone());
    }

    pub fn delete_secret(&self, secret: &Value) {
        self.delete(&secret_path(secret));
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
        self.state().status_on_create = Some(status);
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
            _ if query.contains_key("watch") => {
                state.watch(&at, find("resourceVersion"), find("labelSelector"))
            }
            _ if is_collection(&at) => state.list(&at, find("labelSelector"), find("fieldSelector")),
            _ => state.objects.get(&at).map_or_else(|| failure(404, "NotFound", "not found"), respond),
        }
    }
}

impl State {
    fn store(&mut self, at: &str, mut object: Value) {
        self.revision += 1;
        let meta = &mut object["metadata"];
        meta["resourceVersion"] = json!(self.revision.to_string());
        if meta["uid"].is_null() {
            meta["uid"] = json!(format!("uid-{}", self.revision));
            meta["creationTimestamp"] =
                json!(format!("2026-01-01T00:{:02}:{:02}Z", self.revision / 60, self.revision % 60));
        }
        let kind =
            if self.objects.insert(at.to_owned(), object.clone()).is_some() { "MODIFIED" } else { "ADDED" };
        self.record(kind, at, &object);
    }

    fn record(&mut self, kind: &str, at: &str, object: &Value) {
        self.revision += 1;
        let change = Change {
            revision: self.revision,
            path: at.to_owned(),
            event: json!({ "type": kind, "object": object }),
        };
        if !self.are_watches_muted {
            self.watches.retain(|watch| {
                !change.concerns(&watch.collection, &watch.labels)
                    || watch.events.unbounded_send(change.line()).is_ok()
            });
        }
        self.history.push(change);
    }

    fn create(&mut self, at: &str, mut object: Value) -> Response<Body> {
        let meta = &mut object["metadata"];
        if meta["name"].is_null() {
            let base = meta["generateName"].as_str().unwrap_or_default().to_owned();
            meta["name"] = json!(format!("{base}{}", self.revision));
        }
        let at = format!("{at}/{}", text(&object, "name"));
        if self.objects.contains_key(&at) {
            return failure(409, "AlreadyExists", "the object already exists");
        }
        self.store(&at, object);
        let created = respond(&self.objects[&at]);
        if let Some(status) = self.status_on_create.clone() {
            let mut ended = self.objects[&at].clone();
            ended["status"] = status;
            self.store(&at, ended);
        }
        created
    }

    fn patch(&mut self, at: &str, patch: &Value) -> Response<Body> {
        let Some(mut object) = self.objects.get(at).cloned() else {
            return failure(404, "NotFound", "not found");
        };
        if patch["metadata"]["uid"] != object["metadata"]["uid"] {
            return failure(409, "Conflict", "precondition failed");
        }
        for (name, value) in patch["spec"].as_object().into_iter().flatten() {
            object["spec"][name] = value.clone();
        }
        self.store(at, object);
        respond(&self.objects[at])
    }

    fn list(&self, collection: &str, labels: &str, fields: &str) -> Response<Body> {
        let items = self.objects.iter().filter(|(at, _)| is_inside(at, collection)).map(|(_, object)| object);
        let items: Vec<&Value> = items
            .filter(|object| selects(labels, &object["metadata"]["labels"]))
            .filter(|object| selects(fields, object))
            .collect();
        respond(&json!({ "metadata": { "resourceVersion": self.revision.to_string() }, "items": items }))
    }

    fn watch(&mut self, collection: &str, since: &str, labels: &str) -> Response<Body> {
        let since: u64 = since.parse().unwrap_or_default();
        if since <= self.compacted && self.compacted > 0 {
            let gone = json!({ "type": "ERROR", "object": { "code": 410, "status": "Failure", "reason": "Expired", "message": "too old" } });
            return stream_lines(stream::iter([event_line(&gone)]).boxed());
        }
        let missed = self.history.iter().filter(|change| change.revision > since);
        let missed = missed.filter(|change| change.concerns(collection, labels));
        let missed: Vec<Bytes> = missed.map(Change::line).collect();
        let (events, live) = mpsc::unbounded();
        self.watches.push(Watch { collection: collection.into(), labels: labels.into(), events });
        stream_lines(stream::iter(missed).chain(live).boxed())
    }
}

impl Change {
    fn concerns(&self, collection: &str, labels: &str) -> bool {
        is_inside(&self.path, collection) && selects(labels, &self.event["object"]["metadata"]["labels"])
    }

    fn line(&self) -> Bytes {
        event_line(&self.event)
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

fn secret_path(secret: &Value) -> String {
    format!("/api/v1/namespaces/{}/secrets/{}", text(secret, "namespace"), text(secret, "name"))
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

/// Tells if an object belongs to a collection of one namespace or of all.
fn is_inside(at: &str, collection: &str) -> bool {
    let (root, plural) = collection.rsplit_once('/').unwrap_or_default();
    at.strip_prefix(root).is_some_and(|rest| rest.starts_with('/')) && at.rsplit('/').nth(1) == Some(plural)
}

/// Evaluates `a.b=c` and `a.b!=c`, separated by commas. For labels the whole name is one key.
fn selects(selector: &str, of: &Value) -> bool {
    selector.split(',').filter(|term| !term.is_empty()).all(|term| {
        let (is_not, (key, wanted)) = match term.split_once("!=") {
            Some(pair) => (true, pair),
            None => (false, term.split_once('=').unwrap_or((term, ""))),
        };
        let found = of.get(key).or_else(|| of.pointer(&format!("/{}", key.replace('.', "/"))));
        (found.and_then(Value::as_str).unwrap_or_default() == wanted) != is_not
    })
}

fn event_line(event: &Value) -> Bytes {
    // A real server, too, writes the type first.
    format!("{{\"type\":{},\"object\":{}}}\n", event["type"], event["object"]).into()
}

fn respond(object: &Value) -> Response<Body> {
    Response::new(object.to_string().into())
}

fn stream_lines(lines: stream::BoxStream<'static, Bytes>) -> Response<Body> {
    Response::new(Body::from_stream(lines.map(Ok::<_, Infallible>)))
}

fn failure(code: u16, reason: &str, message: &str) -> Response<Body> {
    let status =
        json!({ "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message });
    let mut response = respond(&status);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
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
