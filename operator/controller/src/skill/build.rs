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
    pub(crate) cause: Box<Cause>,
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
        matches!(*self.cause, Cause::Recorded { .. } | Cause::Full { .. })
    }

    pub(crate) fn reason(&self) -> Reason {
        match *self.cause {
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
        let refuse = |cause: Cause| Conflict { cause: Box::new(cause), sealed: self.sealed_before() };
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
    let mut sealed = sealed(observed);
    let same_number =
        observed.versions.iter().find(|version| number(version).as_ref() == Some(&valid.version));
    let seal = match same_number {
        None => Some(snapshot(skill)),
        Some(version) if version.spec.digest == valid.digest => None,
        Some(_) => return Err(Conflict { cause: Box::new(Cause::Sealed(valid.version.clone())), sealed }),
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

/// Returns the sealed versions, newest first.
pub(crate) fn sealed(observed: &Observed) -> Vec<SkillSemver> {
    let mut sealed: Vec<SkillSemver> = observed.versions.iter().filter_map(number).collect();
    newest_first(&mut sealed);
    sealed
}

/// Returns the versions that run on while the Skill's present content is not valid, newest first. If that content is sealed,
/// a change of the policy has made it invalid, and with it perhaps every version.
pub(crate) fn serving(skill: &Skill, observed: &Observed) -> Vec<SkillSemver> {
    let digest = content::digest(&skill.spec);
    if observed.versions.iter().any(|version| version.spec.digest == digest) {
        return Vec::new();
    }
    sealed(observed)
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
mod tests;
