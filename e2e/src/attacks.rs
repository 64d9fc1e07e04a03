//! The programs in `e2e/attacks`: each tries to get out of its sandbox, and its header says how the refusal shows.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};
use skillet_api::Reason;

use crate::draft::SkillDraft;

/// One attempt to get out.
pub struct Attack {
    pub name: String,
    /// The program's possible ends if its attempt is refused.
    pub ends: Vec<Reason>,
    /// Refused under `Strict` only.
    pub is_for_strict: bool,
    text: String,
}

/// Every attack.
pub fn all() -> Result<Vec<Attack>> {
    let folder = crate::package_folder().join("attacks");
    let mut attacks = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("could not list {}", folder.display()))? {
        let path = entry?.path();
        let is_program = path.extension().is_some_and(|kind| kind == "sh" || kind == "py");
        if is_program {
            attacks.push(read(&path)?);
        }
    }
    attacks.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(attacks)
}

fn read(path: &Path) -> Result<Attack> {
    let text = fs::read_to_string(path)?;
    let name = path.file_name().and_then(|name| name.to_str()).context("a name that is not text")?.to_owned();
    let header = |key: &str| {
        let mut lines = text.lines().take_while(|line| line.starts_with('#'));
        lines.find_map(|line| line.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix(": "))
    };
    let end = |word: &str| match word {
        "timedOut" => Ok(Reason::TimedOut),
        "outOfMemory" => Ok(Reason::OutOfMemory),
        other => bail!("{name} ends with {other}, which is not known"),
    };
    let ends = match header("ends") {
        None => vec![Reason::Succeeded],
        Some(words) => words.split(" or ").map(end).collect::<Result<_>>()?,
    };
    let is_for_strict = header("level") == Some("strict");
    Ok(Attack { name, ends, is_for_strict, text })
}

impl Attack {
    /// The attack as a skill.
    pub fn skill(&self) -> SkillDraft {
        let name = self.skill_name();
        let skill = match self.name.rsplit_once('.') {
            Some((_, "py")) => SkillDraft::python(&name, &self.text),
            _ => SkillDraft::shell(&name, &self.text),
        };
        let limit = if self.ends.contains(&Reason::TimedOut) { "1s" } else { "20s" };
        // Room for as many processes as there may be: an attack on their number is none on memory.
        skill.limit("timeout", limit).limit("memory", "512Mi").limit("cpu", "500m")
    }

    /// Name of that skill.
    pub fn skill_name(&self) -> String {
        self.name.replace('.', "-")
    }
}
