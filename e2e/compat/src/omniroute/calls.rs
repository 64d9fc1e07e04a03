//! `extract_tool_calls`: the calls in a provider's answer.

use serde_json::{Value, json};
use skillet_llm::{Arguments, ToolCall, openai_chat::read_calls};

use crate::{
    case::Case,
    judge::{Answer, Sense},
};

/// Returns the provider whose format a response has, as OmniRoute derives it from the model's name.
pub(super) fn provider(model: &str) -> &'static str {
    let is = |parts: [&str; 2]| parts.into_iter().any(|part| model.to_lowercase().contains(part));
    match model {
        _ if is(["gpt", "openai"]) => "openai",
        _ if is(["claude", "anthropic"]) => "anthropic",
        _ if is(["gemini", "google"]) => "google",
        _ => "other",
    }
}

/// True for a response of OpenAI's Responses API, which has the same provider. Calls in `choices` win over those in
/// `output`.
pub(super) fn is_responses(response: &Value) -> bool {
    let has_output = [&response["output"], &response["response"]["output"]].into_iter().any(Value::is_array);
    has_output && read_calls(response).is_empty()
}

pub(super) fn extract_tool_calls(case: &Case) -> Result<Answer, String> {
    let response = &case.input["response"];
    let calls = match provider(case.text("model")) {
        "openai" if is_responses(response) => return Err("openai responses".to_owned()),
        "openai" => read_calls(response),
        other => return Err(other.to_owned()),
    };
    Ok(answer(case, &calls))
}

fn answer(case: &Case, calls: &[ToolCall]) -> Answer {
    let expected = &case.expected["calls"];
    let has_broken = calls.iter().any(|call| matches!(call.arguments, Arguments::NotJson(_)));
    let calls: Vec<Value> =
        calls.iter().enumerate().map(|(place, call)| to_json(call, &expected[place])).collect();
    // OmniRoute throws where the product finds no calls.
    let throws = case.expected.get("throws").is_some();
    Answer {
        meets_want: if throws { Sense::Met } else { Sense::Unknown },
        difference: has_broken.then(|| {
            "arguments that are no JSON are reported to the model; OmniRoute runs with {}".to_owned()
        }),
        ..Answer::exact(case, json!({ "calls": calls }))
    }
}

fn to_json(call: &ToolCall, expected: &Value) -> Value {
    let ToolCall { id, name, arguments } = call;
    let is_any_id = expected["id"] == "$generated" && !id.is_empty();
    let id = if is_any_id { "$generated" } else { id };
    let arguments = match arguments {
        Arguments::Json(value) => value.clone(),
        Arguments::NotJson(text) => json!({ "broken": text }),
    };
    json!({"id": id, "name": name, "arguments": arguments})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::replay_case;

    fn check(model: &str, response: &Value, expected: &Value, verdict: &str, result: &str) {
        let input = json!({"model": model, "response": response});
        let verdict_text = replay_case("extract_tool_calls", verdict, Some("do not throw"), &input, expected);
        assert!(verdict_text.starts_with(result), "{model}: {verdict_text}");
    }

    #[test]
    fn model_and_format_decide_the_provider() {
        // Forms of other dialects are read by these, and here there is nothing in them.
        for model in ["claude-x", "Gemini", "m"] {
            check(model, &json!({}), &json!({"calls": []}), "compat", "passed");
        }
        check("gpt-claude", &json!({"output": []}), &json!({"calls": []}), "compat", "passed");
        check("gpt", &json!({}), &json!({"calls": []}), "compat", "passed");
        let flat = |name: &str| json!({"id": "1", "type": "function", "name": name, "arguments": "[1]"});
        let both = json!({"choices": [{"message": {"tool_calls": [flat("a")]}}],
            "output": [{"type": "function_call", "call_id": "2", "name": "b", "arguments": "{}"}]});
        let first = json!({"calls": [{"id": "1", "name": "a", "arguments": {}}]});
        check("gpt", &both, &first, "compat", "passed");
        check("gpt", &json!("text"), &json!({"throws": "TypeError"}), "defect", "passed");
    }

    #[test]
    fn a_generated_id_is_any_id_and_a_given_one_is_not() {
        let response = |call: Value| json!({ "tool_calls": [call] });
        let expected = |id: &str| json!({"calls": [{"id": id, "name": "a", "arguments": {}}]});
        let call = json!({"function": {"name": "a"}});
        check("gpt", &response(call.clone()), &expected("$generated"), "compat", "passed");
        check("gpt", &response(call), &expected("c1"), "compat", "failed");
    }
}
