//! The body of a request: JSON whose fields become inputs, or a text.

use serde_json::{Map, Value, json};

use super::{
    Operation, Request,
    document::Document,
    schema::{Direction, Inliner},
};

/// Returns the body template.
pub(super) fn read<'a>(
    document: Document<'a>,
    operation: Operation<'a>,
    request: &mut Request,
) -> Result<Option<Value>, String> {
    let Some(written) = operation.own.get("requestBody") else { return Ok(None) };
    let written = document.resolve(written)?;
    let is_required = written["required"] == true;
    let content = written["content"].as_object().cloned().unwrap_or_default();
    let left_out = |why: String, request: &mut Request| {
        if is_required {
            return Err(format!("it needs a body, {why}"));
        }
        request.notes.push(format!("its body is left out: {why}"));
        Ok(None)
    };
    if matches!(operation.method, "get" | "head") {
        return left_out("which no GET or HEAD request has".to_owned(), request);
    }
    let media = written["content"].as_object().into_iter().flatten();
    let mut kinds: Vec<(&String, &Value)> = media.collect();
    kinds.sort_by_key(|(kind, _)| (!is_plain_json(kind), !is_json(kind)));
    let Some((kind, media)) = kinds.first().copied() else {
        return left_out("which has no content type".to_owned(), request);
    };
    let schema = media.get("schema").unwrap_or(&Value::Null);
    if is_json(kind) {
        if !is_plain_json(kind) {
            request.headers.insert("Content-Type".to_owned(), kind.as_str().into());
        }
        return json_body(document, schema, is_required, request).map(Some);
    }
    if kind.starts_with("text/") {
        request.headers.insert("Content-Type".to_owned(), kind.as_str().into());
        let input = request.inputs.add("body", "request", json!({ "type": "string" }), is_required);
        return Ok(Some(format!("{{{{{input}}}}}").into()));
    }
    let kinds: Vec<&str> = content.keys().map(String::as_str).collect();
    left_out(format!("which is {}", kinds.join(" or ")), request)
}

/// An object is an input for each of its fields; another value is one input.
fn json_body<'a>(
    document: Document<'a>,
    written: &'a Value,
    is_required: bool,
    request: &mut Request,
) -> Result<Value, String> {
    let mut inliner = Inliner::new(document, Direction::Request);
    let mut schema = inliner.schema(written);
    request.notes.extend(std::mem::take(&mut inliner.cuts));
    let is_open = ["allOf", "anyOf", "oneOf", "patternProperties", "if", "not"]
        .iter()
        .any(|word| schema.get(word).is_some())
        || schema["additionalProperties"].is_object()
        || schema["additionalProperties"] == true;
    let properties =
        schema["properties"].as_object().filter(|fields| !is_open && !fields.is_empty()).cloned();
    let Some(properties) = properties else {
        if schema["type"] == "string" {
            return Err("its body is a string in JSON, which no template can say".to_owned());
        }
        if schema.as_object().is_some_and(Map::is_empty) {
            schema = json!({ "type": "object" });
        }
        let input = request.inputs.add("body", "request", schema, is_required);
        return Ok(format!("{{{{{input}}}}}").into());
    };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut body = Map::new();
    for (name, schema) in properties {
        let is_required = is_required && required.contains(&json!(name));
        let input = request.inputs.add(&name, "body", schema, is_required);
        body.insert(name, format!("{{{{{input}}}}}").into());
    }
    Ok(body.into())
}

fn is_plain_json(kind: &str) -> bool {
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
        || kind == "*/*"
}

/// True for a content type whose body is JSON.
pub(super) fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    is_plain_json(&kind) || kind.ends_with("+json")
}
