//! `kubectl skill import`: folders, files and archives of instructions become Skills. One bad file never stops the others.

pub(crate) mod manifest;

use std::{collections::BTreeMap, fmt::Write as _};

use kube::Api;
use serde_json::{Value, json};
use skillet_api::Skill;
use skillet_instructions::{
    Code, Diagnostic,
    collect::{Collected, collect},
    document::Reading,
    tree::FileTree,
};

use crate::{
    apply,
    arguments::{ClusterArgs, DryRun, ImportArgs, ImportFormat},
    bundle::SkillSource,
    connection::{ClusterClient, connect},
    console::{self, Console},
    error::CliError,
    exit::Exit,
    folder,
    output_format::yaml,
};

/// The outcome of one file.
#[derive(Clone, Debug, PartialEq)]
struct Verdict {
    path: String,
    outcome: Outcome,
    /// Findings and reasons, in words.
    notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    /// The Skill, and true if reading changed something.
    Taken {
        object: Value,
        is_repaired: bool,
    },
    Refused,
}

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &ImportArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let mut verdicts = Vec::new();
    for path in &args.paths {
        verdicts.extend(read(&folder::read(path)?, &args.prefix));
    }
    refuse_repeated_names(&mut verdicts);
    if args.dry_run == DryRun::Client {
        for verdict in &mut verdicts {
            if let (Outcome::Taken { object, .. }, Some(namespace)) =
                (&mut verdict.outcome, &cluster.namespace)
            {
                object["metadata"]["namespace"] = json!(namespace);
            }
        }
    } else if !verdicts.is_empty() {
        let connection = connect(cluster).await?;
        for verdict in &mut verdicts {
            apply_one(&connection, verdict, args).await?;
        }
    }
    print(&verdicts, args.output, console)?;
    let is_failed = verdicts.is_empty() || verdicts.iter().any(|verdict| verdict.outcome == Outcome::Refused);
    Ok(if is_failed { Exit::Failed } else { Exit::Done })
}

/// Reads all skills of a tree, in the order of their paths.
fn read(tree: &FileTree, prefix: &str) -> Vec<Verdict> {
    let collection = collect(tree, Reading::LENIENT);
    let mut verdicts: Vec<Verdict> =
        collection.skills.iter().map(|found| verdict(tree, found, prefix)).collect();
    verdicts.extend(collection.refused.into_iter().map(|refused| Verdict {
        path: refused.path,
        outcome: Outcome::Refused,
        notes: refused.findings.iter().map(ToString::to_string).collect(),
    }));
    verdicts.sort_by(|a, b| a.path.cmp(&b.path));
    verdicts
}

/// Returns the Skills of a tree.
#[cfg(test)]
pub(crate) fn skills(tree: &FileTree, prefix: &str) -> Vec<Value> {
    let taken = read(tree, prefix).into_iter().filter_map(|verdict| match verdict.outcome {
        Outcome::Taken { object, .. } => Some(object),
        Outcome::Refused => None,
    });
    taken.collect()
}

fn verdict(tree: &FileTree, found: &Collected, prefix: &str) -> Verdict {
    let path = found.skill.candidate.path.clone();
    let warnings = &found.skill.document.warnings;
    match manifest::skill(tree, found, prefix) {
        Ok(object) => {
            let is_repaired = warnings.iter().any(is_repair);
            let notes = warnings.iter().map(ToString::to_string).collect();
            Verdict { path, outcome: Outcome::Taken { object, is_repaired }, notes }
        }
        Err(notes) => Verdict { path, outcome: Outcome::Refused, notes },
    }
}

/// True for a finding with which the file is read otherwise than it is written.
fn is_repair(finding: &Diagnostic) -> bool {
    finding.code != Code::SkillValidation
}

fn refuse_repeated_names(verdicts: &mut [Verdict]) {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    for verdict in verdicts {
        let Outcome::Taken { object, .. } = &verdict.outcome else { continue };
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match first.get(&name) {
            Some(winner) => {
                verdict.outcome = Outcome::Refused;
                verdict.notes =
                    vec![format!("{winner} is Skill {name} already; give one of them another name")];
            }
            None => drop(first.insert(name, verdict.path.clone())),
        }
    }
}

async fn apply_one(
    connection: &ClusterClient,
    verdict: &mut Verdict,
    args: &ImportArgs,
) -> Result<(), CliError> {
    let Outcome::Taken { object, .. } = &mut verdict.outcome else { return Ok(()) };
    raise_version(connection, object).await;
    let source = SkillSource {
        file: verdict.path.clone().into(),
        object: object.clone(),
        tests: std::path::PathBuf::new(),
        is_alone: false,
    };
    let applied =
        apply::apply(connection, &source, args.force_conflicts, args.dry_run == DryRun::Server).await;
    match applied {
        Err(error) if error.exit() == Exit::Cluster => return Err(error),
        Err(error) => {
            verdict.outcome = Outcome::Refused;
            verdict.notes = vec![error.to_string()];
        }
        Ok(()) => {}
    }
    Ok(())
}

/// Gives changed content a higher version than that of the cluster, since sealed content never changes.
async fn raise_version(connection: &ClusterClient, object: &mut Value) {
    let skills: Api<Skill> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let Some(name) = object["metadata"]["name"].as_str() else { return };
    // A Skill that cannot be read is new, or the server will refuse to change it.
    let Ok(present) = skills.get(name).await else { return };
    let Ok(desired) = serde_json::from_value::<Skill>(object.clone()) else { return };
    let is_same = present.spec.description == desired.spec.description
        && present.spec.instructions == desired.spec.instructions
        && present.spec.files == desired.spec.files;
    let version = if is_same {
        Some(present.spec.version)
    } else {
        raised(&present.spec.version, &desired.spec.version)
    };
    if let Some(version) = version {
        object["spec"]["version"] = version.into();
    }
}

/// The next version after the present one; `None` if the desired one is higher.
fn raised(present: &str, desired: &str) -> Option<String> {
    let numbers =
        |version: &str| -> Option<Vec<u64>> { version.split('.').map(|part| part.parse().ok()).collect() };
    let (present, desired) = (numbers(present)?, numbers(desired)?);
    match present.as_slice() {
        [major, minor, patch] if desired <= present => Some(format!("{major}.{minor}.{}", patch + 1)),
        _ => None,
    }
}

fn print(verdicts: &[Verdict], format: ImportFormat, console: &Console) -> Result<(), CliError> {
    let objects = verdicts.iter().filter_map(|verdict| match &verdict.outcome {
        Outcome::Taken { object, .. } => Some(object),
        Outcome::Refused => None,
    });
    let lines = text(verdicts);
    match format {
        ImportFormat::Text => return console.print(&lines),
        ImportFormat::Yaml => {
            for object in objects {
                console.print(&format!("---\n{}", yaml(object)?))?;
            }
        }
        ImportFormat::Json => {
            let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects.collect::<Vec<_>>() });
            console.print(&format!("{list:#}\n"))?;
        }
    }
    console::explain(&lines);
    Ok(())
}

/// One line for each file, and the sums.
fn text(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    let (mut taken, mut repaired) = (0, 0);
    for Verdict { path, outcome, notes } in verdicts {
        let notes = if notes.is_empty() { String::new() } else { format!(": {}", notes.join("; ")) };
        let (word, name) = match outcome {
            Outcome::Taken { object, is_repaired } => {
                taken += 1;
                repaired += usize::from(*is_repaired);
                let word = if *is_repaired { "repaired" } else { "imported" };
                (word, object["metadata"]["name"].as_str().unwrap_or_default())
            }
            Outcome::Refused => ("refused", "-"),
        };
        let _ = writeln!(text, "{word} {name} {path}{notes}");
    }
    let refused = verdicts.len() - taken;
    let _ = writeln!(text, "Skills: {taken} imported ({repaired} repaired), {refused} refused");
    text
}

#[cfg(test)]
mod tests;
