//! Files over HTTP: whose they are, each operation, and each failure with its code.

use axum::body::Body;
use serde_json::{Value, json};
use skillet_workspace::{LIMITS, Limits, Served, WorkspaceId};

use super::*;
use crate::{
    auth::Verb,
    testing::{AGENT, TestGateway, TestResponse},
};

const FILE: &str = "/api/workspace/file?path=a/b.txt";

async fn gateway() -> (TestGateway, Served) {
    with_limits(LIMITS).await
}

async fn with_limits(limits: Limits) -> (TestGateway, Served) {
    let (mut gateway, store) = (TestGateway::without_auth_cache(), Served::start(limits).await);
    gateway.service.workspaces = Some(store.client());
    (gateway, store)
}

async fn put(gateway: &TestGateway, uri: &str, content: &str) -> TestResponse {
    gateway.send("PUT", uri, Some(AGENT), &[], content).await
}

fn code(response: &TestResponse) -> (u16, String) {
    let (status, code, _) = response.error();
    (status, code)
}

#[tokio::test]
async fn a_file_is_written_listed_read_and_removed() {
    let (gateway, store) = gateway().await;
    let written = put(&gateway, FILE, "x\0").await;
    assert_eq!((written.status, written.json()), (200, json!({"path": "a/b.txt", "bytes": 2})));
    assert_eq!(put(&gateway, &format!("{FILE}&mode=append"), "y").await.json()["bytes"], 3);
    let read = gateway.get(FILE).await;
    assert_eq!((read.status, read.text.as_str()), (200, "x\0y"));
    let headers = ["content-type", "x-content-type-options", "content-length"].map(|name| read.header(name));
    assert_eq!(headers, ["application/octet-stream", "nosniff", "3"]);
    let listed = gateway.get("/api/workspace?path=a/").await.json();
    let modified = listed["entries"][0]["modified"].as_str().unwrap();
    assert!(modified.starts_with("20") && modified.ends_with('Z'), "{modified}");
    let entry = json!({"path": "a/b.txt", "bytes": 3, "modified": modified, "isFolder": false});
    assert_eq!(listed, json!({ "entries": [entry] }));
    let paths: Vec<Value> = gateway.get("/api/workspace").await.json()["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| json!([entry["path"], entry["isFolder"]]))
        .collect();
    assert_eq!(paths, [json!(["a", true]), json!(["a/b.txt", false])]);
    let removed = gateway.send("DELETE", "/api/workspace/file?path=a", Some(AGENT), &[], "").await;
    assert_eq!((removed.status, removed.text.as_str()), (204, ""));
    assert_eq!(gateway.get("/api/workspace").await.json(), json!({"entries": []}));
    assert_eq!(gateway.service.memory.reserved(), 0, "all memory is given back");
    store.stop().await;
}

#[tokio::test]
async fn a_workspace_is_of_one_caller_in_one_namespace() {
    let (gateway, store) = gateway().await;
    put(&gateway, FILE, "team").await;
    put(&gateway, &format!("{FILE}&namespace=platform"), "platform").await;
    for (owner, content) in [("team/team/agent", "team"), ("platform/team/agent", "platform")] {
        assert_eq!(store.client().read(&WorkspaceId::of_owner(owner), "a/b.txt", 9).await.unwrap(), content);
    }
    assert_eq!(gateway.get(&format!("{FILE}&namespace=team")).await.text, "team");
    let other = gateway.send("GET", FILE, Some("team/other"), &[], "").await;
    assert_eq!(code(&other), (404, "FileNotFound".into()));
    store.stop().await;
}

#[tokio::test]
async fn the_right_to_run_a_skill_of_the_namespace_is_needed() {
    let (gateway, store) = gateway().await;
    put(&gateway, FILE, "x").await;
    for method in ["GET", "PUT", "DELETE"] {
        let unknown = gateway.send(method, FILE, Some("nobody"), &[], "x").await;
        assert_eq!(unknown.status, 401, "{method}");
        let far = gateway.send(method, &format!("{FILE}&namespace=other"), Some(AGENT), &[], "x").await;
        assert_eq!(far.error(), (403, "Forbidden".into(), "namespace".into()), "{method}");
    }
    gateway.deny("team", Some("fetch"), Verb::Execute);
    assert_eq!(code(&gateway.get(&format!("{FILE}&skill=fetch")).await), (403, "Forbidden".into()));
    assert_eq!(gateway.get(&format!("{FILE}&skill=sum")).await.text, "x");
    gateway.deny("team", None, Verb::Execute);
    for (method, uri) in [("GET", FILE), ("PUT", FILE), ("DELETE", FILE), ("GET", "/api/workspace")] {
        let denied = gateway.send(method, uri, Some(AGENT), &[], "x").await;
        assert_eq!(code(&denied), (403, "Forbidden".into()), "{method}");
    }
    store.stop().await;
}

#[tokio::test]
async fn a_failure_of_the_store_has_its_reason() {
    let (gateway, store) = gateway().await;
    put(&gateway, FILE, "x").await;
    let answer = async |method: &str, uri: &str, content: &str| {
        code(&gateway.send(method, &format!("/api/workspace{uri}"), Some(AGENT), &[], content).await)
    };
    let large = "x".repeat(65 << 10);
    let full = "x".repeat(60 << 10);
    for (method, uri, content, status, reason) in [
        ("GET", "/file", "", 400, "BadRequest"),
        ("GET", "/file?path=a&lines=3", "", 400, "BadRequest"),
        ("PUT", "/file?path=a&mode=truncate", "", 400, "BadRequest"),
        ("GET", "/file?path=../a", "", 422, "InputInvalid"),
        ("GET", "?path=.git", "", 422, "InputInvalid"),
        ("DELETE", "/file?path=.", "", 422, "InputInvalid"),
        ("PUT", "/file?path=.env", "", 422, "InputInvalid"),
        ("GET", "/file?path=a", "", 422, "InputInvalid"),
        ("GET", "/file?path=none", "", 404, "FileNotFound"),
        ("DELETE", "/file?path=none", "", 404, "FileNotFound"),
        ("GET", "?path=none", "", 404, "FileNotFound"),
        ("PUT", "/file?path=a/b.txt&mode=create", "", 409, "FileExists"),
        ("PUT", "/file?path=large", &large, 413, "FileTooLarge"),
        ("POST", "/file?path=a", "", 405, "MethodNotAllowed"),
    ] {
        assert_eq!(answer(method, uri, content).await, (status, reason.into()), "{method} {uri}");
    }
    for number in 0..LIMITS.quota_files {
        let response = put(&gateway, &format!("/api/workspace/file?path=full/{number}"), &full).await;
        if response.status != 200 {
            assert_eq!(code(&response), (507, "WorkspaceFull".into()));
            return store.stop().await;
        }
    }
    panic!("the quota was never reached");
}

#[tokio::test]
async fn without_a_store_the_answer_names_the_fix() {
    let gateway = TestGateway::without_auth_cache();
    let answer = gateway.get("/api/workspace").await;
    assert_eq!(code(&answer), (503, "WorkspaceUnavailable".into()));
    assert!(answer.text.contains("workspaces.enabled: true"), "{}", answer.text);
    let (mut gateway, store) = self::gateway().await;
    gateway.service.workspaces = Some(store.client_at("127.0.0.1:1".to_owned()));
    assert_eq!(code(&gateway.get("/api/workspace").await), (503, "WorkspaceUnavailable".into()));
    store.stop().await;
}

#[tokio::test]
async fn files_take_of_the_memory_for_requests() {
    let (gateway, store) = gateway().await;
    put(&gateway, FILE, &"x".repeat(60 << 10)).await;
    let taken = gateway.service.memory.fill_but("team", 10 << 10).await;
    for response in [gateway.get(FILE).await, put(&gateway, FILE, &"x".repeat(60 << 10)).await] {
        assert_eq!(code(&response), (503, "Overloaded".into()));
    }
    drop(taken);
    let response = gateway.oneshot(
        axum::extract::Request::builder()
            .uri(FILE)
            .header("authorization", format!("Bearer {}", gateway.token(AGENT)))
            .body(Body::empty())
            .unwrap(),
    );
    let response = response.await;
    assert_eq!(gateway.service.memory.reserved(), 60 << 10, "until the response is sent");
    drop(response);
    assert_eq!(gateway.service.memory.reserved(), 0);
    let large = gateway
        .send_body(
            "PUT",
            FILE,
            Some(AGENT),
            &[("content-length", b"33554433")],
            Body::from(vec![0; 33_554_433]),
        )
        .await;
    assert_eq!(code(&large), (413, "TooLarge".into()));
    store.stop().await;
}

#[tokio::test]
async fn a_file_larger_than_the_gateway_passes_on_is_refused_before_it_is_read() {
    let limits = Limits {
        quota_bytes: 64 << 20,
        write_bytes: 40 << 20,
        file_bytes: 40 << 20,
        memory_bytes: 256 << 20,
        ..LIMITS
    };
    let (gateway, store) = with_limits(limits).await;
    let id = WorkspaceId::of_owner("team/team/agent");
    let large = Bytes::from(vec![0; (32 << 20) + 1]);
    store.client().write(&id, "a/b.txt", large, WriteMode::Create).await.unwrap();
    let refused = gateway.get(FILE).await;
    assert_eq!(code(&refused), (413, "FileTooLarge".into()));
    assert!(refused.text.contains("at most 33554432 are allowed"), "{}", refused.text);
    store.stop().await;
}
