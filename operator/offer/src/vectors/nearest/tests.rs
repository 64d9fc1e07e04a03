//! Searches by words and vectors together.

use std::sync::Arc;

use super::*;
use crate::{
    Candidate, Change, MatchMode, Offer, QuestionVectors as _, RequestFacts, Scoring, Scratch, explain,
    select,
    synthetic::{ToyModel, candidate, corpus, selection},
};

/// Words of a group mean the same to the model, and are written alike nowhere else.
const GROUPS: [&str; 2] = ["zorgle wumpet", "frobnic quandle"];

fn model() -> Arc<ToyModel> {
    Arc::new(ToyModel::new(&GROUPS, 256))
}

fn index(model: &Arc<ToyModel>, skills: &[Candidate]) -> Index {
    let skills = skills.iter().map(|skill| model.add_to(skill));
    Index::build(MatchMode::Ranked, skills).with_model(Some(model.clone()))
}

fn offer(indexes: &[&Index], text: &str) -> Offer {
    let scoring = Scoring::ranked();
    let query = scoring.query(&RequestFacts { texts: &[text], ..RequestFacts::default() });
    select(&scoring, indexes, &selection(&query), &mut Scratch::default())
}

fn names(offer: &Offer) -> Vec<&str> {
    offer.ranked().iter().map(|offered| &*offered.skill.name).collect()
}

#[test]
fn a_skill_that_means_the_same_in_other_words_is_offered() {
    let model = model();
    let skills =
        [candidate("s1", "zorgle", &[]), candidate("s2", "frobnic", &[]), candidate("s3", "invoice", &[])];
    let index = index(&model, &skills);
    assert_eq!(names(&offer(&[&index], "wumpet")), ["s1"]);
    assert_eq!(names(&offer(&[&index], "invoice wumpet")), ["s3", "s1"], "words and vectors are added");
    assert!(names(&offer(&[&index.clone().with_model(None)], "wumpet")).is_empty());
    let mut later = Index::build(MatchMode::Ranked, skills.iter().cloned().map(Arc::new));
    later = later.with_model(Some(model.clone()));
    assert!(names(&offer(&[&later], "wumpet")).is_empty());
    later.set_vector(&model.add_to(&skills[0]));
    later.set_vector(&model.add_to(&candidate("unknown", "zorgle", &[])));
    assert_eq!(names(&offer(&[&later], "wumpet")), ["s1"], "a vector that comes later");
    let wide = Arc::new(ToyModel::new(&GROUPS, 64));
    skills.iter().for_each(|skill| later.set_vector(&wide.add_to(skill)));
    later.set_model(Some(wide));
    assert_eq!(names(&offer(&[&later], "quandle")), ["s2"], "another model with other dimensions");
    let mut changed = index;
    changed.apply(Change::Upsert(Arc::new(candidate("s1", "zorgle", &[]))));
    assert!(names(&offer(&[&changed], "wumpet")).is_empty(), "a skill without a vector");
    changed.apply(Change::Remove("s2".into()));
    assert!(names(&offer(&[&changed], "quandle")).is_empty());
}

#[test]
fn the_explanation_has_the_cosine_and_the_score_of_the_search() {
    let model = model();
    let index = index(&model, &[candidate("s1", "zorgle", &[]), candidate("s2", "frobnic", &[])]);
    let scoring = Scoring::ranked();
    let query = scoring.query(&RequestFacts { texts: &["wumpet"], ..RequestFacts::default() });
    let explained = explain(&scoring, &[&index], &selection(&query), &mut Scratch::default());
    let [a, b] = &explained[..] else { panic!("{explained:?}") };
    let [signal] = &a.signals[..] else { panic!("{a:?}") };
    assert_eq!((signal.kind, signal.text.as_str()), (SignalKind::Vector, "cosine 1.00"));
    assert_eq!((a.score, signal.points, b.score), (150, 150, 0));
    assert_eq!(offer(&[&index], "wumpet").offered[0].score, Some(150));
}

#[test]
fn everyday_messages_are_near_to_no_skill() {
    let model = model();
    let skills: Vec<Candidate> = corpus(2_000, 7).iter().map(|skill| (**skill).clone()).collect();
    let index = index(&model, &skills);
    for text in ["hello, how are you?", "thank you very much", "what can you do?", "why is grass green?"] {
        assert!(names(&offer(&[&index], text)).is_empty(), "{text}");
    }
}

#[test]
fn the_nearest_skills_do_not_depend_on_the_order_of_changes() {
    let model = model();
    let skills: Vec<Candidate> = (0..300).map(|at| candidate(&format!("s{at:03}"), "zorgle", &[])).collect();
    let turned: Vec<Candidate> = skills.iter().rev().cloned().collect();
    let (index, turned) = (index(&model, &skills), index(&model, &turned));
    let extra = |index: &Index| {
        let mut extra = ExtraPoints::default();
        index.add_nearest(model.space(), &model.vector("wumpet").unwrap(), &mut extra);
        let mut found: Vec<(Arc<str>, i32)> =
            extra.sums().map(|((_, name), points)| (name.clone(), points)).collect();
        found.sort();
        found
    };
    assert_eq!((extra(&index).len(), extra(&index) == extra(&turned)), (MAX_NEAREST, true));
}

#[test]
fn skills_of_farther_namespaces_and_named_skills_get_points_too() {
    let model = model();
    let near = index(&model, &[candidate("s1", "zorgle", &[])]);
    let far = index(&model, &[Candidate { namespace: "far".into(), ..candidate("z9", "zorgle", &[]) }]);
    assert_eq!(names(&offer(&[&near, &far], "wumpet")), ["s1", "z9"]);
    let filter = crate::SkillFilter::Only(vec!["z9".to_owned()]);
    let scoring = Scoring::ranked();
    let query = scoring.query(&RequestFacts { texts: &["wumpet"], ..RequestFacts::default() });
    let wanted = crate::Selection { filter: &filter, ..selection(&query) };
    let found = select(&scoring, &[&near, &far], &wanted, &mut Scratch::default());
    assert_eq!(names(&found), ["z9"]);
}
