//! Admission through the whole gateway: rights on providers with the platform's key and with a client's own.

use serde_json::json;
use skillet_api::gateway::KeySecret;

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
