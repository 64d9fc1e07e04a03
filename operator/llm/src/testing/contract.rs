//! The contract of [`StreamFilter`], which every dialect passes with random conversations and random damage.
//!
//! A dialect provides a [`Provider`]: it generates rounds as the provider would send them, and reads the client's stream
//! as strictly as an SDK would.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    corruption::{damage, feed_cut, shuffle_events},
    scripts::{anthropic, gemini, openai_chat, openai_responses},
};
use crate::{
    DialectName, OfferedNames, ToolCall, ToolResult,
    confirmation::ConfirmationKey,
    continuation::{Continuation, Seal},
};
use skillet_core::test_rng::{TestRng, cases};

/// Stands in every call of a skill that a script has, and nowhere else.
pub(super) const SECRET: &str = "s3cr3t";

/// One round: the bytes of its stream, and what must come of them.
pub(super) struct Script {
    pub(super) bytes: Vec<u8>,
    /// The whole response, as without streaming.
    pub(super) response: Value,
    /// The parts of the response that go to the client, in order.
    pub(super) client_parts: Vec<Value>,
    /// Names of the skills that the response calls, in order.
    pub(super) skills: Vec<String>,
    pub(super) has_client_calls: bool,
}

/// A client's view of a whole stream.
pub(super) struct View {
    pub(super) parts: Vec<Value>,
    /// The usage object of the whole stream.
    pub(super) usage: Value,
    /// True if the stream says that the client has calls to answer. None if the dialect does not say it.
    pub(super) awaits_client: Option<bool>,
}

/// One dialect's side of the contract.
pub(super) trait Provider {
    /// Names of the skills that the request offered.
    fn offered(&self) -> Vec<&'static str>;

    fn script(&self, rng: &mut TestRng, round: u32) -> Script;

    /// The usage object of a whole response, whose counts add up over rounds.
    fn usage<'a>(&self, response: &'a Value) -> &'a Value {
        &response["usage"]
    }

    /// Reads the client's stream. Panics if an SDK could not read it. `is_changed` says that it differs from the
    /// provider's.
    fn read(&self, bytes: &[u8], is_changed: bool) -> View;

    /// The parts in which results reach the client as text.
    fn result_parts(&self, results: &[ToolResult]) -> Vec<Value>;

    /// Separates a round's parts from those of the rounds before, if only a blank line does.
    fn separate(&self, _before: &[Value], _round: &mut [Value]) {}

    /// Joins parts that a stream may cut anywhere.
    fn join(&self, parts: Vec<Value>) -> Vec<Value> {
        parts
    }

    /// Most bytes of the client's stream for so many bytes of the provider's and of results.
    fn size_limit(&self, given: usize) -> usize;
}

fn providers(rng: &mut TestRng) -> [(DialectName, Box<dyn Provider>); 4] {
    [
        (DialectName::OpenAiChat, Box::new(openai_chat::Chat)),
        (DialectName::OpenAiResponses, Box::new(openai_responses::Responses)),
        (DialectName::Anthropic, Box::new(anthropic::Messages)),
        (DialectName::Gemini, Box::new(gemini::Chunks { is_list: rng.below(3) == 0 })),
    ]
}

/// Puts a blank line before the first text of a round if a round before had text.
pub(super) fn separate_texts(before: &[Value], round: &mut [Value]) {
    let is_text =
        |part: &Value| part["thought"] != true && part["text"].as_str().is_some_and(|text| !text.is_empty());
    if let Some(first) = round.iter_mut().find(|part| is_text(part)).filter(|_| before.iter().any(is_text)) {
        first["text"] = format!("\n\n{}", first["text"].as_str().unwrap()).into();
    }
}

fn offered(provider: &dyn Provider) -> Arc<OfferedNames> {
    Arc::new(provider.offered().into_iter().map(Arc::from).collect())
}

fn results(calls: Vec<ToolCall>) -> Vec<ToolResult> {
    let result = |call: ToolCall| ToolResult {
        id: call.id.replace(SECRET, "result"),
        name: "shown".to_owned(),
        content: "{\"sum\":1}".to_owned(),
        is_error: false,
    };
    calls.into_iter().map(result).collect()
}

fn counts(usage: &Value) -> BTreeMap<String, u64> {
    let fields = usage.as_object().into_iter().flatten();
    fields.map(|(name, count)| (name.clone(), count.as_u64().unwrap())).collect()
}

/// Streams up to four rounds: until no skill is called, or the client is.
fn check_conversation(dialect: DialectName, provider: &dyn Provider, rng: &mut TestRng) {
    let mut filter = dialect.stream_filter(false, offered(provider));
    let (mut out, mut parts, mut total) = (Vec::new(), Vec::new(), BTreeMap::new());
    let last = rng.below(4);
    let (mut round, mut is_changed) = (0, false);
    let carries = rng.below(2) == 0;
    let [before_answer, in_call] = ["before", "call"].map(|text| seal(dialect, text));
    if carries {
        filter.hold_client_calls();
    }
    let has_client_calls = loop {
        let script = provider.script(rng, round);
        let end = feed_cut(filter.as_mut(), &script.bytes, rng, &mut out).unwrap();
        assert_eq!(end.response, script.response);
        assert!(end.skill_calls.iter().map(|call| &call.name).eq(&script.skills));
        assert_eq!(end.has_client_calls, script.has_client_calls);
        assert!(end.awaiting_confirmation.is_empty());
        let mut client_parts = script.client_parts;
        provider.separate(&parts, &mut client_parts);
        parts.extend(client_parts);
        for (field, count) in counts(provider.usage(&script.response)) {
            *total.entry(field).or_default() += count;
        }
        if round == 0 && script.skills.is_empty() {
            assert_eq!(out, script.bytes, "a stream without skill calls passes byte for byte");
        }
        is_changed |= round > 0 || !script.skills.is_empty();
        if script.skills.is_empty() || script.has_client_calls || round == last {
            let mut calls = dialect.dialect().tool_calls(&end.response).into_iter();
            let client_call = calls.find(|call| !script.skills.contains(&call.name));
            if let Some(call) = client_call
                && carries
                && is_changed
            {
                filter.finish_sealed(&in_call, &call.id, &mut out);
                out = unseal_call(dialect, out, &in_call, &call.id);
            } else {
                let results = results(end.skill_calls);
                parts.extend(provider.result_parts(&results));
                filter.finish(&results, &mut out);
            }
            break script.has_client_calls;
        }
        if carries {
            let seal = before_answer.clone();
            filter.put_seal(Box::new(move || Some(seal)));
        }
        round += 1;
    };
    assert!(!String::from_utf8_lossy(&out).contains(SECRET), "the client sees no call of a skill");
    let mut view = provider.read(&out, is_changed);
    let seen = view.parts.len();
    view.parts.retain(|part| !has_seal(part, &before_answer));
    assert!(carries || view.parts.len() == seen);
    assert_eq!(provider.join(view.parts), provider.join(parts));
    assert_eq!(counts(&view.usage), total);
    assert!(view.awaits_client.is_none_or(|awaits| awaits == has_client_calls));
}

fn seal(dialect: DialectName, text: &str) -> Seal {
    let key = ConfirmationKey::new(&[7; 32]).unwrap().continuation_key();
    let continuation = Continuation { turns: vec![text.into()], ..Continuation::default() };
    key.seal("team", dialect, &continuation).unwrap()
}

fn has_seal(part: &Value, seal: &Seal) -> bool {
    let text = part.to_string();
    text.contains(seal.as_str()) || text.contains(&seal.to_bytes_field())
}

/// Checks that the client's first call carries `seal`, and puts back what was in its place.
fn unseal_call(dialect: DialectName, out: Vec<u8>, seal: &Seal, call_id: &str) -> Vec<u8> {
    let text = String::from_utf8(out).unwrap();
    let unsealed = match dialect {
        DialectName::Gemini => {
            let signature = format!("\"thoughtSignature\":\"{}\"", seal.to_bytes_field());
            assert_eq!(text.matches(&signature).count(), 1, "{text}");
            text.replace(&format!(",{signature}"), "")
        }
        _ => text.replace(seal.as_str(), call_id),
    };
    assert_ne!(unsealed, text, "the call carries the seal");
    unsealed.into_bytes()
}

/// Streams damaged rounds. Nothing panics, and the client's stream does not outgrow the provider's.
fn check_damage(dialect: DialectName, provider: &dyn Provider, rng: &mut TestRng) {
    let mut filter = dialect.stream_filter(false, offered(provider));
    let (mut out, mut given) = (Vec::new(), 0);
    for round in 0..3 {
        let mut bytes = provider.script(rng, round).bytes;
        let is_shuffled = rng.below(2) == 0 && shuffle_events(&mut bytes, rng);
        if !is_shuffled || rng.below(2) == 0 {
            damage(&mut bytes, rng);
        }
        given += bytes.len();
        let Ok(end) = feed_cut(filter.as_mut(), &bytes, rng, &mut out) else { continue };
        let results = results(end.skill_calls);
        given += results.len() * 400;
        assert!(dialect.dialect().next_request(&json!({}), &end.response, &results).is_object());
        dialect.dialect().client_response(&end.response, &results);
        if rng.below(2) == 0 {
            filter.finish(&results, &mut out);
        }
    }
    filter.finish(&[], &mut out);
    let limit = provider.size_limit(given);
    assert!(out.len() <= limit, "{} bytes from {given}", out.len());
}

/// Runs a check for every dialect and seed, and names both if it fails.
fn check_all(count: u64, check: impl Fn(DialectName, &dyn Provider, &mut TestRng)) {
    for seed in 0..cases(count) {
        for (dialect, provider) in providers(&mut TestRng::new(seed)) {
            let run = || check(dialect, provider.as_ref(), &mut TestRng::new(seed));
            if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                eprintln!("{dialect:?}, seed {seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

#[test]
fn all_rounds_are_one_well_formed_stream_without_calls_of_skills() {
    check_all(1_500, check_conversation);
}

#[test]
fn damaged_streams_neither_panic_nor_grow() {
    check_all(2_000, check_damage);
}
