//! The files of a skill: finds them, and puts script, schemas and further files into its object. Knows no cluster.
//!
//! A directory with a `skill.yaml` is one skill in several files. Any other directory, and a file, holds whole Skills.

mod parts;

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use serde_json::Value;
use thiserror::Error;

pub(crate) use self::parts::{INPUT_SCHEMA_FILE, OUTPUT_SCHEMA_FILE, SKILL_FILE};

/// Directory of the tests, beside the skill's file.
pub(crate) const TESTS: &str = "tests";

#[derive(Debug, Error)]
pub(crate) enum BundleError {
    #[error("could not read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("could not write {}: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("{} is there already; nothing was written", path.display())]
    Exists { path: PathBuf },
    #[error("{} is no YAML: {problem}", path.display())]
    NotYaml { path: PathBuf, problem: String },
    #[error("{} is no JSON: {problem}", path.display())]
    NotJson { path: PathBuf, problem: String },
    #[error("{} holds no Skill; kubectl skill init writes a directory with one", path.display())]
    NoSkill { path: PathBuf },
    #[error("{} is no SkillPolicy: {problem}", path.display())]
    NotPolicy { path: PathBuf, problem: String },
    #[error("{} has no metadata.name", path.display())]
    NoName { path: PathBuf },
    #[error("{} gives {field}, and skill.yaml gives it too; keep one of them", path.display())]
    Twice { path: PathBuf, field: &'static str },
    #[error("there is no script: write {}, or give run.sandbox.script or command in skill.yaml", path.display())]
    NoScript { path: PathBuf },
    #[error("{} has no expected result beside it; write {}", input.display(), expected.display())]
    NoExpectation { input: PathBuf, expected: PathBuf },
    #[error(
        "{0:?} cannot be the name of a skill: use at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
    )]
    Name(String),
}

/// A Skill as its author wrote it, with its parts in place.
#[derive(Clone, Debug)]
pub(crate) struct SkillSource {
    /// File of the Skill, for messages.
    pub(crate) file: PathBuf,
    pub(crate) object: Value,
    /// Directory of its tests.
    pub(crate) tests: PathBuf,
    /// True if every test of that directory is its own.
    pub(crate) is_alone: bool,
}

impl SkillSource {
    pub(crate) fn name(&self) -> Result<&str, BundleError> {
        self.object["metadata"]["name"]
            .as_str()
            .ok_or_else(|| BundleError::NoName { path: self.file.clone() })
    }
}

/// Returns the Skills of every path.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Vec<SkillSource>, BundleError> {
    let mut found = Vec::new();
    for path in paths {
        found.extend(read(path)?);
    }
    Ok(found)
}

fn read(path: &Path) -> Result<Vec<SkillSource>, BundleError> {
    if path == Path::new("-") {
        let mut text = String::new();
        let read = io::stdin().lock().read_to_string(&mut text);
        read.map_err(|source| BundleError::Unreadable { path: path.into(), source })?;
        return skills_of(Path::new("standard input"), &text);
    }
    if path.join(SKILL_FILE).is_file() {
        return Ok(vec![parts::assemble(path)?]);
    }
    let found = if path.is_dir() {
        let mut found = Vec::new();
        for file in list(path)? {
            if file.extension().is_some_and(|ending| ending == "yaml" || ending == "yml") {
                found.extend(skills_of(&file, &read_text(&file)?)?);
            }
        }
        found
    } else {
        skills_of(path, &read_text(path)?)?
    };
    if found.is_empty() { Err(BundleError::NoSkill { path: path.into() }) } else { Ok(found) }
}

/// The Skills of a file; objects of other kinds are left out.
fn skills_of(file: &Path, text: &str) -> Result<Vec<SkillSource>, BundleError> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| BundleError::NotYaml { path: file.into(), problem: error.to_string() })?;
    let skills = objects.into_iter().filter(|object| object["kind"] == "Skill");
    let tests = file.parent().unwrap_or(Path::new("")).join(TESTS);
    Ok(skills
        .map(|object| SkillSource { file: file.into(), object, tests: tests.clone(), is_alone: false })
        .collect())
}

/// Files and directories in a directory, by name.
pub(crate) fn list(directory: &Path) -> Result<Vec<PathBuf>, BundleError> {
    let unreadable = |source| BundleError::Unreadable { path: directory.into(), source };
    let entries = fs::read_dir(directory).map_err(unreadable)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<PathBuf>, io::Error>>()
        .map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

pub(crate) fn read_text(path: &Path) -> Result<String, BundleError> {
    fs::read_to_string(path).map_err(|source| BundleError::Unreadable { path: path.into(), source })
}

pub(crate) fn read_json(path: &Path) -> Result<Value, BundleError> {
    serde_json::from_str(&read_text(path)?)
        .map_err(|error| BundleError::NotJson { path: path.into(), problem: error.to_string() })
}

#[cfg(test)]
mod tests;
