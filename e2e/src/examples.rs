//! The skills in `examples/`: each a file to apply, a sample input, and what must come of it.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use skillet_api::Skill;
use skillet_core::expectation::Expectation;

use crate::manifest::Manifest;

/// One example.
pub struct Example {
    pub name: String,
    /// The file as it is.
    pub yaml: String,
    pub skill: Skill,
    pub input: Value,
    pub expected: Expectation,
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

/// The folder of all examples.
pub fn folder() -> PathBuf {
    crate::package_folder().join("../examples")
}

fn load(name: &str) -> Result<Example> {
    let yaml = read(&format!("{name}.yaml"))?;
    let mut skills = yaml.objects()?.into_iter().filter(|object| object["kind"] == "Skill");
    let skill = skills.next().with_context(|| format!("{name}.yaml holds no Skill"))?;
    ensure!(skills.next().is_none(), "{name}.yaml holds more than one Skill");
    Ok(Example {
        name: name.to_owned(),
        skill: serde_json::from_value(skill).with_context(|| format!("{name}.yaml"))?,
        input: json(&format!("tests/{name}.input.json"))?,
        expected: json(&format!("tests/{name}.expected.json"))?,
        yaml,
    })
}

fn json<T: for<'de> Deserialize<'de>>(file: &str) -> Result<T> {
    serde_json::from_str(&read(file)?).with_context(|| file.to_owned())
}

fn read(file: &str) -> Result<String> {
    fs::read_to_string(folder().join(file)).with_context(|| format!("could not read examples/{file}"))
}
