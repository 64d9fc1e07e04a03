//! The objects of the fake server, their history, and the watches over them.

use std::{collections::BTreeMap, convert::Infallible};

use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt as _, channel::mpsc, stream};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::{reviews::Reviews, text};

#[derive(Default)]
pub(super) struct State {
    pub(super) revision: u64,
    /// By path, as in `/apis/skillet.dev/v1alpha1/namespaces/ns/skillexecutions/a`.
    pub(super) objects: BTreeMap<String, Value>,
    pub(super) history: Vec<Change>,
    /// Revisions up to this one can no longer be watched.
    pub(super) compacted: u64,
    pub(super) watches: Vec<Watch>,
    /// Requests seen, as `GET /path?query`.
    pub(super) requests: Vec<String>,
    /// The beginning of a request's line, and the status and message of the response to the next such request.
    pub(super) faults: Vec<(String, u16, String)>,
    /// Returns the status that an execution gets right after its creation.
    pub(super) status_on_create: Option<StatusOnCreate>,
    pub(super) are_watches_muted: bool,
    pub(super) reviews: Reviews,
}

pub(super) type StatusOnCreate = Box<dyn Fn(&Value) -> Option<Value> + Send>;

pub(super) struct Change {
    pub(super) revision: u64,
    pub(super) path: String,
    pub(super) event: Value,
}

pub(super) struct Watch {
    pub(super) collection: String,
    pub(super) labels: String,
    pub(super) events: mpsc::UnboundedSender<Bytes>,
}

impl State {
    pub(super) fn store(&mut self, at: &str, mut object: Value) {
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

    pub(super) fn record(&mut self, kind: &str, at: &str, object: &Value) {
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

    pub(super) fn create(&mut self, at: &str, mut object: Value) -> Response<Body> {
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
        let status = self.status_on_create.as_ref().and_then(|status| status(&self.objects[&at]));
        if let Some(status) = status {
            let mut ended = self.objects[&at].clone();
            ended["status"] = status;
            self.store(&at, ended);
        }
        created
    }

    pub(super) fn patch(&mut self, at: &str, patch: &Value) -> Response<Body> {
        let (at, content) = at.strip_suffix("/status").map_or((at, "spec"), |at| (at, "status"));
        let Some(mut object) = self.objects.get(at).cloned() else {
            return failure(404, "NotFound", "not found");
        };
        if patch["metadata"]["uid"] != object["metadata"]["uid"] {
            return failure(409, "Conflict", "precondition failed");
        }
        for (name, value) in patch[content].as_object().into_iter().flatten() {
            object[content][name] = value.clone();
        }
        for part in ["labels", "annotations"] {
            for (name, value) in patch["metadata"][part].as_object().into_iter().flatten() {
                object["metadata"][part][name] = value.clone();
            }
        }
        self.store(at, object);
        respond(&self.objects[at])
    }

    /// Replaces an object, unless it has changed since the client read it.
    pub(super) fn replace(&mut self, at: &str, object: Value) -> Response<Body> {
        let Some(known) = self.objects.get(at) else { return failure(404, "NotFound", "not found") };
        if object["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"] {
            return failure(409, "Conflict", "the object has changed");
        }
        self.store(at, object);
        respond(&self.objects[at])
    }

    pub(super) fn list(&self, collection: &str, labels: &str, fields: &str) -> Response<Body> {
        let items = self.objects.iter().filter(|(at, _)| is_inside(at, collection)).map(|(_, object)| object);
        let items: Vec<&Value> = items
            .filter(|object| selects(labels, &object["metadata"]["labels"]))
            .filter(|object| selects(fields, object))
            .collect();
        respond(&json!({ "metadata": { "resourceVersion": self.revision.to_string() }, "items": items }))
    }

    pub(super) fn watch(&mut self, collection: &str, since: &str, labels: &str) -> Response<Body> {
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

pub(super) fn respond(object: &Value) -> Response<Body> {
    Response::new(object.to_string().into())
}

fn stream_lines(lines: stream::BoxStream<'static, Bytes>) -> Response<Body> {
    Response::new(Body::from_stream(lines.map(Ok::<_, Infallible>)))
}

pub(super) fn failure(code: u16, reason: &str, message: &str) -> Response<Body> {
    let status =
        json!({ "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message });
    let mut response = respond(&status);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}
