//! Gateways with a provider of embeddings: skills and questions of real requests, one state, and a server that fails.

use std::time::Duration;

use kube::{Api, api::PostParams};
use prometheus_client::encoding::text::encode;
use serde_json::{Value, json};
use skillet_api::{
    SkillPolicy, SkillPolicySpec,
    gateway::{EmbeddingsProvider, OfferMatching, OfferMode},
};
use skillet_kube::testing::FakeApiServer;
use tokio::time::{Instant, sleep};

use crate::{
    embeddings::{EmbeddingsRefresh, EmbeddingsState},
    state_maps::StateMaps,
    testing::{AGENT, Behavior, EmbeddingsServer, TestGateway},
};

/// A skill that words alone do not find, in two questions and their other words.
const SKILLS: [(&str, &str); 2] = [("s1", "zorgle"), ("s2", "frobnic")];

fn settings(url: &str) -> EmbeddingsProvider {
    serde_json::from_value(json!({ "baseUrl": url, "model": "m", "timeout": "2s" })).unwrap()
}

fn set_provider(gateway: &TestGateway, provider: Option<EmbeddingsProvider>) {
    gateway.change_policy(|policy| {
        policy.gateway.offer.matching = OfferMatching::Ranked;
        policy.gateway.offer.embeddings.provider = provider;
    });
}

/// A gateway with the skills. `state` is the API server with the vectors.
fn gateway(state: &FakeApiServer, url: &str) -> (TestGateway, EmbeddingsRefresh) {
    let gateway = TestGateway::new();
    set_provider(&gateway, Some(settings(url)));
    for (name, description) in SKILLS {
        gateway.skill("team", name, &json!({ "description": description, "mode": "auto" }));
    }
    let refresh = refresh(&gateway, state);
    (gateway, refresh)
}

fn refresh(gateway: &TestGateway, state: &FakeApiServer) -> EmbeddingsRefresh {
    let maps = StateMaps::new(state.client(), "skillet-system");
    let TestGateway { service, model, .. } = gateway;
    EmbeddingsRefresh::new(
        service.catalog.clone(),
        (state.client(), maps),
        model.providers.clone(),
        model.metrics.clone(),
    )
}

async fn explain(gateway: &TestGateway, turns: &[&str]) -> Value {
    let messages: Vec<Value> = turns.iter().map(|text| json!({ "role": "user", "content": text })).collect();
    let request = json!({ "model": "gpt-5", "messages": messages });
    gateway.post("/v1/explain", &json!({ "dialect": "openai-chat", "request": request })).await.json()
}

/// Returns the names of the skills that a conversation is offered.
async fn offered(gateway: &TestGateway, turns: &[&str]) -> Vec<String> {
    let explained = explain(gateway, turns).await;
    let skills = explained["skills"].as_array().unwrap().iter();
    let offered = skills.filter(|skill| skill["offered"] == true);
    offered.map(|skill| skill["name"].as_str().unwrap().to_owned()).collect()
}

fn metrics(gateway: &TestGateway) -> String {
    let mut text = String::new();
    encode(&mut text, &gateway.model.metrics.registry()).unwrap();
    text
}

/// Returns the number of vectors in the state.
fn stored(state: &FakeApiServer) -> usize {
    let maps = (0..16).filter_map(|number| {
        state.object(&format!("/api/v1/namespaces/skillet-system/configmaps/skillet-vectors-{number}"))
    });
    let entries = |map: Value| {
        map["binaryData"].as_object().map_or(0, |of| of.keys().filter(|key| key.len() == 32).count())
    };
    maps.map(entries).sum()
}

#[tokio::test]
async fn a_question_in_other_words_finds_a_skill_and_another_replica_makes_no_vectors() {
    let (state, (server, url)) = (FakeApiServer::default(), EmbeddingsServer::serve());
    let (first, mut refresh) = gateway(&state, &url);
    assert!(offered(&first, &["wumpet"]).await.is_empty());
    assert!(refresh.step(Instant::now()).await);
    assert_eq!(
        explain(&first, &["hi"]).await["embeddings"],
        json!({ "state": "Ready", "model": "m", "dimensions": 64 })
    );
    assert_eq!(offered(&first, &["wumpet"]).await, ["s1"]);
    assert_eq!(offered(&first, &["quandle"]).await, ["s2"]);
    assert!(metrics(&first).contains("skillet_gateway_embeddings_skills{vector=\"present\"} 2"));
    assert_eq!(stored(&state), SKILLS.len());
    server.take_texts();
    let (second, mut refresh) = gateway(&state, &url);
    assert!(
        refresh.step(Instant::now()).await && server.take_texts().is_empty(),
        "the state has all vectors"
    );
    let score = |of: Value| of["skills"][0]["score"].clone();
    assert_eq!(score(explain(&second, &["wumpet"]).await), score(explain(&first, &["wumpet"]).await));
    server.set(Behavior::Base64);
    assert_eq!(offered(&second, &["quandle!"]).await, ["s2"]);
    let answer = json!({ "id": "c", "object": "chat.completion", "choices": [] });
    second.provider.will_say(&answer);
    let request = json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": "wumpet" }] });
    second.post("/v1/chat/completions", &request).await;
    assert_eq!(second.provider.last_request()["tools"][0]["function"]["name"], "s1");
}

#[tokio::test]
async fn each_turn_gets_its_vector_once_and_no_request_is_sent_without_need() {
    let (state, (server, url)) = (FakeApiServer::default(), EmbeddingsServer::serve());
    let (gateway, mut refresh) = gateway(&state, &url);
    refresh.step(Instant::now()).await;
    server.take_texts();
    offered(&gateway, &["wumpet!", "violin", "wumpet!"]).await;
    assert_eq!(server.take_texts(), ["wumpet!", "violin"], "one request with each text once");
    assert_eq!(offered(&gateway, &["wumpet!", "violin", "harbor"]).await, ["s1"]);
    assert_eq!(server.take_texts(), ["harbor"]);
    let exactly = [("x-skillet-skills", "exactly=s1")];
    let request =
        json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": "cathedral" }] }).to_string();
    for headers in [&exactly[..], &[("x-skillet-skills", "off")]] {
        gateway.send("POST", "/v1/chat/completions", Some(AGENT), headers, &request).await;
    }
    gateway.change_policy(|policy| policy.gateway.offer.matching = OfferMatching::Words);
    gateway.send("POST", "/v1/chat/completions", Some(AGENT), &[], &request).await;
    assert!(server.take_texts().is_empty());
}

#[tokio::test]
async fn each_failure_leaves_the_words_and_names_itself() {
    let (state, (server, url)) = (FakeApiServer::default(), EmbeddingsServer::serve());
    let oversized = Behavior::Text(" ".repeat(1 << 20));
    for (behavior, outcome, message) in [
        (Behavior::Status(400), "client_error", "answered 400; look at model and dimensions"),
        (Behavior::Status(401), "denied", "answered 401; look at the key in keySecret"),
        (Behavior::Status(404), "client_error", "answered 404; look at baseUrl and model"),
        (Behavior::Status(429), "throttled", "answered 429"),
        (Behavior::Status(500), "server_error", "answered 500"),
        (Behavior::Text("{}".into()), "invalid", "sent no list of vectors"),
        (Behavior::Dimensions(32), "invalid", "sent a vector of 32 dimensions, not 64"),
        (Behavior::Short, "invalid", "sent 0 vectors for 1 texts"),
        (Behavior::NotFinite, "invalid", "a value that is no number"),
        (oversized, "invalid", "answered more than 67584 bytes"),
        (Behavior::Silent, "timeout", "did not answer within 100ms"),
    ] {
        server.set(Behavior::Numbers);
        let (gateway, mut refresh) = gateway(&state, &url);
        assert!(refresh.step(Instant::now()).await);
        let timeout = "100ms".parse().unwrap();
        if matches!(behavior, Behavior::Silent) {
            set_provider(&gateway, Some(EmbeddingsProvider { timeout, ..settings(&url) }));
            assert!(refresh.step(Instant::now()).await);
        }
        server.set(behavior.clone());
        let explained = explain(&gateway, &["zorgle wumpet"]).await;
        let failed = &explained["embeddings"];
        assert_eq!(failed["state"], "Unavailable", "{behavior:?} {failed}");
        assert!(failed["message"].as_str().unwrap().contains(message), "{failed}");
        let skill = &explained["skills"][0];
        assert!(skill["offered"] == true && skill["signals"][0]["kind"] != "Vector", "words decide: {skill}");
        // Refused texts are sent once more, as their beginnings.
        let requests = if matches!(behavior, Behavior::Status(400)) { 2 } else { 1 };
        let line =
            format!("embeddings_requests_total{{purpose=\"question\",outcome=\"{outcome}\"}} {requests}");
        assert!(metrics(&gateway).contains(&line), "{line}");
        server.set(Behavior::Numbers);
        assert_eq!(offered(&gateway, &["wumpet"]).await, ["s1"], "the provider is back");
        assert_eq!(explain(&gateway, &["wumpet"]).await["embeddings"]["state"], "Ready");
    }
}

#[tokio::test]
async fn a_dead_provider_is_not_asked_on_each_request() {
    let (state, (server, url)) = (FakeApiServer::default(), EmbeddingsServer::serve());
    let (gateway, mut refresh) = gateway(&state, &url);
    refresh.step(Instant::now()).await;
    let policy = SkillPolicy::new("default", SkillPolicySpec::default());
    Api::all(state.client()).create(&PostParams::default(), &policy).await.unwrap();
    server.set(Behavior::Status(503));
    server.take_texts();
    for text in ["a1", "b2", "c3", "d4", "e5"] {
        explain(&gateway, &[text]).await;
    }
    assert_eq!(server.take_texts(), ["a1", "b2", "c3"]);
    assert!(refresh.step(Instant::now()).await);
    let condition =
        state.object("/apis/skillet.dev/v1alpha1/skillpolicies/default").unwrap()["status"]["conditions"][0]
            .clone();
    assert_eq!(
        (&condition["type"], &condition["status"]),
        (&json!("EmbeddingsReady"), &json!("False")),
        "{condition}"
    );
    let metrics = metrics(&gateway);
    for line in ["outcome=\"suspended\"} 2", "outcome=\"server_error\"} 3", "embeddings_failed 1\n"] {
        assert!(metrics.contains(line), "{line}");
    }
}

#[tokio::test]
async fn a_refused_question_is_sent_by_its_beginning_and_opens_no_breaker() {
    let (state, (server, url)) = (FakeApiServer::default(), EmbeddingsServer::serve());
    let (gateway, mut refresh) = gateway(&state, &url);
    refresh.step(Instant::now()).await;
    server.set(Behavior::MaxBytes(256));
    for number in 0..4 {
        let long = format!("wumpet {}", "! ".repeat(150 + number));
        assert_eq!(offered(&gateway, &[&long]).await, ["s1"], "{number}");
    }
    assert!(!metrics(&gateway).contains("suspended"));
    server.set(Behavior::MaxBytes(3));
    offered(&gateway, &["quandle"]).await;
    server.set(Behavior::Numbers);
    server.take_texts();
    assert!(offered(&gateway, &["quandle"]).await.is_empty(), "a refused question is known as one");
    assert!(server.take_texts().is_empty());
    assert_eq!(offered(&gateway, &["quandle!"]).await, ["s2"]);
}

#[tokio::test]
async fn the_key_of_a_secret_is_sent_and_a_missing_one_is_named() {
    let (state, (server, url)) = (FakeApiServer::default(), EmbeddingsServer::serve());
    let (gateway, mut refresh) = gateway(&state, &url);
    let secret = serde_json::from_value(json!({ "name": "vectors" })).unwrap();
    set_provider(
        &gateway,
        Some(EmbeddingsProvider { key_secret: Some(secret), dimensions: Some(128), ..settings(&url) }),
    );
    assert!(!refresh.step(Instant::now()).await);
    let failed = explain(&gateway, &["wumpet"]).await["embeddings"].clone();
    assert_eq!(failed["state"], "Failed");
    assert!(
        failed["message"].as_str().unwrap().contains("no key for the provider of embeddings"),
        "{failed}"
    );
    gateway.api.put_secret(json!({ "apiVersion": "v1", "kind": "Secret",
        "metadata": { "namespace": "skillet-system", "name": "vectors" }, "data": { "apiKey": "a2V5" } }));
    assert!(refresh.step(Instant::now()).await);
    let (path, headers, body) = server.requests().pop().unwrap();
    assert_eq!((path.as_str(), headers["authorization"].to_str().unwrap()), ("/v1/embeddings", "Bearer key"));
    assert_eq!(
        (&body["model"], &body["dimensions"], &body["encoding_format"]),
        (&json!("m"), &json!(128), &json!("float"))
    );
    assert_eq!(offered(&gateway, &["wumpet"]).await, ["s1"]);
}

#[tokio::test]
async fn vectors_follow_the_skills_and_those_of_gone_skills_are_removed() {
    let (state, (server, url)) = (FakeApiServer::default(), EmbeddingsServer::serve());
    let (gateway, mut refresh) = gateway(&state, &url);
    let start = Instant::now();
    refresh.step(start).await;
    server.take_texts();
    gateway.skill("team", "s1", &json!({ "description": "frobnic", "mode": "auto", "version": "2.0.0" }));
    assert!(offered(&gateway, &["wumpet"]).await.is_empty(), "the vector of the earlier text counts no more");
    assert!(refresh.step(start).await);
    assert_eq!(offered(&gateway, &["quandle"]).await, ["s1", "s2"]);
    assert_eq!(
        server.take_texts(),
        ["wumpet", "s 1. frobnic", "quandle"].map(|text| text.replace("s 1", "s1"))
    );
    gateway.remove_skills();
    let later = start + Duration::from_secs(599);
    assert!(refresh.step(later).await);
    assert_eq!(stored(&state), 3, "the text of version 1 is gone for less than ten minutes");
    assert!(refresh.step(later + Duration::from_secs(601)).await);
    assert_eq!(stored(&state), 0);
}

#[tokio::test]
async fn a_text_that_the_provider_refuses_keeps_no_other_from_its_vector() {
    let (state, (server, url)) = (FakeApiServer::default(), EmbeddingsServer::serve());
    server.set(Behavior::MaxBytes(1000));
    let (gateway, mut refresh) = gateway(&state, &url);
    let long = format!("zorgle {}", "! ".repeat(800));
    gateway.skill("team", "s3", &json!({ "description": long, "mode": "auto" }));
    assert!(refresh.step(Instant::now()).await);
    assert_eq!(offered(&gateway, &["quandle"]).await, ["s2"]);
    assert_eq!(offered(&gateway, &["wumpet"]).await, ["s1", "s3"], "the beginning stands for a long text");
    assert_eq!(stored(&state), 3);
    server.set(Behavior::MaxBytes(100));
    let refused = "frobnic ".repeat(200);
    gateway.skill("team", "s5", &json!({ "description": refused, "mode": "auto" }));
    assert!(refresh.step(Instant::now()).await, "a text that is refused alone holds up no other");
    assert_eq!(stored(&state), 4);
    server.set(Behavior::Status(400));
    gateway.skill("team", "s4", &json!({ "description": "wumpet", "mode": "auto" }));
    assert!(!refresh.step(Instant::now()).await, "all texts refused is a failure of the provider");
    let explained = explain(&gateway, &["hi"]).await;
    assert!(explained["embeddings"]["message"].as_str().unwrap().contains("answered 400"), "{explained}");
    assert!(metrics(&gateway).contains("embeddings_skills{vector=\"missing\"} 1"));
}

#[tokio::test]
async fn replicas_that_write_at_once_lose_nothing_and_use_the_same_vectors() {
    let (state, (server, url)) = (FakeApiServer::default(), EmbeddingsServer::serve());
    let ((first, mut a), (second, mut b)) = (gateway(&state, &url), gateway(&state, &url));
    for number in 0..40 {
        let skill = json!({ "description": format!("zorgle d{number}"), "mode": "auto" });
        let gateway = if number % 2 == 0 { &first } else { &second };
        gateway.skill("team", &format!("n{number}"), &skill);
    }
    let (a, b) = tokio::join!(a.step(Instant::now()), b.step(Instant::now()));
    assert!(a && b);
    assert_eq!(stored(&state), 42);
    let (third, mut c) = gateway(&state, &url);
    server.take_texts();
    assert!(c.step(Instant::now()).await && server.take_texts().is_empty());
    let scores = [&first, &second, &third].map(|gateway| explain(gateway, &["wumpet"]));
    let [a, b, c] = scores;
    let cosine = |explained: Value| {
        let skills = explained["skills"].as_array().unwrap().clone();
        skills.into_iter().find(|skill| skill["name"] == "s1").unwrap()["signals"].clone()
    };
    let c = cosine(c.await);
    assert_eq!((cosine(a.await), cosine(b.await)), (c.clone(), c));
}

#[tokio::test]
async fn another_model_makes_all_vectors_anew_and_no_provider_is_none() {
    let (state, (server, url)) = (FakeApiServer::default(), EmbeddingsServer::serve());
    let (gateway, mut refresh) = gateway(&state, &url);
    refresh.step(Instant::now()).await;
    set_provider(
        &gateway,
        Some(EmbeddingsProvider { model: "n".into(), dimensions: Some(128), ..settings(&url) }),
    );
    server.set(Behavior::Status(500));
    assert!(!refresh.step(Instant::now()).await);
    assert!(
        offered(&gateway, &["wumpet"]).await.is_empty() && stored(&state) == 2,
        "words alone until it is measured"
    );
    server.set(Behavior::Numbers);
    assert!(refresh.step(Instant::now()).await);
    assert_eq!((offered(&gateway, &["wumpet"]).await, stored(&state)), (vec!["s1".to_owned()], 2));
    assert_eq!(explain(&gateway, &["hi"]).await["embeddings"]["dimensions"], 128);
    server.take_texts();
    set_provider(&gateway, None);
    assert!(refresh.step(Instant::now()).await);
    assert!(offered(&gateway, &["wumpet"]).await.is_empty() && server.take_texts().is_empty());
    assert!(matches!(*gateway.service.catalog.embeddings(), EmbeddingsState::Off));
}

#[tokio::test]
async fn a_state_that_cannot_be_written_costs_no_vectors_twice() {
    let (state, (server, url)) = (FakeApiServer::default(), EmbeddingsServer::serve());
    let (gateway, mut refresh) = gateway(&state, &url);
    state.fail_next("GET /api/v1/namespaces/skillet-system/configmaps/skillet-vectors-0", 403, "no right");
    assert!(!refresh.step(Instant::now()).await);
    let failed = explain(&gateway, &["hi"]).await["embeddings"].clone();
    assert_eq!(failed, json!({ "state": "Failed", "message": "could not read ConfigMap skillet-vectors-0" }));
    assert!(refresh.step(Instant::now()).await);
    server.take_texts();
    gateway.skill("team", "s3", &json!({ "description": "wumpet again", "mode": "auto" }));
    for _ in 0..2 {
        // A POST or a PUT.
        state.fail_next("P", 500, "down");
        assert!(!refresh.step(Instant::now()).await);
    }
    assert_eq!(server.take_texts(), ["s3. wumpet again"]);
    assert_eq!(offered(&gateway, &["zorgle again"]).await, ["s1", "s3"]);
    assert!(refresh.step(Instant::now()).await);
    assert_eq!((stored(&state), server.take_texts()), (3, vec!["zorgle again".to_owned()]));
}

#[tokio::test]
async fn a_search_of_the_model_finds_by_meaning_too() {
    let (state, (_server, url)) = (FakeApiServer::default(), EmbeddingsServer::serve());
    let (gateway, mut refresh) = gateway(&state, &url);
    refresh.step(Instant::now()).await;
    gateway.change_policy(|policy| policy.gateway.offer.mode = OfferMode::Search);
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "find_skills", "arguments": "{\"query\":\"wumpet\"}" } });
    let asks = json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": { "role": "assistant", "tool_calls": [call] } }] });
    let says = json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "done" } }] });
    gateway.provider.will_say(&asks);
    gateway.provider.will_say(&says);
    let request = json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": "do something" }] });
    gateway.post("/v1/chat/completions", &request).await;
    let messages = gateway.provider.last_request()["messages"].as_array().unwrap().clone();
    let found = messages.last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(found.contains("\"s1\"") && !found.contains("\"s2\""), "{found}");
}

#[tokio::test]
async fn the_task_follows_the_policy() {
    let (state, (_server, url)) = (FakeApiServer::default(), EmbeddingsServer::serve());
    let (gateway, refresh) = gateway(&state, &url);
    gateway.service.catalog.set_synced();
    let task = tokio::spawn(refresh.run());
    let eventually = async |wanted: &str| {
        for _ in 0..500 {
            if explain(&gateway, &["hi"]).await["embeddings"]["state"] == wanted {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
        panic!("{wanted}: {}", explain(&gateway, &["hi"]).await["embeddings"]);
    };
    eventually("Ready").await;
    set_provider(&gateway, None);
    eventually("Off").await;
    task.abort();
}
