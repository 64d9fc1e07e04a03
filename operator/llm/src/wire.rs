//! JSON that several dialects read or write alike.

use serde_json::Value;

use crate::DialectError;

/// The items of an array; none if the value is anything else.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Appends `tools` to the array `tools` of a request, which is created if it is missing or null.
///
/// A request of another shape is refused and stays as it was. If the provider's tools are all objects, any other tool
/// of the client is refused too.
pub(crate) fn append_tools(
    request: &mut Value,
    tools: Vec<Value>,
    has_object_tools: bool,
) -> Result<(), DialectError> {
    let odd = items(&request["tools"]).iter().position(|tool| has_object_tools && !tool.is_object());
    if let Some(index) = odd {
        return Err(shape_error(&format!("/tools/{index}"), "a tool must be an object"));
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

fn shape_error(field: &str, message: &str) -> DialectError {
    DialectError { field: field.to_owned(), message: message.to_owned() }
}

/// A text; empty if the value is anything else.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// An object; nothing if the value is anything else.
pub(crate) fn object(value: &Value) -> &Value {
    if value.is_object() { value } else { &Value::Null }
}
