//! The record of sealed versions: one digest for each version that was ever sealed (docs/adr/0012).
//!
//! A record outlives its SkillVersions and their Skill. While the SkillVersion of a number exists, that object decides; the
//! record decides about the others.

use std::collections::{BTreeMap, btree_map::Entry};

use sha2::{Digest as _, Sha256};
use skillet_api::names;
use thiserror::Error;

use crate::version::SkillSemver;

/// Records of one namespace.
const SHARDS: u8 = 64;
/// Most entries of one record: about 600 KiB.
const MAX_ENTRIES: usize = 4096;
/// Newest versions of each skill whose digests stay if a record is full.
const KEPT: usize = 64;

/// Returns the number of the record that has the versions of a skill.
pub fn shard(skill: &str) -> u8 {
    Sha256::digest(skill)[0] % SHARDS
}

/// The versions of some skills of one namespace.
///
/// The key `<skill>-<version>` has the digest of that version. The key `<skill>` has the skill's highest version whose digest
/// was dropped. No key can mean both: a version has dots, and a skill's name has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealRecord(BTreeMap<String, String>);

/// The reason why a version may not be sealed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordConflict {
    #[error(
        "{version} was sealed before with the digest {recorded}, and the present content has {present}; raise spec.version"
    )]
    OtherContent { version: SkillSemver, recorded: String, present: String },
    #[error(
        "{version} may have been sealed before: digests up to {floor} are dropped; raise spec.version above it"
    )]
    Dropped { version: SkillSemver, floor: String },
}

/// A record has no room, although only the newest versions of each skill are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the record has {MAX_ENTRIES} entries, which is its limit")]
pub struct RecordFull;

impl SealRecord {
    pub fn new(entries: BTreeMap<String, String>) -> Self {
        Self(entries)
    }

    pub fn into_entries(self) -> BTreeMap<String, String> {
        self.0
    }

    /// Refuses a version that has no SkillVersion, if it was sealed before with other content.
    pub fn check(&self, skill: &str, version: &SkillSemver, digest: &str) -> Result<(), RecordConflict> {
        let version = version.clone();
        if let Some(recorded) = self.0.get(&key(skill, &version)) {
            if recorded == digest {
                return Ok(());
            }
            let (recorded, present) = (recorded.clone(), digest.to_owned());
            return Err(RecordConflict::OtherContent { version, recorded, present });
        }
        match self.0.get(skill) {
            // A floor that was written by hand and does not parse stands for every version.
            Some(floor) if floor.parse().map_or(true, |floor: SkillSemver| version <= floor) => {
                Err(RecordConflict::Dropped { version, floor: floor.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Adds versions of a skill with their digests. Returns true if the record was changed.
    pub fn add<'a>(
        &mut self,
        skill: &str,
        versions: impl IntoIterator<Item = (&'a SkillSemver, &'a str)>,
    ) -> Result<bool, RecordFull> {
        let mut is_changed = false;
        for (version, digest) in versions {
            match self.0.entry(key(skill, version)) {
                Entry::Occupied(entry) if entry.get() == digest => {}
                Entry::Occupied(mut entry) => {
                    digest.clone_into(entry.get_mut());
                    is_changed = true;
                }
                Entry::Vacant(entry) => {
                    entry.insert(digest.to_owned());
                    is_changed = true;
                }
            }
        }
        if self.0.len() > MAX_ENTRIES {
            self.compact();
        }
        if self.0.len() > MAX_ENTRIES { Err(RecordFull) } else { Ok(is_changed) }
    }

    /// Drops the digests of all but the newest versions of each skill.
    fn compact(&mut self) {
        let mut skills: BTreeMap<String, Vec<SkillSemver>> = BTreeMap::new();
        for (skill, version) in self.0.keys().filter_map(|key| read_key(key)) {
            skills.entry(skill.to_owned()).or_default().push(version);
        }
        for (skill, mut versions) in skills {
            versions.sort_unstable();
            versions.truncate(versions.len().saturating_sub(KEPT));
            for version in &versions {
                self.0.remove(&key(&skill, version));
            }
            let Some(dropped) = versions.pop() else { continue };
            let before = self.0.get(&skill).map(|floor| floor.parse::<SkillSemver>());
            // A floor that does not parse stays: it stands for every version.
            if before.is_none_or(|before| before.is_ok_and(|before| before < dropped)) {
                self.0.insert(skill, dropped.to_string());
            }
        }
    }
}

fn key(skill: &str, version: &SkillSemver) -> String {
    names::version_name(skill, &version.to_string())
}

/// Returns `None` for a key without a version.
fn read_key(key: &str) -> Option<(&str, SkillSemver)> {
    let (skill, version) = key.rsplit_once('-')?;
    Some((skill, version.parse().ok()?))
}

#[cfg(test)]
mod tests;
