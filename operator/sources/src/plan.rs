//! The changes that make the Skills of a namespace those of a source. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use skillet_api::{
    Reason, Skill, SkillSource,
    names::{ANNOTATION_SOURCE_CONTENT, GROUP, LABEL_SOURCE, SOURCES_FIELD_MANAGER, VERSION},
    reason::SEALED,
    source::RefusedFile,
};
use skillet_core::{
    import::{Verdict, raised},
    version::SkillSemver,
};
use skillet_kube::find_condition;

/// Skills of the namespace, by name.
pub(crate) type Present = BTreeMap<String, PresentSkill>;

/// The properties of a present Skill that decide about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PresentSkill {
    pub(crate) version: String,
    /// The source that its label names, if that source has applied it. A copy of such a Skill is nobody's.
    pub(crate) source: Option<String>,
    /// Version and digest of the content that a source gave it.
    pub(crate) given: Option<(String, String)>,
    /// The operator refuses to seal the content, since the version was sealed with other content.
    pub(crate) is_in_conflict: bool,
}

impl PresentSkill {
    /// Reads what decides, from a Skill with its managed fields.
    pub(crate) fn of(skill: &Skill) -> Self {
        let metadata = &skill.metadata;
        let is_applied = metadata.managed_fields.iter().flatten().any(|fields| {
            fields.manager.as_deref() == Some(SOURCES_FIELD_MANAGER)
                && fields.operation.as_deref() == Some("Apply")
        });
        let label = metadata.labels.as_ref().and_then(|labels| labels.get(LABEL_SOURCE)).cloned();
        let given = metadata
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.get(ANNOTATION_SOURCE_CONTENT))
            .and_then(|text| text.split_once(' '))
            .map(|(version, digest)| (version.to_owned(), digest.to_owned()));
        let conditions = skill.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let is_in_conflict = find_condition(conditions, SEALED).is_some_and(|sealed| {
            sealed.status == "False"
                && sealed.reason == Reason::VersionConflict.as_str()
                && sealed.observed_generation == metadata.generation
        });
        Self {
            version: skill.spec.version.clone(),
            source: if is_applied { label } else { None },
            given,
            is_in_conflict,
        }
    }
}

/// A Skill to write, and the file that it is of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) object: Value,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Every Skill of the files: an apply that changes nothing costs no write, and undoes what others changed.
    pub(crate) apply: Vec<Change>,
    /// Names of Skills whose file is gone.
    pub(crate) prune: Vec<String>,
    pub(crate) refused: Vec<RefusedFile>,
}

/// Decides the changes for the files of a source. `refused` are files that could not even be read.
pub(crate) fn plan(
    source: &SkillSource,
    verdicts: &[Verdict],
    refused: &[(String, String)],
    present: &Present,
) -> Plan {
    let own = source.metadata.name.as_deref().unwrap_or_default();
    let mut plan = Plan::default();
    let refusal = |path: &str, message: String| RefusedFile { path: path.to_owned(), message };
    plan.refused.extend(refused.iter().map(|(path, message)| refusal(path, message.clone())));
    for verdict in verdicts {
        let Some(object) = verdict.object() else {
            plan.refused.push(refusal(&verdict.path, verdict.notes.join("; ")));
            continue;
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let there = present.get(&name);
        if let Some(other) = there.filter(|there| there.source.as_deref() != Some(own)) {
            plan.refused.push(refusal(&verdict.path, taken(&name, other.source.as_deref())));
            continue;
        }
        let object = desired(source, object, there);
        plan.apply.push(Change { name, path: verdict.path.clone(), object });
    }
    if source.spec.prune {
        let is_gone = |name: &String| !plan.apply.iter().any(|change| change.name == *name);
        let own_skills = present.iter().filter(|(_, skill)| skill.source.as_deref() == Some(own));
        plan.prune = own_skills.map(|(name, _)| name).filter(|name| is_gone(name)).cloned().collect();
    }
    plan.refused.sort_by(|a, b| a.path.cmp(&b.path));
    plan
}

fn taken(name: &str, other: Option<&str>) -> String {
    let owner = other
        .map_or_else(|| "is not of this source".to_owned(), |other| format!("is of the SkillSource {other}"));
    format!("a Skill {name} is there and {owner}; set spec.prefix, or remove that Skill")
}

/// The Skill as it is applied: with its version, its mark and its owner.
fn desired(source: &SkillSource, object: &Value, present: Option<&PresentSkill>) -> Value {
    let mut object = object.clone();
    let digest = digest(&object["spec"]);
    let own = object["spec"]["version"].as_str().unwrap_or_default().to_owned();
    let version = version(&own, &digest, present);
    object["spec"]["version"] = json!(version);
    let metadata = &mut object["metadata"];
    metadata["namespace"] = json!(source.metadata.namespace);
    metadata["labels"] = json!({ LABEL_SOURCE: source.metadata.name });
    metadata["annotations"][ANNOTATION_SOURCE_CONTENT] = json!(format!("{version} {digest}"));
    if source.spec.prune {
        // The API server's garbage collector removes the Skills with their source.
        metadata["ownerReferences"] = json!([{
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": "SkillSource",
            "name": source.metadata.name,
            "uid": source.metadata.uid,
            "controller": true,
        }]);
    }
    object
}

/// Digest of the content without its version.
fn digest(spec: &Value) -> String {
    let mut content = spec.clone();
    if let Some(fields) = content.as_object_mut() {
        fields.remove("version");
    }
    format!("sha256:{:x}", Sha256::digest(content.to_string()))
}

/// The version of content: a number never seals other content than it did before.
fn version(own: &str, digest: &str, present: Option<&PresentSkill>) -> String {
    let Some(present) = present else { return own.to_owned() };
    let Some((given, given_digest)) = &present.given else {
        return raised(&present.version, own).unwrap_or_else(|| own.to_owned());
    };
    if given_digest == digest && !present.is_in_conflict {
        return newer(given, own);
    }
    // Somebody may have raised the version by hand.
    let highest = newer(given, &present.version);
    raised(&highest, own).unwrap_or_else(|| own.to_owned())
}

fn newer(a: &str, b: &str) -> String {
    let number = |text: &str| text.parse::<SkillSemver>().ok();
    if number(b) > number(a) { b.to_owned() } else { a.to_owned() }
}

#[cfg(test)]
mod tests;
