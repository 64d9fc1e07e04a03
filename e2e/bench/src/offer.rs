//! The cost to offer skills to one model request, and to follow a change. No cluster is needed.
//!
//! An offer is all that the gateway does between a request as JSON and the request with tools: text and tools are read
//! out of it, skills are scored and chosen, named, and put in as tools.

mod chosen;
mod prompt_cache;

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use serde_json::{Value, json};
use skillet_llm::DialectName;
use skillet_offer::{
    Candidate, Change, Index, MatchMode, Scoring, Scratch,
    synthetic::{self, ToyModel},
};

use self::chosen::{MODEL, chosen};
use crate::{
    figure::Figure,
    plot::{self, Series},
    samples::Samples,
};

const SEED: u64 = 12_345;
const REQUESTS: u64 = 2_000;
const CHANGES: usize = 1_000;
const SIZES: [u32; 5] = [1_000, 3_000, 10_000, 30_000, 100_000];
/// Skills that match, among however many there are.
const MATCHING: u32 = 1_000;

/// Times of one index.
struct Measured {
    offers: Samples,
    changes: Samples,
    build: Duration,
}

/// Offers to requests of some 2 KB among generated skills: first such that nearly all match something, then such that
/// always the same number do. `plotted` is where the growth is drawn, if anywhere.
pub(crate) fn measure(plotted: Option<&Path>) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut all_match = Vec::new();
    for size in SIZES {
        let Measured { offers, changes, build } = of(size);
        let (p50, p99, change) = (offers.median(), offers.quantile(0.99), changes.median());
        println!("{size:>7} skills: offer p50 {p50:?}, p99 {p99:?}; one change {change:?}; build {build:?}");
        let requests = offers.number();
        match size {
            10_000 => figures.extend([
                Figure::lower("offer_10k_p50_ms", ms(p50), 0.1, "ms", requests),
                Figure::lower("offer_10k_p99_ms", ms(p99), 0.5, "ms", requests),
                Figure::lower("index_change_10k_ms", ms(change), 5.0, "ms", CHANGES),
                Figure::lower("index_build_10k_ms", ms(build), 500.0, "ms", 1),
            ]),
            100_000 => figures.push(Figure::lower("offer_100k_p99_ms", ms(p99), 2.0, "ms", requests)),
            _ => {}
        }
        all_match.push((f64::from(size), p50.as_secs_f64() * 1e6));
    }
    let embedded = with_embeddings();
    let (p50, p99) = (embedded.median(), embedded.quantile(0.99));
    println!("  10000 skills with vectors: offer p50 {p50:?}, p99 {p99:?}");
    let requests = embedded.number();
    figures.extend([
        Figure::lower("offer_embeddings_10k_p50_ms", ms(p50), 1.0, "ms", requests),
        Figure::lower("offer_embeddings_10k_p99_ms", ms(p99), None, "ms", requests),
    ]);
    let long = of_long_conversations();
    println!("  10000 skills, conversations of 200 KB: offer p50 {:?}", long.median());
    figures.push(Figure::lower("offer_200kb_p50_ms", ms(long.median()), 2.0, "ms", long.number()));
    let same_match = growth();
    for (size, micros) in &same_match {
        println!("{size:>7} skills, of which {MATCHING} match: offer p50 {micros:.1} us");
    }
    if let (Some((_, small)), Some((_, large))) = (same_match.first(), same_match.last()) {
        let requests = usize::try_from(REQUESTS)?;
        figures.push(Figure::lower("offer_growth_100x", large / small, 100.0, "ratio", requests));
    }
    figures.extend(prompt_cache::measure());
    if let Some(path) = plotted {
        let same = Series { name: "1 000 match, however many there are", points: &same_match };
        let all = Series { name: "nearly all match", points: &all_match };
        let title = "Time of one offer (median, us) by number of skills";
        fs::write(path, plot::svg(title, &[all, same]))
            .with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(figures)
}

fn of(size: u32) -> Measured {
    let scoring = Scoring::ranked();
    let skills: Vec<Arc<Candidate>> = synthetic::corpus(size, SEED);
    let start = Instant::now();
    let mut index = Index::build(scoring.matching, skills.iter().cloned());
    let build = start.elapsed();
    let mut scratch = Scratch::default();
    let offers = (0..REQUESTS).map(|seed| offer(&scoring, &index, request(seed), &mut scratch).1);
    let offers = offers.collect();
    let changes = skills.iter().take(CHANGES).map(|skill| {
        let start = Instant::now();
        index.apply(Change::Upsert(skill.clone()));
        start.elapsed()
    });
    let changes = changes.collect();
    Measured { offers, changes, build }
}

/// Times of offers with a static embedding model. Each request is new to it.
fn with_embeddings() -> Samples {
    const DIMENSIONS: usize = 256;
    let (scoring, model) = (Scoring::ranked(), Arc::new(ToyModel::new(&[], DIMENSIONS)));
    let skills = synthetic::corpus(10_000, SEED);
    let skills = skills.iter().map(|skill| model.add_to(skill));
    let index = Index::build(scoring.matching, skills).with_model(Some(model.clone()));
    let mut scratch = Scratch::default();
    (0..REQUESTS).map(|seed| offer(&scoring, &index, request(seed), &mut scratch).1).collect()
}

/// Times of offers to conversations of some 200 KB: each turn of the user matches nearly all skills.
fn of_long_conversations() -> Samples {
    const CONVERSATIONS: u64 = 200;
    let scoring = Scoring::ranked();
    let index = Index::build(scoring.matching, synthetic::corpus(10_000, SEED));
    let mut scratch = Scratch::default();
    let requests = (0..CONVERSATIONS).map(|number| conversation(number * 1_000));
    requests.map(|request| offer(&scoring, &index, request, &mut scratch).1).collect()
}

/// A chat request of 200 KB: turns of the user with the results of tools behind each.
fn conversation(seed: u64) -> Value {
    const BYTES: usize = 200 * 1024;
    let (mut messages, mut bytes) = (Vec::new(), 0);
    for number in seed.. {
        if bytes >= BYTES {
            break;
        }
        let (texts, _) = synthetic::request(number);
        let text = texts.join("\n");
        let result = text.repeat(4);
        bytes += text.len() + result.len();
        messages.push(json!({ "role": "user", "content": text }));
        messages.push(json!({ "role": "tool", "tool_call_id": "read", "content": result }));
    }
    json!({ "model": MODEL, "messages": messages, "tools": synthetic::request(seed).1 })
}

/// Number of skills and median time in microseconds, where always as many match. Sizes take turns, request by request.
fn growth() -> Vec<(f64, f64)> {
    let scoring = Scoring::ranked();
    let mut sizes: Vec<(u32, Index, Scratch, Samples)> = SIZES
        .map(|size| (size, among(size, scoring.matching), Scratch::default(), Samples::default()))
        .into();
    for seed in 0..REQUESTS {
        for (_, index, scratch, samples) in &mut sizes {
            samples.add(offer(&scoring, index, request(seed), scratch).1);
        }
    }
    sizes
        .iter()
        .map(|(size, _, _, samples)| (f64::from(*size), samples.median().as_secs_f64() * 1e6))
        .collect()
}

/// An index in which as many skills match as in every other.
fn among(size: u32, matching: MatchMode) -> Index {
    let unrelated = synthetic::unrelated(size - MATCHING, SEED);
    Index::build(matching, synthetic::corpus(MATCHING, SEED).into_iter().chain(unrelated))
}

/// A chat request of some 2 KB.
fn request(seed: u64) -> Value {
    let (texts, tools) = synthetic::request(seed);
    let roles = ["system", "user"];
    let messages: Value =
        texts.iter().zip(roles).map(|(text, role)| json!({ "role": role, "content": text })).collect();
    json!({ "model": MODEL, "messages": messages, "tools": tools })
}

/// The request with its tools, and how long that took.
fn offer(scoring: &Scoring, index: &Index, mut request: Value, scratch: &mut Scratch) -> (Value, Duration) {
    let start = Instant::now();
    let tools = chosen(scoring, index, &request, scratch);
    // A list of tools takes more tools.
    DialectName::OpenAiChat.dialect().append_tools(&mut request, &tools).ok();
    let took = start.elapsed();
    (request, took)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tools that 50 requests are offered by each index.
    fn offers(scoring: &Scoring) -> Vec<[Vec<Value>; 2]> {
        let indexes = [among(1_000, scoring.matching), among(3_000, scoring.matching)];
        let mut scratch = Scratch::default();
        let mut tools = |index: &Index, seed: u64| {
            let offered = offer(scoring, index, request(seed), &mut scratch).0;
            offered["tools"].as_array().unwrap().clone()
        };
        (0..50).map(|seed| indexes.each_ref().map(|index| tools(index, seed))).collect()
    }

    #[test]
    fn a_long_conversation_has_its_bytes_in_some_turns() {
        let conversation = conversation(0);
        let bytes = conversation["messages"].to_string().len();
        assert!((200 * 1024..260 * 1024).contains(&bytes), "{bytes}");
        assert!((10..40).contains(&(conversation["messages"].as_array().unwrap().len() / 2)));
    }

    #[test]
    fn a_request_is_offered_as_many_skills_whoever_else_is_there() {
        // Two of the client's, and as many as are offered at most. How rare a word is depends on the others.
        for of_both in offers(&Scoring::ranked()) {
            assert_eq!(of_both.map(|tools| tools.len()), [7, 7]);
        }
    }

    #[test]
    fn a_request_is_offered_the_same_skills_by_substrings() {
        for [of_few, of_many] in offers(&Scoring::default()) {
            assert_eq!(of_few, of_many);
        }
    }
}
