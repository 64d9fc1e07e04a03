//! Calls are kept apart by index or by id, thousands of them too, and the whole name decides whether one is ours.

use skillet_core::test_cost::assert_linear;

use super::*;

/// The `parts` that go out when each is fed alone, and the owner of the call.
fn check_name(parts: &[Value], expected: &[bool], is_ours: bool) {
    let mut filter = filter();
    let parts: Vec<String> = parts.iter().map(|part| calls("r1", std::slice::from_ref(part))).collect();
    let mut gone = String::new();
    for (part, is_out) in parts.iter().zip(expected) {
        gone.push_str(&feed(&mut *filter, std::slice::from_ref(part)));
        assert_eq!(gone.ends_with(part.as_str()), *is_out, "{part}");
    }
    let (_, end) = round(&mut *filter, &[end("r1", "tool_calls")]);
    assert_eq!((end.skill_calls.len() == 1, end.has_client_calls), (is_ours, !is_ours));
    assert_eq!(gone, if is_ours { String::new() } else { parts.concat() });
}

#[test]
fn a_call_waits_until_its_name_is_known() {
    let name = |name: &str| json!({"index": 0, "function": {"name": name}});
    check_name(&[call(0, "c", "web", ""), name("-search"), more(0, "{}")], &[false; 3], true);
    check_name(&[call(0, "c", "web", ""), name("-site"), more(0, "{}")], &[false, true, true], false);
    check_name(&[call(0, "c", "web", ""), more(0, ""), more(0, "{}")], &[false, false, true], false);
    check_name(&[call(0, "c", OURS, ""), name("-deep"), more(0, "{}")], &[false, true, true], false);
    check_name(&[json!({"index": 0, "id": "c"}), name(OURS), more(0, "{}")], &[false; 3], true);
    check_name(&[json!({"index": 0, "id": "c"}), more(0, "{}")], &[false, true], false);
    // A provider that says the name again with each piece.
    check_name(&[call(0, "c", OURS, "{"), call(0, "c", OURS, "}")], &[false; 2], true);
    check_name(&[json!({"index": 0, "id": "c", "type": "custom", "custom": {"name": OURS}})], &[true], false);
}

#[test]
fn calls_without_index_are_kept_apart_by_id() {
    let whole = |id: &str, arguments: &str| {
        let mut call = call(0, id, OURS, arguments);
        call.as_object_mut().unwrap().remove("index");
        call
    };
    for one_by_one in [
        [
            calls("r1", &[whole("a", "{\"x\":")]),
            calls("r1", &[json!({"function": {"arguments": "1}"}})]),
            calls("r1", &[whole("b", "{}")]),
        ],
        [
            calls("r1", &[call(0, "a", OURS, "{\"x\":")]),
            calls("r1", &[more(0, "1}")]),
            calls("r1", &[call(0, "b", OURS, "{}")]),
        ],
    ] {
        let (_, end) = round(&mut *filter(), &[one_by_one.concat(), end("r1", "stop")]);
        assert_eq!(end.skill_calls, [ours("a", json!({"x": 1})), ours("b", json!({}))]);
    }
}

#[test]
fn a_name_that_continues_after_its_arguments_is_no_skill_call() {
    let parts = [
        calls("r1", &[call(0, "c", "web", "{")]),
        calls("r1", &[call(0, "c", "-search", "}")]),
        end("r1", "tool_calls"),
        DONE.to_owned(),
    ];
    let (out, end) = round(&mut *filter(), &parts);
    assert_eq!(out, parts.concat(), "the client has the call and the end");
    assert!(end.skill_calls.is_empty() && end.has_client_calls, "{end:?}");
    // Whole before its arguments it is ours.
    let parts = [
        calls("r1", &[call(0, "c", "web", "")]),
        calls("r1", &[call(0, "c", "-search", "{}")]),
        parts[2].clone(),
    ];
    assert_eq!(round(&mut *filter(), &parts).1.skill_calls.len(), 1);
}

#[test]
fn thousands_of_calls_in_one_chunk_are_kept_apart() {
    let many: Vec<Value> = (0..20_000)
        .map(|index| call(index, "c", if index % 2 == 0 { OURS } else { "theirs" }, "{}"))
        .collect();
    let (out, end) = round(&mut *filter(), &[calls("r1", &many), end("r1", "tool_calls")]);
    assert_eq!(
        (end.skill_calls.len(), deltas(&out)[0]["tool_calls"][9_999]["index"].as_u64()),
        (10_000, Some(9_999))
    );
}

#[test]
fn thousands_of_calls_take_no_time_for_each_other() {
    assert_linear(2_500, |number| {
        let one = |index| calls("r1", &[call(index, &index.to_string(), "theirs", "{}")]);
        let parts: Vec<String> = (0..number as u64).map(one).collect();
        assert!(round(&mut *filter(), &parts).1.has_client_calls);
    });
}

#[test]
fn a_flat_call_of_ours_is_held_back_and_read() {
    let mut filter = filter();
    let begun = json!({"index": 0, "id": "c1", "name": OURS, "arguments": "{\"q\""});
    let more = json!({"index": 0, "arguments": ":1}"});
    let parts = [calls("r1", &[begun]), calls("r1", &[more]), end("r1", "tool_calls"), DONE.to_owned()];
    let (out, end) = round(&mut *filter, &parts);
    assert_eq!((out.as_str(), end.skill_calls), ("", vec![ours("c1", json!({"q": 1}))]));
}
