//! `splice_results`: an answer with tool calls, and what the client gets.
//!
//! The skills are the fixtures of `execute`. What a request offers is what of them is ready; they are called by the
//! names of the cases, since which name a tool has is another kind's matter.

use serde_json::{Value, json};
use skillet_llm::{Arguments, Dialect as _, OfferedNames, ToolCall, ToolResult, openai_chat::OpenAiChat};

use super::{
    calls::{is_responses, provider},
    execute,
};
use crate::{
    case::Case,
    judge::{Answer, Sense, mentions},
};

/// The result of an intercepted response.
enum Interception {
    /// No call is ours: the client gets it as it is.
    Untouched,
    /// All are ours: the model is asked again with this request.
    Continued(Value),
    /// The client gets its own calls.
    Mixed(Value),
}

pub(super) fn splice_results(case: &Case) -> Result<Answer, String> {
    let (response, context) = (&case.input["response"], &case.input["context"]);
    match provider(case.text("model")) {
        "openai" if is_responses(response) => return Err("openai responses".to_owned()),
        "openai" => (),
        other => return Err(other.to_owned()),
    }
    if context["builtinToolNames"].as_array().is_some_and(|names| !names.is_empty()) {
        return Err("a built-in search is no skill".to_owned());
    }
    let (outcome, runs) = intercept(response, context);
    let meets_want = case.want.as_deref().map_or(Sense::Unknown, |want| sense(want, &outcome));
    let (field, value, difference) = match outcome {
        Interception::Untouched => ("response", response.clone(), None),
        Interception::Continued(request) => ("continued", request, Some("the conversation is continued")),
        Interception::Mixed(answer) => {
            ("response", answer, Some("results are text, beside the client's own calls"))
        }
    };
    let answer = Answer::exact(case, json!({field: value, "executionsRecorded": runs}));
    Ok(Answer { meets_want, difference: difference.map(str::to_owned), ..answer })
}

/// Intercepts a buffered response as the gateway does. Returns the result and the number of executions.
fn intercept(response: &Value, context: &Value) -> (Interception, usize) {
    let owner = context["owner"].as_str().unwrap_or_default();
    let mut offered = execute::offered_names(owner);
    if context["customSkillExecutionEnabled"] == false {
        offered = OfferedNames::default();
    }
    let calls = OpenAiChat.tool_calls(response);
    let ours: Vec<&ToolCall> = calls.iter().filter(|call| offered.contains(call.name.as_str())).collect();
    let results: Vec<ToolResult> = ours.iter().map(|call| result(call, owner)).collect();
    let outcome = if ours.is_empty() {
        Interception::Untouched
    } else if ours.len() < calls.len() {
        Interception::Mixed(OpenAiChat.client_response(response, &results))
    } else {
        Interception::Continued(OpenAiChat.next_request(&json!({"messages": []}), response, &results))
    };
    (outcome, ours.len())
}

fn result(call: &ToolCall, owner: &str) -> ToolResult {
    let ToolCall { id, name, arguments } = call;
    let ran = match arguments {
        Arguments::Json(input) => execute::run(name, Some(input.clone()), owner, true),
        Arguments::NotJson(_) => json!({"errorMessage": "the arguments are no JSON"}),
    };
    let error = ran["errorMessage"].as_str().or_else(|| ran["message"].as_str());
    let content = error.map_or_else(|| ran["output"].clone(), |error| json!({ "error": error }));
    ToolResult { id: id.clone(), name: name.clone(), content: content.to_string(), is_error: error.is_some() }
}

fn sense(want: &str, outcome: &Interception) -> Sense {
    if mentions(want, &["left to the client", "left alone", "untouched", "not run", "not be taken"]) {
        return Sense::of(matches!(outcome, Interception::Untouched));
    }
    match outcome {
        Interception::Continued(_) => {
            Sense::of(mentions(want, &["continue", "ask again", "asked again", "next round"]))
        }
        Interception::Mixed(_) => {
            Sense::of(mentions(want, &["mixed", "client's", "own calls", "text", "continue"]))
        }
        Interception::Untouched => Sense::Missed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::replay_case;

    fn check(names: &[&str], verdict: &str, want: Option<&str>, expected: &str) {
        let calls =
            names.iter().map(|name| json!({"id": name, "function": {"name": name, "arguments": "{}"}}));
        let message = json!({"tool_calls": calls.collect::<Vec<_>>()});
        let response = json!({"choices": [{"finish_reason": "tool_calls", "message": message}]});
        let input = json!({"model": "gpt", "response": response, "context": {"owner": "key-a"}});
        let verdict_text = replay_case(
            "splice_results",
            verdict,
            want,
            &input,
            &json!({"response": response, "executionsRecorded": 0}),
        );
        assert!(verdict_text.starts_with(expected), "{names:?}: {verdict_text}");
    }

    #[test]
    fn calls_of_others_and_of_what_is_off_are_left_to_the_client() {
        check(&["their-tool", "lookup@9.9.9"], "compat", None, "passed");
        check(&["offskill@1.0.0"], "defect", Some("left to the client"), "passed");
        check(&["modeoff@1.0.0"], "compat", None, "passed");
    }

    #[test]
    fn calls_of_ours_are_answered() {
        check(&["lookup@1.0.0", "slow"], "defect", Some("Better: continue the conversation"), "passed");
        check(&["lookup@1.0.0"], "compat", None, "the conversation is continued");
        check(&["lookup", "their-tool"], "defect", Some("mixed: run ours"), "passed");
        check(&["lookup", "their-tool"], "compat", None, "results are text");
    }
}
