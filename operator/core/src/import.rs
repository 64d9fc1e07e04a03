//! Skills of files: each SKILL.md and flat file of a tree becomes a Skill, or is refused with its reasons. One bad file never
//! stops the others.

mod bundle;
mod findings;
pub mod manifest;
pub mod openapi;
mod servers;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skillet_api::SkillSpec;
use skillet_instructions::{
    Code, Diagnostic,
    collect::{Collected, collect},
    document::{Reading, with_line_feeds},
    lint,
    tree::FileTree,
};

pub use self::findings::findings;

/// The outcome of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Path of the file in its tree.
    pub path: String,
    pub outcome: Outcome,
    /// Findings and reasons, in words.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The Skill, and true if reading changed something.
    Taken {
        object: Value,
        is_repaired: bool,
    },
    Refused,
}

impl Verdict {
    /// Returns the Skill, unless the file was refused.
    pub fn object(&self) -> Option<&Value> {
        match &self.outcome {
            Outcome::Taken { object, .. } => Some(object),
            Outcome::Refused => None,
        }
    }

    /// Refuses the file for one reason.
    pub fn refuse(&mut self, reason: String) {
        self.outcome = Outcome::Refused;
        self.notes = vec![reason];
    }
}

/// The image that the files of a tree are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeImage {
    /// Image with its digest.
    pub reference: String,
    /// Directory of the tree in the image; empty for the root.
    pub directory: String,
    /// Directory that stands around the files in the tree and not in the image, if there is one.
    pub added: Option<String>,
}

/// Reads all skills of a tree, in the order of their paths.
pub fn read(tree: &FileTree, prefix: &str) -> Vec<Verdict> {
    read_image(tree, prefix, None)
}

/// Reads all skills of a tree. Files that are too large for a Skill stay in the image.
pub fn read_image(tree: &FileTree, prefix: &str, image: Option<&TreeImage>) -> Vec<Verdict> {
    let collection = collect(tree, Reading::LENIENT);
    let mut verdicts: Vec<Verdict> =
        collection.skills.iter().map(|found| verdict(tree, found, prefix, image)).collect();
    verdicts.extend(collection.refused.into_iter().map(|refused| Verdict {
        path: refused.path,
        outcome: Outcome::Refused,
        notes: refused.findings.iter().map(ToString::to_string).collect(),
    }));
    verdicts.sort_by(|a, b| a.path.cmp(&b.path));
    verdicts
}

fn verdict(tree: &FileTree, found: &Collected, prefix: &str, image: Option<&TreeImage>) -> Verdict {
    let path = found.skill.candidate.path.clone();
    let warnings = &found.skill.document.warnings;
    match manifest::skill(tree, found, prefix, image) {
        Ok(object) => {
            let is_repaired = warnings.iter().any(is_repair);
            let mut notes: Vec<String> = warnings.iter().map(ToString::to_string).collect();
            notes.extend(commands_note(tree, found));
            notes.extend(servers_note(tree, found, &object));
            Verdict { path, outcome: Outcome::Taken { object, is_repaired }, notes }
        }
        Err(notes) => Verdict { path, outcome: Outcome::Refused, notes },
    }
}

/// Returns what becomes of the first command of a body. The format runs it; a Skill does so only where it is asked to.
fn commands_note(tree: &FileTree, found: &Collected) -> Option<String> {
    let text = with_line_feeds(&manifest::found_content(tree, found).unwrap_or_default());
    lint::commands_not_run(&text, &found.skill.document.body).first().map(ToString::to_string)
}

/// Returns what becomes of the MCP servers that a file or its bundle names, apart from those that a sandbox runs.
fn servers_note(tree: &FileTree, found: &Collected, skill: &Value) -> Option<String> {
    let (place, named) = servers::named(tree, found);
    let named = match named {
        Ok(named) => named,
        Err(problem) => return Some(format!("the MCP servers of {place} are not started: {problem}")),
    };
    let started = &skill["spec"]["instructions"]["mcpServers"];
    let left: Vec<&str> =
        named.keys().map(String::as_str).filter(|name| started.get(name).is_none()).collect();
    (!left.is_empty()).then(|| {
        format!(
            "of the MCP servers of {place}, {} cannot run in a sandbox, so models do not get their tools; write spec.instructions.mcpServers with a file of the skill that python3, node or sh runs, or with a program of the skill's own image",
            left.join(", ")
        )
    })
}

/// True for a finding with which the file is read otherwise than it is written.
fn is_repair(finding: &Diagnostic) -> bool {
    finding.code != Code::SkillValidation
}

/// Refuses each file whose Skill has the name of an earlier one.
pub fn refuse_repeated_names(verdicts: &mut [Verdict]) {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    for verdict in verdicts {
        let Some(object) = verdict.object() else { continue };
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match first.get(&name) {
            Some(winner) => {
                let reason = format!("{winner} is Skill {name} already; give one of them another name");
                verdict.refuse(reason);
            }
            None => drop(first.insert(name, verdict.path.clone())),
        }
    }
}

/// Keeps those fields of a present Skill that its user sets and no file can say.
pub fn keep_own_fields(present: &SkillSpec, object: &mut Value) {
    let Some(own) = &present.instructions else { return };
    let instructions = &mut object["spec"]["instructions"];
    if !own.dynamic.is_never() {
        instructions["dynamic"] = json!(own.dynamic);
    }
    if !own.denied_tools.is_empty() {
        instructions["deniedTools"] = json!(own.denied_tools);
    }
}

/// Returns the version that a file's content gets where a Skill of its name is present: the present one for the same content,
/// since sealed content never changes; a higher one for other content. `None` leaves the file's own.
pub fn next_version(present: &SkillSpec, desired: &SkillSpec) -> Option<String> {
    // A file of instructions says nothing of a program, which its user may have added.
    let is_same_program = desired.run.is_none()
        || present.run == desired.run && present.tool == desired.tool && present.network == desired.network;
    let is_same = is_same_program
        && present.description == desired.description
        && present.instructions == desired.instructions
        && present.files == desired.files;
    if is_same { Some(present.version.clone()) } else { raised(&present.version, &desired.version) }
}

/// Returns the next version after the present one; `None` if the desired one is higher.
pub fn raised(present: &str, desired: &str) -> Option<String> {
    let numbers =
        |version: &str| -> Option<Vec<u64>> { version.split('.').map(|part| part.parse().ok()).collect() };
    let (present, desired) = (numbers(present)?, numbers(desired)?);
    match present.as_slice() {
        [major, minor, patch] if desired <= present => Some(format!("{major}.{minor}.{}", patch + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
