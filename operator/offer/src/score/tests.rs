//! Scores by the table of points, in both match modes.

use serde_json::json;

use super::*;
use crate::{ProviderFamily, RequestFacts, Scoring, synthetic::candidate};

fn score(scoring: &Scoring, skill: (&str, &str, &[&str]), facts: RequestFacts<'_>) -> i32 {
    let (name, description, tags) = skill;
    let query = scoring.query(&facts);
    Scorer::new(scoring.weights, &query).score(&candidate(name, description, tags))
}

/// Checks the points of a skill in `Substring` mode and in `Words` mode.
fn check(skill: (&str, &str, &[&str]), text: &str, substring: i32, words: i32) {
    let facts = RequestFacts { texts: &[text], ..RequestFacts::default() };
    let scores = (score(&Scoring::default(), skill, facts), score(&Scoring::words(), skill, facts));
    assert_eq!(scores, (substring, words), "{skill:?} in {text:?}");
}

#[test]
fn a_name_counts_as_a_whole_and_by_its_words() {
    check(("org/tool-x", "", &[]), "use org/tool-x please", 6 + 2 + 2, 6 + 2);
    check(("code-review", "", &[]), "do a code review", 2 + 2, 6 + 2 + 2);
    check(("issueSearch", "", &[]), "run issuesearch", 6, 0);
    check(("issueSearch", "", &[]), "search the issue", 2 + 2, 2 + 2);
    check(("search", "", &[]), "research", 6, 0);
    check(("ab", "", &[]), "cab", 6, 0);
}

#[test]
fn a_tag_given_twice_counts_twice() {
    check(("zzz", "", &["GitHub"]), "github", 3, 3);
    check(("zzz", "", &["web", "web", ""]), "web", 6, 6);
    check(("zzz", "", &["web search"]), "do a web search", 3, 3);
    check(("zzz", "", &["k"]), "kubernetes", 3, 0);
    check(("zzz", "", &["git"]), "legitimate", 3, 0);
    check(("zzz", "", &["网页"]), "网页搜索", 3, 3);
    check(("zzz", "", &["café"]), "CAFE", 0, 3);
}

#[test]
fn each_word_of_the_description_counts_once() {
    check(("zzz", "deploy docker images", &[]), "deploy docker images now", 3, 3);
    check(("zzz", "deploy deploy", &[]), "deploy deploy", 1, 1);
    check(("zzz", "the file and the disk", &[]), "the disk and the car", 3, 1);
    check(("zzz", "网页搜索工具", &[]), "网页搜索工具", 0, 5);
    check(("zzz", "поиск сети", &[]), "Поиск", 0, 1);
}

#[test]
fn tags_for_a_provider_count_once_for_or_against() {
    for (tags, provider, points) in [
        (&["gpt"][..], ProviderFamily::OpenAi, 2),
        (&["gpt", "openai", "claude"], ProviderFamily::OpenAi, 2),
        (&["Claude", "anthropic"], ProviderFamily::OpenAi, -2),
        (&["gemini"], ProviderFamily::Other, -2),
        (&["gpt-4"], ProviderFamily::OpenAi, 0),
    ] {
        for scoring in [Scoring::default(), Scoring::words()] {
            let facts = RequestFacts { provider, ..RequestFacts::default() };
            assert_eq!(score(&scoring, ("zzz", "", tags), facts), points, "{tags:?} {provider:?}");
        }
    }
}

#[test]
fn substring_mode_also_searches_the_clients_tools() {
    let tool = json!({"type": "function", "function": {"name": "x", "parameters": {"type": "object"}}});
    let facts = RequestFacts { client_tools: &[&tool], texts: &["hi"], ..RequestFacts::default() };
    let skill = ("function", "type name parameters", &[][..]);
    assert_eq!(score(&Scoring::default(), skill, facts), 6 + 2 + 3);
    assert_eq!(score(&Scoring::words(), skill, facts), 0);
}

#[test]
fn signals_list_every_match() {
    let scoring = Scoring::words();
    let facts = RequestFacts {
        provider: ProviderFamily::OpenAi,
        texts: &["Search the web"],
        ..RequestFacts::default()
    };
    let query = scoring.query(&facts);
    let skill = candidate("web-prompt", "Searches the web", &["Search", "openai", "system prompt"]);
    let signals = Scorer::new(scoring.weights, &query).signals(&skill);
    let listed: Vec<(SignalKind, &str, i32)> =
        signals.iter().map(|signal| (signal.kind, signal.text.as_str(), signal.points)).collect();
    let expected = [
        (SignalKind::NameWord, "web", 2),
        (SignalKind::Tag, "search", 3),
        (SignalKind::DescriptionWord, "web", 1),
        (SignalKind::Provider, "openai", 2),
    ];
    assert_eq!(listed, expected);
}
