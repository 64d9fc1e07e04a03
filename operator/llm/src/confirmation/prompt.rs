//! The confirmation prompt in a response: a text of the model before the calls, which stay as they are.
//!
//! Every provider's libraries show such text, and send it back with the calls in the next request.
//! [`Dialect::insert_text_before_calls`](crate::Dialect::insert_text_before_calls) puts it into a whole response. In
//! a stream it is a message or block of its own, which the dialect's filter writes before the end.

use serde_json::{Value, json};

/// The beginning of every prompt.
const BEGIN: &str = "The skill ";
/// The result that refuses.
const REFUSE: &str = r#"{"skillet":"refuse"}"#;

/// The prompt for a person. `arguments` are shown whole, because the person confirms them.
pub fn text(tool: &str, call_id: &str, arguments: &Value, token: &str) -> String {
    let confirm = json!({"skillet": "confirm", "token": token});
    let call = if call_id.is_empty() { "this call".to_owned() } else { format!("call {call_id}") };
    format!(
        "{BEGIN}{tool} waits for your confirmation. It would run with:\n{arguments}\n\n\
         To confirm, send as the result of {call}:\n{confirm}\nTo refuse:\n{REFUSE}"
    )
}

/// The prompt for a call that nobody can confirm.
pub fn text_without(tool: &str, why: &str) -> String {
    format!("{BEGIN}{tool} cannot run: {why}.\n\nSend as the result of this call:\n{REFUSE}")
}

/// Returns true for a prompt of a gateway.
pub(crate) fn is_prompt(text: &str) -> bool {
    text.starts_with(BEGIN) && text.contains(REFUSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DialectName;

    fn put(dialect: DialectName, response: &mut Value, text: &str) -> bool {
        dialect.dialect().insert_text_before_calls(response, text)
    }

    fn check(dialect: DialectName, response: &Value, expected: &Value) {
        let mut put_in = response.clone();
        assert_eq!(put(dialect, &mut put_in, "Q"), put_in != *response);
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
        let message = json!({"type": "message", "id": "msg_skillet_confirm_a", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Q", "annotations": [], "logprobs": []}]});
        let reasoning = json!({"type": "reasoning", "id": "r"});
        let response = json!({"output": [reasoning, call]});
        check(DialectName::OpenAiResponses, &response, &json!({"output": [reasoning, message, call]}));
    }

    #[test]
    fn anthropic_and_gemini_have_it_as_a_part_before_the_call() {
        let (text, call) = (json!({"type": "text", "text": "Hm."}), json!({"type": "tool_use", "id": "a"}));
        let question = json!({"type": "text", "text": "Q"});
        let response = json!({"content": [text, call]});
        check(DialectName::Anthropic, &response, &json!({"content": [text, question, call]}));
        let call = json!({"functionCall": {"name": "f"}, "thoughtSignature": "s"});
        let candidate = |parts: Value| json!({"candidates": [{"content": {"parts": parts}}, {}]});
        let expected = candidate(json!([{"text": "Hm."}, {"text": "Q"}, call]));
        check(DialectName::Gemini, &candidate(json!([{"text": "Hm."}, call])), &expected);
    }

    /// The text, before all else that is there.
    fn check_put(dialect: DialectName, response: &Value, place: &str) {
        assert!(!dialect.dialect().tool_calls(response).is_empty(), "{response}");
        let mut put_in = response.clone();
        assert!(put(dialect, &mut put_in, "Q"), "{response}");
        assert_eq!(put_in.pointer(place), Some(&json!("Q")), "{put_in}");
        assert_eq!(dialect.dialect().tool_calls(&put_in), dialect.dialect().tool_calls(response));
    }

    #[test]
    fn it_is_put_wherever_calls_are_read() {
        let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        for choices in [json!([{"message": {"content": null}}]), json!([{}]), json!([]), json!(null)] {
            let response = json!({"tool_calls": [call], "choices": choices});
            check_put(DialectName::OpenAiChat, &response, "/choices/0/message/content");
        }
        check_put(DialectName::OpenAiChat, &json!({"tool_calls": [call]}), "/choices/0/message/content");
        let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
        let output = json!({"type": "function_call_output", "call_id": "a", "output": "x"});
        check_put(
            DialectName::OpenAiResponses,
            &json!({"output": [call, output]}),
            "/output/0/content/0/text",
        );
        let (call, text) = (json!({"name": "f", "args": {}}), "/candidates/0/content/parts/0/text");
        let response = json!({"candidates": [{"content": {"parts": [{"function_call": call}]}}]});
        check_put(DialectName::Gemini, &response, text);
        for list in ["functionCalls", "function_calls"] {
            check_put(DialectName::Gemini, &json!({ list: [call] }), text);
            check_put(DialectName::Gemini, &json!({ list: [call], "candidates": null }), text);
        }
    }

    #[test]
    fn a_response_without_calls_or_of_another_shape_stays() {
        let dialects = [
            DialectName::OpenAiChat,
            DialectName::OpenAiResponses,
            DialectName::Anthropic,
            DialectName::Gemini,
        ];
        let responses = [
            json!(null),
            json!([1]),
            json!({"choices": "x", "output": 1, "content": {}, "candidates": [1]}),
            json!({"choices": [{"message": {"content": "x", "tool_calls": []}}], "output": [{"type": "message"}],
                "content": [{"type": "text"}], "candidates": [{"content": {"parts": [{"text": "x"}]}}]}),
        ];
        for (dialect, response) in dialects.iter().flat_map(|d| responses.iter().map(move |a| (*d, a))) {
            check(dialect, response, response);
        }
    }

    #[test]
    fn the_prompt_shows_the_arguments_the_call_and_both_replies() {
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
        assert!(is_prompt(&text("pay", "", &json!({}), "7.abc")));
        assert!(is_prompt(&text_without("pay", "why")));
        for other in ["", "The skill of cooking", "To refuse: {\"skillet\":\"refuse\"}"] {
            assert!(!is_prompt(other), "{other}");
        }
    }
}
