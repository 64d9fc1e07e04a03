//! A later round that the provider breaks off, and the attempt after it, in every dialect.

use std::sync::Arc;

use serde_json::json;

use super::rounds::{event, round};
use crate::{
    DialectName, ErrorDetail, OfferedNames, StreamError, StreamFilter,
    confirmation::ConfirmationKey,
    continuation::{Continuation, Seal},
};

fn seal(dialect: DialectName) -> Seal {
    let key = ConfirmationKey::new(&[7; 32]).unwrap().continuation_key();
    key.seal("team", dialect, &Continuation { turns: vec!["turn".into()], ..Continuation::default() })
        .unwrap()
}

/// A round of a text, without its end and with it.
fn answer(dialect: DialectName) -> (String, String) {
    if dialect != DialectName::OpenAiResponses {
        return round(dialect, &[]);
    }
    let say = |data: serde_json::Value| event(data["type"].as_str(), &data);
    let item = |status: &str| json!({"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": []});
    let response = json!({"id": "resp_9", "created_at": 1, "output": []});
    let text = say(json!({"type": "response.created", "response": response, "sequence_number": 0}))
        + &say(
            json!({"type": "response.output_item.added", "output_index": 0, "item": item("in_progress"), "sequence_number": 1}),
        )
        + &say(
            json!({"type": "response.content_part.added", "output_index": 0, "item_id": "msg_1", "content_index": 0, "sequence_number": 2}),
        )
        + &say(
            json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "msg_1", "delta": "Hm.", "sequence_number": 3}),
        );
    let end = say(json!({"type": "response.completed", "response": response, "sequence_number": 4}));
    (text, end)
}

fn names() -> Arc<OfferedNames> {
    OfferedNames::from(["look".into()]).into()
}

/// A stream whose first round called a skill, with the seal of it.
fn begin(dialect: DialectName, holds_calls: bool) -> (Box<dyn StreamFilter>, Vec<u8>) {
    let mut filter = dialect.stream_filter(false, names());
    if holds_calls {
        filter.hold_client_calls();
    }
    let mut out = Vec::new();
    let (text, end) = round(dialect, &["look"]);
    filter.feed((text + &end).as_bytes(), &mut out).unwrap();
    filter.end_round(&mut out).unwrap();
    if holds_calls {
        filter.put_seal(Box::new(move || Some(seal(dialect))));
    }
    (filter, out)
}

#[test]
fn the_part_of_a_broken_round_stays_and_the_next_attempt_is_sealed_again() {
    for dialect in DialectName::ALL {
        let (mut filter, mut out) = begin(dialect, true);
        let before = out.len();
        let (text, end) = answer(dialect);
        filter.feed(text.as_bytes(), &mut out).unwrap();
        assert!(filter.abandon_round(&mut out), "{dialect:?}");
        let broken = out.len();
        filter.feed((text + &end).as_bytes(), &mut out).unwrap();
        filter.end_round(&mut out).unwrap();
        filter.finish(&[], &mut out);
        let out = String::from_utf8(out).unwrap();
        let seal = match dialect {
            DialectName::Gemini => seal(dialect).to_bytes_field(),
            _ => seal(dialect).as_str().to_owned(),
        };
        for attempt in [&out[before..broken], &out[broken..]] {
            let (_, after) = attempt.split_once(&seal).unwrap_or_else(|| panic!("{dialect:?}: {out}"));
            assert!(after.contains("Hm."), "{dialect:?}: {attempt}");
        }
        let ends = match dialect {
            DialectName::OpenAiChat => "[DONE]",
            DialectName::OpenAiResponses => "response.completed\"",
            DialectName::Anthropic => "\"message_stop\"",
            DialectName::Gemini => "\"STOP\"",
        };
        assert_eq!(out.matches(ends).count(), 1, "{dialect:?}: {out}");
        for (begin, end) in [
            ("\"content_block_start\"", "\"content_block_stop\""),
            ("\"response.output_item.added\"", "\"response.output_item.done\""),
        ] {
            assert_eq!(
                out[before..broken].matches(begin).count(),
                out[before..broken].matches(end).count(),
                "{out}"
            );
        }
    }
}

#[test]
fn each_seal_of_a_response_is_an_item_of_its_own() {
    let dialect = DialectName::OpenAiResponses;
    let (mut filter, mut out) = begin(dialect, true);
    let (text, end) = answer(dialect);
    filter.feed(text.as_bytes(), &mut out).unwrap();
    assert!(filter.abandon_round(&mut out));
    filter.feed((text + &end).as_bytes(), &mut out).unwrap();
    filter.end_round(&mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    let seal = seal(dialect);
    for number in [0, 1] {
        assert!(out.contains(&format!("\"{}\"", seal.to_item_id(number))), "{out}");
    }
}

#[test]
fn a_call_that_waits_for_the_end_of_a_broken_round_never_was() {
    for dialect in DialectName::ALL {
        let (mut filter, mut out) = begin(dialect, true);
        let (text, _) = round(dialect, &["own"]);
        filter.feed(text.as_bytes(), &mut out).unwrap();
        assert!(filter.abandon_round(&mut out), "{dialect:?}");
        let (text, end) = answer(dialect);
        filter.feed((text + &end).as_bytes(), &mut out).unwrap();
        let round = filter.end_round(&mut out).unwrap();
        filter.finish(&[], &mut out);
        let out = String::from_utf8(out).unwrap();
        assert!(!round.has_client_calls && !out.contains("\"own\""), "{dialect:?}: {out}");
    }
}

#[test]
fn a_client_that_got_a_call_of_a_broken_round_gets_no_other_attempt() {
    for dialect in DialectName::ALL {
        let (mut filter, mut out) = begin(dialect, false);
        let (text, _) = round(dialect, &["own"]);
        filter.feed(text.as_bytes(), &mut out).unwrap();
        assert!(!filter.abandon_round(&mut out), "{dialect:?}");
    }
}

#[test]
fn a_stream_that_shows_its_last_round_alone_forgets_a_broken_one() {
    for dialect in DialectName::ALL {
        let mut filter = dialect.dialect().last_round_filter(names());
        let mut out = Vec::new();
        let (text, end) = round(dialect, &["look"]);
        filter.feed((text + &end).as_bytes(), &mut out).unwrap();
        filter.end_round(&mut out).unwrap();
        let (text, end) = answer(dialect);
        filter.feed(text.as_bytes(), &mut out).unwrap();
        assert!(filter.abandon_round(&mut out) && out.is_empty(), "{dialect:?}");
        filter.feed((text + &end).as_bytes(), &mut out).unwrap();
        filter.end_round(&mut out).unwrap();
        filter.finish(&[], &mut out);
        assert_eq!(String::from_utf8(out).unwrap().matches("Hm.").count(), 1, "{dialect:?}");
    }
}

#[test]
fn chunks_of_all_rounds_are_of_one_gemini_response() {
    let dialect = DialectName::Gemini;
    let mut filter = dialect.stream_filter(false, names());
    let chunk = |id: &str, part: serde_json::Value| {
        event(
            None,
            &json!({"responseId": id, "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}),
        )
    };
    let mut out = Vec::new();
    for text in [
        chunk("one", json!({"text": "Hm."})) + &chunk("one", json!({"functionCall": {"name": "look"}})),
        chunk("two", json!({"text": "5"})),
    ] {
        filter.feed(text.as_bytes(), &mut out).unwrap();
        filter.end_round(&mut out).unwrap();
    }
    let out = String::from_utf8(out).unwrap();
    assert_eq!((out.matches("\"one\"").count(), out.contains("\"two\"")), (2, false), "{out}");
}

/// The event of a provider that fails inside a stream.
fn failure(dialect: DialectName) -> String {
    let data = match dialect {
        DialectName::OpenAiChat => json!({"error": {"message": "Overloaded", "type": "server_error"}}),
        DialectName::OpenAiResponses => json!({"type": "response.failed", "sequence_number": 9, "response": {
            "id": "resp_9", "status": "failed", "output": [], "error": {"code": "server_error", "message": "Overloaded"}}}),
        DialectName::Anthropic => {
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
        }
        DialectName::Gemini => {
            json!({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}})
        }
    };
    event(data["type"].as_str(), &data)
}

const GATEWAYS_OWN: ErrorDetail<'static> =
    ErrorDetail { status: 502, reason: "ProviderAnswerBroken", message: "broken", field: None };

#[test]
fn an_error_of_the_provider_waits_in_a_later_round_until_no_attempt_is_left() {
    for dialect in DialectName::ALL {
        let (text, _) = answer(dialect);
        // The last event may lack its blank line.
        for failure in [failure(dialect), failure(dialect).trim_end().to_owned()] {
            let (mut filter, mut out) = begin(dialect, true);
            for is_last in [false, true] {
                let fed = filter.feed((text.clone() + &failure).as_bytes(), &mut out);
                let ended = fed.and_then(|()| filter.end_round(&mut out).map(drop));
                assert_eq!(ended, Err(StreamError::ProviderFailed), "{dialect:?}");
                assert!(is_last || filter.abandon_round(&mut out), "{dialect:?}");
            }
            let before = String::from_utf8(out.clone()).unwrap();
            let has_texts = before.matches("Hm.").count() >= 2;
            assert!(has_texts && !before.contains("Overloaded"), "{dialect:?}: {before}");
            filter.write_error(&GATEWAYS_OWN, &mut out);
            let out = String::from_utf8(out).unwrap();
            assert_eq!(
                (out.matches("Overloaded").count(), out.contains("broken")),
                (1, false),
                "{dialect:?}: {out}"
            );
        }
    }
}

#[test]
fn an_error_has_the_number_after_the_last_that_the_client_got() {
    let dialect = DialectName::OpenAiResponses;
    let (mut filter, mut out) = begin(dialect, true);
    let (text, _) = answer(dialect);
    // A call of the client waits for the end of its round, and then never was.
    let (call, _) = round(dialect, &["own"]);
    filter.feed(text.as_bytes(), &mut out).unwrap();
    assert!(filter.abandon_round(&mut out));
    filter.feed(call.as_bytes(), &mut out).unwrap();
    filter.write_error(&GATEWAYS_OWN, &mut out);
    let out = String::from_utf8(out).unwrap();
    let events: Vec<serde_json::Value> =
        out.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["sequence_number"].as_u64()).collect();
    assert_eq!(events.last().unwrap()["type"], "error", "{out}");
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>(), "{out}");

    // Nothing at all reached the client.
    for mut filter in [dialect.stream_filter(false, names()), dialect.stream_filter(true, names())] {
        let (mut out, (call, _)) = (Vec::new(), round(dialect, &["look"]));
        filter.feed(call.as_bytes(), &mut out).unwrap();
        out.clear();
        filter.write_error(&GATEWAYS_OWN, &mut out);
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains("\"sequence_number\":"), "{out}");
    }
}
