//! Random rounds of a chat completion stream. Names of skills and of the client's tools begin alike.

use serde_json::{Value, json};

use super::{
    super::contract::{Provider, SECRET, Script, View, separate_texts},
    events, pick,
};
use crate::{ToolResult, sse::RawEvent, wire};
use skillet_core::test_rng::TestRng;

const SKILLS: [&str; 2] = ["web-search", "web-search-deep"];
const CLIENT_TOOLS: [&str; 3] = ["web", "web-search-site", "other"];

pub(in super::super) struct Chat;

impl Provider for Chat {
    fn offered(&self) -> Vec<&'static str> {
        SKILLS.to_vec()
    }

    /// Text and calls of both, begun in order, with their arguments and the text between them in any order.
    fn script(&self, rng: &mut TestRng, round: u32) -> Script {
        let mut stream = Stream { round, bytes: Vec::new(), text: String::new(), calls: Vec::new() };
        stream.push(&json!({"role": "assistant", "content": ""}), &Value::Null);
        let mut open: Vec<(u32, Vec<String>)> = Vec::new();
        let (mut begun, number) = (0, rng.below(5));
        while begun < number || !open.is_empty() {
            stream.push_text(rng);
            if begun < number && rng.below(2) == 0 {
                open.push((begun, stream.begin_call(rng, begun)));
                begun += 1;
            } else if !open.is_empty() {
                let at = rng.below(u32::try_from(open.len()).unwrap()) as usize;
                let (index, pieces) = &mut open[at];
                let piece = json!({"index": *index, "function": {"arguments": pieces.remove(0)}});
                stream.push(&json!({"tool_calls": [piece]}), &Value::Null);
                open.retain(|(_, pieces)| !pieces.is_empty());
            }
        }
        stream.push_text(rng);
        stream.into_script()
    }

    fn read(&self, bytes: &[u8], _is_changed: bool) -> View {
        let (mut text, mut calls) = (String::new(), Vec::<(String, String)>::new());
        let (mut roles, mut reasons, mut done) = (0, Vec::new(), 0);
        for data in events(bytes).iter().filter_map(RawEvent::data) {
            assert_eq!(done, 0, "nothing comes after the end");
            if data == "[DONE]" {
                done += 1;
                continue;
            }
            let chunk: Value = serde_json::from_str(&data).unwrap();
            assert_eq!(chunk["id"], "r0");
            let choice = &chunk["choices"][0];
            reasons.extend(choice["finish_reason"].as_str().map(str::to_owned));
            roles += usize::from(choice["delta"].get("role").is_some());
            text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
            for piece in wire::items(&choice["delta"]["tool_calls"]) {
                let index = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
                if index >= calls.len() {
                    assert_eq!(index, calls.len(), "no gap in the numbers");
                    calls.push(Default::default());
                }
                calls[index].0.push_str(piece["function"]["name"].as_str().unwrap_or_default());
                calls[index].1.push_str(piece["function"]["arguments"].as_str().unwrap_or_default());
            }
        }
        assert_eq!((roles, reasons.len(), done), (1, 1, 1));
        let calls = calls.into_iter().map(|(name, arguments)| call_part(&name, &arguments));
        View {
            parts: std::iter::once(json!({ "text": text })).chain(calls).collect(),
            usage: Value::Null,
            awaits_client: Some(reasons[0] == "tool_calls"),
        }
    }

    fn result_parts(&self, results: &[ToolResult]) -> Vec<Value> {
        let text = results.iter().map(ToolResult::to_text).collect::<Vec<_>>().join("\n\n");
        if text.is_empty() { Vec::new() } else { vec![json!({"result": text})] }
    }

    fn separate(&self, before: &[Value], round: &mut [Value]) {
        separate_texts(before, round);
    }

    /// The whole text, then the calls. Results have a blank line before them if there is other text.
    fn join(&self, parts: Vec<Value>) -> Vec<Value> {
        let (mut text, mut calls) = (String::new(), Vec::new());
        for part in parts {
            match (part["text"].as_str(), part["result"].as_str()) {
                (Some(more), _) => text.push_str(more),
                (None, Some(result)) => {
                    text.push_str(if text.is_empty() { "" } else { "\n\n" });
                    text.push_str(result);
                }
                (None, None) => calls.push(part),
            }
        }
        std::iter::once(json!({ "text": text })).chain(calls).collect()
    }

    fn size_limit(&self, given: usize) -> usize {
        3 * given + 1_000
    }
}

fn call_part(name: &str, arguments: &str) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// A round as it is written.
struct Stream {
    round: u32,
    bytes: Vec<u8>,
    text: String,
    /// Name and arguments.
    calls: Vec<(&'static str, String)>,
}

impl Stream {
    fn push(&mut self, delta: &Value, finish_reason: &Value) {
        let chunk = json!({"id": format!("r{}", self.round), "object": "chat.completion.chunk", "created": self.round,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]});
        self.bytes.extend_from_slice(format!("data: {chunk}\n\n").as_bytes());
    }

    fn push_text(&mut self, rng: &mut TestRng) {
        let text = rng.text("ab é🙂\n", 6);
        self.text.push_str(&text);
        self.push(&json!({ "content": text }), &Value::Null);
        if rng.below(3) == 0 {
            self.bytes.extend_from_slice(b": ping\r\n\r\n");
        }
    }

    /// Writes the name, in one piece or two, and returns the pieces of the arguments.
    fn begin_call(&mut self, rng: &mut TestRng, index: u32) -> Vec<String> {
        let is_skill = rng.below(2) == 0;
        let name = if is_skill { *pick(rng, &SKILLS) } else { *pick(rng, &CLIENT_TOOLS) };
        let key = if is_skill { SECRET } else { "x" };
        let arguments = json!({ key: rng.text("aé\"\\{}🙂", 8) }).to_string();
        self.calls.push((name, arguments.clone()));
        let (head, tail) = if rng.below(2) == 0 { (name, "") } else { name.split_at(cut(rng, name)) };
        let function = json!({"name": head, "arguments": ""});
        let call =
            json!({"index": index, "id": format!("c{index}"), "type": "function", "function": function});
        self.push(&json!({"tool_calls": [call]}), &Value::Null);
        if !tail.is_empty() {
            let more = json!({"index": index, "function": {"name": tail}});
            self.push(&json!({"tool_calls": [more]}), &Value::Null);
        }
        let (head, tail) = arguments.split_at(cut(rng, &arguments));
        vec![head.to_owned(), tail.to_owned()]
    }

    fn into_script(mut self) -> Script {
        let reason = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        self.push(&json!({}), &json!(reason));
        self.bytes.extend_from_slice(b"data: [DONE]\n\n");
        let Self { round, bytes, text, calls } = self;
        let mut message = json!({"role": "assistant", "content": text});
        if !calls.is_empty() {
            let whole = calls.iter().enumerate().map(|(index, (name, arguments))| {
                json!({"id": format!("c{index}"), "type": "function", "function": {"name": name, "arguments": arguments}})
            });
            message["tool_calls"] = whole.collect();
        }
        let response = json!({"id": format!("r{round}"), "object": "chat.completion", "created": round,
            "choices": [{"index": 0, "message": message, "finish_reason": reason}]});
        let (skills, client): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|(name, _)| SKILLS.contains(name));
        let client_calls = client.iter().map(|(name, arguments)| call_part(name, arguments));
        Script {
            bytes,
            response,
            client_parts: std::iter::once(json!({ "text": text })).chain(client_calls).collect(),
            skills: skills.into_iter().map(|(name, _)| name.to_owned()).collect(),
            has_client_calls: !client.is_empty(),
        }
    }
}

/// A place between two characters.
fn cut(rng: &mut TestRng, text: &str) -> usize {
    let at = rng.below(u32::try_from(text.len()).unwrap() + 1) as usize;
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap()
}
