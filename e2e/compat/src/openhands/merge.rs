//! `merge_by_name`, `context_build`: the skills that are left when lists of skills meet.

use serde_json::{Value, json};
use skillet_instructions::discovery::{Candidate, Discovered, merge};

use super::fields::{document, texts};
use crate::{case::Case, judge::Answer};

/// A skill of a list, in the form of the case.
struct Listed<'a> {
    skill: &'a Value,
    /// Name of its list.
    list: &'a str,
}

/// The first list counts before the second.
pub(super) fn merge_by_name(case: &Case) -> Result<Answer, String> {
    let (kept, _) = merged(listed(case, &["primary", "secondary"])?)?;
    answer(case, true, &kept)
}

/// Two skills of one name are refused; names on the deny-list are left out, whether a skill has them or not.
pub(super) fn context_build(case: &Case) -> Result<Answer, String> {
    let (kept, dropped) = merged(listed(case, &["skills"])?)?;
    let disabled = texts(&case.input["disabled_skills"]);
    let kept: Vec<Listed<'_>> =
        kept.into_iter().filter(|listed| !disabled.iter().any(|name| name == listed.name())).collect();
    answer(case, dropped == 0, &kept)
}

fn listed<'a>(case: &'a Case, lists: &[&'a str]) -> Result<Vec<Listed<'a>>, String> {
    let mut found = Vec::new();
    for list in lists {
        let skills = case.input[*list].as_array().ok_or_else(|| format!("the input has no list {list}"))?;
        found.extend(skills.iter().map(|skill| Listed { skill, list }));
    }
    Ok(found)
}

/// Returns the skills that are left, and the number of the others.
fn merged(mut listed: Vec<Listed<'_>>) -> Result<(Vec<Listed<'_>>, usize), String> {
    let mut found = Vec::new();
    for (place, listed) in listed.iter().enumerate() {
        // Each skill stands in a folder of its own, so that the order is that of the lists.
        let document = document(&json!({ "name": listed.name(), "content": listed.skill["content"] }))?;
        found.push(Discovered {
            candidate: Candidate::skill_md(&format!("{place}/SKILL.md"), place),
            document,
        });
    }
    let (kept, dropped) = merge(found);
    let places: Vec<String> = kept.into_iter().map(|kept| kept.candidate.default_name).collect();
    let mut place = 0..;
    listed.retain(|_| place.next().is_some_and(|place: usize| places.contains(&place.to_string())));
    Ok((listed, dropped.len()))
}

/// Compares the lists of the expected answer, which hold names, or skills with some of their fields.
fn answer(case: &Case, accept: bool, kept: &[Listed<'_>]) -> Result<Answer, String> {
    let skills: Vec<&Value> = kept.iter().map(|listed| listed.skill).collect();
    let value = json!({ "accept": accept, "skills": skills });
    let expected = &case.expected;
    let is_expected_accepted = expected["accept"].as_bool().unwrap_or(expected.get("error").is_none());
    let mut is_same = is_expected_accepted == accept;
    if accept && is_expected_accepted {
        let lists: Vec<&Vec<Value>> = match expected {
            Value::Array(list) => vec![list],
            _ => expected.as_object().into_iter().flatten().filter_map(|(_, v)| v.as_array()).collect(),
        };
        if lists.is_empty() {
            return Err("the answer has no list of skills".to_owned());
        }
        is_same = lists
            .into_iter()
            .all(|list| list.len() == kept.len() && list.iter().zip(kept).all(|(e, kept)| kept.is_like(e)));
    }
    Ok(Answer { is_same, ..Answer::exact(case, value) })
}

impl Listed<'_> {
    fn name(&self) -> &str {
        self.skill.as_str().or(self.skill["name"].as_str()).unwrap_or_default()
    }

    fn is_like(&self, expected: &Value) -> bool {
        match expected {
            Value::Object(fields) => fields.iter().all(|(field, value)| match self.skill.get(field) {
                Some(found) => found == value,
                None => value == self.list || value == self.name(),
            }),
            other => other == self.name(),
        }
    }
}
