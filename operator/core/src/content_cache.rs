//! A cache of validated content of sealed versions. Compiling a schema costs more than every other check.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use skillet_api::{Reason, SkillPolicySpec, SkillVersion};

use crate::{
    content::digest,
    skill::{FieldError, ValidContent, validate_content},
};

/// Result of the validation of one sealed version.
pub type CheckedContent = Result<Arc<ValidContent>, Arc<[FieldError]>>;

/// Most cached versions. Each takes a few kilobytes, without its files.
const CAPACITY: usize = 1024;

/// A cache of [`CheckedContent`], shared between threads. It clears itself when the policy changes.
#[derive(Debug, Default)]
pub struct ContentCache {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Policy under which the entries were validated.
    policy: SkillPolicySpec,
    entries: HashMap<String, Entry>,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    content: CheckedContent,
    used: u64,
}

impl ContentCache {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the content of `version` under `policy`, and validates it if it is not cached.
    ///
    /// The key is the object's uid, not its digest. The digest is a claim of the object's author, and a copied digest must
    /// not give access to another namespace's content. An object without uid is not cached.
    pub fn get(&self, version: &SkillVersion, policy: &SkillPolicySpec) -> CheckedContent {
        let Some(uid) = &version.metadata.uid else {
            return validate(version, policy);
        };
        if let Some(cached) = self.lock(policy).touch(uid) {
            return cached;
        }
        // Two threads may validate the same version at once, with the same result.
        let content = validate(version, policy);
        self.lock(policy).insert(uid, content.clone());
        content
    }

    pub fn len(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self, policy: &SkillPolicySpec) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.policy != *policy {
            state.entries.clear();
            state.policy = policy.clone();
        }
        state
    }
}

impl State {
    fn touch(&mut self, uid: &str) -> Option<CheckedContent> {
        self.clock += 1;
        let entry = self.entries.get_mut(uid)?;
        entry.used = self.clock;
        Some(entry.content.clone())
    }

    fn insert(&mut self, uid: &str, content: CheckedContent) {
        if self.entries.len() >= CAPACITY {
            self.drop_older_half();
        }
        self.clock += 1;
        self.entries.insert(uid.to_owned(), Entry { content, used: self.clock });
    }

    fn drop_older_half(&mut self) {
        let mut uses: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        uses.sort_unstable();
        let middle = uses.get(uses.len() / 2).copied().unwrap_or(u64::MAX);
        self.entries.retain(|_, entry| entry.used >= middle);
    }
}

fn validate(version: &SkillVersion, policy: &SkillPolicySpec) -> CheckedContent {
    let actual = digest(&version.spec);
    if actual != version.spec.digest {
        let message = format!(
            "the content has the digest {actual}; delete this SkillVersion, it was not made by the operator"
        );
        let field = "spec.digest".to_owned();
        return Err(Arc::from(vec![FieldError { reason: Reason::SpecInvalid, field, message }]));
    }
    validate_content(&version.spec, policy).map(Arc::new).map_err(Arc::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::seal;

    fn version(uid: &str, script: &str) -> SkillVersion {
        let yaml = format!("{{version: 1.0.0, run: {{sandbox: {{runtime: shell, script: {script}}}}}}}");
        let mut version =
            SkillVersion::new("demo-1.0.0", seal("demo", &serde_saphyr::from_str(&yaml).unwrap()));
        version.metadata.uid = (!uid.is_empty()).then(|| uid.to_owned());
        version
    }

    #[test]
    fn a_version_is_validated_once() {
        let (cache, policy) = (ContentCache::new(), SkillPolicySpec::default());
        let first = cache.get(&version("u", "cat"), &policy).unwrap();
        let second = cache.get(&version("u", "cat"), &policy).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn an_object_without_uid_is_not_cached() {
        let cache = ContentCache::new();
        assert!(cache.get(&version("", "cat"), &SkillPolicySpec::default()).is_ok());
        assert!(cache.is_empty());
    }

    #[test]
    fn another_policy_clears_the_cache() {
        let (cache, policy) = (ContentCache::new(), SkillPolicySpec::default());
        assert!(cache.get(&version("u", "cat"), &policy).is_ok());
        let strict: SkillPolicySpec = serde_saphyr::from_str("{maximums: {memory: 1Mi}}").unwrap();
        assert!(cache.get(&version("u", "cat"), &strict).is_err());
        assert_eq!(cache.len(), 1);
        assert!(cache.get(&version("u", "cat"), &policy).is_ok());
    }

    #[test]
    fn a_digest_that_differs_from_the_content_is_refused() {
        let mut forged = version("u", "cat");
        forged.spec.digest = version("v", "rm").spec.digest;
        let errors = ContentCache::new().get(&forged, &SkillPolicySpec::default()).unwrap_err();
        assert_eq!((errors[0].reason(), errors[0].field.as_str()), (Reason::SpecInvalid, "spec.digest"));
        assert!(errors[0].message.contains("delete this SkillVersion"), "{}", errors[0]);
    }

    #[test]
    fn a_full_cache_keeps_the_most_recently_used_versions() {
        let (cache, policy) = (ContentCache::new(), SkillPolicySpec::default());
        let hot = cache.get(&version("hot", "cat"), &policy).unwrap();
        for n in 0..=CAPACITY {
            let _ = cache.get(&version(&n.to_string(), "cat"), &policy);
            let _ = cache.get(&version("hot", "cat"), &policy);
        }
        assert!(cache.len() <= CAPACITY, "{}", cache.len());
        assert!(Arc::ptr_eq(&hot, &cache.get(&version("hot", "cat"), &policy).unwrap()));
    }
}
