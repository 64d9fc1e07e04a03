//! `kubectl skill import`: folders, files and archives of instructions become Skills, and so do the operations of an OpenAPI
//! document. One bad file or operation never stops the others.

mod openapi;

use std::fmt::Write as _;

use kube::Api;
use serde_json::{Value, json};
use skillet_api::Skill;
use skillet_core::import::{Outcome, Verdict, keep_own_fields, next_version, read, refuse_repeated_names};

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

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &ImportArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let mut verdicts = match &args.openapi {
        Some(file) => openapi::read(file, &args.prefix, args.server.as_deref())?,
        None => Vec::new(),
    };
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
        Err(error) => verdict.refuse(error.to_string()),
        Ok(()) => {}
    }
    Ok(())
}

/// Keeps what the user of a present Skill set, and gives changed content a higher version than that of the cluster, since
/// sealed content never changes.
async fn raise_version(connection: &ClusterClient, object: &mut Value) {
    let skills: Api<Skill> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let Some(name) = object["metadata"]["name"].as_str() else { return };
    // A Skill that cannot be read is new, or the server will refuse to change it.
    let Ok(present) = skills.get(name).await else { return };
    keep_own_fields(&present.spec, object);
    let Ok(desired) = serde_json::from_value::<Skill>(object.clone()) else { return };
    if let Some(version) = next_version(&present.spec, &desired.spec) {
        object["spec"]["version"] = version.into();
    }
}

fn print(verdicts: &[Verdict], format: ImportFormat, console: &Console) -> Result<(), CliError> {
    let objects = verdicts.iter().filter_map(Verdict::object);
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
