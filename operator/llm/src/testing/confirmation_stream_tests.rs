//! Streams with a call that awaits confirmation, in every dialect, cut anywhere.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    corruption::{damage, feed_cut},
    rounds::{event, round},
};
use crate::*;
use skillet_core::test_rng::TestRng;

fn offered() -> Arc<OfferedNames> {
    Arc::new(OfferedNames::new(["look".into()], ["pay".into()]))
}

/// Feeds a round cut into pieces of `size` bytes, and writes a prompt if a call awaits confirmation.
fn filtered(dialect: DialectName, stream: &str, size: usize) -> (RoundEnd, String) {
    let mut filter = dialect.dialect().stream_filter(offered());
    let mut out = Vec::new();
    for piece in stream.as_bytes().chunks(size) {
        filter.feed(piece, &mut out).unwrap();
    }
    let end = filter.end_round(&mut out).unwrap();
    if !end.awaiting_confirmation.is_empty() {
        filter.write_text("confirm_1", "PROMPT", &mut out);
    }
    filter.finish(&[], &mut out);
    (end, String::from_utf8(out).unwrap())
}

#[test]
fn the_call_passes_byte_for_byte_and_the_prompt_precedes_the_end() {
    for dialect in DialectName::ALL {
        let (before, end) = round(dialect, &["own", "pay"]);
        let stream = format!("{before}{end}");
        let (ended, out) = filtered(dialect, &stream, stream.len());
        assert!(out.starts_with(&before), "{dialect:?}: {out}");
        let asked: Vec<_> =
            ended.awaiting_confirmation.iter().map(|call| (&*call.name, call.arguments.clone())).collect();
        assert_eq!(asked, [("pay", Arguments::Json(json!({"a": 1})))], "{dialect:?}");
        assert!(ended.skill_calls.is_empty() && ended.has_client_calls, "{dialect:?}");
        check_end(dialect, &out[before.len()..]);
        for size in 1..60 {
            assert_eq!(filtered(dialect, &stream, size), (ended.clone(), out.clone()), "{dialect:?} {size}");
        }
    }
}

fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data))).collect()
}

/// Checks the prompt, then the provider's end.
fn check_end(dialect: DialectName, rest: &str) {
    let events = events(rest);
    match dialect {
        DialectName::OpenAiChat => {
            assert_eq!(events[0]["choices"][0]["delta"], json!({"content": "\n\nPROMPT"}));
            assert_eq!(
                (&events[0]["id"], &events[0]["object"]),
                (&json!("r"), &json!("chat.completion.chunk"))
            );
            assert_eq!(events[1]["choices"][0]["finish_reason"], "tool_calls");
            assert_eq!(events[2..], [json!("[DONE]")]);
        }
        DialectName::OpenAiResponses => {
            let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
            assert_eq!(kinds[0], "response.output_item.added");
            assert_eq!(kinds[6..], ["response.completed"]);
            let numbers: Vec<_> =
                events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
            assert_eq!(numbers, (9..16).collect::<Vec<_>>());
            assert!(events[..6].iter().all(|event| event["output_index"] == 3), "{events:?}");
            let output = events[6]["response"]["output"].as_array().unwrap();
            let names: Vec<_> = output.iter().map(|item| item["type"].as_str().unwrap()).collect();
            assert_eq!(names, ["reasoning", "function_call", "function_call", "message"]);
            assert_eq!(
                (&output[3]["id"], &output[3]["content"][0]["text"]),
                (&json!("msg_skillet_confirm_1"), &json!("PROMPT"))
            );
        }
        DialectName::Anthropic => {
            assert!(events[..3].iter().all(|event| event["index"] == 3), "{events:?}");
            assert_eq!(events[1]["delta"], json!({"type": "text_delta", "text": "PROMPT"}));
            assert_eq!(events[3]["delta"]["stop_reason"], "tool_use");
            assert_eq!(events[4]["type"], "message_stop");
        }
        DialectName::Gemini => {
            assert_eq!(
                events[0]["candidates"][0]["content"],
                json!({"role": "model", "parts": [{"text": "\n\nPROMPT"}]})
            );
            assert_eq!(events[1]["candidates"][0]["finishReason"], "STOP");
            assert_eq!(events.len(), 2);
        }
    }
}

#[test]
fn a_skill_call_beside_it_is_removed() {
    for dialect in DialectName::ALL {
        let (before, end) = round(dialect, &["look", "pay"]);
        let (ended, out) = filtered(dialect, &format!("{before}{end}"), 7);
        let names = |calls: &[ToolCall]| calls.iter().map(|call| call.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            (names(&ended.skill_calls), names(&ended.awaiting_confirmation)),
            (vec!["look".into()], vec!["pay".into()])
        );
        assert!(!out.contains("look") && out.contains("pay") && out.contains("PROMPT"), "{dialect:?}: {out}");
    }
}

#[test]
fn a_later_round_prompts_in_the_same_stream() {
    for dialect in DialectName::ALL {
        let mut filter = dialect.dialect().stream_filter(offered());
        let mut out = Vec::new();
        for name in ["look", "pay"] {
            let (before, end) = round(dialect, &[name]);
            filter.feed(format!("{before}{end}").as_bytes(), &mut out).unwrap();
            let ended = filter.end_round(&mut out).unwrap();
            assert_eq!(ended.awaiting_confirmation.len(), usize::from(name == "pay"), "{dialect:?}");
        }
        filter.write_text("confirm_1", "PROMPT", &mut out);
        filter.finish(&[], &mut out);
        let out = String::from_utf8(out).unwrap();
        let (asked, called) = (out.find("PROMPT").unwrap(), out.find("\"pay\"").unwrap());
        assert!(called < asked && !out.contains("look"), "{dialect:?}: {out}");
        let end = match dialect {
            DialectName::OpenAiChat => "[DONE]",
            DialectName::OpenAiResponses => "event: response.completed",
            DialectName::Anthropic => "event: message_stop",
            DialectName::Gemini => "STOP",
        };
        assert_eq!(out.matches(end).count(), 1, "{dialect:?}: {out}");
        assert!(out.find(end).unwrap() > asked, "{dialect:?}: {out}");
    }
}

#[test]
fn without_a_call_that_awaits_confirmation_every_byte_passes() {
    for dialect in DialectName::ALL {
        let (before, end) = round(dialect, &["own"]);
        let stream = format!("{before}{end}");
        let mut filter = dialect.dialect().stream_filter(offered());
        let mut out = Vec::new();
        filter.feed(stream.as_bytes(), &mut out).unwrap();
        filter.end_round(&mut out).unwrap();
        filter.write_text("confirm_1", "PROMPT", &mut out);
        filter.finish(&[], &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), stream, "{dialect:?}");
    }
}

#[test]
fn a_truncated_response_awaits_no_confirmation() {
    for dialect in DialectName::ALL {
        let (before, _) = round(dialect, &["pay"]);
        let cut = before.len() - 30;
        let mut filter = dialect.dialect().stream_filter(offered());
        let mut out = Vec::new();
        filter.feed(&before.as_bytes()[..cut], &mut out).unwrap();
        match filter.end_round(&mut out) {
            Err(error) => assert_eq!(error, StreamError::Truncated, "{dialect:?}"),
            // A chunk is whole or not there, and Gemini's end may be left out.
            Ok(end) => {
                assert!(
                    dialect == DialectName::Gemini && end.awaiting_confirmation.is_empty(),
                    "{dialect:?}"
                );
            }
        }
    }
}

#[test]
fn an_error_of_the_provider_cancels_the_prompt() {
    let errors = [
        (DialectName::OpenAiResponses, json!({"type": "error", "message": "m"})),
        (DialectName::Anthropic, json!({"type": "error", "error": {"type": "overloaded_error"}})),
        (DialectName::Gemini, json!({"error": {"code": 503}})),
    ];
    for (dialect, error) in errors {
        let (before, _) = round(dialect, &["pay"]);
        let stream = before + &event(error["type"].as_str(), &error);
        let (end, out) = filtered(dialect, &stream, 11);
        assert!(end.awaiting_confirmation.is_empty(), "{dialect:?}");
        assert_eq!(out, stream, "{dialect:?}");
    }
}

#[test]
fn damaged_streams_lose_no_prompt() {
    let mut rng = TestRng::new(17);
    for dialect in DialectName::ALL {
        let (before, end) = round(dialect, &["look", "pay", "own"]);
        for _ in 0..1_500 {
            let mut bytes = format!("{before}{end}").into_bytes();
            damage(&mut bytes, &mut rng);
            let mut filter = dialect.dialect().stream_filter(offered());
            let mut out = Vec::new();
            let Ok(ended) = feed_cut(filter.as_mut(), &bytes, &mut rng, &mut out) else { continue };
            assert!(ended.awaiting_confirmation.iter().all(|call| call.name == "pay"), "{dialect:?}");
            filter.write_text("confirm_1", "PROMPT", &mut out);
            filter.finish(&[], &mut out);
            let needs_confirmation = String::from_utf8_lossy(&out).contains("PROMPT");
            assert!(
                needs_confirmation || ended.awaiting_confirmation.is_empty(),
                "{dialect:?}: a question is lost"
            );
        }
    }
}
