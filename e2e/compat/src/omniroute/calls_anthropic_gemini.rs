//! `extract_tool_calls`, `splice_results` and `follow_up_body` for Anthropic's and Gemini's answers.
//!
//! A call is ours when a skill that would run is offered under its name. OmniRoute puts results into the answer;
//! the product can (`response`), and also asks the model again with them (`nextRequest`). Both are shown, and the
//! first is compared. Words of errors are OmniRoute's own: that there is one is compared, not which.

use serde_json::{Value, json};
use skillet_llm::{Arguments, Dialect, ToolCall, ToolResult, anthropic::Anthropic, gemini::Gemini};

use super::execute;
use crate::{
    case::Case,
    judge::{Answer, Sense, mentions},
};

/// The dialect that a case's model or format stands for. None for OpenAI's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Anthropic,
    Gemini,
    /// A provider that neither OmniRoute nor the product reads calls of.
    Unread,
}

fn form(case: &Case) -> Option<Form> {
    let named =
        |words: &[&str]| mentions(case.text("model"), words) || mentions(case.text("sourceFormat"), words);
    match () {
        () if named(&["gpt", "openai"]) => None,
        () if named(&["claude", "anthropic"]) => Some(Form::Anthropic),
        () if named(&["gemini", "google"]) => Some(Form::Gemini),
        () => Some(Form::Unread),
    }
}

fn dialect(case: &Case) -> Result<Option<&'static dyn Dialect>, String> {
    match form(case) {
        Some(Form::Anthropic) => Ok(Some(&Anthropic)),
        Some(Form::Gemini) => Ok(Some(&Gemini)),
        Some(Form::Unread) => Ok(None),
        None => Err("the answer is in the form of OpenAI".to_owned()),
    }
}

pub(super) fn extract_tool_calls(case: &Case) -> Result<Answer, String> {
    let calls = dialect(case)?.map(|dialect| dialect.tool_calls(&case.input["response"])).unwrap_or_default();
    let mut value = json!({"calls": calls.iter().map(to_json).collect::<Value>()});
    take_generated_ids(&mut value, &case.expected);
    let meets_want = match case.want.as_deref() {
        // That it was answered at all is what is wanted.
        Some(_) if case.expected.get("throws").is_some() => Sense::of(calls.is_empty()),
        Some(want) if mentions(want, &["candidates", "functioncall", "rest shape", "should be read"]) => {
            Sense::of(!calls.is_empty())
        }
        Some(_) | None => Sense::Unknown,
    };
    Ok(Answer { meets_want, ..Answer::exact(case, value) })
}

pub(super) fn to_json(call: &ToolCall) -> Value {
    let arguments = match &call.arguments {
        Arguments::Json(arguments) => arguments.clone(),
        Arguments::NotJson(text) => json!(text),
    };
    json!({"id": call.id, "name": call.name, "arguments": arguments})
}

/// Accepts any identifier if OmniRoute generated its own.
pub(super) fn take_generated_ids(value: &mut Value, expected: &Value) {
    let wanted = expected["calls"].as_array().into_iter().flatten();
    let got = value.get_mut("calls").and_then(Value::as_array_mut).into_iter().flatten();
    for (call, _) in got.zip(wanted).filter(|(_, wanted)| wanted["id"] == "$generated") {
        if call["id"].as_str().is_some_and(|id| !id.is_empty()) {
            call["id"] = json!("$generated");
        }
    }
}

pub(super) fn splice_results(case: &Case) -> Result<Answer, String> {
    let answer = &case.input["response"];
    let Some(dialect) = dialect(case)? else {
        return Ok(Answer::exact(case, json!({"response": answer, "executionsRecorded": 0})));
    };
    let is_on = case.input["context"]["customSkillExecutionEnabled"] != false;
    let mut results: Vec<ToolResult> = Vec::new();
    if is_on {
        for call in &dialect.tool_calls(answer) {
            results.extend(run(case, call)?);
        }
    }
    let mut value =
        json!({"response": dialect.client_response(answer, &results), "executionsRecorded": results.len()});
    if !results.is_empty() {
        value["nextRequest"] = dialect.next_request(&json!({}), answer, &results);
    }
    let meets_want = case.want.as_deref().map_or(Sense::Unknown, |want| sense(want, &value, answer));
    let fields = |value: &Value| {
        let mut response = value["response"].clone();
        hide_error_words(&mut response);
        json!([response, value["executionsRecorded"]])
    };
    let is_same = fields(&value) == fields(&case.expected);
    let difference = named_difference(&value, &case.expected);
    Ok(Answer { value, is_same, meets_want, difference })
}

/// Runs a call of a skill that is offered. None where no such skill is: what would not run is not offered.
fn run(case: &Case, call: &ToolCall) -> Result<Option<ToolResult>, String> {
    let Arguments::Json(input) = &call.arguments else { return Ok(None) };
    let Some(ran) = execute::run_call(case, &call.name, input.clone())? else { return Ok(None) };
    let is_error = ran["status"] != "success";
    let content = if is_error { json!({ "error": ran["errorMessage"] }) } else { ran["output"].clone() };
    let (id, name) = (call.id.clone(), call.name.clone());
    Ok(Some(ToolResult { id, name, content: content.to_string(), is_error }))
}

/// In every text that is a result with an error.
fn hide_error_words(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((head, result)) = text.split_once('\n')
                && head.starts_with("[Skill result: ")
                && serde_json::from_str::<Value>(result).is_ok_and(|result| result.get("error").is_some())
            {
                *text = format!("{head}\nan error");
            }
        }
        Value::Array(list) => list.iter_mut().for_each(hide_error_words),
        Value::Object(fields) => fields.values_mut().for_each(hide_error_words),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the intended difference of the product's result.
fn named_difference(value: &Value, expected: &Value) -> Option<String> {
    let (got, wanted) = (value["response"].to_string(), expected["response"].to_string());
    if wanted.contains("Handler not found") || wanted.contains("Skill is disabled") {
        return Some("a skill that cannot run is not offered, and its call is left to the client".to_owned());
    }
    if wanted.contains("returned no output") && got.contains("{\\\"value\\\":null}") {
        return Some(
            "an output is never null: a program that prints null gives {\"value\": null}".to_owned(),
        );
    }
    None
}

fn sense(want: &str, value: &Value, answer: &Value) -> Sense {
    if mentions(
        want,
        &["left to the client", "leave it to the client", "not run", "not be run", "not offered"],
    ) {
        return Sense::of(value["response"] == *answer && value["executionsRecorded"] == 0);
    }
    let is_given_back =
        ["continu", "tool_loop", "functionresponse", "thrown away", "lost", "back to the model"];
    if mentions(want, &is_given_back) {
        return Sense::of(value.get("nextRequest").is_some() && value["response"] != *answer);
    }
    Sense::Unknown
}

/// The caller decides if a round is streamed, so `stream` is not compared.
pub(super) fn follow_up_body(case: &Case) -> Result<Answer, String> {
    let Some(dialect) = dialect(case)? else { return Err("the format is not known".to_owned()) };
    let results = case.input["results"].as_array().ok_or("there are no results")?;
    let results: Vec<ToolResult> = results
        .iter()
        .map(|result| ToolResult {
            id: result["id"].as_str().unwrap_or_default().to_owned(),
            name: result["name"].as_str().unwrap_or_default().to_owned(),
            content: result["result"].to_string(),
            is_error: result["isError"] == true,
        })
        .collect();
    let mut body = dialect.next_request(&case.input["sourceBody"], &case.input["previousResponse"], &results);
    let mut expected = case.expected["body"].clone();
    for body in [&mut body, &mut expected].into_iter().filter_map(|body| body.as_object_mut()) {
        body.remove("stream");
    }
    let is_same = body == expected;
    Ok(Answer { value: json!({ "body": body }), is_same, meets_want: Sense::Unknown, difference: None })
}

#[cfg(test)]
mod tests;
