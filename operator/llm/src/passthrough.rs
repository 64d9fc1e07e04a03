//! Passes the stream of a request that was offered nothing: no byte is read or kept.

use std::sync::Arc;

use serde_json::Value;

use crate::{DialectName, OfferedNames, RoundEnd, StreamError, StreamFilter, ToolResult};

struct Passthrough;

impl DialectName {
    /// A filter for all rounds of one streamed conversation.
    pub fn stream_filter(self, wants_json: bool, offered: Arc<OfferedNames>) -> Box<dyn StreamFilter> {
        match self.dialect() {
            _ if offered.is_empty() => Box::new(Passthrough),
            dialect if wants_json => dialect.last_round_filter(offered),
            dialect => dialect.stream_filter(offered),
        }
    }
}

impl StreamFilter for Passthrough {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), StreamError> {
        out.extend_from_slice(bytes);
        Ok(())
    }

    fn end_round(&mut self, _out: &mut Vec<u8>) -> Result<RoundEnd, StreamError> {
        Ok(RoundEnd::of(Value::Null, Vec::new(), &OfferedNames::default(), false))
    }

    fn write_text(&mut self, _id: &str, _text: &str, _out: &mut Vec<u8>) {}

    fn finish(&mut self, _results: &[ToolResult], _out: &mut Vec<u8>) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::sse::ROUND_LIMIT_BYTES;
    use crate::*;

    const MIB: usize = 1024 * 1024;

    fn event(data: &Value) -> Vec<u8> {
        format!("data: {data}\n\n").into_bytes()
    }

    /// The beginning of a call of `look`, and an event of so many bytes that continues it.
    fn call(dialect: DialectName, size: usize) -> (Vec<u8>, Vec<u8>) {
        let text = "x".repeat(size);
        let (begin, more) = match dialect {
            DialectName::OpenAiChat => {
                let delta = |call: Value| json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
                let function = json!({"name": "look", "arguments": "{"});
                (
                    delta(json!({"index": 0, "id": "c", "function": function})),
                    delta(json!({"index": 0, "function": {"arguments": text}})),
                )
            }
            DialectName::OpenAiResponses => (
                json!({"type": "response.output_item.added", "output_index": 0,
                    "item": {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": ""}}),
                json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "f", "delta": text}),
            ),
            DialectName::Anthropic => (
                json!({"type": "content_block_start", "index": 0,
                    "content_block": {"type": "tool_use", "id": "c", "name": "look", "input": {}}}),
                json!({"type": "content_block_delta", "index": 0,
                    "delta": {"type": "input_json_delta", "partial_json": text}}),
            ),
            DialectName::Gemini => {
                let part = |part: Value| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]});
                (part(json!({"functionCall": {"name": "look", "args": {}}})), part(json!({ "text": text })))
            }
        };
        (event(&begin), event(&more))
    }

    #[test]
    fn with_nothing_offered_every_byte_passes_and_no_stream_is_too_long() {
        for dialect in DialectName::ALL {
            let mut filter = dialect.stream_filter(false, Arc::new(OfferedNames::default()));
            let (begin, more) = call(dialect, 20 * MIB);
            let mut out = Vec::new();
            filter.feed(&begin, &mut out).unwrap();
            assert_eq!(out, begin);
            for _ in 0..5 {
                for piece in more.chunks(7 * MIB) {
                    out.clear();
                    filter.feed(piece, &mut out).unwrap();
                    assert!(out == piece, "{dialect:?}");
                }
            }
            out.clear();
            let end = filter.end_round(&mut out).unwrap();
            filter.write_text("id", "text", &mut out);
            filter.finish(&[], &mut out);
            assert!(end.skill_calls.is_empty() && end.awaiting_confirmation.is_empty() && out.is_empty());
        }
    }

    #[test]
    fn with_anything_offered_each_round_is_kept_up_to_a_limit() {
        for dialect in DialectName::ALL {
            let mut filter = dialect.stream_filter(false, Arc::new(OfferedNames::from(["look".into()])));
            let (begin, more) = call(dialect, 4 * MIB);
            filter.feed(&begin, &mut Vec::new()).unwrap();
            filter.feed(&more.repeat(8), &mut Vec::new()).unwrap();
            // It ends inside a call, and the next begins all the same.
            filter.end_round(&mut Vec::new()).ok();
            filter.feed(&begin, &mut Vec::new()).unwrap();
            let fed = (0..40).find_map(|fed| Some((fed, filter.feed(&more, &mut Vec::new()).err()?)));
            let refused = StreamError::LongRound { limit: ROUND_LIMIT_BYTES };
            assert_eq!(fed, Some((ROUND_LIMIT_BYTES / (4 * MIB) - 1, refused)), "{dialect:?}");
        }
    }
}
