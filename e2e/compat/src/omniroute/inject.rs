//! `inject`: the skills that a request is offered, their order and their scores.
//!
//! The owners of a case are namespaces: the asking key's own, then OmniRoute's global ones. Names and shapes of the
//! tools are compared by other kinds; here a tool stands for the `name@version` that it is.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use skillet_api::skill::Mode;
use skillet_core::version::SkillSemver;
use skillet_llm::tool_names::omniroute;
use skillet_offer::{
    Candidate, Eligibility, Index, Scorer, Scoring, Scratch, Selection, SkillFilter, select,
};

use super::offer::{candidate, client_tools, query};
use crate::{
    case::Case,
    judge::{Answer, Sense, mentions},
};

/// Owners whose skills everyone sees, the nearest first.
const GLOBAL_OWNERS: [&str; 3] = ["system", "skillsmp", "skillssh"];

pub(super) fn inject(case: &Case) -> Result<Answer, String> {
    let request = &case.input["request"];
    let asking = request["apiKeyId"].as_str().unwrap_or_default();
    let owners: Vec<&str> =
        [asking].into_iter().chain(GLOBAL_OWNERS.into_iter().filter(|owner| *owner != asking)).collect();
    let skills = skills(&case.input["skills"])?;
    let scoring = Scoring::default();
    let of_owner = |owner: &&str| {
        Index::build(scoring.matching, skills.iter().filter(|skill| *skill.namespace == **owner).cloned())
    };
    let indexes: Vec<Index> = owners.iter().map(of_owner).collect();
    let indexes: Vec<&Index> = indexes.iter().collect();
    let query = query(&scoring, request);
    let client_names: Vec<&str> = client_tools(request).into_iter().filter_map(tool_name).collect();
    let aliases: Vec<String> = client_names.iter().filter_map(|name| alias(name)).collect();
    let taken: Vec<&str> = client_names.iter().copied().chain(aliases.iter().map(String::as_str)).collect();
    let selection = Selection {
        query: &query,
        client_tools: &taken,
        filter: &SkillFilter::All,
        token_budget: None,
        max_tools: None,
        can_confirm: true,
    };
    let offer = select(&scoring, &indexes, &selection, &mut Scratch::default());

    let names = |is_in: &dyn Fn(&Candidate) -> bool| {
        let ranked = offer.ranked().into_iter().filter(|offered| is_in(&offered.skill));
        let clients = client_names.iter().map(|name| decode(name));
        ranked.map(|offered| identifier(&offered.skill)).chain(clients).collect::<Vec<String>>()
    };
    let (ours, own) = (names(&|_| true), names(&|skill| *skill.namespace == *asking));
    let points = points(&skills, &owners, &Scorer::new(scoring.weights, &query));
    let are_points_same = points_agree(&case.expected["autoScores"], &points, case.baseline.as_deref());
    let expected = expected_names(case);
    let is_wanted = |word: &str| mentions(case.want.as_deref().unwrap_or_default(), &[word]);
    let meets_want = if is_wanted("highest") {
        Sense::of(ours == highest(&expected))
    } else if is_wanted("twin") {
        // The first release saw no global skills; else its selection was right and its names were not.
        Sense::of(are_points_same && (ours == expected || own == expected))
    } else {
        Sense::Unknown
    };
    // A selection that is wanted of a defect too is nothing that was copied.
    let is_same = ours == expected && are_points_same && !is_wanted("twin");
    let is_own_name = |skill: &Arc<Candidate>| client_names.contains(&&*skill.name);
    let difference = if highest(&expected) == expected {
        let clash = || "a client's tool of the skill's own name wins over the skill".to_owned();
        skills.iter().any(is_own_name).then(clash)
    } else {
        Some("one version of a skill is offered, the newest of the nearest namespace".to_owned())
    };
    let value = json!({"offered": ours, "autoScores": points});
    Ok(Answer { is_same, meets_want, difference, ..Answer::exact(case, value) })
}

/// The points of every skill of mode `auto` that the asking key sees; of equals the nearest owner's.
fn points(skills: &[Arc<Candidate>], owners: &[&str], scorer: &Scorer<'_>) -> BTreeMap<String, i32> {
    let mut points = BTreeMap::new();
    for owner in owners {
        for skill in skills.iter().filter(|skill| *skill.namespace == **owner) {
            if skill.eligibility() == Eligibility::OnMatch {
                points.entry(identifier(skill)).or_insert_with(|| scorer.score(skill));
            }
        }
    }
    points
}

fn skills(list: &Value) -> Result<Vec<Arc<Candidate>>, String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let read = |(registered, skill): (i64, &Value)| {
        let is_enabled = skill["enabled"].as_bool().unwrap_or(true);
        let mode = match skill["mode"].as_str() {
            Some("on") => Mode::On,
            Some("auto") => Mode::Auto,
            Some("off") => Mode::Off,
            Some(other) => return Err(format!("the mode {other} is not known")),
            None => [Mode::Off, Mode::On][usize::from(is_enabled)],
        };
        candidate(skill, mode, registered).map(Arc::new)
    };
    (0..).zip(list).map(read).collect()
}

fn identifier(skill: &Candidate) -> String {
    format!("{}@{}", skill.name, skill.version)
}

fn tool_name(tool: &Value) -> Option<&str> {
    tool["function"]["name"].as_str().or_else(|| tool["name"].as_str())
}

/// OmniRoute's tools, each as the `name@version` that its name says.
fn expected_names(case: &Case) -> Vec<String> {
    let names = case.expected["toolNames"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(decode).collect()
}

/// OmniRoute's newer name for a tool that has its older one, `name@version`.
fn alias(name: &str) -> Option<String> {
    let (name, version) = name.rsplit_once('@')?;
    omniroute::encode(name, version)
}

/// The `name@version` that a tool's name says; any other name as it is.
fn decode(name: &str) -> String {
    omniroute::decode(name).unwrap_or_else(|| name.to_owned())
}

/// Without the lower versions of a name.
fn highest(names: &[String]) -> Vec<String> {
    let version =
        |name: &str| name.split_once('@').and_then(|(_, version)| version.parse::<SkillSemver>().ok());
    let base = |name: &str| name.split('@').next().unwrap_or_default().to_owned();
    let is_highest = |name: &&String| {
        names.iter().all(|other| base(other) != base(name) || version(other) <= version(name))
    };
    names.iter().filter(is_highest).cloned().collect()
}

/// The first release saw own skills only, so that it has fewer points.
fn points_agree(expected: &Value, ours: &BTreeMap<String, i32>, baseline: Option<&str>) -> bool {
    let Some(expected) = expected.as_object() else { return true };
    let are_same =
        expected.iter().all(|(name, score)| ours.get(name).map(|ours| json!(ours)).as_ref() == Some(score));
    are_same && (baseline == Some("v3.8.49") || expected.len() == ours.len())
}
