//! `kubectl skill export`: writes the folder of a Skill with instructions: its SKILL.md and its files.

mod document;

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use skillet_api::{Skill, skill::File};
use skillet_core::skill::{body_source, with_body};
use thiserror::Error;

use crate::{
    arguments::{ClusterArgs, ExportArgs},
    bundle::BundleError,
    connection::{ClusterClient, connect},
    console::{self, Console},
    error::CliError,
    exit::Exit,
    skills,
};

#[derive(Debug, Error)]
pub(crate) enum ExportError {
    #[error("Skill {0} has no instructions; kubectl get skill {0} -o yaml prints its program")]
    NoInstructions(String),
    #[error(
        "spec.files of Skill {name} has {path:?}, which is not below its folder; give the file another path"
    )]
    Path { name: String, path: String },
    #[error(
        "spec.files of Skill {name} has {path:?} without text or with invalid base64; set content or contentBase64"
    )]
    Content { name: String, path: String },
    #[error(
        "ConfigMap {config_map} has no text under the key {key}, where Skill {name} has its instructions; add it"
    )]
    NoText { name: String, config_map: String, key: String },
}

/// The folder of a Skill.
#[derive(Clone, Debug, PartialEq)]
struct Folder {
    /// Name of the folder.
    name: String,
    /// Each file with its path in the folder.
    files: Vec<(String, Vec<u8>)>,
    /// Fields of the Skill that the folder does not have.
    lost: Vec<String>,
}

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &ExportArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let ClusterClient { client, namespace } = connect(cluster).await?;
    let skill = skills::read(&client, &namespace, &args.name).await?;
    let skill = with_text(&client, &namespace, skill, &args.name).await?;
    let folder = folder(&skill, &args.name)?;
    let directory = args.output.clone().unwrap_or_else(|| PathBuf::from(&folder.name));
    for path in write(&directory, &folder.files)? {
        console.print(&format!("{}\n", path.display()))?;
    }
    if !folder.lost.is_empty() {
        console::explain(&format!(
            "The folder does not have {}; kubectl get skill {} -n {namespace} -o yaml does\n",
            folder.lost.join(", "),
            args.name
        ));
    }
    Ok(Exit::Done)
}

/// Puts the text of `bodyFrom` into the Skill.
async fn with_text(client: &Client, namespace: &str, skill: Skill, name: &str) -> Result<Skill, CliError> {
    let Some(source) = body_source(&skill.spec).cloned() else { return Ok(skill) };
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let action = format!("read ConfigMap {namespace}/{}", source.name);
    let found = config_maps.get(&source.name).await.map_err(|error| CliError::from_api(action, &error))?;
    let text = found.data.and_then(|mut data| data.remove(&source.key));
    let text = text.ok_or_else(|| ExportError::NoText {
        name: name.to_owned(),
        config_map: source.name,
        key: source.key,
    })?;
    Ok(Skill { spec: with_body(&skill.spec, text), ..skill })
}

/// Returns the folder of a Skill.
fn folder(skill: &Skill, name: &str) -> Result<Folder, ExportError> {
    let Some(instructions) = &skill.spec.instructions else {
        return Err(ExportError::NoInstructions(name.to_owned()));
    };
    let mut files = Vec::new();
    for file in &skill.spec.files {
        if !is_inside(&file.path) {
            return Err(ExportError::Path { name: name.to_owned(), path: file.path.clone() });
        }
        let content = content(file)
            .ok_or_else(|| ExportError::Content { name: name.to_owned(), path: file.path.clone() })?;
        files.push((file.path.clone(), content));
    }
    let written = document::write(skill, instructions, name);
    files.insert(0, (written.path, written.text.into_bytes()));
    Ok(Folder { name: written.directory, files, lost: written.lost })
}

/// True for a path that stays below the folder.
fn is_inside(path: &str) -> bool {
    let mut components = Path::new(path).components();
    !path.is_empty() && components.all(|part| matches!(part, Component::Normal(_)))
}

fn content(file: &File) -> Option<Vec<u8>> {
    match (&file.content, &file.content_base64) {
        (Some(text), _) => Some(text.clone().into_bytes()),
        (None, Some(encoded)) => STANDARD.decode(encoded).ok(),
        (None, None) => None,
    }
}

/// Writes every file, or none if one of them exists.
fn write(directory: &Path, files: &[(String, Vec<u8>)]) -> Result<Vec<PathBuf>, BundleError> {
    let paths: Vec<PathBuf> = files.iter().map(|(path, _)| directory.join(path)).collect();
    if let Some(taken) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(BundleError::Exists { path: taken.clone() });
    }
    for (path, (_, content)) in paths.iter().zip(files) {
        let unwritable = |source| BundleError::Unwritable { path: path.clone(), source };
        fs::create_dir_all(path.parent().unwrap_or(directory)).map_err(unwritable)?;
        fs::write(path, content).map_err(unwritable)?;
    }
    Ok(paths)
}

#[cfg(test)]
mod tests;
