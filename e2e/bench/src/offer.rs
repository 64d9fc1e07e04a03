//! What it costs to choose the skills of one model request, and to follow a change. No cluster is needed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;
use skillet_core::offer::{
    Ask, Candidate, Change, Index, Policy, Provider, RequestFacts, Scratch, Switch, pick, synthetic,
};

use crate::figure::Figure;

const SEED: u64 = 12_345;
const REQUESTS: u64 = 2_000;
const CHANGES: usize = 1_000;
const SIZES: [u32; 3] = [1_000, 10_000, 100_000];

/// Times of one index.
struct Measured {
    offers: Vec<Duration>,
    changes: Vec<Duration>,
    build: Duration,
}

/// Chooses for requests of some 2 KB among made-up skills, nearly all of which match something.
pub(crate) fn measure() -> Vec<Figure> {
    let mut figures = Vec::new();
    for size in SIZES {
        let Measured { mut offers, mut changes, build } = of(size);
        let (p50, p99) = (at(&mut offers, 50), at(&mut offers, 99));
        let change = at(&mut changes, 50);
        println!("{size:>7} skills: offer p50 {p50:?}, p99 {p99:?}; one change {change:?}; build {build:?}");
        let requests = offers.len();
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
    }
    figures
}

fn of(size: u32) -> Measured {
    let policy = Policy::default();
    let skills: Vec<Arc<Candidate>> = synthetic::corpus(size, SEED);
    let start = Instant::now();
    let mut index = Index::build(policy.reading, skills.iter().cloned());
    let build = start.elapsed();
    let mut scratch = Scratch::default();
    let offers = (0..REQUESTS).map(|seed| offer(&policy, &index, seed, &mut scratch)).collect();
    let changes = skills.iter().take(CHANGES).map(|skill| {
        let start = Instant::now();
        index.apply(Change::Upsert(skill.clone()));
        start.elapsed()
    });
    let changes = changes.collect();
    Measured { offers, changes, build }
}

fn offer(policy: &Policy, index: &Index, seed: u64, scratch: &mut Scratch) -> Duration {
    let (texts, tools) = synthetic::request(seed);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let tools: Vec<&Value> = tools.iter().collect();
    let facts = RequestFacts {
        provider: Provider::OpenAi,
        model: "gpt-4o",
        source_format: "openai",
        target_format: "openai",
        client_tools: &tools,
        texts: &texts,
        ..RequestFacts::default()
    };
    let start = Instant::now();
    let query = policy.query(&facts);
    let ask =
        Ask { query: &query, client_tools: &[], switch: &Switch::All, token_budget: None, can_ask: true };
    let offer = pick(policy, &[index], &ask, scratch);
    let took = start.elapsed();
    std::hint::black_box(offer);
    took
}

fn at(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times.get(times.len() * percent / 100).copied().unwrap_or_default()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
