//! Texts of the gateway in a request: one beside the system's words, others behind turns of the user and results of tools.
//!
//! Each text is a part of its own wherever the format has parts, so that it stays apart from the words of others. A text that
//! is there already is not added again: a router may send what it got.

use serde_json::{Value, json};

use crate::{DialectName, history::ResultLocation, user_turns::is_user_turn, wire::items};

/// Adds a text behind the system's words of a request, or makes it the system's words if there are none.
pub fn add_system_text(dialect: DialectName, request: &mut Value, text: &str) {
    match dialect {
        DialectName::OpenAiChat => add_system_message(request, "messages", "text", text),
        // The provider refuses instructions beside a prompt of its own store.
        DialectName::OpenAiResponses if !request["prompt"].is_null() => {
            if let Some(words) = request["input"].as_str() {
                request["input"] = json!([{ "role": "user", "content": words }]);
            }
            add_system_message(request, "input", "input_text", text);
        }
        DialectName::OpenAiResponses => add_to(request, "instructions", "text", text),
        DialectName::Anthropic => add_to(request, "system", "text", text),
        DialectName::Gemini => {
            let is_snake = request.get("system_instruction").is_some();
            let name = if is_snake { "system_instruction" } else { "systemInstruction" };
            let Some(fields) = request.as_object_mut() else { return };
            let instruction = fields.entry(name).or_insert(Value::Null);
            match instruction.as_str() {
                Some(words) => *instruction = json!({ "parts": [{ "text": words }] }),
                None if !instruction.is_object() => *instruction = json!({ "parts": [] }),
                None => {}
            }
            add_part(&mut instruction["parts"], json!({ "text": text }), text);
        }
    }
}

/// Adds texts behind turns of the user. A number is the place of a turn in [`crate::Dialect::user_turns`].
pub fn add_user_texts(dialect: DialectName, request: &mut Value, texts: &[(usize, String)]) {
    let (turns, kind) = match dialect {
        DialectName::OpenAiChat | DialectName::Anthropic => ("messages", "text"),
        DialectName::OpenAiResponses => ("input", "input_text"),
        DialectName::Gemini => ("contents", "text"),
    };
    let Some(turns) = request.get_mut(turns) else { return };
    if turns.is_string() {
        let words: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
        return join(turns, &words.join("\n\n"));
    }
    let Some(turns) = turns.as_array_mut() else { return };
    for (place, turn) in turns.iter_mut().filter(|turn| is_user_turn(turn)).enumerate() {
        for (_, text) in texts.iter().filter(|(of, _)| *of == place) {
            match dialect {
                DialectName::Gemini => add_part(&mut turn["parts"], json!({ "text": text }), text),
                // Servers of the chat format that know strings alone are common.
                DialectName::OpenAiChat if turn["content"].is_string() => join(&mut turn["content"], text),
                DialectName::OpenAiChat | DialectName::OpenAiResponses | DialectName::Anthropic => {
                    add_to(turn, "content", kind, text);
                }
            }
        }
    }
}

/// Adds texts behind results of the client's tools, in the result itself: no format has another place that every turn allows.
pub fn add_result_texts(dialect: DialectName, request: &mut Value, texts: &[(ResultLocation, String)]) {
    for (ResultLocation { turn, part }, text) in texts {
        let (place, fields): (String, &[&str]) = match dialect {
            DialectName::OpenAiChat => (format!("/messages/{turn}"), &["content"]),
            DialectName::OpenAiResponses => (format!("/input/{turn}"), &["output"]),
            DialectName::Anthropic => (format!("/messages/{turn}/content/{part}"), &["content"]),
            DialectName::Gemini => {
                (format!("/contents/{turn}/parts/{part}"), &["functionResponse", "function_response"])
            }
        };
        let Some(result) = request.pointer_mut(&place) else { continue };
        let field = fields.iter().find(|field| result.get(field).is_some()).unwrap_or(&fields[0]);
        match (dialect, &mut result[*field]) {
            (DialectName::Gemini, response) => {
                if let Some(fields) = response["response"].as_object_mut() {
                    fields.insert("skill_instructions".to_owned(), text.as_str().into());
                }
            }
            (_, content @ Value::Null) => *content = text.as_str().into(),
            (_, content @ Value::String(_)) => join(content, text),
            (DialectName::OpenAiResponses, parts) => {
                add_part(parts, json!({ "type": "input_text", "text": text }), text);
            }
            (DialectName::OpenAiChat | DialectName::Anthropic, parts) => {
                add_part(parts, json!({ "type": "text", "text": text }), text);
            }
        }
    }
}

/// Adds the text to the first message of the system or the developer, or puts one before all others.
fn add_system_message(request: &mut Value, turns: &str, kind: &str, text: &str) {
    let Some(fields) = request.as_object_mut() else { return };
    let Some(turns) = fields.entry(turns).or_insert_with(|| json!([])).as_array_mut() else { return };
    let is_system = |turn: &&mut Value| matches!(turn["role"].as_str(), Some("system" | "developer"));
    match turns.iter_mut().find(is_system) {
        Some(turn) if turn["content"].is_string() => join(&mut turn["content"], text),
        Some(turn) => add_to(turn, "content", kind, text),
        None => {
            let role = if kind == "text" { "system" } else { "developer" };
            turns.insert(0, json!({ "role": role, "content": text }));
        }
    }
}

/// Adds the text to a field that is a list of parts, words, or not there.
fn add_to(object: &mut Value, name: &str, kind: &str, text: &str) {
    let Some(fields) = object.as_object_mut() else { return };
    let field = fields.entry(name).or_insert(Value::Null);
    match field {
        Value::Null => *field = text.into(),
        // Instructions of this format are one text.
        Value::String(_) if name == "instructions" => join(field, text),
        Value::String(words) if words == text => {}
        Value::String(words) => {
            let words = std::mem::take(words);
            *field = json!([{ "type": kind, "text": words }]);
            add_part(field, json!({ "type": kind, "text": text }), text);
        }
        Value::Array(_) => add_part(field, json!({ "type": kind, "text": text }), text),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}

fn add_part(parts: &mut Value, part: Value, text: &str) {
    if parts.is_null() {
        *parts = json!([]);
    }
    let is_there = items(parts).iter().any(|part| part["text"].as_str() == Some(text));
    if let Some(parts) = parts.as_array_mut()
        && !is_there
    {
        parts.push(part);
    }
}

fn join(words: &mut Value, text: &str) {
    let Value::String(words) = words else { return };
    if !words.contains(text) {
        words.push_str(if words.is_empty() { "" } else { "\n\n" });
        words.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_system(dialect: DialectName, request: Value, expected: &Value) {
        let mut changed = request;
        add_system_text(dialect, &mut changed, "T");
        assert_eq!(changed, *expected);
        add_system_text(dialect, &mut changed, "T");
        assert_eq!(changed, *expected, "added once");
    }

    #[test]
    fn a_text_stands_beside_the_systems_words_of_each_dialect() {
        use DialectName::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
        let user = json!({"role": "user", "content": "u"});
        check_system(
            OpenAiChat,
            json!({"messages": [user]}),
            &json!({"messages": [{"role": "system", "content": "T"}, user]}),
        );
        check_system(
            OpenAiChat,
            json!({"messages": [{"role": "developer", "content": "d"}, user]}),
            &json!({"messages": [{"role": "developer", "content": "d\n\nT"}, user]}),
        );
        let part = |kind: &str, text: &str| json!({"type": kind, "text": text});
        check_system(
            OpenAiChat,
            json!({"messages": [{"role": "system", "content": [part("text", "s")]}]}),
            &json!({"messages": [{"role": "system", "content": [part("text", "s"), part("text", "T")]}]}),
        );
        check_system(OpenAiResponses, json!({"input": "u"}), &json!({"input": "u", "instructions": "T"}));
        check_system(
            OpenAiResponses,
            json!({"instructions": "i", "input": []}),
            &json!({"instructions": "i\n\nT", "input": []}),
        );
        check_system(
            OpenAiResponses,
            json!({"prompt": {"id": "p"}, "input": "u"}),
            &json!({"prompt": {"id": "p"}, "input": [{"role": "developer", "content": "T"}, user]}),
        );
        check_system(Anthropic, json!({"messages": []}), &json!({"messages": [], "system": "T"}));
        check_system(
            Anthropic,
            json!({"system": "s"}),
            &json!({"system": [part("text", "s"), part("text", "T")]}),
        );
        check_system(Gemini, json!({}), &json!({"systemInstruction": {"parts": [{"text": "T"}]}}));
        check_system(
            Gemini,
            json!({"system_instruction": {"parts": [{"text": "s"}]}}),
            &json!({"system_instruction": {"parts": [{"text": "s"}, {"text": "T"}]}}),
        );
    }

    #[test]
    fn a_text_stands_behind_its_turn_of_the_user() {
        use DialectName::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
        let check = |dialect: DialectName, request: Value, expected: Value| {
            let mut changed = request;
            for _ in 0..2 {
                add_user_texts(dialect, &mut changed, &[(1, "T".to_owned())]);
                assert_eq!(changed, expected);
            }
        };
        let turn = |content: Value| json!({"role": "user", "content": content});
        let model = json!({"role": "assistant", "content": "b"});
        check(
            OpenAiChat,
            json!({"messages": [turn("a".into()), model, turn("c".into())]}),
            json!({"messages": [turn("a".into()), model, turn("c\n\nT".into())]}),
        );
        let parts = |kind: &str| json!([{"type": kind, "text": "c"}, {"type": kind, "text": "T"}]);
        check(
            Anthropic,
            json!({"messages": [turn("a".into()), model, turn("c".into())]}),
            json!({"messages": [turn("a".into()), model, turn(parts("text"))]}),
        );
        check(
            OpenAiResponses,
            json!({"input": [turn("a".into()), turn("c".into())]}),
            json!({"input": [turn("a".into()), turn(parts("input_text"))]}),
        );
        check(
            Gemini,
            json!({"contents": [{"parts": [{"text": "a"}]}, {"role": "user", "parts": [{"text": "c"}]}]}),
            json!({"contents": [{"parts": [{"text": "a"}]}, {"role": "user", "parts": [{"text": "c"}, {"text": "T"}]}]}),
        );
        let mut words = json!({"input": "a"});
        add_user_texts(OpenAiResponses, &mut words, &[(0, "T".to_owned())]);
        assert_eq!(words, json!({"input": "a\n\nT"}));
    }

    #[test]
    fn a_request_of_another_shape_stays_as_it_is() {
        for request in [json!(null), json!([]), json!({"messages": 5}), json!({"messages": [1]})] {
            let mut changed = request.clone();
            add_user_texts(DialectName::OpenAiChat, &mut changed, &[(0, "T".to_owned())]);
            assert_eq!(changed, request);
        }
        let mut changed = json!({"messages": 5});
        add_system_text(DialectName::OpenAiChat, &mut changed, "T");
        assert_eq!(changed, json!({"messages": 5}));
    }

    #[test]
    fn a_text_stands_in_the_result_of_each_dialect_once() {
        use DialectName::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
        for (dialect, part, request, expected) in [
            (
                OpenAiChat,
                0,
                json!({"messages": [{}, {"role": "tool", "content": "r"}]}),
                json!({"messages": [{}, {"role": "tool", "content": "r\n\nT"}]}),
            ),
            (
                OpenAiChat,
                0,
                json!({"messages": [{}, {"role": "tool", "content": [{"type": "text", "text": "r"}]}]}),
                json!({"messages": [{}, {"role": "tool",
                    "content": [{"type": "text", "text": "r"}, {"type": "text", "text": "T"}]}]}),
            ),
            (
                OpenAiResponses,
                0,
                json!({"input": [{}, {"type": "function_call_output", "output": "r"}]}),
                json!({"input": [{}, {"type": "function_call_output", "output": "r\n\nT"}]}),
            ),
            (
                OpenAiResponses,
                0,
                json!({"input": [{}, {"output": []}]}),
                json!({"input": [{}, {"output": [{"type": "input_text", "text": "T"}]}]}),
            ),
            (
                Anthropic,
                1,
                json!({"messages": [{}, {"content": [{}, {"type": "tool_result"}]}]}),
                json!({"messages": [{}, {"content": [{}, {"type": "tool_result", "content": "T"}]}]}),
            ),
            (
                Gemini,
                0,
                json!({"contents": [{}, {"parts": [{"functionResponse": {"response": {"a": 1}}}]}]}),
                json!({"contents": [{}, {"parts": [{"functionResponse":
                    {"response": {"a": 1, "skill_instructions": "T"}}}]}]}),
            ),
            (
                Gemini,
                0,
                json!({"contents": [{}, {"parts": [{"function_response": {"response": {}}}]}]}),
                json!({"contents": [{}, {"parts": [{"function_response":
                    {"response": {"skill_instructions": "T"}}}]}]}),
            ),
            (Anthropic, 1, json!({"messages": []}), json!({"messages": []})),
        ] {
            let mut changed = request;
            for _ in 0..2 {
                add_result_texts(
                    dialect,
                    &mut changed,
                    &[(ResultLocation { turn: 1, part }, "T".to_owned())],
                );
                assert_eq!(changed, expected, "{dialect:?}");
            }
        }
    }
}
