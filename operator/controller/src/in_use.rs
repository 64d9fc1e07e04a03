//! Versions that executions wait for or run with: the history limit never collects these.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use skillet_core::version::SkillSemver;

type Key = (String, String, SkillSemver);

/// How many executions hold each version.
#[derive(Default)]
pub struct InUse(Mutex<HashMap<Key, usize>>);

/// Keeps one version in use until it is dropped.
pub struct Hold {
    in_use: Arc<InUse>,
    key: Key,
}

impl InUse {
    /// Holds a version of a skill.
    pub fn hold(self: &Arc<Self>, namespace: &str, skill: &str, version: &SkillSemver) -> Hold {
        let key = (namespace.to_owned(), skill.to_owned(), version.clone());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_default() += 1;
        Hold { in_use: self.clone(), key }
    }

    /// The versions of a skill that are held.
    pub fn of(&self, namespace: &str, skill: &str) -> BTreeSet<SkillSemver> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.keys().filter(|key| key.0 == namespace && key.1 == skill).map(|key| key.2.clone()).collect()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = self.in_use.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_in_use_until_the_last_hold_is_dropped() {
        let in_use = Arc::new(InUse::default());
        let version: SkillSemver = "1.0.0".parse().unwrap();
        let first = in_use.hold("ns", "a", &version);
        let second = in_use.hold("ns", "a", &version);
        drop(first);
        assert!(in_use.of("ns", "a").contains(&version));
        assert!(in_use.of("ns", "b").is_empty() && in_use.of("other", "a").is_empty());
        drop(second);
        assert!(in_use.of("ns", "a").is_empty());
    }
}
