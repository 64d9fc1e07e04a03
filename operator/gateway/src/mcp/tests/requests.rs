//! The HTTP side: who is let in, whose a session is, what is no message.

use std::convert::Infallible;

use axum::body::Body;
use futures::{StreamExt as _, stream};
use http::{Request, StatusCode};
use reqwest::{Client as Http, RequestBuilder, Response};
use serde_json::json;
use tower::ServiceExt as _;

use super::*;
use crate::mcp::session::SESSIONS_PER_CALLER;

const SESSION: &str = "mcp-session-id";

fn post(server: &McpServer, token: Option<&str>, session: Option<&str>) -> RequestBuilder {
    let mut request = Http::new()
        .post(&server.url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(token) = token {
        request = request.bearer_auth(server.gateway.token(token));
    }
    if let Some(session) = session {
        request = request.header(SESSION, session);
    }
    request
}

fn message(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

fn initialize() -> String {
    let client = json!({ "name": "test", "version": "1" });
    message(
        "initialize",
        &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client }),
    )
}

async fn open(server: &McpServer, token: &str) -> String {
    let answer = post(server, Some(token), None).body(initialize()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    answer.headers()[SESSION].to_str().unwrap().to_owned()
}

/// The JSON-RPC answer in a stream of events.
async fn answer(response: Response) -> Value {
    let text = response.text().await.unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    data.filter_map(|data| serde_json::from_str(data).ok()).next_back().unwrap_or_else(|| panic!("{text}"))
}

#[tokio::test]
async fn who_has_no_token_or_an_unknown_one_is_not_let_in() {
    let server = McpServer::start().await;
    for token in [None, Some("unknown")] {
        for request in [
            post(&server, token, None).body(initialize()),
            post(&server, token, Some("x")).body(message("tools/list", &json!({}))),
            post(&server, token, None).body("{"),
        ] {
            let refused = request.send().await.unwrap();
            assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
            assert_eq!(refused.headers()["www-authenticate"], "Bearer");
            let error: Value = serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
            assert_eq!(error["error"]["code"], "Unauthorized");
        }
    }
}

#[tokio::test]
async fn a_session_is_of_who_opened_it_by_every_method() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "of-a", &json!({}));
    let session = open(&server, "a/agent").await;
    for token in ["b/agent", "a/other"] {
        let list = post(&server, Some(token), Some(&session)).body(message("tools/list", &json!({}))).send();
        let notices =
            Http::new().get(&server.url).bearer_auth(server.gateway.token(token)).header(SESSION, &session);
        let notices = notices.header("accept", "text/event-stream").send();
        let close = Http::new()
            .delete(&server.url)
            .bearer_auth(server.gateway.token(token))
            .header(SESSION, &session)
            .send();
        for refused in [list.await, notices.await, close.await] {
            assert_eq!(refused.unwrap().status(), StatusCode::NOT_FOUND, "{token}");
        }
    }
    let own = post(&server, Some("a/agent"), Some(&session))
        .body(message("tools/list", &json!({})))
        .send()
        .await
        .unwrap();
    assert_eq!(own.status(), StatusCode::OK, "and it is still open");
    assert!(answer(own).await["result"]["tools"].to_string().contains("of-a"));
}

#[tokio::test]
async fn a_session_continues_at_another_replica() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    let replica = server.replica().await;
    let session = open(&server, "a/agent").await;
    let list = || message("tools/list", &json!({}));
    let elsewhere = post(&replica, Some("a/agent"), Some(&session)).body(list()).send().await.unwrap();
    assert!(answer(elsewhere).await["result"]["tools"].to_string().contains("sum"));
    let stolen = post(&replica, Some("b/agent"), Some(&session)).body(list()).send().await.unwrap();
    assert_eq!(stolen.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_request_that_stands_for_itself_needs_no_session() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = post(&server, Some("a/agent"), None)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/list")
        .body(message("tools/list", &json!({ "_meta": meta })));
    let answer = request.send().await.unwrap();
    assert_eq!((answer.status(), answer.headers().get(SESSION)), (StatusCode::OK, None));
    let answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert!(answer["result"]["tools"].to_string().contains("sum"), "{answer}");
    assert_eq!((&answer["result"]["cacheScope"], &answer["result"]["ttlMs"]), (&json!("private"), &json!(0)));
}

#[tokio::test]
async fn a_malformed_message_gets_a_json_rpc_error() {
    let server = McpServer::start().await;
    for body in ["", "{", "[]", "null", "{\"jsonrpc\":\"1.0\"}", "\u{0}", &"[".repeat(100_000)] {
        let refused = post(&server, Some("a/agent"), None).body(body.to_owned()).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{body:.20}");
        let error: Value = serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
        assert_eq!(error["error"]["code"], -32700, "{body:.20}");
    }
    let other = post(&server, Some("a/agent"), None).header("content-type", "text/plain");
    assert!(other.body("x").send().await.unwrap().status().is_client_error());
    let large = post(&server, Some("a/agent"), None).body(" ".repeat(2_000_000)).send().await.unwrap();
    assert_eq!(large.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn one_caller_opens_only_so_many_sessions() {
    // On a slow machine the first sessions would be idle for too long before the last one opens.
    let server = McpServer::with_timing(Timing { idle: Duration::from_secs(3600), ..timing() }).await;
    for _ in 0..SESSIONS_PER_CALLER {
        open(&server, "a/agent").await;
    }
    let refused = post(&server, Some("a/agent"), None).body(initialize()).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    open(&server, "b/agent").await;
}

#[tokio::test]
async fn who_waits_for_notices_is_let_go_when_the_gateway_stops() {
    let server = McpServer::start().await;
    let session = open(&server, "a/agent").await;
    let notices =
        Http::new().get(&server.url).bearer_auth(server.gateway.token("a/agent")).header(SESSION, &session);
    let notices = notices.header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(notices.status(), StatusCode::OK);
    server.stop.cancel();
    tokio::time::timeout(LIMIT, notices.bytes()).await.expect("the end of the stream").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for_without_end() {
    let gateway = TestGateway::new();
    let service = gateway.service.clone();
    let router: Router = crate::mcp::http::routes(service, timing());
    let begun = stream::iter([Ok::<_, Infallible>("{")]).chain(stream::pending());
    let request = Request::post("/mcp")
        .header("authorization", format!("Bearer {}", gateway.token("a/agent")))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Body::from_stream(begun))
        .unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(120), router.oneshot(request)).await;
    assert_eq!(answer.expect("an answer").unwrap().status(), StatusCode::REQUEST_TIMEOUT);
}

#[tokio::test]
async fn arguments_that_kubernetes_would_change_are_refused_with_the_pointer() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    let session = open(&server, "a/agent").await;
    let call = r#"{"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "sum", "arguments": {"n": [12345678901234567890]}}}"#;
    let refused = post(&server, Some("a/agent"), Some(&session)).body(call).send().await.unwrap();
    let refused: Value = serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
    assert_eq!((&refused["id"], &refused["result"]["isError"]), (&json!(7), &json!(true)));
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("InputInvalid") && text.contains("/n/0: the integer 12345678901234567890"),
        "{text}"
    );
    assert!(server.gateway.api.executions().is_empty());
}

#[tokio::test]
async fn a_session_is_closed_with_a_status_that_sdks_take() {
    let server = McpServer::start().await;
    let session = open(&server, "a/agent").await;
    let close = Http::new()
        .delete(&server.url)
        .bearer_auth(server.gateway.token("a/agent"))
        .header(SESSION, &session);
    assert_eq!(close.send().await.unwrap().status(), StatusCode::NO_CONTENT);
}
