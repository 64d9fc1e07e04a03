//! A conversation of 30 turns through the whole gateway: its tools, its cache marks, and what is sent again.

use serde_json::json;
use skillet_api::gateway::OfferMatching;
use skillet_offer::synthetic::conversation::{SKILLS, ScriptedTurn, resent_tokens, turns};

use super::*;
use crate::testing::TestGateway;

fn marked(mut value: Value) -> Value {
    value["cache_control"] = json!({ "type": "ephemeral" });
    value
}

/// The client's request after these turns. It marks its last tool, its system text and its last words for the cache.
fn request(turns: &[ScriptedTurn]) -> Value {
    let mut messages = Vec::new();
    for (number, ScriptedTurn { user, file, response }) in (1..).zip(turns) {
        let text = json!({ "type": "text", "text": user });
        let is_last = number == turns.len();
        messages.push(json!({ "role": "user", "content": [if is_last { marked(text) } else { text }] }));
        if !is_last {
            let id = format!("read{number}");
            let call = json!({ "type": "tool_use", "id": id, "name": "read_file", "input": {} });
            let result = json!({ "type": "tool_result", "tool_use_id": id, "content": file });
            messages.push(json!({ "role": "assistant", "content": [call] }));
            messages.push(json!({ "role": "user", "content": [result] }));
            messages.push(json!({ "role": "assistant", "content": response }));
        }
    }
    let read_file =
        json!({ "name": "read_file", "description": "Reads.", "input_schema": { "type": "object" } });
    let system = json!([marked(json!({ "type": "text", "text": "You help." }))]);
    json!({ "model": "m", "max_tokens": 9, "system": system, "messages": messages, "tools": [marked(read_file)] })
}

/// Plays the script, and returns for each turn what the client and what the provider got as the request.
async fn play(mode: OfferMode, matching: OfferMatching) -> Vec<(Value, Value)> {
    let gateway = TestGateway::new();
    gateway.change_policy(|policy| {
        (policy.gateway.offer.mode, policy.gateway.offer.matching) = (mode, matching);
    });
    for (name, description) in SKILLS {
        gateway.skill("team", name, &json!({ "description": description }));
    }
    let turns = turns();
    let mut played = Vec::new();
    for number in 1..=turns.len() {
        let request = request(&turns[..number]);
        assert_eq!(gateway.post("/v1/messages", &request).await.status, 200);
        played.push((request, gateway.provider.last_request()));
    }
    played
}

/// The prompt in the order of the provider's cache. Marks are no part of it.
fn prompt(sent: &Value) -> String {
    let messages: Vec<String> = sent["messages"].as_array().unwrap().iter().map(Value::to_string).collect();
    let text = format!("{}{}{}", sent["tools"], sent["system"], messages.concat());
    text.replace(&format!(",{MARK}"), "").replace(&format!("{MARK},"), "")
}

const MARK: &str = r#""cache_control":{"type":"ephemeral"}"#;

fn names(sent: &Value) -> Vec<String> {
    let tools = sent["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn thirty_turns_change_the_tools_thrice_at_most_and_move_no_cache_mark() {
    let mut before = vec!["read_file".to_owned()];
    let mut changes = 0;
    for (client, sent) in play(OfferMode::Tools, OfferMatching::Ranked).await {
        // The gateway's tools stand after the client's and before all other marks.
        assert_eq!((&sent["system"], &sent["messages"]), (&client["system"], &client["messages"]));
        assert_eq!(sent["tools"][0], client["tools"][0]);
        let offered = names(&sent);
        assert!(offered.starts_with(&before), "{offered:?} after {before:?}");
        changes += usize::from(offered != before);
        before = offered;
    }
    assert!((1..=3).contains(&changes), "{changes}");
    assert!(before.contains(&"invoice-create".to_owned()), "{before:?}");
}

#[tokio::test]
async fn kept_and_constant_tools_send_far_less_again_than_a_choice_by_turn() {
    let mut resent = Vec::new();
    for (mode, matching) in [
        (OfferMode::Tools, OfferMatching::Substring),
        (OfferMode::Tools, OfferMatching::Ranked),
        (OfferMode::Search, OfferMatching::Ranked),
    ] {
        let prompts: Vec<String> = play(mode, matching).await.iter().map(|(_, sent)| prompt(sent)).collect();
        resent.push(resent_tokens(&prompts));
    }
    let [by_turn, kept, constant] = resent[..] else { panic!("{resent:?}") };
    assert!(kept * 4 < by_turn && constant == 0, "{resent:?}");
}
