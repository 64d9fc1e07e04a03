//! Counts the executions that wait for each version or run it. The history limit never deletes a pinned version.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex},
};

use skillet_core::version::SkillSemver;
use skillet_kube::lock;

type Key = (String, String, SkillSemver);

/// The number of pins of each version.
#[derive(Default)]
pub(crate) struct VersionPins(Mutex<HashMap<Key, usize>>);

/// Keeps one version from deletion until it is dropped.
pub(crate) struct Pin {
    pins: Arc<VersionPins>,
    key: Key,
}

impl VersionPins {
    /// Pins a version of a skill.
    pub(crate) fn pin(self: &Arc<Self>, namespace: &str, skill: &str, version: &SkillSemver) -> Pin {
        let key = (namespace.to_owned(), skill.to_owned(), version.clone());
        *lock(&self.0).entry(key.clone()).or_default() += 1;
        Pin { pins: self.clone(), key }
    }

    /// Returns the pinned versions of a skill.
    pub(crate) fn of(&self, namespace: &str, skill: &str) -> BTreeSet<SkillSemver> {
        let pins = lock(&self.0);
        pins.keys().filter(|key| key.0 == namespace && key.1 == skill).map(|key| key.2.clone()).collect()
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = lock(&self.pins.0);
        if let Some(count) = pins.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_pinned_until_its_last_pin_is_dropped() {
        let pins = Arc::new(VersionPins::default());
        let version: SkillSemver = "1.0.0".parse().unwrap();
        let first = pins.pin("ns", "a", &version);
        let second = pins.pin("ns", "a", &version);
        drop(first);
        assert!(pins.of("ns", "a").contains(&version));
        assert!(pins.of("ns", "b").is_empty() && pins.of("other", "a").is_empty());
        drop(second);
        assert!(pins.of("ns", "a").is_empty());
    }
}
