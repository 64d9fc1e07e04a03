//! `background_reason`: requests that clients send on their own behalf, such as for titles, summaries and labels.
//!
//! Skillet does not detect them, as OmniRoute does not by default. This is OmniRoute's rule, for its cases only: how it
//! detects such a request, and how the reason counts in a skill's score.

use serde_json::{Value, json};
use skillet_core::js_number::text_to_number;
use skillet_offer::{
    Candidate,
    ascii_words::{name_words, text_words},
};

use crate::{case::Case, judge::Answer};

/// Points for each word of the reason that is a word of the name, and for each that is related to a tag.
const POINTS: i32 = 2;

pub(super) fn background_reason(case: &Case) -> Result<Answer, String> {
    let headers = case.input["headers"].as_object();
    let header = |name: &str| {
        let mut headers = headers.into_iter().flatten();
        headers.find(|(given, _)| given.eq_ignore_ascii_case(name)).and_then(|(_, value)| value.as_str())
    };
    let reason = detect(&case.input["body"], header);
    Ok(Answer::exact(case, json!({ "reason": reason.map(BackgroundReason::as_str) })))
}

/// Returns the points that a reason adds to the score of a skill.
pub(super) fn points(skill: &Candidate, reason: &str) -> i32 {
    let tags: Vec<String> =
        skill.tags.iter().map(|tag| tag.to_lowercase()).filter(|tag| !tag.is_empty()).collect();
    let name = name_words(&skill.name);
    let of_word = |word: &String| {
        let is_related = tags.iter().any(|tag| tag.contains(word.as_str()) || word.contains(tag.as_str()));
        POINTS * (i32::from(name.contains(word)) + i32::from(is_related))
    };
    text_words(reason).iter().map(of_word).sum()
}

/// The sign of a background request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackgroundReason {
    /// A header says so.
    Header,
    /// It asks for so few tokens that no person could want the response.
    LowMaxTokens,
    /// Its instructions selection for a title or the like, and the conversation is short.
    SystemPrompt,
}

impl BackgroundReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header_background",
            Self::LowMaxTokens => "low_max_tokens",
            Self::SystemPrompt => "system_prompt_pattern",
        }
    }
}

/// Headers that may say `background`. Only the first with a value counts.
const HEADERS: [&str; 3] = ["x-task-type", "x-request-priority", "x-initiator"];

/// Fields for the most tokens of a response; the first one given counts.
const MAX_TOKENS: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

/// From this number of tokens on, a response may be meant for a person.
const FEW_TOKENS: f64 = 50.0;

/// With more messages of the user, a request is a conversation whatever its instructions say.
const MAX_USER_MESSAGES: usize = 3;

/// Phrases of clients that want a title, a label or a summary.
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

/// Returns the sign of a background request; `None` if a person waits for the response.
///
/// `header` gives a header's value by its name in lower case. `body` is a request in OpenAI's format: `messages`, or `input`
/// as a list.
fn detect<'h>(body: &Value, header: impl Fn(&str) -> Option<&'h str>) -> Option<BackgroundReason> {
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

/// Returns the first field that is present and not null.
fn first_given<'a>(body: &'a Value, fields: &[&str]) -> Option<&'a Value> {
    fields.iter().filter_map(|field| body.get(field)).find(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(body: &Value, headers: &[(&str, &'static str)], expected: Option<BackgroundReason>) {
        let header = |name: &str| headers.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
        assert_eq!(detect(body, header), expected, "{body} {headers:?}");
    }

    #[test]
    fn the_first_header_with_a_value_decides() {
        let body = json!({});
        check(&body, &[("x-request-priority", " Background ")], Some(BackgroundReason::Header));
        check(&body, &[("x-task-type", ""), ("x-initiator", "background")], Some(BackgroundReason::Header));
        check(&body, &[("x-task-type", "chat"), ("x-initiator", "background")], None);
        check(&json!("text"), &[("x-task-type", "background")], None);
    }

    #[test]
    fn a_token_limit_from_one_to_below_fifty_is_low() {
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
    fn instructions_for_a_label_count_only_in_a_short_conversation() {
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

    #[test]
    fn a_reason_scores_by_words_of_the_name_and_by_related_tags() {
        for (name, tags, expected) in [
            ("zzz", &["background"][..], 2),
            ("zzz", &["background-jobs"], 2),
            ("background-header", &[], 2 * 2),
            ("zzz", &["ground", "head"], 2 + 2),
            ("zzz", &["front"], 0),
            ("zzz", &[""], 0),
        ] {
            let skill = json!({ "name": name, "tags": tags });
            let skill = super::super::offer::candidate(&skill, skillet_api::skill::Mode::Auto, 0).unwrap();
            assert_eq!(points(&skill, "header_background"), expected, "{name} {tags:?}");
        }
    }
}
