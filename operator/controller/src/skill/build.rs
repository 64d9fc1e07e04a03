//! Decides which version of a valid Skill to seal and which versions to delete. Pure.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt, api::ObjectMeta};
use skillet_api::{Skill, SkillPolicySpec, SkillVersion, names};
use skillet_core::{
    content, retention,
    skill::ValidSkill,
    version::{SkillSemver, newest_first},
};
use thiserror::Error;

use super::gather::Observed;

/// The version is sealed with other content.
#[derive(Debug, Error)]
#[error("{version} is sealed with another content; raise spec.version")]
pub(crate) struct Conflict {
    pub(crate) version: SkillSemver,
    /// The sealed versions, newest first.
    pub(crate) sealed: Vec<SkillSemver>,
}

/// The writes that a Skill needs.
pub(crate) struct Desired {
    /// The version to create, or `None` if it is sealed already.
    pub(crate) seal: Option<SkillVersion>,
    /// Versions past the history limit, oldest first.
    pub(crate) surplus: Vec<SkillVersion>,
    /// Every version after the writes, newest first.
    pub(crate) versions: Vec<SkillSemver>,
    pub(crate) digest: String,
}

/// Decides what to seal and what to delete.
pub(crate) fn build(
    skill: &Skill,
    valid: &ValidSkill,
    observed: &Observed,
    policy: &SkillPolicySpec,
) -> Result<Desired, Conflict> {
    let mut sealed: Vec<SkillSemver> = observed.versions.iter().filter_map(number).collect();
    newest_first(&mut sealed);
    let same_number =
        observed.versions.iter().find(|version| number(version).as_ref() == Some(&valid.version));
    let seal = match same_number {
        None => Some(snapshot(skill)),
        Some(version) if version.spec.digest == valid.digest => None,
        Some(_) => return Err(Conflict { version: valid.version.clone(), sealed }),
    };
    if seal.is_some() {
        sealed.push(valid.version.clone());
        newest_first(&mut sealed);
    }
    let keep = usize::try_from(policy.version_history).unwrap_or(usize::MAX);
    let surplus = retention::surplus_versions(&sealed, keep, &observed.pinned, &valid.version);
    sealed.retain(|version| !surplus.contains(version));
    let surplus = surplus
        .iter()
        .filter_map(|gone| observed.versions.iter().find(|version| number(version).as_ref() == Some(gone)))
        .cloned()
        .collect();
    Ok(Desired { seal, surplus, versions: sealed, digest: valid.digest.clone() })
}

fn number(version: &SkillVersion) -> Option<SkillSemver> {
    version.spec.version.parse().ok()
}

fn snapshot(skill: &Skill) -> SkillVersion {
    let name = skill.name_any();
    let spec = content::seal(&name, &skill.spec);
    let owner =
        OwnerReference { block_owner_deletion: None, ..skill.controller_owner_ref(&()).unwrap_or_default() };
    SkillVersion {
        metadata: ObjectMeta {
            name: Some(names::version_name(&name, &spec.version)),
            namespace: skill.namespace(),
            labels: Some(BTreeMap::from([
                (names::LABEL_SKILL.to_owned(), name),
                (names::LABEL_MANAGED_BY.to_owned(), names::MANAGED_BY.to_owned()),
            ])),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use skillet_core::skill::validate_skill;

    use super::*;

    fn skill(version: &str, script: &str) -> Skill {
        serde_saphyr::from_str(&format!(
            "apiVersion: skillet.dev/v1alpha1\nkind: Skill\nmetadata: {{name: word-count, namespace: team-a, uid: u1}}\nspec: {{version: {version}, run: {{sandbox: {{runtime: shell, script: {script}}}}}}}"
        ))
        .unwrap()
    }

    fn policy(history: u32) -> SkillPolicySpec {
        SkillPolicySpec { version_history: history, ..SkillPolicySpec::default() }
    }

    fn build_from(
        skill: &Skill,
        sealed: &[&Skill],
        pinned: &[&str],
        history: u32,
    ) -> Result<Desired, Conflict> {
        let policy = policy(history);
        let valid = validate_skill(&skill.name_any(), &skill.spec, &policy).unwrap();
        let observed = Observed {
            versions: sealed.iter().map(|skill| snapshot(skill)).collect(),
            pinned: pinned.iter().map(|text| text.parse().unwrap()).collect::<BTreeSet<_>>(),
        };
        build(skill, &valid, &observed, &policy)
    }

    fn texts(versions: &[SkillSemver]) -> Vec<String> {
        versions.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_new_version_is_sealed_under_its_name_and_owned_by_the_skill() {
        let desired = build_from(&skill("1.2.0", "cat"), &[&skill("1.1.0", "cat")], &[], 20).unwrap();
        let sealed = desired.seal.unwrap();
        assert_eq!(sealed.name_any(), "word-count-1.2.0");
        assert_eq!(sealed.namespace().as_deref(), Some("team-a"));
        assert_eq!(sealed.labels()[names::LABEL_SKILL], "word-count");
        assert_eq!(sealed.owner_references()[0].uid, "u1");
        assert_eq!(texts(&desired.versions), ["1.2.0", "1.1.0"]);
        assert_eq!(sealed.spec.digest, desired.digest);
    }

    #[test]
    fn the_same_content_again_changes_nothing() {
        let same = skill("1.0.0", "cat");
        let desired = build_from(&same, &[&same], &[], 20).unwrap();
        assert!(desired.seal.is_none() && desired.surplus.is_empty());
    }

    #[test]
    fn other_content_under_a_sealed_version_is_a_conflict_with_advice() {
        let conflict = build_from(&skill("1.0.0", "tac"), &[&skill("1.0.0", "cat")], &[], 20).err().unwrap();
        assert_eq!(conflict.to_string(), "1.0.0 is sealed with another content; raise spec.version");
        assert_eq!(texts(&conflict.sealed), ["1.0.0"]);
    }

    #[test]
    fn the_oldest_versions_are_surplus_but_never_a_pinned_one() {
        let (one, two, three) = (skill("1.0.0", "cat"), skill("2.0.0", "cat"), skill("3.0.0", "cat"));
        let desired = build_from(&skill("4.0.0", "cat"), &[&one, &two, &three], &["1.0.0"], 2).unwrap();
        let gone: Vec<String> = desired.surplus.iter().map(ResourceExt::name_any).collect();
        assert_eq!(gone, ["word-count-2.0.0"]);
        assert_eq!(texts(&desired.versions), ["4.0.0", "3.0.0", "1.0.0"]);
    }
}
