//! `bounded_result` and `follow_up_body`: what the model is given of a result, and the request that gives it.

use serde_json::{Value, json};
use skillet_llm::{
    Dialect as _, ToolResult,
    openai_chat::OpenAiChat,
    result_budget::{DEFAULT_RESULT_BYTES, DEFAULT_TOTAL_BYTES, truncate_result},
};

use crate::{case::Case, judge::Answer};

/// Name in OmniRoute's mark.
const MARK: &str = "OMNIROUTE";

pub(super) fn bounded_result(case: &Case) -> Result<Answer, String> {
    let limit = bytes(&case.input["maxBytes"]).ok_or("maxBytes is no number of bytes")?;
    let bounded = truncate_result(&case.given("value").unwrap_or(&Value::Null).to_string(), limit, MARK);
    let value = json!({
        "text": bounded.text, "truncated": bounded.is_truncated, "originalBytes": bounded.original_bytes,
    });
    let is_same = value == case.expected || is_same_but_for_order(&value, &case.expected);
    Ok(Answer { is_same, ..Answer::exact(case, value) })
}

/// Objects are read without order: whole texts compare as JSON, cut ones by their sizes and their mark.
fn is_same_but_for_order(value: &Value, expected: &Value) -> bool {
    let [text, other] = [value, expected].map(|value| value["text"].as_str().unwrap_or_default());
    let is_same_size = ["truncated", "originalBytes"].iter().all(|field| value[field] == expected[field]);
    let is_object = text.starts_with(['{', '[']);
    let mark = |text: &str| text.rfind("[TRUNCATED ").map(|at| text[at..].to_owned());
    let is_same_text = match [text, other].map(serde_json::from_str::<Value>) {
        [Ok(value), Ok(expected)] => value == expected,
        _ => text.len() == other.len() && mark(text) == mark(other),
    };
    is_same_size && is_object && is_same_text
}

fn bytes(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|bytes| usize::try_from(bytes).ok())
}

pub(super) fn follow_up_body(case: &Case) -> Result<Answer, String> {
    let format = case.text("sourceFormat");
    if format != "openai" {
        return Err(format.to_owned());
    }
    let mut request = case.input["sourceBody"].clone();
    // OmniRoute's loop asks for whole answers only; whether the product streams is the gateway's choice.
    request["stream"] = json!(false);
    let answer = with_calls(case);
    let body = OpenAiChat.next_request(&request, &answer, &results(case));
    let mut expected = case.expected["body"].clone();
    if expected.is_object() && expected.get("stream").is_none() {
        expected["stream"] = json!(false);
    }
    let is_same = body == expected;
    Ok(Answer { is_same, ..Answer::exact(case, json!({ "body": body })) })
}

/// The answer with its calls; a case may have them beside it only.
fn with_calls(case: &Case) -> Value {
    let answer = &case.input["previousResponse"];
    if !OpenAiChat.tool_calls(answer).is_empty() {
        return answer.clone();
    }
    let calls = case.input["toolCalls"].as_array().into_iter().flatten().map(|call| {
        let arguments = call["arguments"].to_string();
        json!({"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": arguments}})
    });
    let mut message =
        answer.pointer("/choices/0/message").cloned().unwrap_or_else(|| json!({"content": null}));
    message["tool_calls"] = calls.collect();
    json!({"choices": [{"message": message}]})
}

fn results(case: &Case) -> Vec<ToolResult> {
    let per_result = limit(case, |name| !name.contains("total")).unwrap_or(DEFAULT_RESULT_BYTES);
    let mut left = limit(case, |name| name.contains("total")).unwrap_or(DEFAULT_TOTAL_BYTES);
    let results = case.input["results"].as_array().into_iter().flatten().map(|result| {
        let content = truncate_result(&result["result"].to_string(), per_result.min(left), MARK).text;
        left = left.saturating_sub(content.len());
        let text = |field: &str| result[field].as_str().unwrap_or_default().to_owned();
        ToolResult { id: text("id"), name: text("name"), content, is_error: false }
    });
    results.collect()
}

/// A number of bytes of the input or of its `budgets`, by its name.
fn limit(case: &Case, is_named: impl Fn(&str) -> bool) -> Option<usize> {
    let fields = [&case.input, &case.input["budgets"]].into_iter().filter_map(Value::as_object).flatten();
    let mut sizes = fields.map(|(name, value)| (name.to_lowercase(), value));
    let (_, value) =
        sizes.find(|(name, value)| name.contains("bytes") && value.is_u64() && is_named(name))?;
    bytes(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::replay_case;

    #[test]
    fn a_cut_object_is_compared_by_size_and_mark() {
        let input = json!({"value": {"b": "x".repeat(50), "a": 1}, "maxBytes": 45});
        let expected = |text: &str| json!({"text": text, "truncated": true, "originalBytes": 64});
        let check = |text: &str, result: &str| {
            let verdict_text = replay_case("bounded_result", "compat", None, &input, &expected(text));
            assert!(verdict_text.starts_with(result), "{verdict_text}");
        };
        check("{\"b\":\"xxxxxx[TRUNCATED 52 BYTES BY OMNIROUTE]", "passed");
        check("{\"b\":\"xxxxxx[TRUNCATED 53 BYTES BY OMNIROUTE]", "failed");
        check("{\"b\":\"[TRUNCATED 52 BYTES BY OMNIROUTE]", "failed");
    }

    #[test]
    fn the_next_request_has_results_within_the_cases_budgets() {
        let result = |id: &str| json!({"id": id, "name": "a", "result": "x".repeat(100)});
        let call = |id: &str| json!({"id": id, "name": "a", "arguments": {}});
        let input = json!({
            "sourceFormat": "openai", "sourceBody": {"messages": []}, "previousResponse": {},
            "toolCalls": [call("1"), call("2")], "results": [result("1"), result("2")],
            "budgets": {"maxResultBytes": 50, "maxTotalResultBytes": 60},
        });
        let function = json!({"name": "a", "arguments": "{}"});
        let written = |id: &str| json!({"id": id, "type": "function", "function": function});
        let expected = |second: &str| {
            json!({"body": {"messages": [
                {"role": "assistant", "content": null, "tool_calls": [written("1"), written("2")]},
                {"role": "tool", "tool_call_id": "1", "content": format!("\"{}[TRUNCATED 86 BYTES BY OMNIROUTE]", "x".repeat(15))},
                {"role": "tool", "tool_call_id": "2", "content": second},
            ]}})
        };
        let check = |expected: &Value, result: &str| {
            let verdict_text = replay_case("follow_up_body", "compat", None, &input, expected);
            assert!(verdict_text.starts_with(result), "{verdict_text}");
        };
        check(&expected("[TRUNCATED "), "passed");
        check(&expected("[TRUNCATED 102"), "failed");
        let other =
            replay_case("follow_up_body", "compat", None, &json!({"sourceFormat": "claude"}), &Value::Null);
        assert_eq!(other, "claude");
    }
}
