//! `extract_tool_calls` and `splice_results` for answers in the form of OpenAI's Responses API.
//!
//! A call is ours when a skill that would run is offered under its name. OmniRoute hands results to the client; the
//! product gives them to the model and asks again, and only an answer with calls of the client's goes back with results in it.

use serde_json::{Value, json};
use skillet_llm::{Arguments, Dialect as _, ToolCall, ToolResult, openai_responses::OpenAiResponses};

use super::{
    calls::is_responses,
    calls_anthropic_gemini::{take_generated_ids, to_json},
    execute,
};
use crate::{
    case::Case,
    judge::{Answer, Sense, mentions},
};

/// True if the case's response is one of the Responses API, buffered or inside the end event of a stream.
pub(super) fn is_in_form(case: &Case) -> bool {
    let response = &case.input["response"];
    mentions(case.text("model"), &["gpt", "openai"]) && is_responses(response)
}

pub(super) fn extract_tool_calls(case: &Case) -> Result<Answer, String> {
    let calls = calls(case)?;
    let has_broken = calls.iter().any(|call| matches!(call.arguments, Arguments::NotJson(_)));
    let mut value = json!({ "calls": calls.iter().map(to_json).collect::<Value>() });
    take_generated_ids(&mut value, &case.expected);
    let difference = has_broken
        .then(|| "arguments that are no JSON are kept as text, so that the model learns of it".to_owned());
    Ok(Answer { difference, ..Answer::exact(case, value) })
}

/// Returns the function calls. OmniRoute does not read other kinds of calls; the product reads them to leave them to the client.
fn calls(case: &Case) -> Result<Vec<ToolCall>, String> {
    if !is_in_form(case) {
        return Err("the answer is in another form than that of the Responses API".to_owned());
    }
    let is_function = |call: &ToolCall| {
        let kind = call.name.split_once('.').map_or("", |(kind, _)| kind);
        !["_call", "_request"].iter().any(|end| kind.ends_with(end))
    };
    Ok(OpenAiResponses.tool_calls(&case.input["response"]).into_iter().filter(is_function).collect())
}

pub(super) fn splice_results(case: &Case) -> Result<Answer, String> {
    let context = &case.input["context"];
    let is_on = context["customSkillExecutionEnabled"] != false;
    let calls = calls(case)?;
    let mut runs = Vec::new();
    if is_on {
        for call in &calls {
            runs.extend(run(case, call)?);
        }
    }
    let answer = &case.input["response"];
    let results: Vec<ToolResult> = runs.iter().map(|run| run.result.clone()).collect();
    let recorded = runs.iter().filter(|run| run.is_recorded).count();
    let has_client_calls = OpenAiResponses.tool_calls(answer).len() > runs.len();
    let value = if runs.is_empty() {
        json!({"response": answer, "executionsRecorded": 0})
    } else if has_client_calls {
        json!({"response": OpenAiResponses.client_response(answer, &results), "executionsRecorded": recorded})
    } else {
        let request = OpenAiResponses.next_request(&json!({"input": []}), answer, &results);
        json!({"nextRequest": request, "executionsRecorded": recorded})
    };
    let meets_want = case.want.as_deref().map_or(Sense::Unknown, |want| sense(want, &value, answer));
    let difference = (!runs.is_empty())
        .then(|| "the model gets the results and is asked again; a client gets text, not outputs".to_owned());
    Ok(Answer { meets_want, difference, ..Answer::exact(case, value) })
}

struct Run {
    result: ToolResult,
    /// True if the run has a SkillExecution.
    is_recorded: bool,
}

/// Runs a call of a skill that is offered. None where no such skill is: what would not run is not offered.
fn run(case: &Case, call: &ToolCall) -> Result<Option<Run>, String> {
    let input = match &call.arguments {
        Arguments::Json(input) => input.clone(),
        Arguments::NotJson(_) => json!({}),
    };
    let Some(ran) = execute::run_call(case, &call.name, input)? else { return Ok(None) };
    let (content, is_error, is_recorded) = match (&call.arguments, ran["status"] == "success") {
        (Arguments::NotJson(_), _) => (json!({"error": "the arguments are not JSON"}), true, false),
        (Arguments::Json(_), true) => (ran["output"].clone(), false, true),
        (Arguments::Json(_), false) => (json!({ "error": ran["errorMessage"] }), true, true),
    };
    let (id, name) = (call.id.clone(), call.name.clone());
    Ok(Some(Run { result: ToolResult { id, name, content: content.to_string(), is_error }, is_recorded }))
}

fn sense(want: &str, value: &Value, answer: &Value) -> Sense {
    let is_left = value["response"] == *answer;
    let is_continued = value.get("nextRequest").is_some();
    if mentions(want, &["left to the client", "leave it to the client", "must not run", "not offered"]) {
        return Sense::of(is_left && value["executionsRecorded"] == 0);
    }
    if mentions(want, &["continue the conversation", "continues the conversation", "tool_loop"]) {
        return Sense::of(is_continued);
    }
    Sense::Unknown
}

#[cfg(test)]
mod tests;
