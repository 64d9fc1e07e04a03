//! The skills in `examples/`: each a file to apply, a sample input, and what must come of it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use skillet_api::{Phase, Reason, Skill, SkillExecutionStatus};

use crate::manifest::Manifest;

/// One example.
pub struct Example {
    pub name: String,
    /// The file as it is.
    pub yaml: String,
    pub skill: Skill,
    pub input: Value,
    pub expected: Expected,
}

/// The expected result of the sample input. Fields that are not set do not matter.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expected {
    pub phase: Phase,
    pub output: Option<Value>,
    pub reason: Option<Reason>,
    pub exit_code: Option<i32>,
    /// Words that the message has.
    pub message: Option<String>,
}

/// Every example, by name.
pub fn all() -> Result<Vec<Example>> {
    let mut names: Vec<String> = fs::read_dir(folder())
        .with_context(|| format!("could not list {}", folder().display()))?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".yaml")?.to_owned()))
        .collect();
    names.sort();
    names.iter().map(|name| load(name)).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

fn load(name: &str) -> Result<Example> {
    let yaml = read(&format!("{name}.yaml"))?;
    let mut skills = yaml.objects()?.into_iter().filter(|object| object["kind"] == "Skill");
    let skill = skills.next().with_context(|| format!("{name}.yaml holds no Skill"))?;
    ensure!(skills.next().is_none(), "{name}.yaml holds more than one Skill");
    Ok(Example {
        name: name.to_owned(),
        skill: serde_json::from_value(skill).with_context(|| format!("{name}.yaml"))?,
        input: json(&format!("{name}.input.json"))?,
        expected: json(&format!("{name}.expected.json"))?,
        yaml,
    })
}

fn json<T: for<'de> Deserialize<'de>>(file: &str) -> Result<T> {
    serde_json::from_str(&read(file)?).with_context(|| file.to_owned())
}

fn read(file: &str) -> Result<String> {
    fs::read_to_string(folder().join(file)).with_context(|| format!("could not read examples/{file}"))
}

impl Expected {
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
    fn numbers_are_the_same_however_they_are_written() {
        assert!(is_same(&json!({"a": [52.0]}), &json!({"a": [52]})));
        assert!(!is_same(&json!({"a": [52.5]}), &json!({"a": [52]})));
        assert!(!is_same(&json!({"a": 1}), &json!({"a": 1, "b": 1})));
        assert!(!is_same(&json!([1]), &json!([1, 2])));
    }
}
