//! `map`, `map_alias`, `whole_result` and `fixture`: what of a response is the output.

use serde_json::{Map, Value, json};
use skillet_api::http::Http;
use skillet_core::http::{HttpProblem, HttpProgram, HttpResponse};

use crate::{case::Case, judge::Answer};

/// Returns the program that maps a response.
fn program(mapping: &Map<String, Value>) -> Result<HttpProgram, Vec<HttpProblem>> {
    let http = json!({"method": "GET", "url": "https://up.example/", "responseFormat": "Json", "responseMapping": mapping});
    let http: Http = serde_json::from_value(http).unwrap_or_default();
    HttpProgram::read(&http, None)
}

fn read(program: &HttpProgram, response: &Value) -> Result<Value, String> {
    let text = response.to_string();
    let response = HttpResponse {
        status: 200,
        content_type: Some("application/json"),
        location: None,
        body: text.as_bytes(),
        is_truncated: false,
    };
    program.read_response(&response).map_err(|error| error.message)
}

/// Rules that are no text are none in the reference, and cannot be written here.
pub(super) fn map(case: &Case) -> Result<Answer, String> {
    let (input, response) = (&case.input, &case.input["response"]);
    if response.is_string() {
        return Err(format!("the file has no fixture {response}"));
    }
    let places = [
        &input["mapping"],
        &input["implementation"]["response_mapping"],
        &input["implementation"]["response"]["output_mapping"],
        &input["response_mapping"],
        &input["output_mapping"],
    ];
    let Some(rules) = places.into_iter().find_map(Value::as_object) else {
        return Err("the case has no mapping".to_owned());
    };
    let is_rule = |rule: &Value| rule.as_str().is_some_and(|text| !text.is_empty());
    let mapping: Map<String, Value> = rules
        .iter()
        .filter(|(_, rule)| is_rule(rule))
        .map(|(name, rule)| (name.clone(), rule.clone()))
        .collect();
    match program(&mapping) {
        Ok(program) => {
            let result = read(&program, response)?;
            let splits = mapping.values().any(|rule| has_dot_in_quotes(rule.as_str().unwrap_or_default()));
            let difference = splits.then(|| "a quoted name is one name, whatever is in it".to_owned());
            Ok(Answer { difference, ..Answer::by_fields(case, json!({ "result": result }), &["result"]) })
        }
        Err(problems) => {
            let words: Vec<String> =
                problems.into_iter().map(|it| format!("{}: {}", it.field, it.message)).collect();
            let why = words.join("; ");
            let difference = Some(format!("refused when the skill is applied: {why}"));
            Ok(Answer {
                difference,
                ..Answer::by_fields(case, json!({ "refused": why, "result": null }), &["result"])
            })
        }
    }
}

fn has_dot_in_quotes(path: &str) -> bool {
    path.split(['\'', '"']).skip(1).step_by(2).any(|name| name.contains('.'))
}

/// The answer keeps its type. A scalar or a text is an object with one field, as every output is.
pub(super) fn whole_result(case: &Case) -> Result<Answer, String> {
    let upstream = &case.input["upstream"];
    let output = read(&program(&Map::new()).map_err(|problems| format!("{problems:?}"))?, upstream)?;
    let is_preserved = output == *upstream || output == json!({ "value": upstream });
    let value = json!({"result_preserved": is_preserved, "output": output});
    Ok(Answer::by_fields(case, value, &["result_preserved"]))
}

/// The document itself, which other cases name, is an output without a change.
pub(super) fn fixture(case: &Case) -> Result<Answer, String> {
    let document = &case.input["value"];
    let output = read(&program(&Map::new()).map_err(|problems| format!("{problems:?}"))?, document)?;
    let answer = Answer::exact(case, output);
    Ok(Answer { is_same: answer.value == *document, ..answer })
}
