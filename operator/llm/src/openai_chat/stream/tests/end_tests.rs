//! An end beside a call of ours is held back, a stream cut inside one is truncated, and one too large is refused.

use super::*;

#[test]
fn an_end_in_the_same_chunk_as_the_call_is_held_back() {
    let mut filter = filter();
    let all = json!({"role": "assistant", "content": "Hi", "tool_calls": [call(0, "c1", OURS, "{}")]});
    let (out, end) = round(&mut *filter, &[chunk("r1", &all, &json!("tool_calls"))]);
    assert_eq!(deltas(&out), [json!({"role": "assistant", "content": "Hi"})]);
    assert_eq!(events(&out)[0]["choices"][0]["finish_reason"], Value::Null);
    assert_eq!(end.skill_calls, [ours("c1", json!({}))]);
    assert_eq!(events(&finish(&mut *filter, &[]))[0]["choices"][0]["finish_reason"], "stop");
}

fn check_truncated(parts: &[String]) {
    let mut filter = filter();
    feed(&mut *filter, parts);
    assert_eq!(filter.end_round(&mut Vec::new()).unwrap_err(), StreamError::Truncated, "{parts:?}");
}

#[test]
fn a_stream_that_ends_inside_a_call_of_ours_is_truncated() {
    let begun = calls("r1", &[call(0, "c1", OURS, "{\"q\":")]);
    check_truncated(std::slice::from_ref(&begun));
    check_truncated(&[begun[..begun.len() - 20].to_owned()]);
    check_truncated(&[begun.clone(), "data: {\"choices\":[{\"del".to_owned()]);
    check_truncated(&[calls("r1", &[call(0, "c1", "web", "")])]);
    // The provider says that it is done, so it is: the model reads that its arguments are broken.
    let (_, end) = round(&mut *filter(), &[begun, "data: [DONE]\n".to_owned()]);
    assert_eq!(end.skill_calls[0].arguments, Arguments::NotJson("{\"q\":".to_owned()));
}

#[test]
fn a_round_larger_than_any_response_is_refused() {
    let part = delta("r1", &json!({"content": "x".repeat(8 << 20)}));
    let mut filter = filter();
    let refused = (0..10).find_map(|_| filter.feed(part.as_bytes(), &mut Vec::new()).err());
    assert!(matches!(refused, Some(StreamError::LongRound { .. })));
}
