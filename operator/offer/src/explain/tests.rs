//! The decision about each skill, and its agreement with the offer.

use super::*;
use crate::{RequestFacts, SignalKind, synthetic};
use skillet_api::skill::{Invocation, Mode};
use skillet_core::test_rng::TestRng;

fn skill(name: &str, tags: &[&str]) -> Candidate {
    synthetic::candidate(name, "", tags)
}

fn explanations(indexes: &[&Index], scoring: &Scoring, text: &str, filter: &SkillFilter) -> Vec<Explanation> {
    let query = scoring.query(&RequestFacts { texts: &[text], ..RequestFacts::default() });
    let selection = Selection {
        query: &query,
        client_tools: &["taken"],
        filter,
        token_budget: Some(80),
        max_tools: None,
        can_confirm: true,
    };
    explain(scoring, indexes, &selection, &mut Scratch::default())
}

fn indexes() -> [Index; 2] {
    let own = [
        Candidate { mode: Mode::On, ..skill("always", &[]) },
        Candidate { enabled: false, ..skill("disabled", &["web"]) },
        skill("far-off", &["disk"]),
        Candidate { invocation: Invocation::Manual, ..skill("manual", &["web"]) },
        Candidate { mode: Mode::Off, ..skill("off", &["web"]) },
        skill("taken", &["web"]),
        skill("web-one", &["web", "page"]),
        Candidate { install_count: 2, ..skill("web-two", &["web"]) },
        skill("web-three", &["web"]),
    ];
    let far = Candidate { namespace: "far".into(), ..skill("off", &["web"]) };
    let build =
        |skills: Vec<Candidate>| Index::build(Scoring::words().matching, skills.into_iter().map(Arc::new));
    [build(own.into()), build(vec![far])]
}

#[test]
fn explain_returns_every_skill_with_its_reason() {
    let indexes = indexes();
    let scoring = Scoring { maximum: 2, ..Scoring::words() };
    let explained = explanations(&[&indexes[0], &indexes[1]], &scoring, "the web page", &SkillFilter::All);
    let decisions: Vec<(&str, i32, OfferDecision)> =
        explained.iter().map(|of| (&*of.skill.name, of.score, of.decision.clone())).collect();
    let not = OfferDecision::NotOffered;
    let expected = [
        ("always", 0, OfferDecision::Offered { rank: 0 }),
        ("disabled", 3, not(RejectReason::Disabled)),
        ("far-off", 0, not(RejectReason::BelowThreshold)),
        ("manual", 3, not(RejectReason::ManualOnly)),
        ("off", 3, not(RejectReason::ModeOff)),
        ("taken", 3, not(RejectReason::ToolNameTaken)),
        ("web-one", 8, OfferDecision::Offered { rank: 1 }),
        ("web-three", 5, not(RejectReason::OverMaximum)),
        ("web-two", 5, not(RejectReason::OverBudget)),
        ("off", 3, not(RejectReason::Hidden { by: "own".into() })),
    ];
    assert_eq!(decisions, expected);
    assert_eq!(explained[6].signals[0].kind, SignalKind::NameWord);
}

#[test]
fn the_filter_of_a_request_is_a_reason() {
    let indexes = indexes();
    let reason = |filter: SkillFilter, name: &str| {
        let explained = explanations(&[&indexes[0]], &Scoring::words(), "the web page", &filter);
        explained.into_iter().find(|of| &*of.skill.name == name).unwrap().decision
    };
    let not = OfferDecision::NotOffered;
    assert_eq!(reason(SkillFilter::Off, "always"), not(RejectReason::SwitchedOff));
    assert_eq!(reason(SkillFilter::Only(vec!["web-one".into()]), "always"), not(RejectReason::NotNamed));
    assert_eq!(
        reason(SkillFilter::Exactly(vec!["far-off".into()]), "far-off"),
        OfferDecision::Offered { rank: 0 }
    );
    assert_eq!(reason(SkillFilter::Exactly(vec!["off".into()]), "off"), not(RejectReason::ModeOff));
}

#[test]
fn explain_agrees_with_select() {
    let mut rng = TestRng::new(8);
    let scoring = Scoring::default();
    for seed in 0..20 {
        let indexes = [0, 1].map(|place| {
            let skills = synthetic::corpus(40, seed * 2 + place).into_iter().map(|skill| {
                let name: Arc<str> = format!("s{}", rng.below(60)).into();
                let mode = if rng.below(9) == 0 { Mode::On } else { Mode::Auto };
                Arc::new(Candidate { namespace: place.to_string().into(), name, mode, ..(*skill).clone() })
            });
            Index::build(scoring.matching, skills.collect::<Vec<_>>())
        });
        let (texts, _) = synthetic::request(seed);
        let query = scoring.query(&RequestFacts { texts: &[&texts[0]], ..RequestFacts::default() });
        let budget = Some(rng.below(600));
        let selection = Selection {
            query: &query,
            client_tools: &["s1"],
            filter: &SkillFilter::All,
            token_budget: budget,
            max_tools: None,
            can_confirm: true,
        };
        let indexes = [&indexes[0], &indexes[1]];
        let offer = select(&scoring, &indexes, &selection, &mut Scratch::default());
        let mut offered: Vec<(usize, Option<i32>)> = Vec::new();
        for explained in explain(&scoring, &indexes, &selection, &mut Scratch::default()) {
            if let OfferDecision::Offered { rank } = explained.decision {
                offered.push((rank, (explained.skill.mode == Mode::Auto).then_some(explained.score)));
            }
        }
        offered.sort_unstable();
        let expected: Vec<_> = offer.ranked().iter().map(|offered| (offered.rank, offered.score)).collect();
        assert_eq!(offered, expected);
    }
}

#[test]
fn a_hybrid_skill_is_offered_only_if_the_gateway_can_ask_a_person() {
    let hybrid = Candidate { invocation: Invocation::Hybrid, ..skill("web-one", &["web", "page"]) };
    let index = Index::build(Scoring::words().matching, [Arc::new(hybrid)]);
    let query = Scoring::words().query(&RequestFacts { texts: &["the web page"], ..RequestFacts::default() });
    for (can_confirm, decision) in [
        (true, OfferDecision::Offered { rank: 0 }),
        (false, OfferDecision::NotOffered(RejectReason::NoConfirmationKey)),
    ] {
        let selection = Selection { can_confirm, ..synthetic::selection(&query) };
        let explained = explain(&Scoring::words(), &[&index], &selection, &mut Scratch::default());
        assert_eq!(explained[0].decision, decision);
        assert_eq!(
            select(&Scoring::words(), &[&index], &selection, &mut Scratch::default()).offered.len(),
            usize::from(can_confirm)
        );
    }
}
