//! Ids that come back from their own namespace, from another one, and changed.

use serde_json::json;

use super::*;
use crate::confirmation::ConfirmationKey;

fn binding(namespace: &str) -> IdBinding {
    ConfirmationKey::new(&[7; 32]).unwrap().continuation_key().bind_ids(namespace)
}

fn tagged(namespace: &str, id: &str) -> String {
    format!("{id}{}", binding(namespace).tag(id.as_bytes()))
}

/// The response as the client of `team` gets it, cut into pieces of `size` bytes.
fn write(text: &str, size: usize) -> String {
    let (mut tagger, mut out) = (binding("team").tagger(), Vec::new());
    text.as_bytes().chunks(size).for_each(|piece| tagger.write(piece, &mut out));
    String::from_utf8(out).unwrap()
}

#[test]
fn a_response_returns_as_the_provider_knows_it() {
    let response = json!({
        "id": "resp_1", "previous_response_id": "resp_0", "conversation": {"id": "conv_1"},
        "output": [
            {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "{\"id\": \"msg_1\"}"}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "arguments": "{\"id\":\"fc_1\"}"},
        ],
    });
    let given: Value = serde_json::from_str(&write(&response.to_string(), 3)).unwrap();
    assert_eq!(given["id"], tagged("team", "resp_1"));
    assert_eq!(given["conversation"]["id"], tagged("team", "conv_1"));
    assert_eq!(given["output"][0]["content"], response["output"][0]["content"]);
    assert_eq!(given["output"][1]["arguments"], response["output"][1]["arguments"]);
    assert_eq!(given["output"][1]["call_id"], "call_1");

    let mut request = json!({
        "previous_response_id": given["id"], "conversation": given["conversation"], "input": given["output"],
    });
    let bound = binding("team").unbind(&mut request);
    let expected = json!({
        "previous_response_id": "resp_1", "conversation": {"id": "conv_1"}, "input": response["output"],
    });
    assert_eq!(request, expected);
    assert!(bound.is_changed && ["resp_1", "conv_1", "msg_1", "fc_1"].iter().all(|id| bound.contains(id)));
}

#[test]
fn an_id_of_another_namespace_or_a_changed_one_is_not_bound() {
    let own = tagged("team", "resp_1");
    for id in [tagged("other", "resp_1"), own.replace("resp_1", "resp_2")] {
        let mut request = json!({ "previous_response_id": id });
        let bound = binding("team").unbind(&mut request);
        let bare = request["previous_response_id"].as_str().unwrap();
        assert!(bound.is_changed && !bare.contains(MARK) && !bound.contains(bare), "{request}");
    }
    for id in ["resp_1", "resp_1_sk1short", ""] {
        let mut request = json!({ "previous_response_id": id, "input": "hi" });
        assert!(!binding("team").unbind(&mut request).is_changed);
        assert_eq!(request["previous_response_id"], id);
    }
}

#[test]
fn a_stream_is_tagged_alike_however_it_is_cut() {
    let events = "event: response.created\n\
         data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"metadata\":{\"id\":\"resp_1\"}}}\n\n\
         : a \" in a comment\n\n\
         data: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"delta\":\"\\\"id\\\":\\\"msg_1\\\"\"}\n\n";
    let expected = events
        .replacen("\"id\":\"resp_1\"", &format!("\"id\":\"{}\"", tagged("team", "resp_1")), 1)
        .replacen("\"item_id\":\"msg_1\"", &format!("\"item_id\":\"{}\"", tagged("team", "msg_1")), 1);
    for size in 1..events.len() {
        assert_eq!(write(events, size), expected, "{size}");
    }
}

#[test]
fn what_is_no_id_of_the_providers_stays() {
    for text in [
        r#"{"id":"mine","item_id":7,"id":null,"id":["resp_1"]}"#,
        r#"{"metadata":{"a":[1],"id":"resp_1"},"tools":[{"parameters":{"id":"x_1"}}],"call_id":"call_1"}"#,
        r#"{"id":"RESP_1","item_id":"resp_","response_id":"resp_a b","text":"id\":\"resp_1"}"#,
        "not json: \"id\": ",
    ] {
        assert_eq!(write(text, 5), text);
    }
    let long = format!(r#"{{"id":"rs_{}"}}"#, "a".repeat(LONGEST_ID));
    assert_eq!(write(&long, 100), long);
    // After the client's own data ids are tagged again.
    let text = r#"{"metadata":{"id":"resp_1"},"id":"resp_1"}"#;
    assert_eq!(write(text, 9).matches(MARK).count(), 1);
}

#[test]
fn ids_in_a_path_and_its_query_lose_their_tags() {
    let path = |id: &str, after: &str| format!("/v1/responses/{id}/input_items?after={after}&limit=2");
    let (bare, bound) =
        binding("team").unbind_path(&path(&tagged("team", "resp_1"), &tagged("other", "msg_1")));
    assert_eq!(bare, path("resp_1", "msg_1"));
    assert!(bound.contains("resp_1") && !bound.contains("msg_1"));
    let (same, bound) = binding("team").unbind_path("/v1/responses/resp_1?a=b");
    assert!(same == "/v1/responses/resp_1?a=b" && !bound.is_changed);
}
