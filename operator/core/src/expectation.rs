//! The expected result of a run, as authors of skills write it beside a sample input.

use serde::Deserialize;
use serde_json::Value;
use skillet_api::{Phase, Reason, SkillExecutionStatus};

/// The expected result of one run. Fields that are not set do not matter.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expectation {
    /// Default `Succeeded`.
    #[serde(default = "succeeded")]
    pub phase: Phase,
    pub output: Option<Value>,
    pub reason: Option<Reason>,
    pub exit_code: Option<i32>,
    /// Words that the message has.
    pub message: Option<String>,
}

impl Expectation {
    /// Descriptions of everything that is wrong.
    pub fn differences(&self, status: &SkillExecutionStatus) -> Vec<String> {
        let Self { phase, output, reason, exit_code, message } = self;
        let mut found = Vec::new();
        let mut compare = |what: &str, wanted: String, got: String| {
            if wanted != got {
                found.push(format!("{what} should be {wanted}, and is {got}"));
            }
        };
        compare("phase", format!("{phase:?}"), format!("{:?}", status.phase));
        if let Some(reason) = reason {
            compare("reason", format!("{reason}"), status.reason.map(|r| r.to_string()).unwrap_or_default());
        }
        if let Some(code) = exit_code {
            compare("exit code", code.to_string(), status.exit_code.unwrap_or_default().to_string());
        }
        let got = status.output.clone().unwrap_or_default();
        if let Some(wanted) = output.as_ref().filter(|wanted| !is_same(wanted, &got)) {
            found.push(format!("output should be {wanted}, and is {got}"));
        }
        let said = status.message.as_deref().unwrap_or_default();
        if let Some(words) = message.as_ref().filter(|words| !said.contains(words.as_str())) {
            found.push(format!("the message should have {words:?}, and is {said:?}"));
        }
        found
    }
}

fn succeeded() -> Phase {
    Phase::Succeeded
}

/// True if two JSON values are the same. The API server writes 52.0 as 52, which is the same number.
pub fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let is_in_b = |(name, a): (&String, &Value)| b.get(name).is_some_and(|b| is_same(a, b));
            a.len() == b.len() && a.iter().all(is_in_b)
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_fields_that_are_set_are_compared() {
        let expected: Expectation = serde_json::from_value(json!({ "output": { "n": 1 } })).unwrap();
        let status = |phase, n: u32| SkillExecutionStatus {
            phase,
            output: Some(json!({ "n": n })),
            message: Some("any".into()),
            ..SkillExecutionStatus::default()
        };
        assert_eq!(expected.differences(&status(Phase::Succeeded, 1)), Vec::<String>::new());
        assert_eq!(
            expected.differences(&status(Phase::Failed, 2)),
            ["phase should be Succeeded, and is Failed", "output should be {\"n\":1}, and is {\"n\":2}"]
        );
    }

    #[test]
    fn numbers_are_the_same_however_they_are_written() {
        assert!(is_same(&json!({"a": [52.0]}), &json!({"a": [52]})));
        assert!(!is_same(&json!({"a": [52.5]}), &json!({"a": [52]})));
        assert!(!is_same(&json!({"a": 1}), &json!({"a": 1, "b": 1})));
        assert!(!is_same(&json!([1]), &json!([1, 2])));
    }
}
