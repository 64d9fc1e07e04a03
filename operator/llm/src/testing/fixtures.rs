//! Values and checks that the tests of all dialects share.

use std::sync::Arc;

use serde_json::Value;

use crate::*;

/// A filter of a request that offered one skill.
pub(crate) fn filter(dialect: DialectName, skill: &str) -> Box<dyn StreamFilter> {
    dialect.dialect().stream_filter(Arc::new(OfferedNames::new([skill.into()], [])))
}

/// Feeds one round whole.
pub(crate) fn feed_round(filter: &mut dyn StreamFilter, bytes: &[u8], out: &mut Vec<u8>) -> RoundEnd {
    filter.feed(bytes, out).unwrap();
    filter.end_round(out).unwrap()
}

/// The JSON of every event. The last event must be whole.
pub(crate) fn data(bytes: &[u8]) -> Vec<Value> {
    let mut splitter = sse::EventSplitter::default();
    let events = splitter.feed(bytes).unwrap();
    assert_eq!(splitter.rest(), None);
    events.iter().map(|event| serde_json::from_str(&event.data().unwrap()).unwrap()).collect()
}

pub(crate) fn result(id: &str, name: &str, content: &str) -> ToolResult {
    ToolResult { id: id.into(), name: name.into(), content: content.into(), is_error: false }
}

/// Checks the calls of a whole response.
pub(crate) fn check_calls(dialect: DialectName, response: &Value, expected: &[(&str, &str, Arguments)]) {
    let calls = dialect.dialect().tool_calls(response);
    let read: Vec<_> =
        calls.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.clone())).collect();
    assert_eq!(read, expected, "{response}");
}

/// Checks calls whose arguments are JSON.
pub(crate) fn check_json_calls(dialect: DialectName, response: &Value, expected: &[(&str, &str, Value)]) {
    let json = |(id, name, arguments): &(_, _, Value)| (*id, *name, Arguments::Json(arguments.clone()));
    check_calls(dialect, response, &expected.iter().map(json).collect::<Vec<_>>());
}

/// Appends a tool to a request and checks the request.
pub(crate) fn check_offer(dialect: DialectName, tool: ToolDefinition, request: Value, expected: &Value) {
    let mut offered = request;
    assert_eq!(dialect.dialect().append_tools(&mut offered, &[tool]).map(drop), Ok(()));
    assert_eq!(offered, *expected);
}
