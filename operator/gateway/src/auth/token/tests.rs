//! Order of places, forms of tokens, and what a provider gets to see.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use super::*;
use skillet_kube::testing::token;

use crate::auth::Caller;

fn headers(list: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    // Unlike collect(), a name that comes twice is kept twice.
    let mut headers = HeaderMap::new();
    for (name, value) in list.iter().map(pair) {
        headers.append(name, value);
    }
    headers
}

fn check(list: &[(&str, &str)], query: Option<&str>, expected: &Result<(&str, &str), AuthError>) {
    let headers = headers(list);
    let found = presented(&headers, query).map(|found| (found.place, found.text));
    assert_eq!(&found, expected, "{list:?} {query:?}");
}

#[test]
fn places_are_looked_into_in_their_order() {
    let all = [
        ("x-skillet-token", "a"),
        ("authorization", "Bearer b"),
        ("x-api-key", "c"),
        ("x-goog-api-key", "d"),
    ];
    let query = Some("alt=sse&key=e");
    check(&all, query, &Ok(("x-skillet-token", "a")));
    check(&all[1..], query, &Ok(("authorization", "b")));
    check(&all[2..], query, &Ok(("x-api-key", "c")));
    check(&all[3..], query, &Ok(("x-goog-api-key", "d")));
    check(&[], query, &Ok(("key", "e")));
    check(&[], None, &Err(AuthError::Missing));
}

#[test]
fn a_place_without_a_token_is_passed_over() {
    let next = ("x-api-key", "c");
    for empty in [
        ("x-skillet-token", " "),
        ("authorization", ""),
        ("authorization", "Bearer "),
        ("authorization", "Basic dTpw"),
        ("authorization", "token"),
    ] {
        check(&[empty, next], None, &Ok(next));
    }
    check(&[], Some("key=&keys=a&key&a=key"), &Err(AuthError::Missing));
}

#[test]
fn the_scheme_is_written_in_any_case() {
    check(&[("authorization", "bEARER  t ")], None, &Ok(("authorization", "t")));
}

#[test]
fn two_tokens_in_one_place_or_an_unreadable_one_are_not_known() {
    let unknown = || Err(AuthError::Unknown);
    check(&[("x-api-key", "a"), ("x-api-key", "a")], None, &unknown());
    check(&[("x-skillet-token", "ü"), ("x-api-key", "a")], None, &unknown());
    check(&[], Some("key=a&key=b"), &unknown());
}

#[test]
fn an_api_key_is_known_by_its_form() {
    let key = KeyText::of_random([1; 32]);
    assert_eq!(credential(key.text()), Some(Credential::ApiKey(key.hash())));
    for wrong in [&key.text()[..40], &key.text().replace('Q', "R"), "skillet_"] {
        assert_eq!(credential(wrong), Some(Credential::MistypedKey), "{wrong}");
    }
}

#[test]
fn a_service_account_token_is_one_for_the_gateway_with_its_end() {
    let text = token("a", &serde_json::json!({ "aud": ["other", "skillet"], "exp": 1_700_000_000 }));
    let Some(Credential::ServiceAccount(claims)) = credential(&text) else { panic!("{text}") };
    assert_eq!(claims.expires, Some("2023-11-14T22:13:20Z".parse().unwrap()));
    let same = credential(&token("a", &serde_json::json!({ "aud": "skillet" })));
    assert!(matches!(same, Some(Credential::ServiceAccount(TokenClaims { expires: None, .. }))));
}

#[test]
fn what_was_made_for_others_is_no_token_of_ours() {
    let made = |claims| token("a", &claims);
    let good = made(serde_json::json!({ "aud": ["skillet"] }));
    for text in [
        made(serde_json::json!({ "aud": ["https://kubernetes.default.svc"] })),
        made(serde_json::json!({ "aud": [] })),
        made(serde_json::json!({ "iss": "skillet" })),
        made(serde_json::json!({ "aud": "skillet", "exp": i64::MAX })),
        "sk-proj-abcdef".to_owned(),
        "skillet".to_owned(),
        "sk-ant-api03.a.b".to_owned(),
        format!("{good}.x"),
        String::new(),
    ] {
        assert_eq!(credential(&text), None, "{text}");
    }
}

fn identified(token_header: &'static str) -> Authenticated {
    let caller = Caller { namespace: "a".into(), user: "u".into(), groups: Arc::from([]) };
    Authenticated { caller, token_header }
}

fn passed_on(token_header: &'static str, list: &[(&str, &str)]) -> Vec<String> {
    let mut headers = headers(list);
    identified(token_header).strip_token(&mut headers);
    let mut names: Vec<String> = headers.keys().map(ToString::to_string).collect();
    names.sort();
    names
}

#[test]
fn with_the_gateways_own_header_the_others_are_the_clients() {
    let list = [("x-skillet-token", "t"), ("authorization", "Bearer sk-provider"), ("x-api-key", "provider")];
    assert_eq!(passed_on("x-skillet-token", &list), ["authorization", "x-api-key"]);
}

#[test]
fn the_header_that_carried_the_token_goes_no_further() {
    let list = [("authorization", "Bearer t"), ("x-api-key", "provider"), ("accept", "*/*")];
    assert_eq!(passed_on("authorization", &list), ["accept", "x-api-key"]);
}

#[test]
fn a_token_of_ours_goes_no_further_from_a_second_header_either() {
    let key = KeyText::of_random([1; 32]);
    let bearer = format!("Bearer {}", key.text());
    let list = [
        ("authorization", bearer.as_str()),
        ("x-api-key", key.text()),
        ("x-goog-api-key", "a"),
        ("x-goog-api-key", "b"),
    ];
    assert!(passed_on("authorization", &list).is_empty());
}

#[test]
fn the_query_loses_the_token_and_keeps_a_providers_key() {
    let key = KeyText::of_random([1; 32]);
    let ours = format!("alt=sse&key={}", key.text());
    assert_eq!(identified("key").strip_token_from_query("key=t&alt=sse"), "alt=sse");
    assert_eq!(
        identified("x-skillet-token").strip_token_from_query("key=provider&alt=sse"),
        "key=provider&alt=sse"
    );
    assert_eq!(identified("x-skillet-token").strip_token_from_query(&ours), "alt=sse");
}

#[test]
fn the_path_is_forwarded_without_the_gateways_token() {
    let path = |uri: &str, token_header| identified(token_header).path_without_token(&uri.parse().unwrap());
    assert_eq!(path("/v1beta/models/m:g?key=t&alt=sse", "key"), "/v1beta/models/m:g?alt=sse");
    assert_eq!(path("/v1beta/models/m:g?key=t", "key"), "/v1beta/models/m:g");
    assert_eq!(path("/v1/messages?beta=true", "x-api-key"), "/v1/messages?beta=true");
}
