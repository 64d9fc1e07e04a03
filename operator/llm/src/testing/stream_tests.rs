//! Examples of the contract of stream filters, in every dialect.

use std::sync::Arc;

use serde_json::{Value, json};

use super::rounds::{event, round};
use crate::{
    confirmation::ConfirmationKey,
    continuation::{Continuation, Seal},
    *,
};

fn offered() -> Arc<OfferedNames> {
    Arc::new(OfferedNames::new(["look".into()], ["pay".into()]))
}

fn filter(dialect: DialectName) -> Box<dyn StreamFilter> {
    dialect.stream_filter(false, offered())
}

fn stream(dialect: DialectName, calls: &[&str]) -> String {
    let (before, end) = round(dialect, calls);
    before + &end
}

/// Feeds one round whole.
fn feed(filter: &mut dyn StreamFilter, bytes: &str, out: &mut Vec<u8>) -> Result<RoundEnd, StreamError> {
    filter.feed(bytes.as_bytes(), out)?;
    filter.end_round(out)
}

fn result() -> ToolResult {
    ToolResult { id: "r".into(), name: "look".into(), content: "RESULT".into(), is_error: false }
}

/// Streams these rounds and ends the conversation with the result of the last one.
fn streamed(mut filter: Box<dyn StreamFilter>, rounds: &[String]) -> String {
    let mut out = Vec::new();
    for bytes in rounds {
        feed(filter.as_mut(), bytes, &mut out).unwrap();
    }
    filter.finish(&[result()], &mut out);
    let length = out.len();
    filter.finish(&[result()], &mut out);
    filter.write_text("late", "LATE", &mut out);
    assert_eq!(out.len(), length, "an end is written once");
    String::from_utf8(out).unwrap()
}

/// The text that ends a client's stream.
fn last_words(dialect: DialectName) -> &'static str {
    match dialect {
        DialectName::OpenAiChat => "[DONE]",
        DialectName::OpenAiResponses => "event: response.completed",
        DialectName::Anthropic => "event: message_stop",
        DialectName::Gemini => "\"finishReason\"",
    }
}

/// All text that the client reads, in order.
fn texts(stream: &str) -> String {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let read = |event: Value| {
        let delta = event["type"] == "response.output_text.delta";
        let places = ["/choices/0/delta/content", "/delta/text", "/candidates/0/content/parts/0/text"];
        let place = places.iter().find_map(|place| event.pointer(place)?.as_str());
        place.or(event["delta"].as_str().filter(|_| delta)).unwrap_or_default().to_owned()
    };
    data.filter_map(|data| serde_json::from_str(data).ok()).map(read).collect()
}

#[test]
fn a_stream_without_calls_of_skills_passes_byte_for_byte_and_at_once() {
    for dialect in DialectName::ALL {
        let stream = stream(dialect, &["own"]);
        let (mut filter, mut out) = (filter(dialect), Vec::new());
        let mut is_begin = dialect == DialectName::OpenAiResponses;
        for part in stream.split_inclusive("\n\n") {
            filter.feed(part.as_bytes(), &mut out).unwrap();
            // The beginning of a response waits for its first item, and reasoning for the item after it.
            is_begin &= !part.contains("output_item.added") || part.contains("reasoning");
            assert_eq!(out.is_empty(), is_begin, "{dialect:?} {part}");
        }
        assert!(filter.end_round(&mut out).unwrap().has_client_calls);
        filter.finish(&[result()], &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), stream, "{dialect:?}");
    }
}

#[test]
fn used_up_rounds_end_once_with_the_result_as_text() {
    for dialect in DialectName::ALL {
        let out = streamed(filter(dialect), &[stream(dialect, &["look"]), stream(dialect, &["look"])]);
        assert_eq!(out.matches(last_words(dialect)).count(), 1, "{dialect:?}: {out}");
        assert!(texts(&out).ends_with("[Skill result: look]\nRESULT"), "{dialect:?}: {out}");
        assert!(!out.contains("\"look\""), "{dialect:?}: {out}");
    }
}

#[test]
fn a_next_round_that_never_comes_leaves_the_held_end_to_be_written() {
    for dialect in DialectName::ALL {
        let round = stream(dialect, &["look"]);
        let alone = streamed(filter(dialect), std::slice::from_ref(&round));
        assert_eq!(streamed(filter(dialect), &[round, String::new()]), alone, "{dialect:?}");
        assert!(alone.contains("RESULT") && alone.contains(last_words(dialect)), "{dialect:?}: {alone}");
    }
}

#[test]
fn texts_of_two_rounds_are_apart() {
    for dialect in [DialectName::OpenAiChat, DialectName::Gemini] {
        let out = streamed(filter(dialect), &[stream(dialect, &["look"]), stream(dialect, &["own"])]);
        assert_eq!(texts(&out), "Hm.\n\nHm.", "{dialect:?}: {out}");
    }
}

/// A request that asks for JSON as text.
fn wants_json(dialect: DialectName) -> bool {
    dialect.dialect().wants_json(&json_request(dialect))
}

fn json_request(dialect: DialectName) -> Value {
    match dialect {
        DialectName::OpenAiChat => json!({"response_format": {"type": "json_schema"}}),
        DialectName::OpenAiResponses => json!({"text": {"format": {"type": "json_object"}}}),
        DialectName::Anthropic => json!({"output_format": {"type": "json_schema"}}),
        DialectName::Gemini => json!({"generationConfig": {"responseMimeType": "application/json"}}),
    }
}

#[test]
fn of_a_request_for_json_the_client_sees_the_last_round_alone() {
    for dialect in DialectName::ALL {
        let filter = || dialect.stream_filter(wants_json(dialect), offered());
        let last = stream(dialect, &["own"]);
        assert_eq!(streamed(filter(), std::slice::from_ref(&last)), last, "{dialect:?}");
        let out = streamed(filter(), &[stream(dialect, &["look"]), stream(dialect, &["look"]), last.clone()]);
        assert_eq!(texts(&out), texts(&last), "{dialect:?}: {out}");
        assert_eq!(out.matches(last_words(dialect)).count(), 1, "{dialect:?}: {out}");
        let kept = streamed(filter(), &[stream(dialect, &["look"])]);
        assert!(kept.contains("RESULT") && kept.contains(last_words(dialect)), "{dialect:?}: {kept}");
        assert!(!dialect.dialect().wants_json(&json!({})), "{dialect:?}");
    }
}

#[test]
fn the_last_round_alone_has_the_usage_of_all() {
    let usage =
        json!({"prompt_tokens": 2, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}});
    let round = |calls: &[&str]| {
        let (before, end) = round(DialectName::OpenAiChat, calls);
        before + &event(None, &json!({"id": "r", "choices": [], "usage": usage})) + &end
    };
    let filter = DialectName::OpenAiChat.stream_filter(wants_json(DialectName::OpenAiChat), offered());
    let out = streamed(filter, &[round(&["look"]), round(&["own"])]);
    let sum =
        json!({"prompt_tokens": 4, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 2}});
    assert!(out.contains(&sum.to_string()), "{out}");
}

#[test]
fn a_stream_that_breaks_off_inside_a_call_of_a_skill_is_truncated() {
    for dialect in DialectName::ALL {
        let (before, _) = round(dialect, &["look"]);
        for cut in [8, 30] {
            let (mut filter, mut out) = (filter(dialect), Vec::new());
            let ended = feed(filter.as_mut(), &before[..before.len() - cut], &mut out);
            assert_eq!(ended, Err(StreamError::Truncated), "{dialect:?} {cut}");
            filter.finish(&[result()], &mut out);
            assert!(!String::from_utf8(out).unwrap().contains("RESULT"), "{dialect:?} {cut}");
        }
    }
}

#[test]
fn half_an_event_passes_if_it_cannot_be_a_skills() {
    for dialect in DialectName::ALL {
        let half = "data: {\"choices\":[{\"del";
        let (mut filter, mut out) = (filter(dialect), Vec::new());
        feed(filter.as_mut(), half, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), half, "{dialect:?}");
    }
}

#[test]
fn after_an_error_of_the_provider_nothing_runs_and_nothing_follows() {
    for (dialect, error) in [
        (DialectName::OpenAiResponses, json!({"type": "error", "message": "m"})),
        (DialectName::Anthropic, json!({"type": "error", "error": {"type": "overloaded_error"}})),
        (DialectName::Gemini, json!({"error": {"code": 503}})),
    ] {
        let (before, end) = round(dialect, &["look"]);
        let error = event(error["type"].as_str(), &error);
        let (mut filter, mut out) = (filter(dialect), Vec::new());
        let ended = feed(filter.as_mut(), &format!("{before}{error}{end}"), &mut out).unwrap();
        assert!(ended.skill_calls.is_empty(), "{dialect:?}");
        filter.finish(&[result()], &mut out);
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains("error") && !out.contains("RESULT"), "{dialect:?}: {out}");
    }
}

/// A round that a limit of tokens ended.
fn cut(dialect: DialectName, calls: &[&str]) -> String {
    let reasons = [
        ("\"finish_reason\":\"tool_calls\"", "\"finish_reason\":\"length\""),
        ("\"stop_reason\":\"tool_use\"", "\"stop_reason\":\"max_tokens\""),
        ("\"finishReason\":\"STOP\"", "\"finishReason\":\"MAX_TOKENS\""),
        ("\"output\":[{", "\"status\":\"incomplete\",\"output\":[{"),
    ];
    let whole = stream(dialect, calls);
    reasons.iter().fold(whole, |round, (whole, cut)| round.replace(whole, cut))
}

#[test]
fn a_response_that_a_limit_cut_is_known_and_awaits_no_confirmation() {
    for dialect in DialectName::ALL {
        let (mut filter, mut out) = (filter(dialect), Vec::new());
        let whole = feed(filter.as_mut(), &stream(dialect, &["look"]), &mut out).unwrap();
        assert!(!dialect.dialect().is_cut(&whole.response), "{dialect:?}");
        let end = feed(filter.as_mut(), &cut(dialect, &["pay", "look"]), &mut out).unwrap();
        assert!(dialect.dialect().is_cut(&end.response), "{dialect:?}");
        assert!(end.awaiting_confirmation.is_empty() && end.has_client_calls, "{dialect:?}");
        assert_eq!(end.skill_calls.len(), 1, "{dialect:?}");
    }
}

#[test]
fn a_seal_stands_before_the_answer_of_the_last_round_and_once() {
    for dialect in DialectName::ALL {
        let key = ConfirmationKey::new(&[7; 32]).unwrap().continuation_key();
        let seal = |turn: &str| {
            let continuation = Continuation { turns: vec![turn.into()], ..Continuation::default() };
            key.seal("team", dialect, &continuation).unwrap()
        };
        let text = |seal: &Seal| match dialect {
            DialectName::Gemini => seal.to_bytes_field(),
            _ => seal.as_str().to_owned(),
        };
        let (mut filter, mut out) = (filter(dialect), Vec::new());
        feed(filter.as_mut(), &stream(dialect, &["look"]), &mut out).unwrap();
        let first = out.len();
        for turn in ["early", "late"] {
            let seal = seal(turn);
            filter.put_seal(Box::new(move || Some(seal)));
        }
        feed(filter.as_mut(), &stream(dialect, &[]), &mut out).unwrap();
        filter.finish(&[], &mut out);
        let out = String::from_utf8(out).unwrap();
        assert!(!out.contains(&text(&seal("early"))), "{dialect:?}");
        let (before, after) =
            out.split_once(&text(&seal("late"))).unwrap_or_else(|| panic!("{dialect:?}: {out}"));
        assert!(before.len() >= first && texts(before) == texts(&out[..first]), "{dialect:?}: {out}");
        // A round of Responses has reasoning here, and no text.
        assert!(!texts(after).is_empty() || after.contains("\"rs_1\""), "{dialect:?}: {out}");
    }
}
