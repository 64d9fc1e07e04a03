//! Answers as clients and their libraries may write them.

use std::time::Duration;

use serde_json::json;
use skillet_core::test_cost::cpu_time;

use super::*;
use crate::{DialectName, confirmation::NONCE_BYTES, tool_names::SkillIdentity};

const NOW: u64 = 1_000;
const CALLER: &str = "a/agent";

fn key() -> ConfirmationKey {
    ConfirmationKey::new(&[7; 32]).unwrap()
}

fn token(call_id: &str, expires: u64) -> String {
    let call = PendingCall { caller: CALLER, call_id, tool: "pay", arguments: &json!({"a": 1}) };
    let skill = SkillIdentity { namespace: "a", name: "pay", version: "1.0.0" };
    key().make(&call, skill, expires, [1; NONCE_BYTES])
}

fn request(result: &Value) -> Value {
    let call = json!({"id": "c", "type": "function", "function": {"name": "pay", "arguments": "{\"a\": 1}"}});
    json!({"messages": [{"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": result}]})
}

fn said(result: &Value, header: &[String]) -> Reply {
    let request = request(result);
    let sent = DialectName::OpenAiChat.dialect().history_calls(&request);
    one(Some(&key()), CALLER, &sent, header)
}

fn one(key: Option<&ConfirmationKey>, caller: &str, sent: &[HistoryCall<'_>], header: &[String]) -> Reply {
    let mut replies = read_replies(key, caller, sent, header, NOW);
    assert_eq!(replies.len(), 1);
    replies.remove(0)
}

fn is_confirmed(word: &Reply) -> bool {
    matches!(word, Reply::Confirmed(Confirmed { is_expired: false, .. }))
}

#[test]
fn a_result_confirms_or_refuses_however_it_is_wrapped() {
    let yes = json!({"skillet": "confirm", "token": token("c", NOW + 1)});
    let text = yes.to_string();
    for result in [
        yes.clone(),
        json!(text),
        json!(format!(" \n{text}\n")),
        json!(json!(text).to_string()),
        json!({ "result": text }),
        json!({ "output": yes }),
        json!(json!({ "result": yes }).to_string()),
        json!([{"type": "text", "text": text}]),
    ] {
        assert!(is_confirmed(&said(&result, &[])), "{result}");
    }
    for result in
        [json!(r#"{"skillet":"refuse","why":"too dear"}"#), json!({"output": {"skillet": "refuse"}})]
    {
        assert_eq!(said(&result, &[]), Reply::Refused, "{result}");
    }
}

#[test]
fn a_reply_with_neither_value_is_unclear_and_other_results_are_ignored() {
    for unclear in [r#"{"skillet":"confirm"}"#, r#"{"skillet":"maybe"}"#, r#"{"skillet":7,"token":"x"}"#] {
        assert_eq!(said(&json!(unclear), &[]), Reply::Unclear, "{unclear}");
    }
    let long = format!("{{\"skillet\":\"refuse\",\"x\":\"{}\"}}", "x".repeat(9_000));
    let deep = "[\"skillet\",".repeat(300);
    let wrapped = (0..5).fold(json!({"skillet": "refuse"}), |inner, _| json!({ "result": inner }));
    let parts = json!([{"text": "skillet"}, {"text": "x".repeat(9_000)}]);
    let texts =
        ["", "skillet", "[]", r#"["skillet"]"#, r#"{"token":"skillet"}"#, "{\"skillet\"", &long, &deep];
    let others = [json!(null), json!(1), json!({"a": 1, "result": {"skillet": "refuse"}}), wrapped, parts];
    for other in texts.map(Value::from).into_iter().chain(others) {
        assert_eq!(said(&other, &[]), Reply::Missing, "{other}");
    }
}

#[test]
fn the_word_is_the_results_or_else_the_headers() {
    let (good, old, other) = (token("c", NOW + 1), token("c", NOW), token("d", NOW + 1));
    let confirm = |token: &str| json!({"skillet": "confirm", "token": token}).to_string();
    let (nothing, refuse) = (json!("ordinary"), json!(r#"{"skillet":"refuse"}"#));
    let is_expired = |word: &Reply| matches!(word, Reply::Confirmed(Confirmed { is_expired: true, .. }));
    assert!(is_expired(&said(&json!(confirm(&old)), &[])));
    assert_eq!(said(&json!(confirm(&other)), &[]), Reply::Invalid(ConfirmationError::NotThisCall));
    assert_eq!(said(&refuse, std::slice::from_ref(&good)), Reply::Refused);
    assert!(is_confirmed(&said(&nothing, &[other.clone(), good.clone(), old.clone()])));
    assert!(is_expired(&said(&nothing, &[other.clone(), old.clone(), good.clone()])));
    assert!(is_expired(&said(&nothing, &[other.clone(), old])));
    assert_eq!(said(&nothing, &[other]), Reply::Missing);
    // A result that speaks counts, also where the header would do.
    assert_eq!(said(&json!(r#"{"skillet":"yes"}"#), &[good]), Reply::Unclear);
    let malformed = json!(confirm("7.abc"));
    assert_eq!(said(&malformed, &[]), Reply::Invalid(ConfirmationError::Malformed));
}

/// Calls of `pay`, each a turn of its own, with these ids and results.
fn turns(calls: &[(&str, &str)]) -> Value {
    let messages = calls.iter().flat_map(|(id, result)| {
        let [turn, result] = [0, 1].map(|place| request(&json!(result))["messages"][place].clone());
        let mut turn = [turn, result];
        turn[0]["tool_calls"][0]["id"] = json!(id);
        turn[1]["tool_call_id"] = json!(id);
        turn
    });
    json!({ "messages": messages.collect::<Vec<Value>>() })
}

fn words_of(calls: &[(&str, &str)], header: &[String]) -> Vec<Reply> {
    let request = turns(calls);
    let sent = DialectName::OpenAiChat.dialect().history_calls(&request);
    read_replies(Some(&key()), CALLER, &sent, header, NOW)
}

/// The token of `of` that each call got.
fn got(calls: &[(&str, &str)], header: &[&String], of: &[&String]) -> Vec<Option<usize>> {
    let header: Vec<String> = header.iter().map(|token| (*token).clone()).collect();
    let replies = words_of(calls, &header).into_iter().map(|word| match word {
        Reply::Confirmed(confirmed) => of.iter().position(|token| token.ends_with(&confirmed.code)),
        Reply::Refused | Reply::Missing | Reply::Invalid(_) | Reply::Unclear | Reply::NotTried => None,
    });
    replies.collect()
}

#[test]
fn of_equal_calls_the_oldest_gets_the_first_token() {
    // Some routers give the same id to every call.
    let (one, two, other) = (token("r", NOW), token("r", NOW + 1), token("c", NOW + 1));
    let of = [&one, &two, &other];
    let silent = [("r", "ok"), ("c", "ok"), ("r", "ok")];
    assert_eq!(got(&silent, &[&one], &of), [Some(0), None, None]);
    assert_eq!(got(&silent, &[&one, &two], &of), [Some(0), None, Some(1)]);
    // Also where the first is too old to begin a run, and in whatever order those of other calls are.
    assert_eq!(got(&silent, &[&two, &other, &one], &of), [Some(1), Some(2), Some(0)]);
    // One that a result gives is spent, and a call that was refused takes none.
    let confirm = json!({"skillet": "confirm", "token": one}).to_string();
    let spoken = [("r", &*confirm), ("r", "ok"), ("r", r#"{"skillet":"refuse"}"#), ("r", "ok")];
    assert_eq!(got(&spoken, &[&one], &of), [Some(0), None, None, None]);
    assert_eq!(got(&spoken, &[&one, &two], &of), [Some(0), Some(1), None, None]);
}

#[test]
fn the_header_is_tried_for_the_newest_different_calls() {
    let ids: Vec<String> = (0..=HEADER_LIMIT_CALLS).map(|id| id.to_string()).collect();
    let mut calls: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "ok")).collect();
    // One that is like the newest is the oldest of all.
    calls.insert(0, calls[HEADER_LIMIT_CALLS]);
    let (oldest, newest) = (token("0", NOW + 1), token(&ids[HEADER_LIMIT_CALLS], NOW + 1));
    let replies = words_of(&calls, &[oldest, newest.clone()]);
    assert!(is_confirmed(&replies[0]));
    assert_eq!(
        (&replies[1], &replies[2], replies.last().unwrap()),
        (&Reply::NotTried, &Reply::Missing, &Reply::Missing)
    );
    // Where no token is left, there is nothing to try.
    assert_eq!(words_of(&calls, &[newest])[1], Reply::Missing);
}

#[test]
fn long_arguments_are_read_once_for_all_tokens() {
    let arguments = json!({ "a": vec![1; 256 * 1024] });
    let call = json!({"id": "c", "type": "function", "function": {"name": "pay", "arguments": arguments.to_string()}});
    let request = json!({"messages": [{"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"}]});
    let sent = DialectName::OpenAiChat.dialect().history_calls(&request);
    let many: Vec<String> = (0..200).map(|expires| token("d", expires)).collect();
    let time =
        |header: &[String]| cpu_time(|| assert_eq!(one(Some(&key()), CALLER, &sent, header), Reply::Missing));
    let (of_one, of_many) = (time(&many[..1]), time(&many));
    assert!(of_many < 5 * of_one + Duration::from_millis(200), "{of_many:?} and {of_one:?} for one");
    // Where none has the form of a token, the arguments are not read at all.
    let malformed: Vec<String> = (0..200).map(|number| format!("{number}.AAAA")).collect();
    assert!(time(&malformed) < of_one / 2);
}

#[test]
fn without_key_or_call_nothing_is_confirmed() {
    let confirm = json!({"skillet": "confirm", "token": token("c", NOW + 1)});
    let request = request(&confirm);
    let sent = DialectName::OpenAiChat.dialect().history_calls(&request);
    assert_eq!(one(None, CALLER, &sent, &[]), Reply::Invalid(ConfirmationError::NoKey));
    let alone = json!({"messages": [request["messages"][1]]});
    let sent = DialectName::OpenAiChat.dialect().history_calls(&alone);
    assert_eq!(one(Some(&key()), CALLER, &sent, &[]), Reply::Invalid(ConfirmationError::NoCall));
    let sent = DialectName::OpenAiChat.dialect().history_calls(&request);
    let other = one(Some(&key()), "b/agent", &sent, &[]);
    assert_eq!(other, Reply::Invalid(ConfirmationError::NotThisCall));
}

#[test]
fn headers_have_tokens_between_commas_and_each_counts_once() {
    let read = |headers: &[&str]| read_tokens(headers.iter().copied());
    assert_eq!(read(&[" 7.x, ,8.y ", "9.z,7.x"]).unwrap(), ["7.x", "8.y", "9.z"]);
    assert!(read(&[]).unwrap().is_empty());
    assert_eq!(read(&[&"7.x,".repeat(1_000)]).unwrap(), ["7.x"]);
    let many = |number: usize| (0..number).map(|token| token.to_string()).collect::<Vec<_>>().join(",");
    assert_eq!(read(&[&many(HEADER_LIMIT_TOKENS)]).unwrap().len(), HEADER_LIMIT_TOKENS);
    assert_eq!(read(&[&many(HEADER_LIMIT_TOKENS), "x"]), Err(TooManyTokens));
}
