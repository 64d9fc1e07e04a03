//! The terms of one skill with their impacts: how much each says about the skill, by BM25F.
//!
//! A term counts in each field by its number there, less in a longer field. The sum saturates, so that repetition wins
//! little. Lengths are compared with fixed ones: the impact of a term does not depend on other skills, and a change of
//! one skill changes no other.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use serde_json::Value;

use super::analysis::{Terms, analyze, line, name_line, whole_name};
use crate::{Candidate, SignalKind};

/// Impacts are whole numbers, so that a sum does not depend on its order.
pub(crate) const IMPACT_ONE: u16 = 1024;

/// BM25's k1: from this weight on, more of a term adds less than half.
const SATURATION: f64 = 1.2;

/// Deepest level of an input schema whose properties are read.
const MAX_SCHEMA_DEPTH: usize = 3;

/// A part of a skill.
#[derive(Clone, Copy, Debug)]
struct Field {
    kind: SignalKind,
    weight: f64,
    /// Number of words from which on a field counts as long.
    usual_length: f64,
    /// BM25's b: how much the length counts.
    length_share: f64,
    /// Most that one term gets from the field. It bounds what repetition wins.
    most: f64,
}

const FIELDS: [Field; 5] = [
    Field { kind: SignalKind::NameWord, weight: 1.5, usual_length: 3.0, length_share: 0.5, most: 2.0 },
    Field { kind: SignalKind::Tag, weight: 1.0, usual_length: 4.0, length_share: 0.75, most: 1.0 },
    Field {
        kind: SignalKind::DescriptionWord,
        weight: 1.0,
        usual_length: 10.0,
        length_share: 0.5,
        most: 2.0,
    },
    Field { kind: SignalKind::SchemaWord, weight: 0.3, usual_length: 12.0, length_share: 0.75, most: 0.6 },
    Field { kind: SignalKind::Example, weight: 0.4, usual_length: 150.0, length_share: 0.75, most: 1.5 },
];

/// A short field counts no more than a field of half the usual length.
const LEAST_LENGTH: f64 = 0.5;

/// A term of a skill.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SkillTerm {
    pub(crate) term: Arc<str>,
    /// In parts of [`IMPACT_ONE`].
    pub(crate) impact: u16,
    /// The part of the impact that each field has, in the order of [`kinds`]. The sum is 1.
    pub(crate) shares: [f64; FIELDS.len()],
}

/// Returns the kinds of match that the fields stand for.
pub(crate) fn kinds() -> impl Iterator<Item = SignalKind> {
    FIELDS.iter().map(|field| field.kind)
}

/// Returns the terms of a skill, by term.
pub(crate) fn skill_terms(candidate: &Candidate) -> Vec<SkillTerm> {
    let mut weights: BTreeMap<Arc<str>, [f64; FIELDS.len()]> = BTreeMap::new();
    for (at, (field, lines)) in FIELDS.iter().zip(lines(candidate)).enumerate() {
        let (counts, length) = count(&lines);
        let relative = (length / field.usual_length).max(0.0);
        let divisor = (1.0 + field.length_share * (relative - 1.0)).max(LEAST_LENGTH);
        for (term, number) in counts {
            let weight = (field.weight * f64::from(number) / divisor).min(field.most);
            if let Some(sum) = weights.entry(term).or_default().get_mut(at) {
                *sum += weight;
            }
        }
    }
    // The name as a person writes it counts even if it has stop words only.
    let [name, ..] = FIELDS;
    if let Some(term) = whole_name(&candidate.name) {
        weights.insert(term, [name.most, 0.0, 0.0, 0.0, 0.0]);
    }
    weights.into_iter().map(|(term, fields)| skill_term(term, fields)).collect()
}

fn skill_term(term: Arc<str>, fields: [f64; FIELDS.len()]) -> SkillTerm {
    let sum: f64 = fields.iter().sum();
    let impact = sum * (SATURATION + 1.0) / (sum + SATURATION);
    SkillTerm { term, impact: to_impact(impact), shares: fields.map(|weight| weight / sum) }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an impact is from 0 to 2.2")]
fn to_impact(impact: f64) -> u16 {
    (impact * f64::from(IMPACT_ONE)).round().clamp(1.0, f64::from(u16::MAX)) as u16
}

/// Returns the texts of each field, as lines of words. A term counts once in each line of tags, schema and examples.
fn lines(candidate: &Candidate) -> [Vec<String>; FIELDS.len()] {
    let Candidate { name, tags, description, examples, tool, .. } = candidate;
    let mut seen = HashSet::new();
    let tags = tags.iter().map(|tag| name_line(tag)).filter(|tag| seen.insert(tag.clone())).collect();
    let mut schema = Vec::new();
    add_properties(&tool.parameters.value(), MAX_SCHEMA_DEPTH, &mut schema);
    let examples = examples.iter().map(|example| line(example)).collect();
    [vec![name_line(name)], tags, vec![line(description)], schema, examples]
}

/// Appends names and descriptions of a schema's properties.
fn add_properties(schema: &Value, depth: usize, lines: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        lines.push(name_line(name));
        lines.extend(property.get("description").and_then(Value::as_str).map(line));
        add_properties(property, depth - 1, lines);
        if let Some(items) = property.get("items") {
            add_properties(items, depth - 1, lines);
        }
    }
}

/// Returns the number of lines with each term, and the number of words. A single line counts each occurrence.
fn count(lines: &[String]) -> (BTreeMap<Arc<str>, u32>, f64) {
    let mut counts: BTreeMap<Arc<str>, u32> = BTreeMap::new();
    let mut length = 0;
    for line in lines {
        analyze(line, |_, Terms { main, english, .. }, number| {
            let number = if lines.len() == 1 { number } else { 1 };
            length += number;
            for term in std::iter::once(main).chain(english) {
                *counts.entry(term.clone()).or_default() += number;
            }
        });
    }
    (counts, f64::from(length))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::synthetic::candidate;

    fn impact(candidate: &Candidate, term: &str) -> u16 {
        skill_terms(candidate).iter().find(|found| *found.term == *term).map_or(0, |found| found.impact)
    }

    #[test]
    fn each_field_has_terms_and_a_name_counts_most() {
        let tool = json!({"type": "object", "properties": {
            "customerId": {"description": "Number of the buyer"},
            "lines": {"items": {"properties": {"amount": {}}}},
        }});
        let mut skill =
            candidate("invoice-create", "Makes bills for people who buy in a shop.", &["accounting"]);
        skill.tool.parameters = skillet_core::json_text::JsonText::new(&tool);
        skill.examples = ["Charge the client".to_owned()].into();
        let terms = skill_terms(&skill);
        let names: Vec<&str> = terms.iter().map(|term| &*term.term).collect();
        let expected = "=invoice-create account amount bill buy buyer charg client creat custom id invoic line number peopl shop";
        assert_eq!(names.join(" "), expected);
        for term in &terms {
            assert!((term.shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{term:?}");
        }
        assert!(impact(&skill, "invoic") > impact(&skill, "bill"));
        assert!(impact(&skill, "bill") > impact(&skill, "amount"));
    }

    #[test]
    fn length_and_repetition_win_little() {
        let plain = impact(&candidate("x", "Sends an invoice to a customer", &[]), "invoic");
        let repeated = impact(&candidate("x", &"invoice ".repeat(120), &[]), "invoic");
        assert!(repeated < plain * 2, "{repeated} {plain}");
        let list: Vec<String> = (0..140).map(|at| format!("keyword{}", char::from(b'a' + at % 26))).collect();
        let listed = impact(&candidate("x", &format!("invoice {}", list.join(" ")), &[]), "invoic");
        assert!(listed < plain / 3, "{listed} {plain}");
        let tags = ["invoice"; 32];
        assert_eq!(
            impact(&candidate("x", "", &tags), "invoic"),
            impact(&candidate("x", "", &tags[..1]), "invoic")
        );
    }
}
