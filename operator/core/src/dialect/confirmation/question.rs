//! How the question stands in an answer: text of the model's before the calls, which stay as they are.
//!
//! Every provider's libraries show such text, and send it back with the calls in the next request. [`put`] is for whole
//! answers: in a stream the same text is a message or block of its own, which the dialect's filter writes before the end.

use serde_json::{Value, json};

use crate::dialect::{DialectName, openai_responses};

/// How all words begin.
const BEGIN: &str = "The skill ";
/// What says no, as a result.
const REFUSE: &str = r#"{"skillet":"refuse"}"#;

/// The words for a person. `arguments` are shown whole, since they are what is confirmed.
pub fn text(tool: &str, call_id: &str, arguments: &Value, token: &str) -> String {
    let confirm = json!({"skillet": "confirm", "token": token});
    let call = if call_id.is_empty() { "this call".to_owned() } else { format!("call {call_id}") };
    format!(
        "{BEGIN}{tool} waits for your confirmation. It would run with:\n{arguments}\n\n\
         To confirm, send as the result of {call}:\n{confirm}\nTo refuse:\n{REFUSE}"
    )
}

/// The words about a call that nobody can confirm.
pub fn text_without(tool: &str, why: &str) -> String {
    format!("{BEGIN}{tool} cannot run: {why}.\n\nSend as the result of this call:\n{REFUSE}")
}

/// Whether a text is such words.
pub(crate) fn is_question(text: &str) -> bool {
    text.starts_with(BEGIN) && text.contains(REFUSE)
}

/// Puts `text` into a whole answer, before its calls. False where the answer has no call or is of another shape: then it is
/// as it was.
pub fn put(dialect: DialectName, answer: &mut Value, text: &str) -> bool {
    match dialect {
        DialectName::OpenAiChat => put_into_choices(answer, text),
        DialectName::OpenAiResponses => openai_responses::put_text_before_calls(answer, text),
        DialectName::Anthropic => {
            let part = json!({"type": "text", "text": text});
            put_before(answer.get_mut("content"), part, |part| part["type"] == "tool_use")
        }
        DialectName::Gemini => {
            let candidates = list(answer.get_mut("candidates"));
            candidates.fold(false, |is_put, candidate| {
                let parts = candidate.get_mut("content").and_then(|content| content.get_mut("parts"));
                put_before(parts, json!({ "text": text }), |part| part["functionCall"].is_object()) || is_put
            })
        }
    }
}

fn list(value: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    value.and_then(Value::as_array_mut).into_iter().flatten()
}

fn put_before(parts: Option<&mut Value>, part: Value, is_call: impl Fn(&Value) -> bool) -> bool {
    let Some(parts) = parts.and_then(Value::as_array_mut) else { return false };
    let Some(first) = parts.iter().position(is_call) else { return false };
    parts.insert(first, part);
    true
}

fn put_into_choices(answer: &mut Value, text: &str) -> bool {
    let mut is_put = false;
    for choice in list(answer.get_mut("choices")) {
        let Some(message) = choice.get_mut("message").and_then(Value::as_object_mut) else { continue };
        if message.get("tool_calls").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            continue;
        }
        let content = match message.get("content").and_then(Value::as_str) {
            Some(before) if !before.is_empty() => format!("{before}\n\n{text}"),
            _ => text.to_owned(),
        };
        match message.get_mut("content") {
            Some(Value::Array(parts)) => parts.push(json!({"type": "text", "text": text})),
            _ => drop(message.insert("content".to_owned(), Value::String(content))),
        }
        is_put = true;
    }
    is_put
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dialect: DialectName, answer: &Value, expected: &Value) {
        let mut put_in = answer.clone();
        assert_eq!(put(dialect, &mut put_in, "Q"), put_in != *answer);
        assert_eq!(put_in, *expected);
    }

    #[test]
    fn chat_has_it_in_the_content_of_the_message_that_calls() {
        let choice = |content: Value| json!({"choices": [{"message": {"content": content, "tool_calls": [{"id": "a"}]}}, {"message": {"content": "x"}}]});
        check(DialectName::OpenAiChat, &choice(json!(null)), &choice(json!("Q")));
        check(DialectName::OpenAiChat, &choice(json!("")), &choice(json!("Q")));
        check(DialectName::OpenAiChat, &choice(json!("Hm.")), &choice(json!("Hm.\n\nQ")));
        let parts = json!([{"type": "text", "text": "Q"}]);
        check(DialectName::OpenAiChat, &choice(json!([])), &choice(parts));
    }

    #[test]
    fn responses_have_it_as_a_message_before_the_call() {
        let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
        let message = json!({"type": "message", "id": "msg_confirm_a", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Q", "annotations": [], "logprobs": []}]});
        let reasoning = json!({"type": "reasoning", "id": "r"});
        let answer = json!({"output": [reasoning, call]});
        check(DialectName::OpenAiResponses, &answer, &json!({"output": [reasoning, message, call]}));
    }

    #[test]
    fn anthropic_and_gemini_have_it_as_a_part_before_the_call() {
        let (text, call) = (json!({"type": "text", "text": "Hm."}), json!({"type": "tool_use", "id": "a"}));
        let question = json!({"type": "text", "text": "Q"});
        let answer = json!({"content": [text, call]});
        check(DialectName::Anthropic, &answer, &json!({"content": [text, question, call]}));
        let call = json!({"functionCall": {"name": "f"}, "thoughtSignature": "s"});
        let candidate = |parts: Value| json!({"candidates": [{"content": {"parts": parts}}, {}]});
        let expected = candidate(json!([{"text": "Hm."}, {"text": "Q"}, call]));
        check(DialectName::Gemini, &candidate(json!([{"text": "Hm."}, call])), &expected);
    }

    #[test]
    fn an_answer_without_calls_or_of_another_shape_stays() {
        let dialects = [
            DialectName::OpenAiChat,
            DialectName::OpenAiResponses,
            DialectName::Anthropic,
            DialectName::Gemini,
        ];
        let answers = [
            json!(null),
            json!([1]),
            json!({"choices": "x", "output": 1, "content": {}, "candidates": [1]}),
            json!({"choices": [{"message": {"content": "x", "tool_calls": []}}], "output": [{"type": "message"}],
                "content": [{"type": "text"}], "candidates": [{"content": {"parts": [{"text": "x"}]}}]}),
        ];
        for (dialect, answer) in dialects.iter().flat_map(|d| answers.iter().map(move |a| (*d, a))) {
            check(dialect, answer, answer);
        }
    }

    #[test]
    fn the_words_show_the_arguments_the_call_and_both_answers() {
        let words = text("pay", "call_1", &json!({"amount": 5}), "7.abc");
        let parts = [
            "skill pay",
            "{\"amount\":5}",
            "call call_1",
            "{\"skillet\":\"confirm\",\"token\":\"7.abc\"}",
            "{\"skillet\":\"refuse\"}",
        ];
        assert!(parts.iter().all(|part| words.contains(part)), "{words}");
        // Gemini gives no ids to some calls.
        assert!(text("pay", "", &json!({}), "7.abc").contains("as the result of this call:"));
        assert!(text_without("pay", "why").contains("{\"skillet\":\"refuse\"}"));
    }

    #[test]
    fn the_words_are_known_again_and_others_are_not_taken_for_them() {
        assert!(is_question(&text("pay", "", &json!({}), "7.abc")));
        assert!(is_question(&text_without("pay", "why")));
        for other in ["", "The skill of cooking", "To refuse: {\"skillet\":\"refuse\"}"] {
            assert!(!is_question(other), "{other}");
        }
    }
}
