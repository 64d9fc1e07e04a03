//! Each skill's verdict, and that it is that of the offer.

use super::*;
use crate::{RequestFacts, SignalKind, synthetic};
use skillet_api::skill::{Invocation, Mode};
use skillet_core::test_rng::TestRng;

fn skill(name: &str, tags: &[&str]) -> Candidate {
    synthetic::candidate(name, "", tags)
}

fn explanations(indexes: &[&Index], policy: &Policy, text: &str, switch: &Switch) -> Vec<Explanation> {
    let query = policy.query(&RequestFacts { texts: &[text], ..RequestFacts::default() });
    let ask = Ask { query: &query, client_tools: &["taken"], switch, token_budget: Some(80), can_ask: true };
    explain(policy, indexes, &ask, &mut Scratch::default())
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
        |skills: Vec<Candidate>| Index::build(Policy::words().reading, skills.into_iter().map(Arc::new));
    [build(own.into()), build(vec![far])]
}

#[test]
fn every_skill_is_told_with_its_reason() {
    let indexes = indexes();
    let policy = Policy { maximum: 2, ..Policy::words() };
    let told = explanations(&[&indexes[0], &indexes[1]], &policy, "the web page", &Switch::All);
    let verdicts: Vec<(&str, i32, Verdict)> =
        told.iter().map(|told| (&*told.skill.name, told.score, told.verdict.clone())).collect();
    let not = Verdict::NotOffered;
    let expected = [
        ("always", 0, Verdict::Offered { rank: 0 }),
        ("disabled", 3, not(Reason::Disabled)),
        ("far-off", 0, not(Reason::BelowThreshold)),
        ("manual", 3, not(Reason::ManualOnly)),
        ("off", 3, not(Reason::ModeOff)),
        ("taken", 3, not(Reason::ToolNameTaken)),
        ("web-one", 8, Verdict::Offered { rank: 1 }),
        ("web-three", 5, not(Reason::OverMaximum)),
        ("web-two", 5, not(Reason::OverBudget)),
        ("off", 3, not(Reason::Hidden { by: "own".into() })),
    ];
    assert_eq!(verdicts, expected);
    assert_eq!(told[6].signals[0].kind, SignalKind::NameWord);
}

#[test]
fn the_requests_switch_is_a_reason() {
    let indexes = indexes();
    let reason = |switch: Switch, name: &str| {
        let told = explanations(&[&indexes[0]], &Policy::words(), "the web page", &switch);
        told.into_iter().find(|told| &*told.skill.name == name).unwrap().verdict
    };
    let not = Verdict::NotOffered;
    assert_eq!(reason(Switch::Off, "always"), not(Reason::SwitchedOff));
    assert_eq!(reason(Switch::Only(vec!["web-one".into()]), "always"), not(Reason::NotNamed));
    assert_eq!(reason(Switch::Exactly(vec!["far-off".into()]), "far-off"), Verdict::Offered { rank: 0 });
    assert_eq!(reason(Switch::Exactly(vec!["off".into()]), "off"), not(Reason::ModeOff));
}

#[test]
fn what_is_told_is_what_is_offered() {
    let mut rng = TestRng::new(8);
    let policy = Policy::default();
    for seed in 0..20 {
        let indexes = [0, 1].map(|place| {
            let skills = synthetic::corpus(40, seed * 2 + place).into_iter().map(|skill| {
                let name: Arc<str> = format!("s{}", rng.below(60)).into();
                let mode = if rng.below(9) == 0 { Mode::On } else { Mode::Auto };
                Arc::new(Candidate { namespace: place.to_string().into(), name, mode, ..(*skill).clone() })
            });
            Index::build(policy.reading, skills.collect::<Vec<_>>())
        });
        let (texts, _) = synthetic::request(seed);
        let query = policy.query(&RequestFacts { texts: &[&texts[0]], ..RequestFacts::default() });
        let budget = Some(rng.below(600));
        let ask = Ask {
            query: &query,
            client_tools: &["s1"],
            switch: &Switch::All,
            token_budget: budget,
            can_ask: true,
        };
        let indexes = [&indexes[0], &indexes[1]];
        let offer = pick(&policy, &indexes, &ask, &mut Scratch::default());
        let mut offered: Vec<(usize, Option<i32>)> = Vec::new();
        for told in explain(&policy, &indexes, &ask, &mut Scratch::default()) {
            if let Verdict::Offered { rank } = told.verdict {
                offered.push((rank, (told.skill.mode == Mode::Auto).then_some(told.score)));
            }
        }
        offered.sort_unstable();
        let expected: Vec<_> = offer.ranked().iter().map(|offered| (offered.rank, offered.score)).collect();
        assert_eq!(offered, expected);
    }
}

#[test]
fn a_hybrid_skill_is_offered_only_where_a_person_can_be_asked() {
    let hybrid = Candidate { invocation: Invocation::Hybrid, ..skill("web-one", &["web", "page"]) };
    let index = Index::build(Policy::words().reading, [Arc::new(hybrid)]);
    let query = Policy::words().query(&RequestFacts { texts: &["the web page"], ..RequestFacts::default() });
    for (can_ask, verdict) in
        [(true, Verdict::Offered { rank: 0 }), (false, Verdict::NotOffered(Reason::CannotAsk))]
    {
        let ask = Ask { query: &query, client_tools: &[], switch: &Switch::All, token_budget: None, can_ask };
        let told = explain(&Policy::words(), &[&index], &ask, &mut Scratch::default());
        assert_eq!(told[0].verdict, verdict);
        assert_eq!(
            pick(&Policy::words(), &[&index], &ask, &mut Scratch::default()).offered.len(),
            usize::from(can_ask)
        );
    }
}
