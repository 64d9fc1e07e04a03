//! A skill in several files: skill.yaml, the script, the schemas, and files of the working directory.

use std::{
    fs,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use skillet_api::skill::Runtime;
use skillet_core::skill::script_file_name;

use super::{BundleError, SkillSource, TESTS, list, read_json, read_text};

pub(crate) const SKILL_FILE: &str = "skill.yaml";
pub(crate) const INPUT_SCHEMA_FILE: &str = "schema.json";
pub(crate) const OUTPUT_SCHEMA_FILE: &str = "output-schema.json";
/// Directory of the files that the program finds in its working directory.
const FILES: &str = "files";

/// Puts the files of `directory` into the Skill of its skill.yaml.
pub(super) fn assemble(directory: &Path) -> Result<SkillSource, BundleError> {
    let file = directory.join(SKILL_FILE);
    let not_yaml = |problem| BundleError::NotYaml { path: file.clone(), problem };
    let mut object: Value =
        serde_saphyr::from_str(&read_text(&file)?).map_err(|error| not_yaml(error.to_string()))?;
    if object["kind"] != "Skill" || !object["spec"].is_object() {
        return Err(BundleError::NoSkill { path: file });
    }
    let spec = &mut object["spec"];
    for (name, field) in [(INPUT_SCHEMA_FILE, "inputSchema"), (OUTPUT_SCHEMA_FILE, "outputSchema")] {
        let path = directory.join(name);
        if !path.is_file() {
            continue;
        }
        if !spec["tool"][field].is_null() {
            return Err(BundleError::Twice { path, field: "its schema" });
        }
        spec["tool"][field] = read_json(&path)?;
    }
    add_script(directory, &mut spec["run"]["sandbox"])?;
    add_files(&directory.join(FILES), &mut spec["run"]["sandbox"])?;
    Ok(SkillSource { file, object, tests: directory.join(TESTS), is_alone: true })
}

fn add_script(directory: &Path, sandbox: &mut Value) -> Result<(), BundleError> {
    // An unknown runtime has no script; validation names it.
    let Ok(runtime) = serde_json::from_value::<Runtime>(sandbox["runtime"].clone()) else { return Ok(()) };
    let path = directory.join(script_file_name(runtime));
    let has_program = !sandbox["script"].is_null() || !sandbox["command"].is_null();
    match (path.is_file(), has_program) {
        (true, true) => Err(BundleError::Twice { path, field: "the program" }),
        (true, false) => {
            sandbox["script"] = read_text(&path)?.into();
            Ok(())
        }
        (false, true) => Ok(()),
        (false, false) => Err(BundleError::NoScript { path }),
    }
}

/// Adds every file below `directory`, beside those of skill.yaml.
fn add_files(directory: &Path, sandbox: &mut Value) -> Result<(), BundleError> {
    if !directory.is_dir() {
        return Ok(());
    }
    let mut found = Vec::new();
    collect(directory, &mut found)?;
    let mut files = sandbox["files"].as_array().cloned().unwrap_or_default();
    for path in found {
        let relative = path.strip_prefix(directory).unwrap_or(&path).to_string_lossy().into_owned();
        let bytes = fs::read(&path).map_err(|source| BundleError::Unreadable { path, source })?;
        files.push(match String::from_utf8(bytes) {
            Ok(content) => json!({ "path": relative, "content": content }),
            Err(error) => json!({ "path": relative, "contentBase64": STANDARD.encode(error.as_bytes()) }),
        });
    }
    sandbox["files"] = files.into();
    Ok(())
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), BundleError> {
    for path in list(directory)? {
        if path.is_dir() {
            collect(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}
