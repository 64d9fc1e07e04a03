//! The parts of a request and of a response that are forwarded byte for byte.

pub(super) mod spans;

use super::test_bed::{Bed, key};

const CHAT: &str = "/v1/chat/completions";

/// Out of order, with a number that no machine has, and with spaces.
const FORMAT: &str = r#""response_format": {"schema":{"properties":{"reasoning":{"type":"string"}, "answer":{"maximum":123456789012345678901}}}}"#;

fn request(stream: &str) -> String {
    let messages = r#""messages": [{"role":"user","content":"x"}]"#;
    format!("{{{FORMAT}, \"model\":\"m\",{stream} {messages}}}")
}

/// An answer that calls `look`.
const CALLING: &str = r#"{"usage":{"total_tokens":2,"prompt_tokens":1,"completion_tokens":1},"id":"r","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
const SAYING: &str = r#"{"id":"r","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}"#;

#[tokio::test]
async fn the_clients_own_json_is_forwarded_byte_for_byte_in_every_round() {
    let bed = Bed::new(Some(key())).await;
    let json = "application/json";
    let called = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"look\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";
    for (request, kind, first) in
        [(request(""), json, CALLING), (request("\"stream\":true,"), "text/event-stream", called)]
    {
        bed.will_write(kind, first.to_owned());
        bed.will_write(json, SAYING.to_owned());
        bed.send_text("agent", CHAT, &[], request.clone()).await;
        let asked = bed.asked_texts();
        let [.., first, second] = asked.as_slice() else { panic!("{asked:?}") };
        let as_written = request.strip_suffix("]}").unwrap();
        assert!(first.starts_with(as_written) && first.contains("\"look\""), "{first}");
        assert!(second.starts_with(as_written) && second.contains("\"tool_call_id\":\"c\""), "{second}");
        assert_eq!(first.split("\"tools\"").nth(1), second.split("\"tools\"").nth(1), "the same tools");
    }
}

#[tokio::test]
async fn a_router_and_a_dry_run_get_the_request_as_it_would_be_sent() {
    let bed = Bed::new(Some(key())).await;
    let request = request("");
    let (_, dry) = bed.send_text("agent", CHAT, &[("x-skillet-dry-run", "true")], request.clone()).await;
    let inject = format!("{{\"dialect\":\"openai-chat\",\"request\":{request}}}");
    let (_, injected) = bed.send_text("agent", "/v1/inject", &[], inject).await;
    assert_eq!(dry, injected);
    assert!(dry.contains(FORMAT), "{dry}");
    let result: serde_json::Value = serde_json::from_str(&injected).unwrap();
    assert_eq!(result["offered"]["look"]["skill"], "look");
    let intercept = |answer: &str| {
        let offered = &result["offered"];
        format!(
            "{{\"dialect\":\"openai-chat\",\"request\":{request},\"offered\":{offered},\"answer\":{answer}}}"
        )
    };
    let (_, next) = bed.send_text("agent", "/v1/intercept", &[], intercept(CALLING)).await;
    assert!(next.contains(FORMAT) && next.contains("\"nextRequest\":{"), "{next}");
    let (_, done) = bed.send_text("agent", "/v1/intercept", &[], intercept(SAYING)).await;
    assert!(done.contains(SAYING), "{done}");
}

#[tokio::test]
async fn an_answer_with_results_in_it_keeps_the_providers_order() {
    let bed = Bed::new(Some(key())).await;
    bed.will_write("application/json", CALLING.to_owned());
    let (_, answer) = bed.send_text("agent", CHAT, &[("x-skillet-rounds", "0")], request("")).await;
    assert!(answer.starts_with(CALLING.split("\"message\"").next().unwrap()), "{answer}");
}
