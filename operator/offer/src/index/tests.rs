//! The index against the scorer.

use std::collections::BTreeMap;

use serde_json::Value;

use skillet_api::skill::{Invocation, Mode};

use super::*;
use crate::{
    ProviderFamily, Query, RequestFacts, Scorer, Scoring, Signal, SignalKind,
    extra_points::ExtraPoints,
    ranked::{TermWeight, term_weights},
    synthetic,
};
use skillet_core::test_rng::TestRng;

/// Returns the terms of the last turn of a query.
fn terms(index: &Index, query: &Query) -> Vec<TermWeight> {
    let weights = query.questions.last().map(|question| term_weights(question, &[index]));
    weights.and_then(|mut weights| weights.pop()).unwrap_or_default()
}

/// Returns the extra points of the last turn of a query.
fn extra(query: &Query) -> ExtraPoints {
    query.questions.last().map(|question| question.extra.clone()).unwrap_or_default()
}

/// Collects every skill above a threshold.
struct All {
    threshold: i32,
    found: BTreeMap<String, i32>,
}

impl Collector for All {
    fn threshold(&self) -> i32 {
        self.threshold
    }

    fn push(&mut self, entry: &IndexedSkill, score: i32) {
        let earlier = self.found.insert(entry.candidate.name.to_string(), score);
        assert_eq!(earlier, None, "{} was pushed twice", entry.candidate.name);
    }
}

fn search(
    index: &Index,
    scoring: &Scoring,
    query: &Query,
    scratch: &mut Scratch,
    threshold: i32,
) -> BTreeMap<String, i32> {
    let mut all = All { threshold, found: BTreeMap::new() };
    let terms = terms(index, query);
    let search = Search { weights: &scoring.weights, query, terms: &terms, extra: &extra(query) };
    index.search(search, scratch, &mut all);
    all.found
}

fn expected<'a>(
    skills: impl IntoIterator<Item = &'a Arc<Candidate>>,
    index: &Index,
    scoring: &Scoring,
    query: &Query,
    threshold: i32,
) -> BTreeMap<String, i32> {
    let terms = terms(index, query);
    let extra = extra(query);
    let scorer = Scorer::with_terms(scoring.weights, query, &terms, Some(&extra));
    let fitting = skills.into_iter().filter(|skill| skill.eligibility() == Eligibility::OnMatch);
    fitting
        .map(|skill| (skill.name.to_string(), scorer.score(skill)))
        .filter(|(_, score)| *score >= threshold)
        .collect()
}

/// Odd names, tags and texts from a few letters, so that everything matches somewhere.
fn odd_text(rng: &mut TestRng, longest: u32) -> String {
    rng.text("aabBk-_ 12.é网页", longest)
}

fn odd_candidate(rng: &mut TestRng, name: &str) -> Candidate {
    let odd_tags = ["openai", "Claude", "gemini", "background", "back", "low_max", "", "the", "a b"];
    let tags: Vec<String> = (0..rng.below(5))
        .map(|_| match rng.below(2) {
            0 => odd_tags[rng.below(9) as usize].to_owned(),
            _ => odd_text(rng, 3),
        })
        .collect();
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    Candidate {
        mode: [Mode::Auto, Mode::Auto, Mode::Auto, Mode::On, Mode::Off][rng.below(5) as usize],
        enabled: rng.below(8) > 0,
        invocation: [Invocation::Auto, Invocation::Hybrid, Invocation::Manual][rng.below(3) as usize],
        ..synthetic::candidate(name, &odd_text(rng, 30), &tags)
    }
}

fn odd_query(rng: &mut TestRng, scoring: &Scoring) -> Query {
    let texts: Vec<String> = (0..rng.below(4)).map(|_| odd_text(rng, 60)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let facts = RequestFacts {
        provider: [
            ProviderFamily::OpenAi,
            ProviderFamily::Anthropic,
            ProviderFamily::Google,
            ProviderFamily::Other,
        ][rng.below(4) as usize],
        model: "gpt-ab",
        format: ["", "header_background", "low_max_tokens", "abc background aab"][rng.below(4) as usize],
        texts: &texts,
        ..RequestFacts::default()
    };
    let mut query = scoring.query(&facts);
    for question in &mut query.questions {
        for _ in 0..rng.below(20) {
            let namespace = ["own", "own", "other"][rng.below(3) as usize];
            let points = i32::try_from(rng.below(9)).unwrap() - 4;
            let signal = Signal { kind: SignalKind::Learned, text: String::new(), points };
            question.extra.add((namespace.into(), odd_text(rng, 2).into()), signal);
        }
    }
    query
}

#[test]
fn after_changes_the_scores_equal_those_of_the_scorer() {
    for (seed, scoring) in [(1, Scoring::default()), (2, Scoring::words()), (3, Scoring::ranked())] {
        let mut rng = TestRng::new(seed);
        let mut scratch = Scratch::default();
        let mut index = Index::new(scoring.matching);
        let mut skills: BTreeMap<String, Arc<Candidate>> = BTreeMap::new();
        for round in 0..6_000 {
            let name = odd_text(&mut rng, 4);
            if rng.below(4) == 0 {
                skills.remove(&name);
                index.apply(Change::Remove(name.as_str().into()));
            } else {
                let candidate = Arc::new(odd_candidate(&mut rng, &name));
                skills.insert(name, candidate.clone());
                index.apply(Change::Upsert(candidate));
            }
            assert_eq!(index.len(), skills.len());
            if round % 40 == 0 {
                let query = odd_query(&mut rng, &scoring);
                let threshold = i32::try_from(rng.below(12)).unwrap() - 3;
                let expected = expected(skills.values(), &index, &scoring, &query, threshold);
                assert_eq!(
                    search(&index, &scoring, &query, &mut scratch, threshold),
                    expected,
                    "{round} {query:?}"
                );
            }
        }
        for name in skills.keys() {
            index.apply(Change::Remove(name.as_str().into()));
        }
        assert!(index.is_empty() && index.terms.is_bare() && index.always.is_empty());
    }
}

#[test]
fn common_words_and_many_blocks_change_no_score() {
    let skills = synthetic::corpus(1_200, 7);
    for scoring in [Scoring::default(), Scoring::words(), Scoring::ranked()] {
        let index = Index::build(scoring.matching, skills.iter().cloned());
        let mut scratch = Scratch::default();
        for seed in 0..5 {
            let query = corpus_query(&scoring, seed);
            for threshold in [0, 8, 15, 150] {
                let expected = expected(&skills, &index, &scoring, &query, threshold);
                assert_eq!(
                    search(&index, &scoring, &query, &mut scratch, threshold),
                    expected,
                    "{seed} {threshold}"
                );
            }
        }
    }
}

#[test]
fn other_weights_change_the_scores_of_index_and_scorer_alike() {
    let skills = synthetic::corpus(600, 3);
    let mut scoring = Scoring::default();
    scoring.weights.description_word = -2;
    scoring.weights.provider_mismatch = 5;
    let index = Index::build(scoring.matching, skills.iter().cloned());
    let query = corpus_query(&scoring, 1);
    for threshold in [-50, -4, 0, 9] {
        let expected = expected(&skills, &index, &scoring, &query, threshold);
        assert_eq!(
            search(&index, &scoring, &query, &mut Scratch::default(), threshold),
            expected,
            "{threshold}"
        );
    }
}

#[test]
fn a_query_of_another_match_mode_is_answered_in_its_mode() {
    let skills = synthetic::corpus(200, 3);
    let index = Index::build(MatchMode::Substring, skills.iter().cloned());
    let words = Scoring::words();
    let query = corpus_query(&words, 1);
    let found = search(&index, &words, &query, &mut Scratch::default(), 3);
    assert_eq!(found, expected(&skills, &index, &words, &query, 3));
    assert_eq!(index.matching(), MatchMode::Substring);
}

#[test]
fn of_several_versions_the_newest_offerable_one_is_kept() {
    let version = |version: &str, enabled: bool| {
        let candidate = synthetic::candidate("a", "", &[]);
        Arc::new(Candidate { version: version.into(), enabled, ..candidate })
    };
    let check = |versions: &[(&str, bool)], expected: &str| {
        let index =
            Index::build(MatchMode::Words, versions.iter().map(|(text, enabled)| version(text, *enabled)));
        assert_eq!(&*index.get("a").unwrap().version, expected, "{versions:?}");
        assert_eq!(index.candidates().count(), 1);
    };
    check(&[("1.9.0", true), ("1.10.0", true), ("1.2.0", true)], "1.10.0");
    check(&[("1.0.0", true), ("2.0.0", false)], "1.0.0");
    check(&[("1.0.0", false), ("2.0.0", false)], "2.0.0");
    check(&[("odd", true), ("0.0.1", true)], "0.0.1");
    assert!(Index::build(MatchMode::Words, []).get("a").is_none());
}

fn corpus_query(scoring: &Scoring, seed: u64) -> Query {
    let (texts, tools) = synthetic::request(seed);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let tools: Vec<&Value> = tools.iter().collect();
    scoring.query(&RequestFacts {
        provider: ProviderFamily::OpenAi,
        model: "gpt-4o",
        format: "openai",
        client_tools: &tools,
        texts: &texts,
        ..RequestFacts::default()
    })
}

#[test]
fn an_index_knows_whether_it_offers_anything_and_whether_a_person_confirms() {
    let mut index = Index::new(MatchMode::Ranked);
    let with = |mode: Mode, invocation: Invocation| {
        Change::Upsert(Arc::new(Candidate { mode, invocation, ..synthetic::candidate("a", "Counts.", &[]) }))
    };
    for (change, offers_nothing, has_hybrids) in [
        (with(Mode::Auto, Invocation::Auto), false, false),
        (with(Mode::On, Invocation::Hybrid), false, true),
        (with(Mode::Auto, Invocation::Hybrid), false, true),
        (with(Mode::Off, Invocation::Hybrid), true, false),
        (with(Mode::Auto, Invocation::Hybrid), false, true),
        (with(Mode::Auto, Invocation::Manual), true, false),
        (with(Mode::On, Invocation::Hybrid), false, true),
        (Change::Remove("a".into()), true, false),
    ] {
        index.apply(change.clone());
        assert_eq!(
            (index.offers_nothing(), index.has_hybrids()),
            (offers_nothing, has_hybrids),
            "{change:?}"
        );
    }
}
