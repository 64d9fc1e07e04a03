//! Mistakes at `kubectl skill`.

use std::{collections::BTreeMap, fs, time::Instant};

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::{
    door::{Answer, Door, Row},
    programs,
    stage::{Stage, name_of},
};

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Command {
    /// Words after `kubectl skill`.
    run: Vec<String>,
    /// Files in the working directory.
    #[serde(default)]
    files: BTreeMap<String, String>,
    exit: i32,
}

impl Door for Command {
    const NAME: &'static str = "commands";
    const TABLE: &'static str = include_str!("tables/commands.yaml");

    async fn answer(row: &Row<Self>, stage: &Stage<'_>) -> Result<Answer> {
        let directory = stage.directory.join(name_of(&row.mistake));
        fs::create_dir_all(&directory)?;
        for (path, text) in &row.deed.files {
            programs::write(&directory, path, text)?;
        }
        let mut arguments = vec!["skill"];
        arguments.extend(row.deed.run.iter().map(String::as_str));
        if !arguments.contains(&"--namespace") {
            arguments.extend(["--namespace", &stage.j.namespace]);
        }
        let began = Instant::now();
        let finished = programs::run("kubectl", &arguments, &directory, "").await?;
        let took = began.elapsed();
        let text = finished.text;
        ensure!(
            finished.code == Some(row.deed.exit),
            "exit {:?} in the place of {}: {text}",
            finished.code,
            row.deed.exit
        );
        Ok(Answer { text, took })
    }
}
