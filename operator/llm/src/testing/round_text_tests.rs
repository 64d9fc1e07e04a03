//! Texts of several rounds in one whole response, in every dialect.

use serde_json::{Value, json};

use crate::DialectName;

/// A whole response with these texts.
fn response(dialect: DialectName, texts: &[&str]) -> Value {
    let part = |text: &&str| json!({"type": "text", "text": text});
    match dialect {
        DialectName::OpenAiChat => json!({"choices": [{"message": {"content": texts.concat()}}]}),
        DialectName::OpenAiResponses => {
            let item =
                |text: &&str| json!({"type": "message", "content": [{"type": "output_text", "text": text}]});
            json!({"output": texts.iter().map(item).collect::<Value>()})
        }
        DialectName::Anthropic => json!({"content": texts.iter().map(part).collect::<Value>()}),
        DialectName::Gemini => {
            let part = |text: &&str| json!({ "text": text });
            json!({"candidates": [{"content": {"parts": texts.iter().map(part).collect::<Value>()}}]})
        }
    }
}

#[test]
fn texts_of_earlier_rounds_precede_those_of_the_last_and_are_apart() {
    for name in DialectName::ALL {
        let dialect = name.dialect();
        let mut texts = dialect.round_texts(&response(name, &["A"]));
        texts.extend(dialect.round_texts(&response(name, &["B"])));
        let mut last = response(name, &["C"]);
        dialect.prepend_texts(&mut last, texts);
        let expected = match name {
            DialectName::OpenAiChat => response(name, &["A\n\nB\n\nC"]),
            DialectName::Gemini => response(name, &["A\n\n", "B\n\n", "C"]),
            DialectName::OpenAiResponses | DialectName::Anthropic => response(name, &["A", "B", "C"]),
        };
        assert_eq!(last, expected, "{name:?}");
    }
}

#[test]
fn thoughts_and_blanks_are_no_texts_and_an_odd_response_stays() {
    for name in DialectName::ALL {
        let dialect = name.dialect();
        assert!(dialect.round_texts(&json!({})).is_empty(), "{name:?}");
        for odd in [json!(null), json!({"content": 1, "choices": 1, "output": 1, "candidates": 1})] {
            let mut same = odd.clone();
            dialect.prepend_texts(&mut same, vec![json!({"type": "text", "text": "A"})]);
            assert_eq!(same, odd, "{name:?}");
        }
    }
    let thought = json!({"candidates": [{"content": {"parts": [{"text": "hm", "thought": true}]}}]});
    assert!(DialectName::Gemini.dialect().round_texts(&thought).is_empty());
    let thinking = json!({"type": "thinking", "thinking": "hm"});
    let mut response = json!({"content": [thinking, {"type": "text", "text": " "}]});
    assert!(DialectName::Anthropic.dialect().round_texts(&response).is_empty());
    DialectName::Anthropic.dialect().prepend_texts(&mut response, vec![json!(1)]);
    assert_eq!((&response["content"][0], &response["content"][1]), (&thinking, &json!(1)));
}
