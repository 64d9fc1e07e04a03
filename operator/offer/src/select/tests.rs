//! Selection over several namespaces: order, limits and rejected skills.

use super::*;
use crate::{RequestFacts, synthetic, synthetic::candidate};
use skillet_llm::{ToolDefinition, tool_names::omniroute};

/// `namespace/name`, mode by its first letter: `+` on, `-` off, `!` on and not sealed, else auto. Tags are the name's
/// words.
fn skill(text: &str) -> Arc<Candidate> {
    let (path, mode) = match text.split_at(1) {
        ("+" | "!", path) => (path, Mode::On),
        ("-", path) => (path, Mode::Off),
        _ => (text, Mode::Auto),
    };
    let (namespace, name) = path.split_once('/').unwrap();
    let tags: Vec<&str> = name.split('-').collect();
    let is_ready = !text.starts_with('!');
    Arc::new(Candidate { namespace: namespace.into(), mode, is_ready, ..candidate(name, "", &tags) })
}

fn indexes(namespaces: &[&str]) -> Vec<Index> {
    let scoring = Scoring::words();
    let build = |texts: &&str| Index::build(scoring.matching, texts.split_whitespace().map(skill));
    namespaces.iter().map(build).collect()
}

struct Setup<'a> {
    scoring: Scoring,
    namespaces: Vec<Index>,
    text: &'a str,
    client_tools: &'a [&'a str],
    filter: SkillFilter,
    token_budget: Option<u32>,
}

impl<'a> Setup<'a> {
    fn new(namespaces: &[&str], text: &'a str) -> Self {
        Self {
            scoring: Scoring::words(),
            namespaces: indexes(namespaces),
            text,
            client_tools: &[],
            filter: SkillFilter::All,
            token_budget: None,
        }
    }

    fn select(&self) -> Offer {
        let facts = RequestFacts { texts: &[self.text], ..RequestFacts::default() };
        let query = self.scoring.query(&facts);
        let indexes: Vec<&Index> = self.namespaces.iter().collect();
        let Self { client_tools, filter, token_budget, .. } = self;
        let selection = Selection {
            query: &query,
            client_tools,
            filter,
            token_budget: *token_budget,
            max_tools: None,
            can_confirm: true,
        };
        select(&self.scoring, &indexes, &selection, &mut Scratch::default())
    }

    /// Checks the names by rank, then the rejected skills with their reasons.
    fn check(&self, ranked: &str, rejected: &[(&str, RejectReason)]) {
        let offer = self.select();
        let names: Vec<String> = offer.ranked().iter().map(|offered| path(&offered.skill)).collect();
        assert_eq!(names.join(" "), ranked);
        let reasons: Vec<(String, RejectReason)> = offer
            .rejected
            .into_iter()
            .map(|rejected| {
                let namespace = rejected.namespace.as_deref().unwrap_or("?").to_owned();
                (format!("{namespace}/{}", rejected.name), rejected.reason)
            })
            .collect();
        let expected: Vec<(String, RejectReason)> =
            rejected.iter().map(|(path, reason)| ((*path).to_owned(), reason.clone())).collect();
        assert_eq!(reasons, expected);
    }
}

fn path(skill: &Candidate) -> String {
    format!("{}/{}", skill.namespace, skill.name)
}

fn hidden(by: &str) -> RejectReason {
    RejectReason::Hidden { by: by.into() }
}

#[test]
fn skills_of_mode_on_come_before_matching_auto_skills() {
    let setup = Setup::new(&["a/web +a/zoo +a/bee -a/web-off a/disk"], "web");
    setup.check("a/bee a/zoo a/web", &[]);
    let scores: Vec<Option<i32>> = setup.select().ranked().iter().map(|offered| offered.score).collect();
    assert_eq!(scores, [None, None, Some(11)]);
}

#[test]
fn matching_skills_are_ranked_by_score_up_to_the_maximum() {
    let mut setup = Setup::new(&["a/web a/disk", "b/web-disk b/cpu", "c/cpu-disk"], "web disk cpu");
    setup.check("b/web-disk b/cpu a/disk a/web c/cpu-disk", &[]);
    setup.scoring.maximum = 2;
    setup.check("b/web-disk b/cpu", &[]);
    setup.scoring.maximum = 0;
    setup.check("", &[]);
}

#[test]
fn top_k_equals_the_first_of_all_skills_sorted() {
    for (seed, scoring) in [(1, Scoring::default()), (2, Scoring::words()), (3, Scoring::default())] {
        let namespaces = [seed * 7, seed * 7 + 1].map(|seed| synthetic::corpus(700, seed));
        let indexes =
            namespaces.each_ref().map(|skills| Index::build(scoring.matching, skills.iter().cloned()));
        let indexes: Vec<&Index> = indexes.iter().collect();
        for (request, many) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
            let (texts, _) = synthetic::request(request);
            let texts: Vec<&str> = texts.iter().map(String::as_str).take(many).collect();
            let query = scoring.query(&RequestFacts { texts: &texts, ..RequestFacts::default() });
            let scorer = Scorer::new(scoring.weights, &query);
            let mut ranked: Vec<Ranked> = Vec::new();
            for (distance, skills) in namespaces.iter().enumerate() {
                let is_hidden = |skill: &Candidate| distance > 0 && indexes[0].get(&skill.name).is_some();
                ranked.extend(skills.iter().filter(|skill| !is_hidden(skill)).map(|skill| Ranked {
                    candidate: skill.clone(),
                    score: scorer.score(skill),
                    tokens: 0,
                    distance,
                }));
            }
            ranked.retain(|ranked| ranked.score >= scoring.threshold);
            ranked.sort_by(Ranked::compare);
            let expected: Vec<&str> = ranked.iter().take(5).map(|ranked| &*ranked.candidate.name).collect();
            let selection = synthetic::selection(&query);
            let offer = select(&scoring, &indexes, &selection, &mut Scratch::default());
            let names: Vec<&str> = offer.ranked().iter().map(|offered| &*offered.skill.name).collect();
            assert_eq!(names, expected, "{seed} {request}");
        }
    }
}

#[test]
fn a_nearer_name_hides_a_farther_one_whatever_its_mode() {
    let near = Setup::new(&["a/web", "b/web +b/bee", "-c/bee c/web"], "web");
    near.check("b/bee a/web", &[("b/web", hidden("a")), ("c/web", hidden("a"))]);
    let off = Setup::new(&["-a/web", "b/web", "+c/web"], "web");
    off.check("", &[("c/web", hidden("a")), ("b/web", hidden("a"))]);
    let unsealed = Setup::new(&["!a/web", "b/web", "+c/web"], "web");
    unsealed.check("", &[("c/web", hidden("a")), ("b/web", hidden("a"))]);
    Setup::new(&["a/disk", "b/disk"], "web").check("", &[]);
}

#[test]
fn a_name_clash_does_not_count_towards_the_maximum() {
    let mut setup = Setup::new(&["a/web-disk a/web-cpu", "b/web b/disk"], "web-disk web-cpu");
    setup.client_tools = &["web-cpu", "disk"];
    setup.scoring.maximum = 1;
    setup.check("a/web-disk", &[("a/web-cpu", RejectReason::ToolNameTaken)]);
}

#[test]
fn the_clients_own_tools_win_over_skills_of_any_mode() {
    let mut setup = Setup::new(&["+a/web a/disk a/cpu"], "disk cpu");
    setup.client_tools = &["web", "cpu"];
    setup.check("a/disk", &[("a/web", RejectReason::ToolNameTaken), ("a/cpu", RejectReason::ToolNameTaken)]);
}

#[test]
fn a_clients_tool_with_the_name_that_omniroute_gives_a_skill_wins_too() {
    let mut setup = Setup::new(&["+a/web a/disk"], "disk");
    let name = omniroute::encode("web", "1.0.0").unwrap();
    let other = omniroute::encode("disk", "9.0.0").unwrap();
    let tools = [name.as_str(), other.as_str()];
    setup.client_tools = &tools;
    setup.check("a/disk", &[("a/web", RejectReason::ToolNameTaken)]);
}

#[test]
fn of_two_skills_with_one_tool_name_the_higher_ranked_is_offered() {
    let mut setup = Setup::new(&["+a/web"], "disk");
    let tool = ToolDefinition {
        name: "web".into(),
        description: "".into(),
        parameters: Arc::new(serde_json::Value::Null),
    };
    let other = Candidate { tool: tool.into(), ..(*skill("b/disk")).clone() };
    setup.namespaces.push(Index::build(setup.scoring.matching, [Arc::new(other)]));
    setup.check("a/web", &[("b/disk", RejectReason::ToolNameTaken)]);
}

#[test]
fn skills_over_the_budget_are_dropped_from_the_end() {
    let mut setup = Setup::new(&["+a/bee +a/zoo a/web a/web-disk"], "web disk");
    let one = setup.select().offered[0].tokens;
    let budget = |budget: u32, ranked: &str, rejected: &[&str]| {
        let rejected: Vec<_> = rejected.iter().map(|path| (*path, RejectReason::OverBudget)).collect();
        setup.token_budget = Some(budget);
        setup.check(ranked, &rejected);
    };
    let mut budget = budget;
    budget(one * 5, "a/bee a/zoo a/web-disk a/web", &[]);
    budget(one * 3 + 2, "a/bee a/zoo a/web-disk", &["a/web"]);
    budget(one, "a/bee", &["a/web", "a/web-disk", "a/zoo"]);
    budget(0, "", &["a/web", "a/web-disk", "a/zoo", "a/bee"]);
}

#[test]
fn the_order_of_tools_does_not_depend_on_scores() {
    let order = |text: &str| {
        let offer = Setup::new(&["+b/zoo +b/bee a/disk a/web", "+c/ant c/cpu"], text).select();
        offer.offered.iter().map(|offered| path(&offered.skill)).collect::<Vec<_>>()
    };
    let expected = ["c/ant", "b/bee", "b/zoo", "c/cpu", "a/disk", "a/web"];
    assert_eq!(order("web disk cpu"), expected);
    assert_eq!(order("cpu and web"), ["c/ant", "b/bee", "b/zoo", "c/cpu", "a/web"]);
}

#[test]
fn a_request_can_switch_skills_off() {
    let mut setup = Setup::new(&["+a/bee a/web"], "web");
    setup.filter = SkillFilter::Off;
    setup.check("", &[]);
}

#[test]
fn a_request_can_narrow_the_skills_to_names() {
    let mut setup = Setup::new(&["+a/zoo +a/bee a/web a/disk -a/off", "+b/ant b/web b/cpu"], "web cpu");
    setup.filter =
        SkillFilter::Only(["cpu", "ant", "zoo", "disk", "web", "web", "off", "who"].map(Into::into).into());
    setup.client_tools = &["cpu"];
    let rejected = [
        ("?/who", RejectReason::Unknown),
        ("b/cpu", RejectReason::ToolNameTaken),
        ("a/off", RejectReason::ModeOff),
    ];
    setup.check("a/zoo b/ant a/web", &rejected);
}

#[test]
fn a_request_can_name_exactly_the_skills_it_wants() {
    let mut setup = Setup::new(&["+a/zoo a/web a/disk -a/off", "b/cpu"], "web");
    setup.filter = SkillFilter::Exactly(["disk", "cpu", "off", "disk"].map(Into::into).into());
    setup.check("a/disk b/cpu", &[("a/off", RejectReason::ModeOff)]);
}
