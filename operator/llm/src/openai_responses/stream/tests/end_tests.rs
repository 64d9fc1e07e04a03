//! A stream that fails, breaks off or grows too large runs nothing; one that ends early keeps its kind of end.

use super::*;

#[test]
fn a_failure_passes_and_nothing_is_run() {
    for kind in ["response.failed", "error"] {
        let mut parts = [vec![created("r1")], call_events(0, &weather())].concat();
        parts.push(match kind {
            "error" => json!({"type": "error", "code": "x", "message": "y"}),
            _ => end(kind, "r1", &[weather()]),
        });
        let mut filter = filter();
        let (seen, end) = round(&mut *filter, &stream(&parts));
        assert_eq!(kinds(&seen), ["created", kind.trim_start_matches("response.")]);
        assert_eq!((&seen[1]["sequence_number"], end.skill_calls.len()), (&json!(1), 0));
        assert!(finish(&mut *filter, &[]).is_empty());
    }
}

#[test]
fn an_incomplete_response_keeps_its_kind_of_end() {
    let parts = [
        vec![created("r1")],
        call_events(0, &weather()),
        vec![end("response.incomplete", "r1", &[weather()])],
    ];
    let mut filter = filter();
    let (_, end) = round(&mut *filter, &stream(&parts.concat()));
    assert_eq!(end.skill_calls.len(), 1);
    assert_eq!(kinds(&finish(&mut *filter, &[])), ["created", "incomplete"]);
}

#[test]
fn a_stream_that_breaks_off_after_a_call_of_ours_is_truncated() {
    let whole = [vec![created("r1")], call_events(0, &weather())].concat();
    for cut in 2..=whole.len() {
        let (mut filter, mut out) = (filter(), Vec::new());
        filter.feed(&stream(&whole[..cut]), &mut out).unwrap();
        assert_eq!(filter.end_round(&mut out), Err(StreamError::Truncated), "after {cut} events");
    }
    let (seen, end) = round(&mut *filter(), &stream(&whole[..1]));
    assert_eq!((seen.len(), end.response["id"].as_str()), (1, Some("r1")));
}

#[test]
fn a_call_larger_than_any_response_is_refused() {
    let (mut filter, mut out) = (filter(), Vec::new());
    let delta = json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_a", "delta": "x".repeat(1 << 20)});
    filter.feed(&stream(&call_events(0, &weather())[..1]), &mut out).unwrap();
    let refused = (0..70).find_map(|_| filter.feed(&stream(std::slice::from_ref(&delta)), &mut out).err());
    assert!(matches!(refused, Some(StreamError::LongRound { .. })));
    assert!(out.is_empty());
}
