//! A small API server inside the test: it answers reviews, lists and watches Secrets, and counts what it was asked.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{Request, Response};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tower::service_fn;

/// What it answers, and what it was asked.
pub(crate) struct FakeApi {
    state: Mutex<State>,
    /// False holds every answer back.
    is_answering: watch::Sender<bool>,
    secret_events: tokio::sync::Mutex<mpsc::UnboundedReceiver<Value>>,
    send_event: mpsc::UnboundedSender<Value>,
}

#[derive(Default)]
struct State {
    /// Token -> status of its TokenReview.
    tokens: HashMap<String, Value>,
    /// Resource attributes that are allowed, each with its user.
    rights: HashSet<(String, String)>,
    secrets: Vec<Value>,
    is_down: bool,
    asked: Vec<(&'static str, Value)>,
}

/// A token as the API server would sign it, without the signature.
pub(crate) fn token(name: &str, claims: &Value) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", part("{\"alg\":\"none\"}"), part(&claims.to_string()), part(name))
}

impl FakeApi {
    pub(crate) fn start() -> Arc<Self> {
        let (send_event, secret_events) = mpsc::unbounded_channel();
        Arc::new(Self {
            state: Mutex::default(),
            is_answering: watch::channel(true).0,
            secret_events: tokio::sync::Mutex::new(secret_events),
            send_event,
        })
    }

    pub(crate) fn client(self: &Arc<Self>) -> Client {
        let api = Arc::clone(self);
        let service = service_fn(move |request| {
            let api = Arc::clone(&api);
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        Client::new(service, "default")
    }

    /// A service account's token is known from now on.
    pub(crate) fn know(&self, token: &str, namespace: &str, account: &str) {
        let user = json!({
            "username": format!("system:serviceaccount:{namespace}:{account}"),
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"],
        });
        let status = json!({ "authenticated": true, "audiences": ["skillet"], "user": user });
        self.change(|state| state.tokens.insert(token.to_owned(), status));
    }

    pub(crate) fn forget(&self, token: &str) {
        self.change(|state| state.tokens.remove(token));
    }

    /// A user may do this from now on: with one skill, or with all of the namespace.
    pub(crate) fn allow(&self, user: &str, verb: &str, namespace: &str, skill: Option<&str>) {
        let mut request = json!({ "group": "skillet.dev", "version": "v1alpha1", "resource": "skills",
            "verb": verb, "namespace": namespace });
        if let Some(skill) = skill {
            request["name"] = json!(skill);
        }
        self.change(|state| state.rights.insert((user.to_owned(), request.to_string())));
    }

    pub(crate) fn withdraw_all(&self) {
        self.change(|state| state.rights.clear());
    }

    /// Every answer is an error as long as it is down.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.change(|state| state.is_down = is_down);
    }

    /// Holds every answer back as long as it is false.
    pub(crate) fn set_answering(&self, is_answering: bool) {
        self.is_answering.send_replace(is_answering);
    }

    /// Is there from the start.
    pub(crate) fn list_secret(&self, secret: Value) {
        self.change(|state| state.secrets.push(secret));
    }

    /// What the watch tells next: `ADDED`, `MODIFIED` or `DELETED`.
    pub(crate) fn tell_of_secret(&self, event: &str, secret: &Value) {
        self.send_event.send(json!({ "type": event, "object": secret })).unwrap();
    }

    /// How often it was asked for `tokenreviews`, `subjectaccessreviews` or `secrets`.
    pub(crate) fn asked(&self, what: &str) -> usize {
        self.change(|state| state.asked.iter().filter(|(asked, _)| *asked == what).count())
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let query = head.uri.query().unwrap_or_default().to_owned();
        let what = ["tokenreviews", "subjectaccessreviews", "secrets"]
            .into_iter()
            .find(|what| head.uri.path().ends_with(what))
            .unwrap_or_else(|| panic!("asked for {}", head.uri));
        self.change(|state| state.asked.push((what, body.clone())));
        self.is_answering.subscribe().wait_for(|is_answering| *is_answering).await.unwrap();
        if self.change(|state| state.is_down) {
            let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
                "message": "secret words of the cluster", "reason": "InternalError" });
            return response(500, &status);
        }
        match what {
            "tokenreviews" => response(201, &self.token_review(&body)),
            "subjectaccessreviews" => response(201, &self.access_review(&body)),
            _ => {
                assert!(query.contains("labelSelector=skillet.dev%2Fapi-key%3Dtrue"), "{query}");
                self.secrets(query.contains("watch=true")).await
            }
        }
    }

    fn token_review(&self, review: &Value) -> Value {
        assert_eq!(review["spec"]["audiences"], json!(["skillet"]));
        let token = review["spec"]["token"].as_str().unwrap();
        let known = self.change(|state| state.tokens.get(token).cloned());
        let status = known.unwrap_or_else(|| json!({ "authenticated": false, "error": "invalid token" }));
        json!({ "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {}, "status": status })
    }

    fn access_review(&self, review: &Value) -> Value {
        let user = review["spec"]["user"].as_str().unwrap().to_owned();
        let request = (user, review["spec"]["resourceAttributes"].to_string());
        let is_allowed = self.change(|state| state.rights.contains(&request));
        json!({ "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {},
            "status": { "allowed": is_allowed } })
    }

    /// The list, or the next event, after which the connection ends as a real one does now and then.
    async fn secrets(&self, is_watch: bool) -> Response<Body> {
        if is_watch {
            let event = self.secret_events.lock().await.recv().await.unwrap();
            // In the order of a real one, which tells first what comes.
            let line = format!("{{\"type\":{},\"object\":{}}}\n", event["type"], event["object"]);
            return Response::builder().status(200).body(Body::from(line.into_bytes())).unwrap();
        }
        let items = self.change(|state| state.secrets.clone());
        response(
            200,
            &json!({ "kind": "SecretList", "apiVersion": "v1",
            "metadata": { "resourceVersion": "1" }, "items": items }),
        )
    }
}

fn response(status: u16, body: &Value) -> Response<Body> {
    let body = Body::from(format!("{body}\n").into_bytes());
    Response::builder().status(status).body(body).unwrap()
}

/// Waits for a state that other tasks bring about.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}
