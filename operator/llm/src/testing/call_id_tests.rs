//! Ids of calls that a provider left out or repeated, in every dialect.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::DialectName;

/// A whole response of this id that calls with these ids; null leaves an id out.
fn response(dialect: DialectName, id: &str, calls: &[Value]) -> Value {
    let with_id = |mut call: Value, field: &str, id: &Value| {
        if !id.is_null() {
            call[field] = id.clone();
        }
        call
    };
    let list = |call: &dyn Fn(&Value) -> Value| calls.iter().map(call).collect::<Value>();
    match dialect {
        DialectName::OpenAiChat => {
            let calls = list(&|id| with_id(json!({"function": {"name": "f", "arguments": "{}"}}), "id", id));
            json!({"id": id, "choices": [{"message": {"tool_calls": calls}}]})
        }
        DialectName::OpenAiResponses => {
            let call = json!({"type": "function_call", "name": "f", "arguments": "{}"});
            json!({"id": id, "output": list(&|id| with_id(call.clone(), "call_id", id))})
        }
        DialectName::Anthropic => {
            let call = json!({"type": "tool_use", "name": "f", "input": {}});
            json!({"id": id, "content": list(&|id| with_id(call.clone(), "id", id))})
        }
        DialectName::Gemini => {
            let parts = list(&|id| json!({"functionCall": with_id(json!({"name": "f"}), "id", id)}));
            json!({"responseId": id, "candidates": [{"content": {"parts": parts}}]})
        }
    }
}

fn ids(dialect: DialectName, response: &Value) -> Vec<String> {
    dialect.dialect().tool_calls(response).into_iter().map(|call| call.id).collect()
}

#[test]
fn missing_and_repeated_ids_are_made_unique_and_stay_the_same() {
    for dialect in DialectName::ALL {
        let calls = [json!("1"), json!("1"), json!(null), json!(""), json!("2")];
        let whole = response(dialect, "r1", &calls);
        let read = ids(dialect, &whole);
        assert_eq!((&*read[0], &*read[4]), ("1", "2"), "{dialect:?}");
        assert_eq!(read.iter().collect::<HashSet<_>>().len(), calls.len(), "{dialect:?} {read:?}");
        assert!(read.iter().all(|id| (1..=64).contains(&id.len())), "{dialect:?} {read:?}");
        assert_eq!(ids(dialect, &whole), read, "{dialect:?}");
        assert_ne!(ids(dialect, &response(dialect, "r2", &calls))[2], read[2], "{dialect:?}");
    }
}

#[test]
fn a_made_id_is_no_id_that_the_provider_gave() {
    for dialect in DialectName::ALL {
        let made = ids(dialect, &response(dialect, "r1", &[json!(null)]));
        let both = ids(dialect, &response(dialect, "r1", &[json!(null), json!(made[0])]));
        assert_ne!(both[0], both[1], "{dialect:?}");
    }
}
