//! `project_skills`: the skills that a tree of files holds, in order.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skillet_instructions::{
    discovery::{Discovered, find, merge},
    document::read,
    tree::FileTree,
    without_ignored,
};

use super::fields::{STRICT, fields};
use crate::{case::Case, judge::Answer};

const COMPARED: [&str; 6] = ["name", "type", "source", "trigger", "body", "disable_model_invocation"];

pub(super) fn project_skills(case: &Case) -> Result<Answer, String> {
    let tree = tree(case)?;
    let files = tree.resolve().files;
    let repository_root = case.input["git_init_at"].as_str().map(relative);
    let listed = if repository_root.is_some() { without_ignored(&files, &tree) } else { files.clone() };
    let mut candidates = find(&files, relative(case.text("work_dir")), repository_root);
    candidates.retain(|candidate| candidate.counts_in(&listed));
    let found = candidates.into_iter().filter_map(|candidate| {
        let content = tree.content(&files[&candidate.path])?;
        let document = read(content, candidate.file_name(), STRICT).ok()?;
        Some(Discovered { candidate, document })
    });
    let (kept, _) = merge(found.collect());
    let skills: Vec<Value> = kept
        .iter()
        .map(|found| fields(&found.document, &format!("$ROOT/{}", found.candidate.path)))
        .map(|fields| comparable(&fields))
        .collect();
    let expected: Vec<Value> =
        case.expected["skills_in_order"].as_array().into_iter().flatten().map(comparable).collect();
    Ok(Answer { is_same: skills == expected, ..Answer::exact(case, json!({ "skills_in_order": skills })) })
}

fn tree(case: &Case) -> Result<FileTree, String> {
    let mut tree = FileTree::default();
    let texts = |field: &str| -> BTreeMap<String, String> {
        let map = case.input[field].as_object().into_iter().flatten();
        map.filter_map(|(path, text)| Some((path.clone(), text.as_str()?.to_owned()))).collect()
    };
    for (path, text) in texts("files") {
        tree.add_file(&path, text.into_bytes()).map_err(|error| error.to_string())?;
    }
    for (path, target) in texts("symlinks") {
        tree.add_link(&path, &target).map_err(|error| error.to_string())?;
    }
    Ok(tree)
}

/// The root is empty in the product.
fn relative(path: &str) -> &str {
    if path == "." { "" } else { path.trim_end_matches('/') }
}

fn comparable(skill: &Value) -> Value {
    let kept = COMPARED.iter().filter_map(|field| Some((*field, skill.get(field)?)));
    kept.filter(|(_, value)| !value.is_null())
        .collect::<BTreeMap<_, _>>()
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
