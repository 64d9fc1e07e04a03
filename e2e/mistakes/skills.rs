//! Mistakes in a Skill, answered by `kubectl apply` or, soon after, by the conditions.

use std::time::Instant;

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};
use skillet_e2e::manifest;

use crate::{
    door::{Answer, Door, Row},
    programs,
    stage::{Stage, name_of},
};

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Skill {
    /// Changes of the shortest spec; null removes a field.
    #[serde(default, rename = "skill")]
    change: Value,
    name: Option<String>,
    /// A whole document.
    text: Option<String>,
}

/// The shortest Skill with a change.
pub(crate) fn object(name: &str, change: &Value) -> Value {
    let mut spec = json!({
        "version": "1.0.0",
        "description": "Counts words.",
        "run": { "sandbox": { "runtime": "shell", "script": "cat" } },
    });
    manifest::merge(&mut spec, change);
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": { "name": name }, "spec": spec })
}

impl Door for Skill {
    const NAME: &'static str = "skills";
    const TABLE: &'static str = include_str!("tables/skills.yaml");

    async fn answer(row: &Row<Self>, stage: &Stage<'_>) -> Result<Answer> {
        let Skill { change, name, text } = &row.deed;
        let name = name.clone().unwrap_or_else(|| name_of(&row.mistake));
        let document = text.clone().unwrap_or_else(|| object(&name, change).to_string());
        let began = Instant::now();
        let arguments = ["apply", "--namespace", &stage.j.namespace, "-f", "-"];
        let applied = programs::run("kubectl", &arguments, &stage.directory, &document).await?;
        let text = if applied.code == Some(0) {
            row.until_clear(async || stage.conditions(&name).await).await?
        } else {
            applied.text
        };
        Ok(Answer { text, took: began.elapsed() })
    }
}
