//! Decides which version of a valid Skill to seal and which versions to delete. Pure.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt, api::ObjectMeta};
use skillet_api::{Reason, Skill, SkillPolicySpec, SkillVersion, names};
use skillet_core::{
    content, retention,
    seal_record::{RecordConflict, RecordFull, SealRecord},
    skill::{ValidSkill, yanked_versions},
    version::{SkillSemver, newest_first},
};
use thiserror::Error;

use super::gather::Observed;

/// The present content cannot be sealed under its version.
#[derive(Debug, Error)]
#[error("{cause}")]
pub(crate) struct Conflict {
    pub(crate) cause: Cause,
    /// The sealed versions, newest first.
    pub(crate) sealed: Vec<SkillSemver>,
}

/// The reason for a conflict. `place` is the namespace and name of a ConfigMap.
#[derive(Debug, Error)]
pub(crate) enum Cause {
    #[error("{0} is sealed with another content; raise spec.version")]
    Sealed(SkillSemver),
    #[error("{conflict}, or let an administrator remove the key {key} of ConfigMap {place}")]
    Recorded { conflict: RecordConflict, key: String, place: String },
    #[error("ConfigMap {place} is full: {source}; an administrator may remove keys of skills that are gone")]
    Full { source: RecordFull, place: String },
}

impl Conflict {
    /// Tells if an administrator can end the conflict by a change of the record.
    pub(crate) fn is_by_record(&self) -> bool {
        matches!(self.cause, Cause::Recorded { .. } | Cause::Full { .. })
    }

    pub(crate) fn reason(&self) -> Reason {
        match self.cause {
            Cause::Sealed(_) | Cause::Recorded { .. } => Reason::VersionConflict,
            Cause::Full { .. } => Reason::SealRecordFull,
        }
    }
}

/// The writes that a Skill needs.
pub(crate) struct Desired {
    /// The version to create, or `None` if it is sealed already.
    pub(crate) seal: Option<SkillVersion>,
    /// Versions past the history limit, oldest first.
    pub(crate) surplus: Vec<SkillVersion>,
    /// Versions whose label is to change: `true` for those that the Skill withdraws.
    pub(crate) yanked: Vec<(SkillVersion, bool)>,
    /// Every version after the writes, newest first.
    pub(crate) versions: Vec<SkillSemver>,
    pub(crate) digest: String,
    /// Every version before and after the writes, with its digest.
    known: Vec<(SkillSemver, String)>,
}

impl Desired {
    /// Tells if the record of sealed versions must be asked before the writes.
    pub(crate) fn needs_record(&self) -> bool {
        self.seal.is_some() || !self.surplus.is_empty()
    }

    /// Adds every version to the record at `place`. Returns true if the record was changed.
    pub(crate) fn record(&self, skill: &str, record: &mut SealRecord, place: &str) -> Result<bool, Conflict> {
        let refuse = |cause: Cause| Conflict { cause, sealed: self.sealed_before() };
        let place = place.to_owned();
        if let Some(version) = self.seal.as_ref().and_then(number) {
            record.check(skill, &version, &self.digest).map_err(|conflict| {
                let key = match &conflict {
                    RecordConflict::OtherContent { .. } => names::version_name(skill, &version.to_string()),
                    RecordConflict::Dropped { .. } => skill.to_owned(),
                };
                refuse(Cause::Recorded { conflict, key, place: place.clone() })
            })?;
        }
        let known = self.known.iter().map(|(version, digest)| (version, digest.as_str()));
        record.add(skill, known).map_err(|source| refuse(Cause::Full { source, place }))
    }

    fn sealed_before(&self) -> Vec<SkillSemver> {
        let new = self.seal.as_ref().and_then(number);
        let known = self.known.iter().map(|(version, _)| version);
        let mut sealed: Vec<SkillSemver> =
            known.filter(|known| Some(*known) != new.as_ref()).cloned().collect();
        newest_first(&mut sealed);
        sealed
    }
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
        Some(_) => return Err(Conflict { cause: Cause::Sealed(valid.version.clone()), sealed }),
    };
    let known = observed.versions.iter().chain(&seal);
    let known = known.filter_map(|version| Some((number(version)?, version.spec.digest.clone()))).collect();
    if seal.is_some() {
        sealed.push(valid.version.clone());
        newest_first(&mut sealed);
    }
    let keep = usize::try_from(policy.version_history).unwrap_or(usize::MAX);
    let surplus = retention::surplus_versions(&sealed, keep, &observed.pinned, &valid.version);
    sealed.retain(|version| !surplus.contains(version));
    let kept = |version: &&SkillVersion| number(version).is_some_and(|number| sealed.contains(&number));
    let yanked = changed_labels(&yanked_versions(&skill.spec), observed.versions.iter().filter(kept));
    let surplus = surplus
        .iter()
        .filter_map(|gone| observed.versions.iter().find(|version| number(version).as_ref() == Some(gone)))
        .cloned()
        .collect();
    Ok(Desired { seal, surplus, yanked, versions: sealed, digest: valid.digest.clone(), known })
}

/// Returns the versions whose label does not say what the Skill says.
fn changed_labels<'a>(
    yanked: &BTreeSet<SkillSemver>,
    versions: impl Iterator<Item = &'a SkillVersion>,
) -> Vec<(SkillVersion, bool)> {
    versions
        .filter_map(|version| {
            let is_yanked = yanked.contains(&number(version)?);
            let is_labelled = version.labels().contains_key(names::LABEL_YANKED);
            (is_yanked != is_labelled).then(|| (version.clone(), is_yanked))
        })
        .collect()
}

fn number(version: &SkillVersion) -> Option<SkillSemver> {
    version.spec.version.parse().ok()
}

fn snapshot(skill: &Skill) -> SkillVersion {
    let name = skill.name_any();
    let spec = content::seal(&name, &skill.spec);
    let mut labels = BTreeMap::from([
        (names::LABEL_SKILL.to_owned(), name.clone()),
        (names::LABEL_MANAGED_BY.to_owned(), names::MANAGED_BY.to_owned()),
    ]);
    if skill.spec.yanked_versions.contains(&spec.version) {
        labels.insert(names::LABEL_YANKED.to_owned(), "true".to_owned());
    }
    let owner =
        OwnerReference { block_owner_deletion: None, ..skill.controller_owner_ref(&()).unwrap_or_default() };
    SkillVersion {
        metadata: ObjectMeta {
            name: Some(names::version_name(&name, &spec.version)),
            namespace: skill.namespace(),
            labels: Some(labels),
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
    fn a_version_is_labelled_as_long_as_the_skill_withdraws_it() {
        let (first, second) = (skill("1.0.0", "cat"), skill("1.1.0", "cat"));
        let mut present = skill("1.1.0", "cat");
        present.spec.yanked_versions = vec!["1.0.0".into()];
        let changes = |present: &Skill, sealed: &[&Skill]| -> Vec<(String, bool)> {
            let desired = build_from(present, sealed, &[], 20).unwrap();
            desired.yanked.iter().map(|(version, is_yanked)| (version.name_any(), *is_yanked)).collect()
        };
        assert_eq!(changes(&present, &[&first, &second]), [("word-count-1.0.0".into(), true)]);
        let mut labelled = first.clone();
        labelled.spec.yanked_versions = vec!["1.0.0".into()];
        assert_eq!(changes(&present, &[&labelled, &second]), []);
        assert_eq!(changes(&second, &[&labelled, &second]), [("word-count-1.0.0".into(), false)]);
    }

    const PLACE: &str = "skillet-system/sealed.team-a.1";

    #[test]
    fn a_version_is_recorded_with_all_others_before_it_is_sealed() {
        let mut record = SealRecord::default();
        let desired = build_from(&skill("1.1.0", "cat"), &[&skill("1.0.0", "cat")], &[], 20).unwrap();
        assert!(desired.needs_record());
        assert!(desired.record("word-count", &mut record, PLACE).unwrap());
        let keys: Vec<String> = record.into_entries().into_keys().collect();
        assert_eq!(keys, ["word-count-1.0.0", "word-count-1.1.0"]);
    }

    #[test]
    fn a_skill_without_writes_needs_no_record() {
        let same = skill("1.0.0", "cat");
        assert!(!build_from(&same, &[&same], &[], 20).unwrap().needs_record());
        let newer = skill("1.1.0", "cat");
        assert!(build_from(&newer, &[&same, &newer], &[], 1).unwrap().needs_record(), "a version goes");
    }

    #[test]
    fn a_collected_version_is_sealed_again_only_with_its_content() {
        let mut record = SealRecord::default();
        let first = build_from(&skill("1.0.0", "cat"), &[], &[], 20).unwrap();
        first.record("word-count", &mut record, PLACE).unwrap();
        let newer = skill("2.0.0", "cat");
        let same = build_from(&skill("1.0.0", "cat"), &[&newer], &[], 20).unwrap();
        assert!(same.record("word-count", &mut record, PLACE).unwrap(), "2.0.0 is new in the record");
        let other = build_from(&skill("1.0.0", "tac"), &[&newer], &[], 20).unwrap();
        let before = record.clone();
        let conflict = other.record("word-count", &mut record, PLACE).unwrap_err();
        assert_eq!(record, before);
        assert_eq!(conflict.reason(), Reason::VersionConflict);
        assert_eq!(texts(&conflict.sealed), ["2.0.0"]);
        let expected = format!(
            "1.0.0 was sealed before with the digest {}, and the present content has {}; raise spec.version, or let an administrator remove the key word-count-1.0.0 of ConfigMap {PLACE}",
            first.digest, other.digest
        );
        assert_eq!(conflict.to_string(), expected);
    }

    #[test]
    fn a_version_whose_digest_was_dropped_names_the_key_of_its_skill() {
        let mut record = SealRecord::new(BTreeMap::from([("word-count".to_owned(), "2.0.0".to_owned())]));
        let old = build_from(&skill("1.0.0", "cat"), &[], &[], 20).unwrap();
        let conflict = old.record("word-count", &mut record, PLACE).unwrap_err().to_string();
        assert!(conflict.ends_with(&format!("the key word-count of ConfigMap {PLACE}")), "{conflict}");
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
