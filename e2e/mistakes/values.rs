//! Mistakes in the chart's values, answered by helm before anything is sent.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    door::{Answer, Door, Row},
    programs,
    stage::{Stage, name_of},
};

/// The one value that is required.
const REGISTRY: &str = "{\"imageRegistry\": \"registry.example.com\"}";

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Values {
    values: Value,
}

impl Door for Values {
    const NAME: &'static str = "values";
    const TABLE: &'static str = include_str!("tables/values.yaml");

    async fn answer(row: &Row<Self>, stage: &Stage<'_>) -> Result<Answer> {
        let name = name_of(&row.mistake);
        let (registry, own) = (format!("{name}-registry.yaml"), format!("{name}.yaml"));
        programs::write(&stage.directory, &registry, REGISTRY)?;
        programs::write(&stage.directory, &own, &row.deed.values.to_string())?;
        let chart = skillet_e2e::package_folder().join("../charts/skillet");
        let chart = chart.to_string_lossy();
        let arguments = [
            "template",
            "skillet",
            &chart,
            "--namespace",
            "skillet-system",
            "--kube-version",
            "1.36.0",
            "--values",
            &registry,
            "--values",
            &own,
        ];
        let began = Instant::now();
        let rendered = programs::run("helm", &arguments, &stage.directory, "").await?;
        ensure!(rendered.code != Some(0), "it is accepted");
        Ok(Answer { text: rendered.text, took: began.elapsed() })
    }
}
