//! Log lines and executions of a request carry its id.

use std::{
    io,
    sync::{Arc, LazyLock, Mutex},
};

use axum::{body::Body, middleware};
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use tracing::{Dispatch, subscriber::DefaultGuard};

use super::{AGENT, CALLING, CHAT, SAYING, TestGateway, key, stocked};
use crate::{model::proxy, request_id};

/// The log of this test's thread.
#[derive(Clone, Default)]
pub(in crate::model::conversation) struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// While one subscriber is the only one, tracing asks the thread that first meets a line of log if anybody wants it. That
/// may be the thread of another test, which has no subscriber.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));

impl Log {
    pub(in crate::model::conversation) fn capture() -> (Self, DefaultGuard) {
        LazyLock::force(&SECOND);
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
        (log, tracing::subscriber::set_default(subscriber.finish()))
    }

    pub(in crate::model::conversation) fn line(&self, message: &str) -> String {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let line = text.lines().find(|line| line.contains(message));
        line.unwrap_or_else(|| panic!("{message} is not in {text}")).to_owned()
    }
}

/// Sends a request of `team/agent` through the middleware, and reads the response to its end.
pub(in crate::model::conversation) async fn send(gateway: &TestGateway, id: &str, mut body: Value) {
    body["messages"] = json!([{ "role": "user", "content": "x" }]);
    let request = Request::post(CHAT)
        .header("authorization", format!("Bearer {}", gateway.token(AGENT)))
        .header("x-request-id", id)
        .body(Body::from(body.to_string()))
        .unwrap();
    let routes = proxy::routes().layer(middleware::from_fn(request_id::trace));
    let response = routes.with_state(gateway.model.clone()).oneshot(request).await.unwrap();
    // A stream that breaks off is an error here.
    axum::body::to_bytes(response.into_body(), 1 << 20).await.ok();
}

pub(in crate::model::conversation) fn check(line: &str, id: &str) {
    let span = format!(
        "request{{id=\"{id}\" route=\"{CHAT}\" caller_namespace=\"team\" caller=\"system:serviceaccount:team:agent\"}}"
    );
    assert!(line.contains(&span), "{line}");
}

#[tokio::test]
async fn log_lines_of_a_request_and_of_its_execution_carry_the_request_id() {
    let (log, _guard) = Log::capture();
    let gateway = stocked(Some(key()));
    gateway.api.fail_next("POST /apis/skillet.dev/v1alpha1/namespaces/team/skillexecutions", 500, "no");
    gateway.provider.will_write("application/json", CALLING.to_owned());
    gateway.provider.will_write("application/json", SAYING.to_owned());
    send(&gateway, "r-1", json!({ "model": "m" })).await;
    check(&log.line("Skill could not be run"), "r-1");
}

#[tokio::test]
async fn an_execution_carries_the_request_id_as_an_annotation() {
    let gateway = stocked(Some(key()));
    gateway.provider.will_write("application/json", CALLING.to_owned());
    gateway.provider.will_write("application/json", SAYING.to_owned());
    send(&gateway, "r-3", json!({ "model": "m" })).await;
    let executions = gateway.api.executions();
    assert_eq!(executions[0]["metadata"]["annotations"], json!({ "skillet.dev/request-id": "r-3" }));
}
