//! The parts of a request and of a response that are forwarded byte for byte.

mod reasoning;
pub(super) mod spans;

use serde_json::json;
use skillet_llm::confirmation::ConfirmationKey;

use crate::testing::{AGENT, TestGateway};

const CHAT: &str = "/v1/chat/completions";

pub(super) fn key() -> ConfirmationKey {
    ConfirmationKey::new(&[9; 32]).unwrap()
}

/// A gateway that offers the hybrid skill `pay` and the skill `look`. Every run ends at once with `{"paid": 5}`.
pub(super) fn stocked(confirmation: Option<ConfirmationKey>) -> TestGateway {
    let gateway = TestGateway::with_confirmation(confirmation);
    gateway.api.set_status_on_create(json!({ "phase": "Succeeded", "reason": "Succeeded", "attempts": 1,
        "truncated": false, "output": { "paid": 5 } }));
    gateway.offer("team", "pay", "hybrid");
    gateway.offer("team", "look", "auto");
    gateway
}

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
    let gateway = stocked(Some(key()));
    let json = "application/json";
    let called = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"look\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";
    for (request, kind, first) in
        [(request(""), json, CALLING), (request("\"stream\":true,"), "text/event-stream", called)]
    {
        gateway.provider.will_write(kind, first.to_owned());
        gateway.provider.will_write(json, SAYING.to_owned());
        gateway.send("POST", CHAT, Some(AGENT), &[], &request).await;
        let asked = gateway.provider.texts();
        let [.., first, second] = asked.as_slice() else { panic!("{asked:?}") };
        let as_written = request.strip_suffix("]}").unwrap();
        assert!(first.starts_with(as_written) && first.contains("\"look\""), "{first}");
        assert!(second.starts_with(as_written) && second.contains("\"tool_call_id\":\"c\""), "{second}");
        assert_eq!(first.split("\"tools\"").nth(1), second.split("\"tools\"").nth(1), "the same tools");
    }
}

#[tokio::test]
async fn a_router_and_a_dry_run_get_the_request_as_it_would_be_sent() {
    let gateway = stocked(Some(key()));
    let request = request("");
    let dry = gateway.send("POST", CHAT, Some(AGENT), &[("x-skillet-dry-run", "true")], &request).await.text;
    let inject = format!("{{\"dialect\":\"openai-chat\",\"request\":{request}}}");
    let injected = gateway.send("POST", "/v1/inject", Some(AGENT), &[], &inject).await.text;
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
    let next = gateway.send("POST", "/v1/intercept", Some(AGENT), &[], &intercept(CALLING)).await.text;
    assert!(next.contains(FORMAT) && next.contains("\"nextRequest\":{"), "{next}");
    let done = gateway.send("POST", "/v1/intercept", Some(AGENT), &[], &intercept(SAYING)).await.text;
    assert!(done.contains(SAYING), "{done}");
}

#[tokio::test]
async fn an_answer_with_results_in_it_keeps_the_providers_order() {
    let gateway = stocked(Some(key()));
    gateway.provider.will_write("application/json", CALLING.to_owned());
    let answer =
        gateway.send("POST", CHAT, Some(AGENT), &[("x-skillet-rounds", "0")], &request("")).await.text;
    assert!(answer.starts_with(CALLING.split("\"message\"").next().unwrap()), "{answer}");
}

#[tokio::test]
async fn a_call_of_a_response_that_a_limit_cut_is_not_run() {
    let gateway = stocked(Some(key()));
    let call = r#"{"index":0,"id":"c","type":"function","function":{"name":"look","arguments":"{\"q\":"}}"#;
    let whole = format!(
        r#"{{"id":"r","choices":[{{"index":0,"message":{{"role":"assistant","content":null,"tool_calls":[{call}]}},"finish_reason":"length"}}]}}"#
    );
    let streamed = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{call}]}},\"finish_reason\":\"length\"}}]}}\n\ndata: [DONE]\n\n"
    );
    for (request, kind, answer) in [
        (request(""), "application/json", whole),
        (request("\"stream\":true,"), "text/event-stream", streamed),
    ] {
        gateway.provider.will_write(kind, answer);
        let asked = gateway.provider.texts().len();
        let given = gateway.send("POST", CHAT, Some(AGENT), &[], &request).await.text;
        assert!(given.contains("\"length\"") && given.contains("ResponseCut"), "{given}");
        assert_eq!(gateway.provider.texts().len(), asked + 1, "the model is not asked again");
        assert!(gateway.api.executions().is_empty());
    }
}

#[tokio::test]
async fn the_text_of_every_round_is_in_the_answer_unless_it_is_json() {
    let gateway = stocked(Some(key()));
    for (format, expected) in [("", "A\\n\\nB"), ("\"response_format\":{\"type\":\"json_object\"},", "B")] {
        gateway.provider.will_write("application/json", CALLING.replace("null", "\"A\""));
        gateway.provider.will_write("application/json", SAYING.replace("\"x\"", "\"B\""));
        let request =
            format!("{{{format}\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"x\"}}]}}");
        let answer = gateway.send("POST", CHAT, Some(AGENT), &[], &request).await.text;
        assert!(answer.contains(&format!("\"content\":\"{expected}\"")), "{answer}");
    }
}
