//! Lessons of offers and calls, their fading, and their effect on offers.

use std::sync::Arc;

use super::*;
use crate::{
    MatchMode, RequestFacts, Scoring, Scratch, Selection, explain, select,
    synthetic::{self, candidate},
};

/// A word of a long text says little.
const LONG: &str = "Resizes a picture to a width in pixels, keeps the ratio of both sides, writes the format of the \
    original file and returns the size in bytes, the width, the height and the quality that was chosen for it";

const DAY: u32 = 20_000;

fn terms(list: &[&str]) -> Vec<Arc<str>> {
    list.iter().map(|term| Arc::from(*term)).collect()
}

/// Learns from calls of a skill of namespace `own`, each with these terms.
fn taught(name: &str, calls: u32, list: &[&str]) -> LearnedUse {
    let (mut seen, mut learned) = (ObservedUse::default(), LearnedUse::default());
    (0..calls).for_each(|_| seen.call("own", name, &terms(list)));
    seen.teach(&mut learned, DAY);
    learned
}

fn json(learned: &LearnedUse) -> String {
    serde_json::to_string(learned).unwrap()
}

/// Returns the offered skills with their points, the best first.
fn offered(learned: &LearnedUse, turns: &[&str]) -> Vec<(String, i32)> {
    with_selection(learned, turns, |scoring, indexes, selection| {
        let offer = select(scoring, indexes, selection, &mut Scratch::default());
        offer.ranked().iter().map(|of| (of.skill.name.to_string(), of.score.unwrap())).collect()
    })
}

fn with_selection<T>(
    learned: &LearnedUse,
    turns: &[&str],
    run: impl FnOnce(&Scoring, &[&Index], &Selection<'_>) -> T,
) -> T {
    let skills = [
        candidate("resizer", LONG, &[]),
        candidate("colors", "Filters colors", &[]),
        candidate("ledger", "Books a payment", &[]),
    ];
    let scoring = Scoring::ranked();
    let index = Index::build(scoring.matching, skills.into_iter().map(Arc::new));
    let user_turns: Vec<Vec<&str>> = turns.iter().map(|turn| vec![*turn]).collect();
    let query = scoring.query(&RequestFacts { user_turns: &user_turns, ..RequestFacts::default() });
    let query = query.with_learned(&Learned::new(learned, DAY), &[&index]);
    let selection = synthetic::selection(&query);
    run(&scoring, &[&index], &selection)
}

#[test]
fn a_term_is_learned_from_its_second_call_on_and_fades() {
    assert_eq!(json(&taught("resize", 1, &["shrink"])), "{}");
    let learned = taught("resize", 2, &["shrink", "photo"]);
    assert_eq!(json(&learned), r#"{"own/resize":{"day":20000,"terms":{"photo":2.0,"shrink":2.0}}}"#);
    let mut later = learned.clone();
    let mut seen = ObservedUse::default();
    seen.call("own", "resize", &terms(&["photo"]));
    seen.teach(&mut later, DAY + 30);
    assert_eq!(json(&later), r#"{"own/resize":{"day":20030,"terms":{"photo":2.0,"shrink":1.0}}}"#);
    ObservedUse::default().teach(&mut later, DAY + 300);
    assert_eq!(json(&later), "{}", "nothing is left after ten months");
}

#[test]
fn a_term_of_a_single_call_waits_for_another_one() {
    let (mut seen, mut learned) = (ObservedUse::default(), LearnedUse::default());
    seen.call("own", "resize", &terms(&["shrink"]));
    seen.teach(&mut learned, DAY);
    assert!(learned.is_empty() && !seen.is_new());
    let mut later = ObservedUse::default();
    later.call("own", "resize", &terms(&["shrink"]));
    seen.add(later);
    assert!(seen.is_new());
    seen.teach(&mut learned, DAY);
    assert!(json(&learned).contains("shrink") && seen == ObservedUse::default());
}

#[test]
fn the_state_has_a_bound() {
    let (mut seen, mut learned) = (ObservedUse::default(), LearnedUse::default());
    for round in 0..3 {
        for skill in 0..400 {
            let list: Vec<Arc<str>> = (0..20).map(|term| format!("t{round}x{term}").into()).collect();
            (0..2).for_each(|_| seen.call("own", &format!("s{skill}"), &list));
        }
        seen.teach(&mut learned, DAY);
    }
    assert_eq!(learned.0.len(), MAX_SKILLS);
    assert!(learned.0.values().all(|skill| skill.terms.len() == MAX_TERMS));
    assert!(json(&learned).len() < 256 * 1024, "{}", json(&learned).len());
}

#[test]
fn learned_terms_strengthen_a_skill_that_the_text_nearly_reaches() {
    let none = LearnedUse::default();
    let question = ["Shrink the picture"];
    assert_eq!(offered(&none, &question).len(), 0, "{:?}", offered(&none, &question));
    let learned = taught("resizer", 4, &["shrink"]);
    let found = offered(&learned, &question);
    assert_eq!((found.len(), found[0].0.as_str()), (1, "resizer"), "{found:?}");
    // Without any word of the skill, learned terms do not suffice.
    assert!(offered(&taught("resizer", 99, &["shrink", "smaller"]), &["shrink smaller"]).is_empty());
    // Another skill of the same name in another namespace learns nothing.
    let mut elsewhere = LearnedUse::default();
    elsewhere.0.insert("other/resizer".into(), learned.0["own/resizer"].clone());
    assert!(offered(&elsewhere, &question).is_empty());
}

#[test]
fn offers_without_a_call_weaken_a_skill_until_it_is_called() {
    let question = ["Resize a picture to a width in pixels with this ratio and quality"];
    let before = offered(&LearnedUse::default(), &question)[0].1;
    let (mut seen, mut learned) = (ObservedUse::default(), LearnedUse::default());
    let mut lost = |offers: u32| {
        (0..offers).for_each(|_| seen.offer("own", "resizer"));
        seen.teach(&mut learned, DAY);
        let lost = before - offered(&learned, &question)[0].1;
        (lost, learned.clone(), std::mem::take(&mut seen))
    };
    assert_eq!(lost(19).0, 0);
    assert_eq!(lost(1).0, 10);
    assert_eq!(lost(20).0, 20);
    let (most, mut learned, mut seen) = lost(5_000);
    assert_eq!(most, 40);
    seen.call("own", "resizer", &[]);
    seen.teach(&mut learned, DAY);
    assert!(learned.is_empty());
}

#[test]
fn explain_shows_what_was_learned_and_agrees_with_the_offer() {
    let learned = taught("resizer", 4, &["shrink"]);
    let question = ["Shrink the picture"];
    let explained = with_selection(&learned, &question, |scoring, indexes, selection| {
        explain(scoring, indexes, selection, &mut Scratch::default())
    });
    let resize = explained.iter().find(|of| &*of.skill.name == "resizer").unwrap();
    let signal = resize.signals.iter().find(|signal| signal.kind == SignalKind::Learned).unwrap();
    assert!(signal.text == "shrink" && signal.points > 20, "{signal:?}");
    assert_eq!(resize.score, offered(&learned, &question)[0].1);
}

#[test]
fn only_words_of_letters_of_their_own_turn_may_be_learned() {
    let turns = [vec!["Resize my images for the invoice"], vec!["Use token sk-a1b2c3d4 with 4711 please"]];
    let facts = RequestFacts { user_turns: &turns, ..RequestFacts::default() };
    let query = Query::new(MatchMode::Ranked, &facts);
    let learnable = |turn| query.learnable_terms(turn).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(learnable(1), ["resiz", "imag", "invoic"]);
    let second = learnable(2);
    assert!(second.contains(&"token".to_owned()) && !second.contains(&"invoic".to_owned()), "{second:?}");
    assert!(second.iter().all(|term| term.chars().all(char::is_alphabetic)), "{second:?}");
    assert_eq!((learnable(0).len(), query.last_turn()), (0, 2));
    assert_eq!(Query::new(MatchMode::Words, &facts).last_turn(), 0);
}
