//! Headers and keys of requests to providers.

use serde_json::json;
use skillet_api::gateway::Azure;

use super::*;
use crate::testing::TestGateway;

fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
    list.iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())).collect()
}

fn names(headers: &HeaderMap) -> Vec<&str> {
    let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_key_in_the_query_is_dropped_however_it_is_written() {
    for (path, wanted) in [
        ("/m:g?key=k&alt=sse", "/m:g?alt=sse"),
        ("/m:g?%6bey=k", "/m:g"),
        ("/m:g?KEY=k&alt=sse", "/m:g?alt=sse"),
        ("/m:g?alt=sse", "/m:g?alt=sse"),
        ("/m:g", "/m:g"),
    ] {
        assert_eq!(without_key(path, true), wanted);
        assert_eq!(without_key(path, false), path);
    }
}

#[test]
fn a_clients_own_key_is_forwarded_only_if_the_policy_allows_it() {
    let sent = headers(&[
        ("authorization", "Bearer theirs"),
        ("x-skillet-token", "t"),
        ("cookie", "c"),
        ("host", "h"),
        ("openai-organization", "o"),
    ]);
    assert_eq!(names(&request_headers(&sent, true)), ["authorization", "openai-organization"]);
    assert_eq!(names(&request_headers(&sent, false)), ["openai-organization"]);
}

#[test]
fn a_key_of_the_platforms_stands_where_its_provider_looks() {
    let plain = Provider::default();
    let azure = Provider { azure: Some(Azure::default()), ..Provider::default() };
    for (provider, dialect, name, value) in [
        (&plain, DialectName::OpenAiChat, "authorization", "Bearer k"),
        (&plain, DialectName::OpenAiResponses, "authorization", "Bearer k"),
        (&azure, DialectName::OpenAiResponses, "api-key", "k"),
        (&plain, DialectName::Anthropic, "x-api-key", "k"),
        (&plain, DialectName::Gemini, "x-goog-api-key", "k"),
    ] {
        let mut sent = headers(&KEYS.map(|name| (name, "theirs")));
        put_key(&mut sent, key_header(provider, dialect), HeaderValue::from_static("k")).unwrap();
        assert_eq!(names(&sent), [name]);
        assert_eq!(sent[name], value);
    }
}

#[test]
fn what_concerns_one_hop_is_not_response_headers() {
    let answered = headers(&[
        ("content-type", "text/event-stream"),
        ("content-length", "3"),
        ("transfer-encoding", "chunked"),
        ("set-cookie", "c"),
        ("x-request-id", "r"),
        ("x-skillet-offered", "forged"),
    ]);
    assert_eq!(names(&response_headers(&answered)), ["content-type", "x-request-id"]);
}

#[test]
fn what_the_connection_header_names_is_of_one_hop_too() {
    let mut sent = headers(&[("x-hop", "1"), ("x-far", "2"), ("authorization", "Bearer theirs")]);
    sent.append("connection", HeaderValue::from_static("close, X-Hop"));
    assert_eq!(names(&request_headers(&sent, true)), ["authorization", "x-far"]);
    assert_eq!(names(&response_headers(&sent)), ["authorization", "x-far"]);
    sent.append("connection", HeaderValue::from_bytes(b" ,\xff,x-far,authorization ").unwrap());
    assert_eq!(names(&request_headers(&sent, true)), [""; 0]);
}

#[tokio::test]
async fn a_public_provider_without_a_key_is_not_asked() {
    let gateway = TestGateway::new();
    gateway.change_policy(|policy| policy.gateway.providers.openai.base_url.clear());
    let request = json!({ "model": "gpt-x", "messages": [] });
    let refused = gateway.post("/v1/chat/completions", &request).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (503, &json!("SecretMissing")));
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("SkillPolicy names no keySecret for the provider openai"), "{message}");
}
