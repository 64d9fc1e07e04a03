//! All events of a call are found, by index or by id, and its name, with its namespace, tells whether it is ours.

use super::*;

#[test]
fn an_end_event_may_be_the_only_one_to_name_a_call() {
    let own = call("b", "own", "{}");
    let mut filter = filter();
    let (seen, end) =
        round(&mut *filter, &stream(&[created("r1"), completed("r1", &[weather(), own.clone()])]));
    assert_eq!((seen.len(), end.skill_calls.len(), end.has_client_calls), (0, 1, true));
    assert_eq!(finish(&mut *filter, &[])[1]["response"]["output"], json!([own]));
}

#[test]
fn an_end_without_items_is_filled_from_the_events() {
    let text = message("m", "x");
    let mut parts = [vec![created("r1")], message_events(0, &text), call_events(1, &weather())].concat();
    parts.push(completed("r1", &[]));
    // Arguments that only the pieces tell are found too.
    parts[7]["item"]["arguments"] = json!("");
    let (_, end) = round(&mut *filter(), &stream(&parts));
    assert_eq!(end.response["output"], json!([text, weather()]));
    assert_eq!(end.skill_calls[0].arguments, Arguments::Json(json!({"city": "Rome"})));
}

#[test]
fn a_call_without_a_name_waits_until_it_has_one() {
    for (name, is_ours) in [("weather", true), ("own", false)] {
        let item = call("a", name, "{}");
        let mut parts = call_events(0, &item);
        parts[0]["item"]["name"] = json!("");
        parts.insert(0, created("r1"));
        parts.push(completed("r1", &[item]));
        let (seen, end) = round(&mut *filter(), &stream(&parts));
        assert_eq!((end.skill_calls.len() == 1, end.has_client_calls), (is_ours, !is_ours));
        assert_eq!(seen.len(), if is_ours { 0 } else { 6 });
        let numbers = seen.iter().map(|event| event["sequence_number"].as_u64().unwrap());
        assert!(numbers.eq(0..seen.len() as u64));
    }
}

#[test]
fn ids_that_change_with_every_event_are_followed_by_index() {
    let mut parts =
        [vec![created("r1")], call_events(0, &weather()), vec![completed("r1", &[weather()])]].concat();
    for (number, event) in parts.iter_mut().enumerate() {
        for pointer in ["/item/id", "/item_id", "/response/output/0/id"] {
            event.pointer_mut(pointer).into_iter().for_each(|id| *id = json!(format!("fc_{number}")));
        }
    }
    let (seen, end) = round(&mut *filter(), &stream(&parts));
    assert_eq!((seen.len(), end.skill_calls.len()), (0, 1));
    assert_eq!(end.response["output"].as_array().unwrap().len(), 1);
}

#[test]
fn a_late_event_of_our_call_does_not_pass() {
    let mut parts =
        [vec![created("r1")], call_events(0, &weather()), vec![completed("r1", &[weather()])]].concat();
    parts.swap(3, 4);
    parts[4].as_object_mut().unwrap().remove("item_id");
    let (seen, end) = round(&mut *filter(), &stream(&parts));
    assert_eq!((seen.len(), end.skill_calls.len()), (0, 1));
}

#[test]
fn indexes_that_are_always_zero_are_followed_by_id() {
    let own = call("b", "own", "{}");
    let parts = [
        vec![created("r1")],
        call_events(0, &own),
        call_events(0, &weather()),
        vec![completed("r1", &[own.clone(), weather()])],
    ];
    let (seen, end) = round(&mut *filter(), &stream(&parts.concat()));
    assert_eq!((seen.len(), end.skill_calls.len(), end.has_client_calls), (5, 1, true));
    assert_eq!(end.response["output"], json!([own, weather()]));
}

#[test]
fn a_function_in_a_namespace_is_the_clients() {
    let mut item = weather();
    item["namespace"] = json!("crm");
    let parts =
        [vec![created("r1")], call_events(0, &item), vec![completed("r1", std::slice::from_ref(&item))]];
    let (seen, end) = round(&mut *filter(), &stream(&parts.concat()));
    assert_eq!((seen.len(), end.skill_calls.len(), end.has_client_calls), (6, 0, true));
}
