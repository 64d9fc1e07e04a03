//! `resolve_version` and `list_versions`: which of the available versions a constraint takes, and their order.

use serde_json::{Value, json};
use skillet_core::version::{Constraint, ConstraintError, SkillSemver, newest_first, resolve};

use crate::{
    case::{Case, Verdict},
    judge::{Answer, Sense, mentions},
};

pub(super) fn resolve_version(case: &Case) -> Result<Answer, String> {
    let available = available(case)?;
    let text = case.given("constraint").and_then(Value::as_str);
    let constraint = text.map_or_else(|| Ok(Constraint::any()), Constraint::parse);
    let found = constraint.as_ref().ok().and_then(|constraint| resolve(constraint, &available));
    let found = found.map(ToString::to_string);
    if case.verdict == Verdict::Defect
        && constraint.is_ok()
        && found.is_none()
        && case.expected["version"].is_null()
    {
        return Err("the constraint is understood, and nothing available fits it either way".to_owned());
    }
    let difference = named_difference(case, text, constraint.is_err());
    let answer = Answer::exact(case, json!({ "version": found }));
    let meets_want =
        case.want.as_deref().map_or(Sense::Unknown, |want| sense(want, &constraint, found.as_deref()));
    Ok(Answer { meets_want, difference, ..answer })
}

fn sense(want: &str, constraint: &Result<Constraint, ConstraintError>, found: Option<&str>) -> Sense {
    let is_version = |word: &&str| word.parse::<SkillSemver>().is_ok();
    if let Some(version) = want.split(|c: char| !c.is_ascii_digit() && c != '.').find(is_version) {
        return Sense::of(found == Some(version));
    }
    if mentions(want, &["reject", "refuse", "error"]) {
        return Sense::of(constraint.is_err());
    }
    // What else is wanted of an operator is that it works.
    if mentions(want, &["operator", "match", "work", "support", "next"]) {
        return Sense::of(found.is_some());
    }
    Sense::Unknown
}

/// Returns the intended difference that docs/adr/0003 describes.
fn named_difference(case: &Case, text: Option<&str>, is_refused: bool) -> Option<String> {
    let text = text.unwrap_or("*");
    if is_refused {
        let version = text.trim_start_matches(['^', '~', '>', '<', '=']);
        let is_guessed = version.parse::<SkillSemver>().is_err();
        return is_guessed.then(|| "docs/adr/0003: refused, where OmniRoute guesses".to_owned());
    }
    let is_single_equals = text.starts_with('=') && !text.starts_with("==");
    let is_repaired_later = case.baseline.as_deref() == Some("v3.8.49")
        && [">=", "<=", "=="].iter().any(|sign| text.starts_with(sign));
    let is_added =
        matches!(text, "*" | "latest") || is_single_equals || is_repaired_later || text.contains([' ', ',']);
    is_added.then(|| "docs/adr/0003: a constraint OmniRoute does not know".to_owned())
}

pub(super) fn list_versions(case: &Case) -> Result<Answer, String> {
    let mut versions = available(case)?;
    newest_first(&mut versions);
    let texts: Vec<String> = versions.iter().map(ToString::to_string).collect();
    Ok(Answer::exact(case, json!({ "versions": texts })))
}

fn available(case: &Case) -> Result<Vec<SkillSemver>, String> {
    let texts = case.input["available"].as_array().ok_or("available is no list")?;
    let read = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        text.parse().map_err(|_| format!("{text:?} cannot be a version of a Skill"))
    };
    texts.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{judge::Judgement, registry::replay};

    fn check(constraint: &str, expected: Option<&str>, verdict: &str, want: Option<&str>, result: &str) {
        let case = json!({
            "id": "i", "kind": "resolve_version", "baseline": "v3.8.49", "verdict": verdict, "want": want,
            "input": {"available": ["1.0.0", "1.2.0", "2.0.0"], "constraint": constraint},
            "expected": {"version": expected},
        });
        let case: Case = serde_json::from_value(case).unwrap();
        let judgement = match replay(&Case { set: "omniroute".into(), ..case }) {
            Judgement::Passed => "passed".to_owned(),
            Judgement::Failed { .. } => "failed".to_owned(),
            Judgement::Skipped { why } => why,
        };
        assert!(judgement.starts_with(result), "{constraint}: {judgement}");
    }

    #[test]
    fn what_the_product_adds_is_skipped_by_name_and_never_passed() {
        for constraint in ["*", "latest", "=1.2.0", ">=1.0.0 <2.0.0", ">=1.2.0"] {
            check(constraint, None, "compat", None, "docs/adr/0003");
        }
        check("^1.0.0", None, "compat", None, "failed");
        check("^3.0.0", None, "compat", None, "passed");
        check("^1", Some("1.2.0"), "compat", None, "docs/adr/0003: refused");
        check("^1.2.0 ", Some("1.2.0"), "compat", None, "docs/adr/0003: refused");
    }

    #[test]
    fn a_repaired_operator_passes_and_a_copied_defect_does_not() {
        check(">=1.2.0", None, "defect", Some("the operator works as in next"), "passed");
        check(">=1.2.0", None, "defect", Some("2.0.0"), "passed");
        check(">=3.0.0", None, "defect", Some("the operator works"), "the constraint is understood");
        check("^1.0.0", Some("1.2.0"), "defect", Some("1.0.0"), "failed");
        check("1.2", None, "defect", Some("1.2.0"), "failed");
        check("1.2", Some("1.0.0"), "defect", Some("1.2.0"), "docs/adr/0003: refused");
    }

    #[test]
    fn a_quirk_passes_where_the_constraint_is_refused_as_wanted() {
        check(">1", Some("2.0.0"), "quirk", Some("a better product rejects the constraint"), "passed");
        check("^1.0.0", Some("1.0.0"), "quirk", Some("a better product rejects the constraint"), "a quirk");
    }
}
