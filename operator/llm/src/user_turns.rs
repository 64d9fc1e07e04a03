//! The turns of the user in a request, as far as a person wrote them.
//!
//! Results of tools are no words of a person, though most formats have them in turns of the role `user`. Files say more
//! than a question does, so that they do not count either.

use serde_json::Value;

use crate::wire::items;

/// Returns the texts of each turn of the user that has text, in order.
pub(crate) fn user_turns(turns: &Value) -> Vec<Vec<&str>> {
    match turns.as_str() {
        Some(text) => vec![vec![text]],
        None => items(turns).iter().filter_map(user_texts).collect(),
    }
}

/// Returns true for a turn of the user that has text.
pub(crate) fn is_user_turn(turn: &Value) -> bool {
    user_texts(turn).is_some()
}

fn user_texts(turn: &Value) -> Option<Vec<&str>> {
    // Only Gemini's turns have parts, and only these need no role.
    let content = match (turn["role"].as_str(), turn.get("parts")) {
        (None | Some("user"), Some(parts)) => parts,
        (Some("user"), None) => &turn["content"],
        (None | Some(_), _) => return None,
    };
    let texts: Vec<&str> = match content.as_str() {
        Some(text) => vec![text],
        None => items(content).iter().filter_map(part_text).collect(),
    };
    (!texts.is_empty()).then_some(texts)
}

fn part_text(part: &Value) -> Option<&str> {
    match part["thought"].as_bool() {
        Some(true) => None,
        Some(false) | None => part.as_str().or_else(|| part["text"].as_str()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::DialectName;

    fn check(dialect: DialectName, request: &serde_json::Value, expected: &[&[&str]]) {
        assert_eq!(dialect.dialect().user_turns(request), expected, "{request}");
    }

    #[test]
    fn turns_of_each_dialect_have_the_texts_that_a_person_wrote() {
        let chat = json!({"messages": [
            {"role": "system", "content": "s"}, {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b", "tool_calls": []}, {"role": "tool", "content": "c"},
            {"role": "user", "content": [{"type": "text", "text": "d"}, {"type": "image_url"}, "e"]},
        ]});
        check(DialectName::OpenAiChat, &chat, &[&["a"], &["d", "e"]]);
        let responses = json!({"instructions": "s", "input": [
            {"role": "user", "content": "a"}, {"type": "message", "role": "assistant", "content": "b"},
            {"type": "function_call_output", "output": "c"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "d"}]},
        ]});
        check(DialectName::OpenAiResponses, &responses, &[&["a"], &["d"]]);
        check(DialectName::OpenAiResponses, &json!({"input": "a"}), &[&["a"]]);
        let anthropic = json!({"system": "s", "messages": [
            {"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
            {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "c"}]}]},
            {"role": "user", "content": [{"type": "tool_result", "content": "c"}, {"type": "text", "text": "d"}]},
        ]});
        check(DialectName::Anthropic, &anthropic, &[&["a"], &["d"]]);
        let gemini = json!({"contents": [
            {"parts": [{"text": "a"}]}, {"role": "model", "parts": [{"text": "b"}]},
            {"role": "user", "parts": [{"functionResponse": {"response": {"text": "c"}}}]},
            {"role": "user", "parts": [{"text": "d"}, {"text": "e", "thought": true}]},
        ]});
        check(DialectName::Gemini, &gemini, &[&["a"], &["d"]]);
    }

    #[test]
    fn a_request_of_another_shape_has_no_turns() {
        for request in
            [json!(null), json!([]), json!({"messages": 5}), json!({"messages": [1, {"role": "user"}]})]
        {
            check(DialectName::OpenAiChat, &request, &[]);
        }
    }
}
