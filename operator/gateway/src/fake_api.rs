//! An API server of one process for tests: create, get, list, merge patch, delete and watch, with its faults on call.
//!
//! It knows nothing of schemas; what it keeps and answers is what a real one would.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt as _, channel::mpsc, stream};
use http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tower::service_fn;

/// Shared with the client made of it.
#[derive(Clone, Default)]
pub(crate) struct FakeApi(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    revision: u64,
    /// By path, as in `/apis/skillet.dev/v1alpha1/namespaces/ns/skillexecutions/a`.
    objects: BTreeMap<String, Value>,
    history: Vec<(u64, Value)>,
    /// Revisions up to this one are watched no more.
    compacted: u64,
    watches: Vec<(String, mpsc::UnboundedSender<Bytes>)>,
    /// Requests seen, as `GET /path?query`.
    seen: Vec<String>,
    /// The next requests whose line begins so are answered with this status instead.
    faults: Vec<(String, u16, String)>,
    /// What is done just after the next creation, before it is answered.
    after_create: Option<Value>,
    is_watch_silent: bool,
}

const GROUP: &str = "/apis/skillet.dev/v1alpha1";

pub(crate) fn path(namespace: &str, plural: &str, name: &str) -> String {
    format!("{GROUP}/namespaces/{namespace}/{plural}/{name}")
}

impl FakeApi {
    pub(crate) fn client(&self) -> kube::Client {
        let api = self.clone();
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        kube::Client::new(service, "default")
    }

    /// Stores an object, as if someone else had.
    pub(crate) fn put(&self, plural: &str, object: Value) {
        let meta = &object["metadata"];
        let at = path(meta["namespace"].as_str().unwrap(), plural, meta["name"].as_str().unwrap());
        self.0.lock().unwrap().store(&at, object);
    }

    /// Ends an execution, or moves it on.
    pub(crate) fn set_status(&self, namespace: &str, name: &str, status: Value) {
        let mut state = self.0.lock().unwrap();
        let at = path(namespace, "skillexecutions", name);
        let mut object = state.objects[&at].clone();
        object["status"] = status;
        state.store(&at, object);
    }

    pub(crate) fn delete(&self, at: &str) {
        let mut state = self.0.lock().unwrap();
        let object = state.objects.remove(at).unwrap();
        state.record("DELETED", &object);
    }

    pub(crate) fn object(&self, at: &str) -> Option<Value> {
        self.0.lock().unwrap().objects.get(at).cloned()
    }

    pub(crate) fn executions(&self) -> Vec<Value> {
        let state = self.0.lock().unwrap();
        let all = state.objects.iter().filter(|(at, _)| at.contains("/skillexecutions/"));
        all.map(|(_, object)| object.clone()).collect()
    }

    /// Every execution made from now on has this status from its first moment.
    pub(crate) fn end_at_creation(&self, status: Value) {
        self.0.lock().unwrap().after_create = Some(status);
    }

    pub(crate) fn fail(&self, request: &str, code: u16, message: &str) {
        self.0.lock().unwrap().faults.push((request.into(), code, message.into()));
    }

    /// Ends all watches; they must list again, since what happened meanwhile is forgotten.
    pub(crate) fn interrupt(&self) {
        let mut state = self.0.lock().unwrap();
        state.compacted = state.revision;
        state.revision += 1;
        state.watches.clear();
    }

    /// Changes are told to no watch any more, as when a connection is lost and nobody notices.
    pub(crate) fn silence_watches(&self) {
        self.0.lock().unwrap().is_watch_silent = true;
    }

    pub(crate) fn count(&self, request: &str) -> usize {
        self.0.lock().unwrap().seen.iter().filter(|line| line.starts_with(request)).count()
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.0.lock().unwrap().seen.clone()
    }

    async fn answer(&self, request: Request<kube::client::Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let query: Vec<(String, String)> = axum::extract::Query::try_from_uri(&parts.uri).unwrap().0;
        let find = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let mut state = self.0.lock().unwrap();
        state.seen.push(format!("{} {}", parts.method, parts.uri));
        let line = state.seen.last().cloned().unwrap_or_default();
        if let Some(fault) = state.faults.iter().position(|(begin, ..)| line.starts_with(begin)) {
            let (_, code, message) = state.faults.remove(fault);
            let reason = if code == 404 { "NotFound" } else { "" };
            return failure(code, reason, &message);
        }
        let at = parts.uri.path().to_owned();
        let is_collection = matches!(at.rsplit('/').next(), Some("skillexecutions" | "skills"));
        match parts.method {
            Method::POST => state.create(&at, body),
            Method::PATCH => state.patch(&at, &body),
            _ if find("watch").is_some() => state.watch(&at, find("resourceVersion").as_deref()),
            _ if is_collection => {
                let labels = find("labelSelector").unwrap_or_default();
                let fields = find("fieldSelector").unwrap_or_default();
                state.list(&at, &labels, &fields)
            }
            _ => state.objects.get(&at).map_or_else(|| failure(404, "NotFound", "not found"), answer),
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
        self.record(kind, &object);
    }

    fn record(&mut self, kind: &str, object: &Value) {
        self.revision += 1;
        let event = json!({ "type": kind, "object": object });
        self.history.push((self.revision, event.clone()));
        if !self.is_watch_silent {
            self.watches.retain(|(_, watch)| watch.unbounded_send(line(&event)).is_ok());
        }
    }

    fn create(&mut self, at: &str, mut object: Value) -> Response<Body> {
        let meta = &mut object["metadata"];
        if meta["name"].is_null() {
            let base = meta["generateName"].as_str().unwrap_or_default().to_owned();
            meta["name"] = json!(format!("{base}{}", self.revision));
        }
        let at = format!("{at}/{}", meta["name"].as_str().unwrap());
        if self.objects.contains_key(&at) {
            return failure(409, "AlreadyExists", "it is there already");
        }
        self.store(&at, object);
        let created = answer(&self.objects[&at]);
        if let Some(status) = self.after_create.clone() {
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
        for (name, value) in patch["spec"].as_object().unwrap() {
            object["spec"][name] = value.clone();
        }
        self.store(at, object);
        answer(&self.objects[at])
    }

    fn list(&self, at: &str, labels: &str, fields: &str) -> Response<Body> {
        let within = at.strip_prefix(GROUP).unwrap_or_default();
        let plural = at.rsplit('/').next().unwrap_or_default();
        let is_inside = |key: &String| {
            if within.starts_with("/namespaces/") {
                key.starts_with(at)
            } else {
                key.contains(&format!("/{plural}/"))
            }
        };
        let items = self.objects.iter().filter(|(key, _)| is_inside(key)).map(|(_, object)| object);
        let items: Vec<&Value> = items
            .filter(|object| selects(labels, &object["metadata"]["labels"]))
            .filter(|object| selects(fields, object))
            .collect();
        answer(&json!({ "metadata": { "resourceVersion": self.revision.to_string() }, "items": items }))
    }

    fn watch(&mut self, at: &str, since: Option<&str>) -> Response<Body> {
        let since: u64 = since.and_then(|text| text.parse().ok()).unwrap_or_default();
        if since <= self.compacted && self.compacted > 0 {
            let gone = json!({ "type": "ERROR", "object": { "code": 410, "status": "Failure", "reason": "Expired", "message": "too old" } });
            return streamed(stream::iter([line(&gone)]).boxed());
        }
        let missed: Vec<Bytes> = self
            .history
            .iter()
            .filter(|(revision, _)| *revision > since)
            .map(|(_, event)| line(event))
            .collect();
        let (sender, live) = mpsc::unbounded();
        self.watches.push((at.to_owned(), sender));
        streamed(stream::iter(missed).chain(live).boxed())
    }
}

/// `a.b=c` and `a.b!=c`, separated by commas; for labels the whole name is one key.
fn selects(selector: &str, of: &Value) -> bool {
    selector.split(',').filter(|term| !term.is_empty()).all(|term| {
        let (is_not, (key, wanted)) = match term.split_once("!=") {
            Some(pair) => (true, pair),
            None => (false, term.split_once('=').unwrap()),
        };
        let found = of.get(key).or_else(|| of.pointer(&format!("/{}", key.replace('.', "/"))));
        (found.and_then(Value::as_str).unwrap_or_default() == wanted) != is_not
    })
}

fn line(event: &Value) -> Bytes {
    // In the order of a real one, which tells first what comes.
    format!("{{\"type\":{},\"object\":{}}}\n", event["type"], event["object"]).into()
}

fn answer(object: &Value) -> Response<Body> {
    Response::new(object.to_string().into())
}

fn streamed(lines: stream::BoxStream<'static, Bytes>) -> Response<Body> {
    Response::new(Body::from_stream(lines.map(Ok::<_, Infallible>)))
}

fn failure(code: u16, reason: &str, message: &str) -> Response<Body> {
    let status =
        json!({ "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message });
    let mut response = Response::new(status.to_string().into());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

/// Waits for a state of the world, at most ten seconds.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), wait).await.is_ok(), "never so: {what}");
}
