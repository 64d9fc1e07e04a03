//! The file of instructions: as its author wrote it, or with a frontmatter made of the Skill's fields.
//!
//! An import keeps the text before the body. It is used only if reading it with the body gives the Skill's fields again: the
//! Skill may have changed since. A file that is written is therefore read before it is returned.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};
use skillet_api::{
    Skill,
    instructions::{Activation, Instructions},
};
use skillet_core::import::manifest::{self, FILE_ANNOTATION, HEAD_ANNOTATION};
use skillet_instructions::{collect::collect, document::Reading, tree::FileTree};

use super::is_inside;
use crate::output_format::yaml;

/// The file of a standard folder.
const SKILL_MD: &str = "SKILL.md";

/// A file of instructions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Written {
    /// Name of the folder.
    pub(super) directory: String,
    /// Path in the folder.
    pub(super) path: String,
    pub(super) text: String,
    /// Fields of the Skill that the file does not have.
    pub(super) lost: Vec<String>,
}

/// Fields of a SKILL.md, in their usual order.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Frontmatter<'a> {
    name: &'a str,
    description: &'a str,
    version: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    triggers: Vec<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    paths: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<Value>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    allowed_tools: &'a [String],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disable_model_invocation: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_invocable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    argument_hint: Option<&'a str>,
}

/// Returns the file of a Skill.
pub(super) fn write(skill: &Skill, instructions: &Instructions, name: &str) -> Written {
    let annotations = skill.metadata.annotations.as_ref();
    let annotation = |key: &str| annotations.and_then(|annotations| annotations.get(key)).map(String::as_str);
    let imported = annotation(FILE_ANNOTATION).filter(|path| is_inside(path));
    let body = &instructions.body;
    let mut best: Option<Written> = None;
    let heads = annotation(HEAD_ANNOTATION).into_iter().map(|head| (imported, head.to_owned()));
    for (path, head) in heads.chain([(None, frontmatter(skill, instructions, name))]) {
        let (directory, path) = place(path, name);
        // A file of another product is its body, byte by byte.
        for end in ["\n", ""] {
            let text = format!("{head}{body}{end}");
            let lost = lost(skill, name, &directory, &path, &text);
            let is_better = best.as_ref().is_none_or(|best| lost.len() < best.lost.len());
            if is_better {
                best = Some(Written { directory: directory.clone(), path: path.clone(), text, lost });
            }
        }
    }
    let (directory, path) = place(None, name);
    best.unwrap_or_else(|| Written { directory, path, text: body.clone(), lost: Vec::new() })
}

/// Returns the folder's name and the path in it. A SKILL.md stands at the root of its folder.
fn place(imported: Option<&str>, name: &str) -> (String, String) {
    let Some(path) = imported else { return (name.to_owned(), SKILL_MD.to_owned()) };
    let (parent, file) = path.rsplit_once('/').unwrap_or(("", path));
    if !file.eq_ignore_ascii_case(SKILL_MD) {
        return (name.to_owned(), path.to_owned());
    }
    let directory = parent.rsplit('/').next().filter(|directory| !directory.is_empty());
    (directory.unwrap_or(name).to_owned(), file.to_owned())
}

fn frontmatter(skill: &Skill, instructions: &Instructions, name: &str) -> String {
    let triggers = instructions.triggers.as_ref();
    let slash = format!("/{name}");
    let keywords = triggers.into_iter().flat_map(|triggers| &triggers.keywords);
    let keywords = keywords.filter(|keyword| instructions.inputs.is_empty() || **keyword != slash);
    let fields = Frontmatter {
        name,
        description: &skill.spec.description,
        version: &skill.spec.version,
        triggers: keywords.map(String::as_str).collect(),
        paths: triggers.map(|triggers| triggers.paths.as_slice()).unwrap_or_default(),
        inputs: instructions.inputs.iter().map(|input| json!(input)).collect(),
        allowed_tools: &instructions.allowed_tools,
        disable_model_invocation: instructions.disable_model_invocation
            || instructions.activation == Activation::Triggered,
        user_invocable: (!instructions.user_invocable).then_some(false),
        argument_hint: instructions.argument_hint.as_deref(),
    };
    format!("---\n{}---\n\n", yaml(&fields).unwrap_or_default())
}

/// Returns the fields of the Skill that reading the file does not give. The version may differ: an import raises it.
fn lost(skill: &Skill, name: &str, directory: &str, path: &str, text: &str) -> Vec<String> {
    let mut tree = FileTree::default();
    let is_skill_md = path.eq_ignore_ascii_case(SKILL_MD);
    let place = if is_skill_md { format!("{directory}/{path}") } else { path.to_owned() };
    let is_added = tree.add_file(&place, text.as_bytes().to_vec()).is_ok();
    let collection = collect(&tree, Reading::LENIENT);
    let read = collection.skills.iter().find(|found| is_added && found.skill.candidate.path == place);
    let spec = read.map(|found| manifest::spec(&found.skill.document, name)).unwrap_or_default();
    let instructions: Option<Instructions> = serde_json::from_value(spec["instructions"].clone()).ok();
    let (wanted, found) = (json!(skill.spec.instructions), json!(instructions));
    let names: BTreeSet<&String> =
        [&wanted, &found].into_iter().filter_map(Value::as_object).flat_map(|fields| fields.keys()).collect();
    let differing = names.into_iter().filter(|field| wanted[field.as_str()] != found[field.as_str()]);
    let mut lost: Vec<String> = differing.map(|field| format!("spec.instructions.{field}")).collect();
    if spec["description"] != json!(skill.spec.description) {
        lost.push("spec.description".to_owned());
    }
    for (field, is_set) in [
        ("run", skill.spec.run.is_some()),
        ("tool", skill.spec.tool.is_some()),
        ("tags", !skill.spec.tags.is_empty()),
        ("examples", !skill.spec.examples.is_empty()),
    ] {
        if is_set {
            lost.push(format!("spec.{field}"));
        }
    }
    lost
}
