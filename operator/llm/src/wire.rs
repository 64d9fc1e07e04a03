//! JSON that several dialects read or write alike.

use serde_json::{Value, json};

use crate::{DialectError, ToolResult, Usage};

/// The items of an array; none if the value is anything else.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Appends `tools` to the array `tools` of a request, which is created if it is missing or null.
///
/// A request of another shape is refused and stays as it was. Without tools nothing is checked or changed.
pub(crate) fn append_tools(request: &mut Value, tools: Vec<Value>) -> Result<(), DialectError> {
    if tools.is_empty() {
        return Ok(());
    }
    let Some(fields) = request.as_object_mut() else {
        return Err(shape_error("", "the request must be an object"));
    };
    match fields.entry("tools").or_insert(Value::Null) {
        Value::Array(own) => own.extend(tools),
        own @ Value::Null => *own = Value::Array(tools),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            return Err(shape_error("/tools", "tools must be an array"));
        }
    }
    Ok(())
}

/// [`append_tools`] for providers whose tools are all objects: any other tool of the client is refused.
pub(crate) fn append_to_tool_objects(request: &mut Value, tools: Vec<Value>) -> Result<(), DialectError> {
    match items(&request["tools"]).iter().position(|tool| !tool.is_object()) {
        Some(index) if !tools.is_empty() => {
            Err(shape_error(&format!("/tools/{index}"), "a tool must be an object"))
        }
        Some(_) | None => append_tools(request, tools),
    }
}

fn shape_error(field: &str, message: &str) -> DialectError {
    DialectError { field: field.to_owned(), message: message.to_owned() }
}

/// Tokens under these two names of a usage object.
pub(crate) fn read_usage(usage: &Value, input: &str, output: &str) -> Usage {
    let tokens = |field: &str| usage[field].as_u64().unwrap_or_default();
    Usage { input: tokens(input), output: tokens(output) }
}

/// Writes tokens under these two names, and their sum, into a usage object if there is one. Details stay.
pub(crate) fn write_usage(usage: Option<&mut Value>, input: &str, output: &str, total: Usage) {
    let Some(usage) = usage.and_then(Value::as_object_mut) else { return };
    usage.insert(input.to_owned(), json!(total.input));
    usage.insert(output.to_owned(), json!(total.output));
    usage.insert("total_tokens".to_owned(), json!(total.input.saturating_add(total.output)));
}

/// Results as one text for the client.
pub(crate) fn results_text(results: &[ToolResult]) -> String {
    results.iter().map(ToolResult::to_text).collect::<Vec<_>>().join("\n\n")
}
