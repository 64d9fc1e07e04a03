//! Parameters in the path, the query and headers. Cookies and styles that a template cannot say are left out.

use serde_json::{Value, json};

use super::{
    Operation, Request,
    document::Document,
    schema::{Direction, Inliner},
};

/// Headers of a parameter that OpenAPI itself ignores.
const IGNORED: [&str; 3] = ["accept", "content-type", "authorization"];

/// Adds all parameters, and returns the path with placeholders.
pub(super) fn read<'a>(
    document: Document<'a>,
    operation: Operation<'a>,
    request: &mut Request,
) -> Result<String, String> {
    let mut path = operation.path.to_owned();
    if !path.starts_with('/') {
        return Err("its path does not begin with /".to_owned());
    }
    let mut parameters: Vec<&Value> = Vec::new();
    for list in [&operation.item["parameters"], &operation.own["parameters"]] {
        for parameter in list.as_array().into_iter().flatten() {
            let parameter = document.resolve(parameter)?;
            let is_same =
                |other: &&Value| other["name"] == parameter["name"] && other["in"] == parameter["in"];
            parameters.retain(|other| !is_same(other));
            parameters.push(parameter);
        }
    }
    for parameter in parameters {
        let name = parameter["name"].as_str().unwrap_or_default();
        let is_required = parameter["required"] == true;
        let place = parameter["in"].as_str().unwrap_or_default();
        if let Some(why) = unsupported(document, parameter, place) {
            if is_required || place == "path" {
                return Err(format!("it needs the parameter {name}, {why}"));
            }
            request.notes.push(format!("the parameter {name} is left out: {why}"));
            continue;
        }
        add(document, parameter, (name, place), request, &mut path);
    }
    undeclared(&mut path, request);
    Ok(path)
}

fn add<'a>(
    document: Document<'a>,
    parameter: &'a Value,
    (name, place): (&str, &str),
    request: &mut Request,
    path: &mut String,
) {
    let mut inliner = Inliner::new(document, Direction::Request);
    let mut schema = parameter.get("schema").map_or_else(|| json!({}), |schema| inliner.schema(schema));
    request.notes.extend(inliner.cuts);
    if let (Some(fields), Some(text)) = (schema.as_object_mut(), parameter["description"].as_str()) {
        let text = crate::text::truncate(text, 500).0;
        fields.entry("description").or_insert_with(|| text.into());
    }
    let default = match &schema["default"] {
        Value::String(text) if !text.contains('}') => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    };
    let is_required = parameter["required"] == true || place == "path";
    let input = request.inputs.add(name, place, schema, is_required);
    let placeholder = match default {
        Some(default) if !is_required => format!("{{{{{input}|{default}}}}}"),
        _ => format!("{{{{{input}}}}}"),
    };
    match place {
        "path" => *path = path.replace(&format!("{{{name}}}"), &placeholder),
        "query" => drop(request.query.insert(name.to_owned(), placeholder.into())),
        _ => drop(request.headers.insert(name.to_owned(), placeholder.into())),
    }
}

/// Returns the reason why a parameter cannot be a placeholder.
fn unsupported<'a>(document: Document<'a>, parameter: &'a Value, place: &str) -> Option<String> {
    let name = parameter["name"].as_str().unwrap_or_default();
    let is_ignored = |list: &[&str]| list.iter().any(|own| own.eq_ignore_ascii_case(name));
    if name.is_empty() {
        return Some("which has no name".to_owned());
    }
    if parameter.get("content").is_some() {
        return Some("which is a document of its own".to_owned());
    }
    let schema = document.resolve(parameter.get("schema").unwrap_or(&Value::Null)).unwrap_or(&Value::Null);
    let is_type = |wanted: &str| {
        schema["type"] == wanted
            || schema["type"].as_array().is_some_and(|list| list.contains(&json!(wanted)))
    };
    let style = parameter["style"].as_str();
    match place {
        "path" | "header" if !matches!(style, None | Some("simple")) => {
            Some(format!("whose style {} no template can say", style.unwrap_or_default()))
        }
        "query" if !matches!(style, None | Some("form")) => {
            Some(format!("whose style {} no template can say", style.unwrap_or_default()))
        }
        _ if is_type("object") || schema.get("properties").is_some() => {
            Some("which is an object outside of the body".to_owned())
        }
        "query" if is_type("array") && parameter["explode"] == false => {
            Some("which is a list with commas in the query".to_owned())
        }
        "header" if is_ignored(&IGNORED) => Some("which belongs to the request itself".to_owned()),
        "path" | "query" | "header" => None,
        "cookie" => Some("which is a cookie".to_owned()),
        _ => Some(format!("whose place is {place:?}")),
    }
}

/// Makes inputs of the names in the path that no parameter declares.
fn undeclared(path: &mut String, request: &mut Request) {
    let mut at = 0;
    while let Some(start) = path[at..].find('{').map(|start| at + start) {
        if path[start..].starts_with("{{") {
            at = path[start..].find("}}").map_or(path.len(), |end| start + end + 2);
            continue;
        }
        let Some(end) = path[start..].find('}').map(|end| start + end) else { return };
        let name = path[start + 1..end].to_owned();
        let input = request.inputs.add(&name, "path", json!({ "type": "string" }), true);
        request.notes.push(format!("the path names {name}, which no parameter declares; it is a string"));
        let placeholder = format!("{{{{{input}}}}}");
        path.replace_range(start..=end, &placeholder);
        at = start + placeholder.len();
    }
}
