//! Mistakes in the other kinds, answered by `kubectl apply`.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    door::{Answer, Door, Row},
    programs,
    stage::{Stage, name_of},
};

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Object {
    kind: String,
    name: Option<String>,
    spec: Value,
}

impl Door for Object {
    const NAME: &'static str = "objects";
    const TABLE: &'static str = include_str!("tables/objects.yaml");

    async fn answer(row: &Row<Self>, stage: &Stage<'_>) -> Result<Answer> {
        let Object { kind, name, spec } = &row.deed;
        let is_policy = kind == "SkillPolicy";
        let own = if is_policy { "default".to_owned() } else { name_of(&row.mistake) };
        let name = name.clone().unwrap_or(own);
        let object = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": kind, "metadata": { "name": name }, "spec": spec });
        let dry_run = if is_policy { "server" } else { "none" };
        let dry_run = format!("--dry-run={dry_run}");
        let arguments = ["apply", "--namespace", &stage.j.namespace, &dry_run, "-f", "-"];
        let began = Instant::now();
        let applied = programs::run("kubectl", &arguments, &stage.directory, &object.to_string()).await?;
        ensure!(applied.code != Some(0), "it is accepted");
        Ok(Answer { text: applied.text, took: began.elapsed() })
    }
}
