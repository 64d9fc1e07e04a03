//! Judges an answer of the product by the verdict of the case: passed, failed or skipped.

use serde_json::Value;

use crate::case::{Case, Verdict};

/// The answer of the product to a case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// In the form of `expected`.
    pub(crate) value: Value,
    /// True if it equals the reference's answer, as far as the kind compares it.
    pub(crate) is_same: bool,
    /// Agreement with the sentence in `want`.
    pub(crate) meets_want: Sense,
    /// An intended difference of the product, or the document that describes it.
    pub(crate) difference: Option<String>,
}

/// Agreement of an answer with a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sense {
    Met,
    Missed,
    /// The kind cannot evaluate the sentence.
    Unknown,
}

/// Result of a case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Judgement {
    Passed,
    Failed { got: Value },
    Skipped { why: String },
}

impl Answer {
    /// Creates an answer that is compared with all of `expected`.
    pub(crate) fn exact(case: &Case, value: Value) -> Self {
        Self { is_same: value == case.expected, value, meets_want: Sense::Unknown, difference: None }
    }

    /// Creates an answer of which only those `fields` are compared that `expected` has.
    pub(crate) fn by_fields(case: &Case, value: Value, fields: &[&str]) -> Self {
        let is_same = fields
            .iter()
            .filter_map(|field| Some((field, case.expected.get(field)?)))
            .all(|(field, expected)| value.get(field) == Some(expected));
        Self { value, is_same, meets_want: Sense::Unknown, difference: None }
    }
}

impl Sense {
    /// Combines two sentences.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Missed, _) | (_, Self::Missed) => Self::Missed,
            (Self::Met, _) | (_, Self::Met) => Self::Met,
            (Self::Unknown, Self::Unknown) => Self::Unknown,
        }
    }

    pub(crate) fn of(is_met: bool) -> Self {
        if is_met { Self::Met } else { Self::Missed }
    }
}

pub(crate) fn judge(case: &Case, answer: Answer) -> Judgement {
    let Answer { value, is_same, meets_want, difference } = answer;
    let skipped = |why: &str| Judgement::Skipped { why: format!("{why}; got {value}") };
    match (case.verdict, is_same, meets_want) {
        (Verdict::Compat | Verdict::Quirk, true, _) | (Verdict::Quirk | Verdict::Defect, _, Sense::Met) => {
            Judgement::Passed
        }
        (_, false, _) if difference.is_some() => skipped(&difference.unwrap_or_default()),
        // A defect that is copied fails, whatever the reason.
        (Verdict::Compat, false, _) | (Verdict::Defect, true, _) => Judgement::Failed { got: value },
        (Verdict::Quirk, false, _) => skipped("a quirk of the reference that is not followed"),
        (Verdict::Defect, false, _) => skipped("not the reference's defect, nor clearly what is wanted"),
    }
}

/// The HTTP status codes that a sentence asks for; `not 500` is none of them.
pub(crate) fn wanted_statuses(want: &str) -> Vec<u64> {
    let words: Vec<&str> =
        want.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    (0..words.len())
        .filter(|at| *at == 0 || !matches!(words[*at - 1], "not" | "of"))
        .filter_map(|at| words[at].parse().ok())
        .filter(|status| (100..600).contains(status))
        .collect()
}

/// True if a sentence has one of these words, in upper or lower case.
pub(crate) fn mentions(want: &str, parts: &[&str]) -> bool {
    let want = want.to_lowercase();
    parts.iter().any(|part| want.contains(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(verdict: &str, is_same: bool, meets_want: Sense, difference: Option<&str>, expected: &str) {
        let case: Case = serde_json::from_value(json!({"id": "i", "kind": "k", "verdict": verdict})).unwrap();
        let difference = difference.map(str::to_owned);
        let judgement = judge(&case, Answer { value: json!(1), is_same, meets_want, difference });
        let word = match judgement {
            Judgement::Passed => "passed".to_owned(),
            Judgement::Failed { .. } => "failed".to_owned(),
            Judgement::Skipped { why } => why,
        };
        assert!(word.starts_with(expected), "{verdict} {is_same} {meets_want:?}: {word}");
    }

    #[test]
    fn a_compat_case_passes_only_with_the_same_answer() {
        check("compat", true, Sense::Unknown, None, "passed");
        check("compat", false, Sense::Met, None, "failed");
        check("compat", false, Sense::Unknown, Some("ADR 1"), "ADR 1; got 1");
        check("compat", true, Sense::Unknown, Some("ADR 1"), "passed");
    }

    #[test]
    fn a_quirk_passes_with_the_same_or_a_better_answer_and_never_fails() {
        check("quirk", true, Sense::Missed, None, "passed");
        check("quirk", false, Sense::Met, None, "passed");
        check("quirk", false, Sense::Missed, None, "a quirk of the reference");
    }

    #[test]
    fn a_defect_passes_only_with_what_is_wanted_and_fails_when_copied() {
        check("defect", false, Sense::Met, None, "passed");
        check("defect", true, Sense::Unknown, None, "failed");
        check("defect", true, Sense::Missed, Some("ADR 1"), "failed");
        check("defect", false, Sense::Unknown, None, "not the reference's defect");
        check("defect", false, Sense::Missed, None, "not the reference's defect");
    }

    #[test]
    fn statuses_are_read_from_sentences() {
        assert_eq!(wanted_statuses("HTTP 404"), [404]);
        assert_eq!(wanted_statuses("HTTP 400, not 500"), [400]);
        assert_eq!(wanted_statuses("409 (or 422) instead of 503"), [409, 422]);
        assert_eq!(wanted_statuses("status timeout"), Vec::<u64>::new());
    }

    #[test]
    fn two_senses_are_met_when_one_is_and_none_is_missed() {
        assert_eq!(Sense::Met.and(Sense::Unknown), Sense::Met);
        assert_eq!(Sense::Met.and(Sense::of(false)), Sense::Missed);
        assert_eq!(Sense::Unknown.and(Sense::Unknown), Sense::Unknown);
    }
}
