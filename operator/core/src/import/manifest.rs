//! The Skill of a collected file: names, fields, bundle, and the frontmatter as written, for the way back.

use serde_json::{Value, json};
use skillet_api::{Skill, SkillPolicySpec};
use skillet_instructions::{
    SkillDocument,
    collect::Collected,
    document::{Placement, Trigger, with_line_feeds},
    frontmatter,
    inputs::InputType,
    listing::summarize,
    tree::FileTree,
};

use super::{
    TreeImage,
    bundle::{self, Bundle},
    findings, servers,
};
use crate::skill::validate_skill;

/// Annotation with the path of the file that a Skill was imported from.
pub const FILE_ANNOTATION: &str = "skillet.dev/imported-file";
/// Annotation with the text before the body, as its author wrote it.
pub const HEAD_ANNOTATION: &str = "skillet.dev/imported-frontmatter";
/// Annotation with the findings in the file, one a line.
pub const FINDINGS_ANNOTATION: &str = "skillet.dev/import-findings";
/// Longest name of an object.
const NAME_LIMIT: usize = 63;

/// Returns the Skill of a file, or the reasons why no Skill can hold it.
pub(super) fn skill(
    tree: &FileTree,
    found: &Collected,
    prefix: &str,
    image: Option<&TreeImage>,
) -> Result<Value, Vec<String>> {
    let (document, path) = (&found.skill.document, &found.skill.candidate.path);
    let name = object_name(prefix, &document.name, &found.skill.candidate.default_name);
    let content = found_content(tree, found).unwrap_or_default();
    let Bundle { files, source } = bundle::read(tree, found, image)?;
    let mut spec = spec(document, &name);
    let servers = servers::of_skill(tree, found);
    if !servers.is_empty() {
        spec["instructions"]["mcpServers"] = servers.into();
    }
    if !files.is_empty() {
        spec["files"] = json!(files);
    }
    let mut policy = SkillPolicySpec::default();
    if let Some(source) = source {
        policy.allowed_images.push(source.image.reference.clone());
        spec["instructions"]["filesFrom"] = json!(source);
    }
    let mut annotations = json!({ FILE_ANNOTATION: path, HEAD_ANNOTATION: head(&content, &document.body) });
    if let Some(findings) = findings::annotation(&document.warnings) {
        annotations[FINDINGS_ANNOTATION] = json!(findings);
    }
    let object = json!({
        "apiVersion": "skillet.dev/v1alpha1",
        "kind": "Skill",
        "metadata": { "name": name, "annotations": annotations },
        "spec": spec,
    });
    let skill: Skill = serde_json::from_value(object.clone()).map_err(|error| vec![error.to_string()])?;
    match validate_skill(&name, &skill.spec, &policy) {
        Ok(_) => Ok(object),
        Err(errors) => Err(errors.iter().map(ToString::to_string).collect()),
    }
}

/// The fields of instructions and description, in the form of the API.
pub fn spec(document: &SkillDocument, name: &str) -> Value {
    let SkillDocument { description, body, allowed_tools, disable_model_invocation, .. } = document;
    let activation = match document.placement() {
        Placement::Always => "Always",
        Placement::Listed => "Listed",
        Placement::Hidden => "Triggered",
    };
    let mut instructions = json!({ "body": body, "activation": activation });
    let mut set = |field: &str, value: Value| instructions[field] = value;
    if let Some(triggers) = triggers(document, name) {
        set("triggers", triggers);
    }
    let inputs = inputs(document);
    if !inputs.is_empty() {
        set("inputs", inputs.into());
    }
    if !allowed_tools.is_empty() {
        set("allowedTools", json!(allowed_tools));
    }
    if *disable_model_invocation {
        set("disableModelInvocation", true.into());
    }
    if document.user_invocable == Some(false) {
        set("userInvocable", false.into());
    }
    if let Some(hint) = &document.argument_hint {
        set("argumentHint", json!(hint));
    }
    // Without a description a model would choose by the name alone.
    let description = summarize(description.as_deref(), body).text;
    json!({ "version": version(document), "description": description, "instructions": instructions })
}

fn triggers(document: &SkillDocument, name: &str) -> Option<Value> {
    let mut triggers = match &document.trigger {
        Trigger::None => json!({}),
        Trigger::Keyword(keywords) | Trigger::Task(keywords) => json!({ "keywords": keywords }),
        Trigger::Path(paths) => json!({ "paths": paths }),
    };
    // The object's own name is a slash name already.
    if document.name != name {
        triggers["slash"] = json!([document.name]);
    }
    (triggers != json!({})).then_some(triggers)
}

fn inputs(document: &SkillDocument) -> Vec<Value> {
    let inputs = document.inputs.iter().map(|input| {
        let value_type = match input.value_type {
            InputType::String => "string",
            InputType::Integer => "integer",
            InputType::Number => "number",
            InputType::Boolean => "boolean",
        };
        let mut value = json!({ "name": input.name, "description": input.description, "type": value_type,
            "required": input.is_required });
        if let Some(default) = &input.default {
            value["default"] = json!(default);
        }
        value
    });
    inputs.collect()
}

/// The version of the file, if it is three numbers; else the first one.
fn version(document: &SkillDocument) -> String {
    let field = document.unknown_fields.get("version").and_then(Value::as_str);
    let written = field.or(document.metadata.get("version").map(String::as_str)).unwrap_or_default();
    let parts: Vec<&str> = written.trim_start_matches('v').split('.').collect();
    let is_number = |part: &&str| part.parse::<u32>().is_ok_and(|number| number.to_string() == **part);
    if parts.len() == 3 && parts.iter().all(is_number) { parts.join(".") } else { "1.0.0".to_owned() }
}

pub(super) fn found_content(tree: &FileTree, found: &Collected) -> Option<String> {
    let real = tree.resolve().files.get(&found.skill.candidate.path)?.clone();
    String::from_utf8(tree.content(&real)?.to_vec()).ok()
}

/// The text before the body, without which the frontmatter could not be written as it was.
fn head(content: &str, body: &str) -> String {
    let text = with_line_feeds(content);
    let split = frontmatter::split(&text);
    let before = text.len() - split.body.len();
    let body_start = split.body.find(body).unwrap_or(0);
    text[..before + body_start].trim_start_matches('\u{feff}').to_owned()
}

/// A name that Kubernetes takes: lower-case words with hyphens. A name without such letters is the directory's, else a hash.
pub fn object_name(prefix: &str, name: &str, default_name: &str) -> String {
    let is_foreign = |text: &str| text.chars().any(|c| !c.is_ascii() && c.is_alphanumeric());
    let own = plain(name);
    let base = if own.is_empty() || is_foreign(name) {
        let other = plain(default_name);
        if other.is_empty() || is_foreign(default_name) { format!("skill-{:08x}", hash(name)) } else { other }
    } else {
        own
    };
    let whole = plain(&format!("{prefix}{base}"));
    if whole.len() <= NAME_LIMIT {
        return whole;
    }
    format!("{}-{:08x}", whole[..NAME_LIMIT - 9].trim_end_matches('-'), hash(&whole))
}

fn plain(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// FNV-1a, which is the same everywhere and always.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_names_of_objects() {
        assert_eq!(object_name("", "pdf", "pdf"), "pdf");
        assert_eq!(object_name("team-", "My_Skill: two", "x"), "team-my-skill-two");
        assert_eq!(object_name("", "agents:svc/api", ""), "agents-svc-api");
        assert_eq!(object_name("", "技能", "translate"), "translate");
        let hashed = object_name("", "技能", "技能");
        assert!(hashed.starts_with("skill-") && hashed.len() == 14 && hashed != object_name("", "技", "技"));
        let long = object_name("", &"a".repeat(64), "");
        assert!(long.len() == 63 && long != object_name("", &"a".repeat(65), ""));
    }
}
