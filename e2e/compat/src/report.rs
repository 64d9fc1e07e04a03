//! The tally: one line per kind, and on demand every case that did not pass.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use crate::{
    case::{Case, Verdict},
    judge::Judgement,
    retrieval::Figures,
};

#[derive(Debug, Default)]
pub(crate) struct Report {
    kinds: BTreeMap<(String, String), Tally>,
    retrieval: Vec<Figures>,
}

#[derive(Debug, Default, Serialize)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
    /// The cases that did not pass.
    cases: Vec<Line>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "result", rename_all = "lowercase")]
enum Line {
    Failed { id: String, verdict: Verdict, input: Value, expected: Value, got: Value, want: Option<String> },
    Skipped { id: String, why: String },
}

impl Report {
    pub(crate) fn add(&mut self, case: &Case, judgement: Judgement) {
        let tally = self.kinds.entry((case.set.clone(), case.kind.clone())).or_default();
        match judgement {
            Judgement::Passed => tally.passed += 1,
            Judgement::Failed { got } => {
                tally.failed += 1;
                tally.cases.push(Line::Failed {
                    id: case.id.clone(),
                    verdict: case.verdict,
                    input: case.input.clone(),
                    expected: case.expected.clone(),
                    got,
                    want: case.want.clone(),
                });
            }
            Judgement::Skipped { why } => {
                tally.skipped += 1;
                tally.cases.push(Line::Skipped { id: case.id.clone(), why });
            }
        }
    }

    pub(crate) fn add_figures(&mut self, figures: Figures) {
        self.retrieval.push(figures);
    }

    pub(crate) fn has_failures(&self) -> bool {
        self.kinds.values().any(|tally| tally.failed > 0)
    }

    pub(crate) fn to_text(&self, is_verbose: bool) -> String {
        let mut text = String::new();
        for ((set, kind), tally) in &self.kinds {
            let Tally { passed, failed, skipped, cases } = tally;
            let _ = writeln!(text, "{set}/{kind} {passed} passed {failed} failed {skipped} skipped");
            if is_verbose {
                for line in cases {
                    let _ = writeln!(text, "{line}");
                }
            }
        }
        for figures in &self.retrieval {
            let _ = writeln!(text, "{figures}");
        }
        text
    }

    pub(crate) fn to_json(&self) -> Result<String> {
        let sum = |count: fn(&Tally) -> usize| self.kinds.values().map(count).sum::<usize>();
        let kinds: Vec<Value> = self
            .kinds
            .iter()
            .map(|((set, kind), tally)| {
                let Tally { passed, failed, skipped, cases } = tally;
                serde_json::json!({"set": set, "kind": kind, "passed": passed, "failed": failed, "skipped": skipped, "cases": cases})
            })
            .collect();
        let whole = serde_json::json!({
            "passed": sum(|tally| tally.passed),
            "failed": sum(|tally| tally.failed),
            "skipped": sum(|tally| tally.skipped),
            "kinds": kinds,
            "retrieval": self.retrieval.iter().map(Figures::to_json).collect::<Vec<_>>(),
        });
        Ok(serde_json::to_string_pretty(&whole)? + "\n")
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Skipped { id, why } => write!(f, "  skipped {id}: {why}"),
            Self::Failed { id, verdict, input, expected, got, want } => {
                writeln!(f, "  failed {id} ({verdict:?})")?;
                writeln!(f, "    input    {input}")?;
                writeln!(f, "    expected {expected}")?;
                write!(f, "    got      {got}")?;
                match want {
                    Some(want) => write!(f, "\n    want     {want}"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report() -> Report {
        let mut report = Report::default();
        let mut add = |id: &str, judgement| {
            let text = json!({"id": id, "kind": "k", "input": {"a": 1}, "expected": 2, "verdict": "defect", "want": "3"});
            let case: Case = serde_json::from_value(text).unwrap();
            report.add(&Case { set: "s".into(), ..case }, judgement);
        };
        add("good", Judgement::Passed);
        add("bad", Judgement::Failed { got: json!(4) });
        add("odd", Judgement::Skipped { why: "reasons".into() });
        report
    }

    #[test]
    fn a_kind_is_one_line() {
        assert_eq!(report().to_text(false), "s/k 1 passed 1 failed 1 skipped\n");
        assert!(report().has_failures());
        assert!(!Report::default().has_failures());
    }

    #[test]
    fn verbose_lists_the_cases_that_did_not_pass() {
        let expected = "s/k 1 passed 1 failed 1 skipped\n  failed bad (Defect)\n    input    {\"a\":1}\n    expected 2\n    got      4\n    want     3\n  skipped odd: reasons\n";
        assert_eq!(report().to_text(true), expected);
    }

    #[test]
    fn the_json_form_has_sums_and_cases() {
        let json: Value = serde_json::from_str(&report().to_json().unwrap()).unwrap();
        assert_eq!((&json["passed"], &json["failed"], &json["skipped"]), (&json!(1), &json!(1), &json!(1)));
        assert_eq!(json["kinds"][0]["cases"][0]["id"], "bad");
        assert_eq!(json["kinds"][0]["cases"][1], json!({"result": "skipped", "id": "odd", "why": "reasons"}));
    }
}
