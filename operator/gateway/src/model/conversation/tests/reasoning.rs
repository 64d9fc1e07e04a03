//! Content of reasoning that the gateway asks for and the client does not.

use serde_json::{Value, json};

use super::{key, stocked};
use crate::testing::{AGENT, TestGateway};

fn reasoning(content: &str) -> Value {
    json!({ "type": "reasoning", "id": format!("rs_{content}"), "summary": [], "encrypted_content": content })
}

fn message() -> Value {
    json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": "done", "annotations": [] }] })
}

fn call() -> Value {
    json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}" })
}

fn whole(output: &[Value]) -> Value {
    json!({ "id": "resp_1", "status": "completed", "store": false, "output": output })
}

/// The events of a response, numbered.
fn events(output: &[Value]) -> String {
    let mut events = vec![json!({ "type": "response.created", "response": whole(&[]) })];
    for (index, item) in output.iter().enumerate() {
        for kind in ["response.output_item.added", "response.output_item.done"] {
            events.push(json!({ "type": kind, "output_index": index, "item": item }));
        }
    }
    events.push(json!({ "type": "response.completed", "response": whole(output) }));
    let event = |(number, mut data): (usize, Value)| {
        data["sequence_number"] = json!(number);
        format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
    };
    events.into_iter().enumerate().map(event).collect()
}

/// The text of a response to a request that is answered with these outputs.
async fn ask(gateway: &TestGateway, outputs: &[&[Value]], is_streaming: bool, include: &Value) -> String {
    for output in outputs {
        if is_streaming {
            gateway.provider.will_write("text/event-stream", events(output));
        } else {
            gateway.provider.will_say(&whole(output));
        }
    }
    let request = json!({ "model": "m", "store": false, "reasoning": {}, "input": "hi", "stream": is_streaming, "include": include });
    gateway.send("POST", "/v1/responses", Some(AGENT), &[], &request.to_string()).await.text
}

#[tokio::test]
async fn a_client_gets_the_content_of_reasoning_that_it_asked_for_alone() {
    let gateway = stocked(Some(key()));
    let included = json!(["reasoning.encrypted_content"]);
    let output = [reasoning("gAAAA"), message()];
    for is_streaming in [false, true] {
        let text = ask(&gateway, &[&output], is_streaming, &included).await;
        assert_eq!(text, if is_streaming { events(&output) } else { whole(&output).to_string() });
        for include in [Value::Null, json!([])] {
            let text = ask(&gateway, &[&output], is_streaming, &include).await;
            assert_eq!(gateway.provider.last_request()["include"], included);
            assert!(!text.contains("encrypted_content") && text.contains("rs_gAAAA"), "{text}");
            assert_eq!(text.matches("\"done\"").count(), if is_streaming { 3 } else { 1 }, "{text}");
        }
    }
}

#[tokio::test]
async fn reasoning_beside_a_seal_keeps_its_content_because_both_come_back() {
    let gateway = stocked(Some(key()));
    for is_streaming in [false, true] {
        let rounds: [&[Value]; 2] = [&[reasoning("first"), call()], &[reasoning("second"), message()]];
        let text = ask(&gateway, &rounds, is_streaming, &Value::Null).await;
        assert_eq!(gateway.provider.last_request()["input"][1]["encrypted_content"], "first");
        assert!(text.contains("\"second\"") && !text.contains("\"first\""), "{text}");
    }
}
