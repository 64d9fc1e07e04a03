//! A manifest of the reference as `run.http`. Both have the same placeholders; where defaults differ, ours are written out.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use skillet_api::http::{Http, HttpSecret, MissingInputs};

/// Keys that the reference's platform has. A manifest names one in `api_key`.
const PLATFORM_KEYS: [&str; 2] = ["{{TAVILY_API_KEY}}", "{{JINA_API_KEY}}"];

/// Returns the request of a manifest, or what cannot be said in `run.http`.
pub(super) fn to_http(implementation: &Value) -> Result<Http, String> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let Some(url) = text(&implementation["endpoint"]).or_else(|| text(&implementation["url"])) else {
        return Err("the manifest has no URL".to_owned());
    };
    let request = &implementation["request"];
    let method = text(&implementation["method"]).or_else(|| text(&request["method"]));
    let method = method.map_or_else(|| "POST".to_owned(), |method| method.to_uppercase());
    let api_key = text(&implementation["api_key"]);
    let headers = headers(implementation, api_key.as_deref());
    let body = body(implementation);
    let has_body = body.is_some_and(Value::is_object);
    let is_safe = matches!(method.as_str(), "GET" | "HEAD");
    // The reference looks at the body for placeholders, whatever the method, and not at `payload`.
    let looked_at = json!([url, headers, [&request["body"], &implementation["body"]], api_key]);
    let is_template = looked_at.to_string().contains("{{");
    let mut http =
        json!({ "method": method, "url": own_secrets(&url), "missingInputs": MissingInputs::Keep });
    http["headers"] =
        headers.into_iter().map(|(name, value)| (name, Value::String(own_secrets(&value)))).collect();
    if has_body && !is_safe {
        http["body"] = own_texts(body.unwrap_or(&Value::Null));
    }
    let has_placeholder = http.to_string().contains("{{");
    if (is_safe || !has_body) && has_placeholder != is_template {
        http["appendInputs"] = json!(!is_template);
    }
    let names = secret_names(&http.to_string());
    let secret = |name: String| HttpSecret { key: name.clone(), secret: "keys".to_owned(), name };
    http["secrets"] = json!(names.into_iter().map(secret).collect::<Vec<_>>());
    http["responseFormat"] = json!("Json");
    serde_json::from_value(http).map_err(|error| format!("run.http cannot say it: {error}"))
}

/// Returns the body template that the reference takes.
pub(super) fn body(implementation: &Value) -> Option<&Value> {
    let places = [&implementation["request"]["body"], &implementation["body"], &implementation["payload"]];
    places.into_iter().find(|body| !body.is_null())
}

/// The Bearer token of `api_key` wins over a header.
fn headers(implementation: &Value, api_key: Option<&str>) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for list in [&implementation["headers"], &implementation["request"]["headers"]] {
        for (name, value) in list.as_object().into_iter().flatten() {
            let Some(value) = value.as_str() else { continue };
            headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
            headers.push((name.clone(), value.to_owned()));
        }
    }
    if let Some(key) = api_key {
        let key = if PLATFORM_KEYS.contains(&key) { key.replace("{{", "{{SECRETS.") } else { key.to_owned() };
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
        headers.push(("Authorization".to_owned(), format!("Bearer {key}")));
    }
    headers
}

/// Writes placeholders of Secrets as ours: without a default, which helps in neither, and with the first part of a name.
fn own_secrets(text: &str) -> String {
    let mut own = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{SECRETS.") {
        let (before, placeholder) = rest.split_at(start);
        own.push_str(before);
        let Some(end) = placeholder.find("}}") else { return own + placeholder };
        let name = placeholder["{{SECRETS.".len()..end].split(['|', '.']).next().unwrap_or_default();
        own.extend(["{{SECRETS.", name, "}}"]);
        rest = &placeholder[end + 2..];
    }
    own + rest
}

fn own_texts(value: &Value) -> Value {
    match value {
        Value::String(text) => own_secrets(text).into(),
        Value::Array(list) => list.iter().map(own_texts).collect(),
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), own_texts(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn secret_names(text: &str) -> BTreeSet<String> {
    let placeholders = text.split("{{SECRETS.").skip(1);
    placeholders.filter_map(|rest| rest.split("}}").next()).map(str::to_owned).collect()
}
