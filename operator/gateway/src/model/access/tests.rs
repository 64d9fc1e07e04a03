//! Admission through the whole gateway: rights on providers with the platform's key and with a client's own.

use serde_json::json;
use skillet_api::gateway::{KeySecret, RateLimits, StoredObjects, ToolUse};

use super::*;
use crate::testing::{AGENT, TestGateway, TestResponse};

const CHAT: &str = "/v1/chat/completions";
const OWN_KEY: [(&str, &str); 1] = [("authorization", "Bearer theirs")];

/// A gateway whose OpenAI provider has a key of the platform.
fn with_platform_key() -> TestGateway {
    let gateway = TestGateway::without_auth_cache();
    gateway.change_policy(|policy| {
        policy.gateway.providers.openai.key_secret = Some(KeySecret { name: "k".into(), key: "k".into() });
    });
    let meta = json!({ "namespace": "skillet-system", "name": "k" });
    gateway.api.put_secret(json!({ "metadata": meta, "data": { "k": "cGxhdGZvcm0=" } }));
    gateway
}

async fn ask(gateway: &TestGateway, uri: &str) -> TestResponse {
    gateway.send("POST", uri, Some(AGENT), &[], &json!({ "model": "m" }).to_string()).await
}

#[tokio::test]
async fn the_platforms_key_is_for_callers_with_the_right_to_use_it() {
    let gateway = with_platform_key();
    assert_eq!(ask(&gateway, CHAT).await.status, 200);
    assert_eq!(gateway.provider.requests()[0].0["authorization"], "Bearer platform");
    gateway.deny("team", Some("openai"), Verb::Use);
    for uri in [CHAT, "/v1/responses", "/v1/embeddings"] {
        let refused = ask(&gateway, uri).await;
        assert_eq!(refused.error(), (403, "ProviderForbidden".into(), String::new()), "{uri}");
        let message = refused.json()["error"]["message"].to_string();
        assert!(message.contains("modelproviders.skillet.dev in namespace team"), "{message}");
    }
    assert_eq!(gateway.provider.requests().len(), 1);
    assert_eq!(ask(&gateway, "/v1/messages").await.status, 200, "another provider has no platform key");
}

#[tokio::test]
async fn without_an_answer_about_the_right_nothing_is_sent() {
    let gateway = with_platform_key();
    gateway.api.fail_access_reviews();
    for uri in [CHAT, "/v1/embeddings"] {
        assert_eq!(ask(&gateway, uri).await.error(), (503, "ApiError".into(), String::new()), "{uri}");
    }
    assert!(gateway.provider.requests().is_empty());
}

#[tokio::test]
async fn a_client_with_its_own_key_needs_no_right() {
    let gateway = with_platform_key();
    gateway.change_policy(|policy| policy.gateway.providers.openai.client_key = Some(true));
    gateway.deny("team", None, Verb::Use);
    let token = gateway.token(AGENT);
    let headers = [OWN_KEY[0], ("x-skillet-token", &token)];
    let body = json!({ "model": "m" }).to_string();
    assert_eq!(gateway.send("POST", CHAT, None, &headers, &body).await.status, 200);
    assert_eq!(gateway.provider.requests()[0].0["authorization"], "Bearer theirs");
    assert_eq!(gateway.send("POST", CHAT, None, &headers[1..], &body).await.status, 403, "without a key");
}

#[tokio::test]
async fn a_model_that_no_provider_takes_is_refused() {
    let gateway = TestGateway::new();
    gateway.change_policy(|policy| policy.gateway.providers.openai.models = vec!["gpt-*".into()]);
    let refused = ask(&gateway, CHAT).await;
    assert_eq!(refused.error(), (403, "ModelNotAllowed".into(), String::new()));
    assert!(gateway.provider.requests().is_empty());
    let allowed =
        gateway.send("POST", CHAT, Some(AGENT), &[], &json!({ "model": "gpt-5" }).to_string()).await;
    assert_eq!(allowed.status, 200);
    let fallback = json!({ "model": "gpt-5", "models": ["gpt-5", "o3"] }).to_string();
    let refused = gateway.send("POST", CHAT, Some(AGENT), &[], &fallback).await;
    assert_eq!(refused.error().1, "ModelNotAllowed", "a router may fall back to another model");
}

#[tokio::test]
async fn a_provider_of_its_own_name_has_its_own_address_key_and_right() {
    let gateway = with_platform_key();
    gateway.change_policy(|policy| {
        let base = policy.gateway.providers.openai.base_url.clone();
        let local = json!({ "name": "local", "dialect": "OpenAI", "models": ["llama*"], "baseUrl": format!("{base}/api/v1"),
            "keySecret": { "name": "k" }, "azure": {} });
        policy.gateway.providers.additional = vec![serde_json::from_value(local).unwrap()];
    });
    let meta = json!({ "namespace": "skillet-system", "name": "k" });
    gateway
        .api
        .put_secret(json!({ "metadata": meta, "data": { "k": "cGxhdGZvcm0=", "apiKey": "bG9jYWw=" } }));
    let llama = json!({ "model": "llama-3" }).to_string();
    assert_eq!(gateway.send("POST", CHAT, Some(AGENT), &[], &llama).await.status, 200);
    assert_eq!(gateway.provider.requests()[0].0["api-key"], "local");
    assert_eq!(gateway.provider.paths(), ["/api/v1/chat/completions"]);
    gateway.deny("team", Some("local"), Verb::Use);
    let refused = gateway.send("POST", CHAT, Some(AGENT), &[], &llama).await;
    assert_eq!(refused.error().1, "ProviderForbidden");
    assert_eq!(ask(&gateway, CHAT).await.status, 200, "the right to another provider stays");
}

#[tokio::test]
async fn a_policy_that_says_never_offers_nothing_and_always_never_falls_back() {
    let gateway = TestGateway::new();
    gateway.offer("team", "sum", "auto");
    let set = |tools: ToolUse| gateway.change_policy(|policy| policy.gateway.providers.openai.tools = tools);
    set(ToolUse::Never);
    let answer = ask(&gateway, CHAT).await;
    assert_eq!(
        (answer.header("x-skillet-offered"), answer.header("x-skillet-not-offered")),
        ("", "ToolsNever")
    );
    let explained = json!({ "dialect": "openai-chat", "request": { "model": "m" } });
    let explained = gateway.post("/v1/explain", &explained).await.json();
    assert_eq!(explained["skills"][0]["reason"], "ToolsNever");
    let refusal = json!({ "error": { "message": "tools are not supported" } });
    for (tools, expected, requests) in
        [(ToolUse::Always, 400, 1), (ToolUse::Auto, 200, 2), (ToolUse::Auto, 200, 1)]
    {
        set(tools);
        let before = gateway.provider.requests().len();
        if tools == ToolUse::Always || requests == 2 {
            gateway.provider.will_fail(400, &refusal);
        }
        assert_eq!(ask(&gateway, CHAT).await.status, expected, "{tools:?}");
        assert_eq!(gateway.provider.requests().len() - before, requests, "{tools:?}");
    }
    set(ToolUse::Always);
    assert_eq!(ask(&gateway, CHAT).await.header("x-skillet-offered"), "sum", "a refusal is not remembered");
}

#[tokio::test]
async fn a_namespace_that_used_its_tokens_waits_and_others_do_not() {
    let gateway = with_platform_key();
    let limits = RateLimits { requests_per_minute: None, tokens_per_minute: Some(60_000) };
    gateway.change_policy(|policy| policy.gateway.rate_limits = limits.clone());
    gateway.provider.will_say(&json!({ "usage": { "prompt_tokens": 60_000, "completion_tokens": 300 } }));
    assert_eq!(ask(&gateway, CHAT).await.status, 200);
    let refused = ask(&gateway, CHAT).await;
    assert_eq!(refused.error(), (429, "RateLimited".into(), String::new()));
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(gateway.provider.requests().len(), 1);
    let other = gateway.send("POST", CHAT, Some("platform/agent"), &[], "{}").await;
    assert_eq!(other.status, 200, "another namespace");
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    assert_eq!(ask(&gateway, CHAT).await.status, 200);
}

#[tokio::test]
async fn requests_with_a_clients_own_key_do_not_count() {
    let gateway = with_platform_key();
    gateway.change_policy(|policy| {
        policy.gateway.providers.openai.client_key = Some(true);
        policy.gateway.rate_limits = RateLimits { requests_per_minute: Some(1), tokens_per_minute: None };
    });
    let token = gateway.token(AGENT);
    let headers = [OWN_KEY[0], ("x-skillet-token", &token)];
    for _ in 0..3 {
        assert_eq!(gateway.send("POST", CHAT, None, &headers, "{}").await.status, 200);
    }
    let mut statuses = Vec::new();
    for _ in 0..2 {
        statuses.push(gateway.send("POST", CHAT, None, &headers[1..], "{}").await.status);
    }
    assert_eq!(statuses, [200, 429]);
}

#[tokio::test]
async fn the_use_of_a_model_is_counted_whole_streamed_and_passed() {
    let gateway = TestGateway::new();
    let usage = json!({ "usage": { "prompt_tokens": 10, "completion_tokens": 3 } });
    gateway.provider.will_say(&usage);
    gateway.provider.will_write("text/event-stream", format!("data: {usage}\n\n"));
    gateway.provider.will_say(&usage);
    for (uri, body) in [
        (CHAT, json!({ "model": "m" })),
        (CHAT, json!({ "model": "m", "stream": true })),
        ("/v1/embeddings", json!({ "model": "m" })),
    ] {
        let json = [("content-type", "application/json")];
        assert_eq!(gateway.send("POST", uri, Some(AGENT), &json, &body.to_string()).await.status, 200);
    }
    let is_counted = || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &gateway.model.metrics.registry()).unwrap();
        let of = "{namespace=\"team\",provider=\"openai\",model=\"m\",kind=";
        [("requests", "success", 3), ("tokens", "input", 30), ("tokens", "output", 9)].iter().all(
            |(name, kind, count)| {
                text.contains(&format!("skillet_gateway_model_{name}_total{of}\"{kind}\"}} {count}"))
            },
        )
    };
    skillet_kube::testing::eventually("three requests are counted", is_counted).await;
}

#[tokio::test]
async fn the_platforms_key_reaches_no_stored_object_and_names_the_caller() {
    let gateway = with_platform_key();
    gateway.change_policy(|policy| policy.gateway.providers.openai.caller_id = Some(true));
    let body = json!({ "model": "m", "input": "x", "previous_response_id": "resp_theirs" }).to_string();
    let refused = gateway.send("POST", "/v1/responses", Some(AGENT), &[], &body).await;
    assert_eq!(refused.error(), (403, "StoredObjectForbidden".into(), "previous_response_id".into()));
    assert!(gateway.provider.requests().is_empty());
    gateway.change_policy(|policy| policy.gateway.providers.openai.stored_objects = StoredObjects::Allow);
    let headers = [("openai-organization", "org-theirs")];
    assert_eq!(gateway.send("POST", "/v1/responses", Some(AGENT), &headers, &body).await.status, 200);
    let sent = gateway.provider.last_request();
    assert_eq!(sent["previous_response_id"], "resp_theirs");
    // printf %s system:serviceaccount:team:agent | sha256sum | cut -c1-32
    assert_eq!(sent["safety_identifier"], "skillet-e99f9becd1c30955e90a05b14ae7cf96");
    assert!(!gateway.provider.requests()[0].0.contains_key("openai-organization"));
}

#[tokio::test]
async fn a_request_with_a_clients_own_key_keeps_its_ids_and_bytes() {
    let gateway = with_platform_key();
    gateway.change_policy(|policy| {
        policy.gateway.providers.openai.client_key = Some(true);
        policy.gateway.providers.openai.caller_id = Some(true);
    });
    let token = gateway.token(AGENT);
    let headers = [OWN_KEY[0], ("x-skillet-token", &token), ("openai-project", "mine")];
    let body = "{ \"previous_response_id\": \"resp_1\" }";
    assert_eq!(gateway.send("POST", "/v1/responses", None, &headers, body).await.status, 200);
    assert_eq!(gateway.provider.texts(), [body]);
    assert_eq!(gateway.provider.requests()[0].0["openai-project"], "mine");
}
