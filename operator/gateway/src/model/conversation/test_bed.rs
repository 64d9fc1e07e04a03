//! A gateway of one process: rights, executions and a provider that says what a test wrote down for it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{Request, header};
use serde_json::{Value, json};
use skillet_api::SkillPolicySpec;
use skillet_kube::testing::{self, FakeApiServer};
use skillet_llm::confirmation::ConfirmationKey;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use crate::{
    auth::Caller,
    gateway_bed,
    model::{inject, proxy},
    state::GatewayState,
};

/// The provider's next responses, and the requests that it received.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<(&'static str, String)>>,
    asked: Mutex<Vec<String>>,
}

pub(super) struct Bed {
    /// Holds the executions and answers reviews.
    pub(super) api: FakeApiServer,
    pub(super) gateway: GatewayState,
    script: Arc<Script>,
}

pub(super) const KEY: [u8; 32] = [9; 32];

pub(super) fn key() -> ConfirmationKey {
    ConfirmationKey::new(&KEY).unwrap()
}

/// A service account of namespace `team`, or of another.
pub(super) fn caller(namespace: &str, account: &str) -> Caller {
    let user = format!("system:serviceaccount:{namespace}:{account}");
    Caller { namespace: namespace.into(), user: user.into(), groups: [].into() }
}

fn token(namespace: &str, account: &str) -> String {
    testing::token(
        &format!("{namespace}-{account}"),
        &json!({ "aud": ["skillet"], "exp": 4_000_000_000_u32 }),
    )
}

impl Bed {
    /// `team/agent` and `team/other` may use `team` and `platform`; every run ends at once with `{"paid": 5}`.
    pub(super) async fn new(confirmation: Option<ConfirmationKey>) -> Self {
        let (api, script) = (FakeApiServer::default(), Arc::<Script>::default());
        api.set_status_on_create(json!({ "phase": "Succeeded", "reason": "Succeeded", "attempts": 1,
            "truncated": false, "output": { "paid": 5 } }));
        let mut policy = SkillPolicySpec::default();
        policy.gateway.platform_namespaces = vec!["platform".into()];
        let provider = serve(script.clone()).await;
        for of in [
            &mut policy.gateway.providers.openai,
            &mut policy.gateway.providers.anthropic,
            &mut policy.gateway.providers.gemini,
        ] {
            of.base_url.clone_from(&provider);
        }
        let gateway = gateway_bed::gateway(&api, confirmation);
        gateway.catalog.set_policy(policy);
        let bed = Self { api, gateway, script };
        bed.skill("team", "pay", "hybrid");
        bed.skill("team", "look", "auto");
        for account in ["agent", "other"] {
            bed.api.add_token(&token("team", account), "team", account);
            bed.allow(account);
        }
        bed
    }

    /// To get and execute all skills of `team` and `platform`.
    pub(super) fn allow(&self, account: &str) {
        let user = caller("team", account).user;
        for namespace in ["team", "platform"] {
            for verb in ["get", "execute"] {
                self.api.allow(&user, verb, namespace, None);
                for skill in ["pay", "look"] {
                    self.api.allow(&user, verb, namespace, Some(skill));
                }
            }
        }
    }

    /// A skill that is always offered.
    pub(super) fn skill(&self, namespace: &str, name: &str, invocation: &str) {
        gateway_bed::put_skill(&self.gateway, namespace, name, invocation);
    }

    /// Sets the provider's response to the next request.
    pub(super) fn will_say(&self, answer: &Value) {
        self.will_write("application/json", answer.to_string());
    }

    pub(super) fn will_write(&self, kind: &'static str, text: String) {
        self.script.answers.lock().unwrap().push_back((kind, text));
    }

    /// The last request that the provider got.
    pub(super) fn asked(&self) -> Value {
        serde_json::from_str(&self.asked_texts().pop().unwrap()).unwrap()
    }

    /// Every request that the provider got, as it was written.
    pub(super) fn asked_texts(&self) -> Vec<String> {
        self.script.asked.lock().unwrap().clone()
    }

    /// `team/agent` asks on a route.
    pub(super) async fn send(&self, path: &str, body: &Value) -> String {
        self.send_as("agent", path, &[], body).await
    }

    pub(super) async fn json(&self, path: &str, body: &Value) -> Value {
        let text = self.send(path, body).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub(super) async fn send_as(
        &self,
        account: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> String {
        self.send_text(account, path, headers, body.to_string()).await.1
    }

    /// The answer's status and text.
    pub(super) async fn send_text(
        &self,
        account: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> (u16, String) {
        let response = self.response(account, path, headers, body.into()).await;
        let status = response.status().as_u16();
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 24).await.unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Sends a request as `team/agent`, and returns the response before its body is complete.
    pub(super) async fn respond(&self, path: &str, body: &Value) -> Response {
        self.response("agent", path, &[], body.to_string().into()).await
    }

    async fn response(&self, account: &str, path: &str, headers: &[(&str, &str)], body: Body) -> Response {
        let mut request = Request::builder()
            .method("POST")
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {}", token("team", account)));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).unwrap();
        let routes = Router::new().merge(proxy::routes()).merge(inject::routes());
        routes.with_state(self.gateway.clone()).oneshot(request).await.unwrap()
    }

    /// Returns the number of executions that were ever created.
    pub(super) fn made(&self) -> usize {
        self.api.count("POST /apis/skillet.dev/v1alpha1/namespaces/")
    }
}

async fn serve(script: Arc<Script>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new().fallback(say).with_state(script);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    format!("http://{address}")
}

async fn say(State(script): State<Arc<Script>>, body: String) -> Response {
    script.asked.lock().unwrap().push(body);
    let (kind, text) = script.answers.lock().unwrap().pop_front().unwrap();
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
