//! Requests that clients send on their own behalf: titles, summaries, labels. No person waits for the answer.
//!
//! Whether an operator wants them told apart at all is decided by the caller. The gateway does not, as the reference does
//! not unless it is told to: this is replayed against the reference's cases only.

use serde_json::Value;

use skillet_core::arguments::text_to_number;

/// By what a request was taken for one in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BackgroundReason {
    /// A header says so.
    Header,
    /// It asks for so few tokens that no person could want the answer.
    LowMaxTokens,
    /// Its instructions selection for a title or the like, and the conversation is short.
    SystemPrompt,
}

impl BackgroundReason {
    pub const ALL: [Self; 3] = [Self::Header, Self::LowMaxTokens, Self::SystemPrompt];

    /// The reason's name, which is also searched for words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Header => "header_background",
            Self::LowMaxTokens => "low_max_tokens",
            Self::SystemPrompt => "system_prompt_pattern",
        }
    }
}

/// Headers that may say `background`. Only the first that says anything counts.
const HEADERS: [&str; 3] = ["x-task-type", "x-request-priority", "x-initiator"];

/// Fields for the most tokens of an answer; the first one given counts.
const MAX_TOKENS: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

/// From here on an answer may be meant for a person.
const FEW_TOKENS: f64 = 50.0;

/// With more turns of the user it is a conversation, whatever its instructions say.
const MAX_USER_MESSAGES: usize = 3;

/// What clients write when they want a title, a label or a summary.
const PHRASES: [&str; 19] = [
    "generate a title",
    "generate title",
    "create a title",
    "create a short",
    "summarize this",
    "summarize the",
    "write a brief",
    "write a summary",
    "one-line summary",
    "one line summary",
    "short description",
    "brief description",
    "conversation title",
    "chat title",
    "name this conversation",
    "name this chat",
    "title for this",
    "suggest a title",
    "label this",
];

/// Why a request is one in the background; None for one that a person waits for.
///
/// `header` gives a header's value by its name in lower case. `body` is in the form of OpenAI's requests: `messages`, or
/// `input` as a list.
pub fn background_reason<'h>(
    body: &Value,
    header: impl Fn(&str) -> Option<&'h str>,
) -> Option<BackgroundReason> {
    body.as_object()?;
    if says_background(header) {
        Some(BackgroundReason::Header)
    } else if asks_for_few_tokens(body) {
        Some(BackgroundReason::LowMaxTokens)
    } else if is_short_and_asks_for_a_label(body) {
        Some(BackgroundReason::SystemPrompt)
    } else {
        None
    }
}

fn says_background<'h>(header: impl Fn(&str) -> Option<&'h str>) -> bool {
    let mut values = HEADERS.iter().filter_map(|name| header(name)).map(str::trim);
    values.find(|value| !value.is_empty()).is_some_and(|value| value.eq_ignore_ascii_case("background"))
}

fn asks_for_few_tokens(body: &Value) -> bool {
    let number = match first_given(body, &MAX_TOKENS) {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => Some(text_to_number(text)),
        _ => None,
    };
    number.is_some_and(|number| number > 0.0 && number < FEW_TOKENS)
}

fn is_short_and_asks_for_a_label(body: &Value) -> bool {
    let messages = first_given(body, &["messages", "input"]).and_then(Value::as_array);
    let messages = messages.map(Vec::as_slice).unwrap_or_default();
    let role = |message: &Value| message.get("role").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_instruction = |message: &&Value| matches!(role(message).as_str(), "system" | "developer");
    let Some(instruction) =
        messages.iter().find(is_instruction).and_then(|message| message.get("content")?.as_str())
    else {
        return false;
    };
    let instruction = instruction.to_lowercase();
    PHRASES.iter().any(|phrase| instruction.contains(phrase))
        && messages.iter().filter(|message| role(message) == "user").count() <= MAX_USER_MESSAGES
}

/// The first field that is there and not null.
fn first_given<'a>(body: &'a Value, fields: &[&str]) -> Option<&'a Value> {
    fields.iter().filter_map(|field| body.get(field)).find(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(body: &Value, headers: &[(&str, &'static str)], expected: Option<BackgroundReason>) {
        let header = |name: &str| headers.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
        assert_eq!(background_reason(body, header), expected, "{body} {headers:?}");
    }

    #[test]
    fn the_first_header_that_says_anything_decides() {
        let body = json!({});
        check(&body, &[("x-request-priority", " Background ")], Some(BackgroundReason::Header));
        check(&body, &[("x-task-type", ""), ("x-initiator", "background")], Some(BackgroundReason::Header));
        check(&body, &[("x-task-type", "chat"), ("x-initiator", "background")], None);
        check(&json!("text"), &[("x-task-type", "background")], None);
    }

    #[test]
    fn few_tokens_are_more_than_none_and_less_than_fifty() {
        for (tokens, reason) in [
            (json!(1), Some(BackgroundReason::LowMaxTokens)),
            (json!(49.5), Some(BackgroundReason::LowMaxTokens)),
            (json!(" 20 "), Some(BackgroundReason::LowMaxTokens)),
            (json!(0), None),
            (json!(50), None),
            (json!("few"), None),
            (json!(true), None),
        ] {
            check(&json!({ "max_tokens": tokens }), &[], reason);
        }
        let second = json!({"max_tokens": null, "max_completion_tokens": 8});
        check(&second, &[], Some(BackgroundReason::LowMaxTokens));
        check(&json!({"max_tokens": 900, "max_output_tokens": 8}), &[], None);
    }

    #[test]
    fn instructions_for_a_label_count_in_a_short_conversation_only() {
        let body = |role: &str, text: &str, users: usize| {
            let mut messages = vec![json!({"role": role, "content": text})];
            messages.extend(vec![json!({"role": "user", "content": "x"}); users]);
            json!({ "messages": messages })
        };
        let label = Some(BackgroundReason::SystemPrompt);
        check(&body("system", "Please Generate a Title.", 3), &[], label);
        check(&body("developer", "suggest a title", 0), &[], label);
        check(&body("system", "generate a title", 4), &[], None);
        check(&body("user", "generate a title", 1), &[], None);
        check(&body("system", "you are helpful", 1), &[], None);
        check(&json!({"input": [{"role": "system", "content": "label this"}]}), &[], label);
        check(&json!({"input": "label this"}), &[], None);
        check(&json!({"messages": [7, {"role": "system", "content": [{"text": "label this"}]}]}), &[], None);
    }
}
