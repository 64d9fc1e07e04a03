//! A cache of validated content of sealed versions, for their program, scripts of their bundle and commands of their
//! body. Compiling a schema costs more than every other check.
//!
//! Runs hold the contents of their versions longer than the cache does. So that compiled schemas stay within the bound
//! of the cache, a content that leaves it is released.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use skillet_api::{Reason, SkillPolicySpec, SkillVersion};

use crate::{
    content::digest,
    schema::Schema,
    skill::{FieldError, RunPart, ValidContent},
};

/// Result of the validation of one sealed version, for one part that runs.
pub type CheckedContent = Result<Arc<ValidContent>, Arc<[FieldError]>>;

/// Most bytes of all cached contents, by the weights that callers give.
const CAPACITY: usize = 32 << 20;
/// Weight of a content of unknown size.
const WEIGHT: usize = 32 << 10;

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
    weight: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    content: CheckedContent,
    weight: usize,
    used: u64,
}

impl ContentCache {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the content of `version` for a run of this part under `policy`, and validates it
    /// if it is not cached.
    ///
    /// The key is the object's uid, not its digest. The digest is a claim of the object's author, and a copied digest
    /// must not give access to another namespace's content. An object without uid is not cached.
    pub fn get(&self, version: &SkillVersion, part: &RunPart, policy: &SkillPolicySpec) -> CheckedContent {
        let Some(uid) = &version.metadata.uid else {
            return validate(version, part, policy);
        };
        self.find(uid, part, policy).unwrap_or_else(|| self.check(version, part, policy, WEIGHT))
    }

    /// Returns the content of the version with this uid if it is cached.
    pub fn find(&self, uid: &str, part: &RunPart, policy: &SkillPolicySpec) -> Option<CheckedContent> {
        self.lock(policy).touch(&key(uid, part))
    }

    /// Validates the content of `version` and caches it as `weight` bytes, its compiled schemas apart. Two threads
    /// may validate the same version at once, with the same result.
    pub fn check(
        &self,
        version: &SkillVersion,
        part: &RunPart,
        policy: &SkillPolicySpec,
        weight: usize,
    ) -> CheckedContent {
        let content = validate(version, part, policy);
        if let Some(uid) = &version.metadata.uid {
            self.lock(policy).insert(key(uid, part), content.clone(), weight);
        }
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
            state.entries.drain().for_each(|(_, entry)| release(&entry.content));
            state.weight = 0;
            state.policy = policy.clone();
        }
        state
    }
}

impl State {
    fn touch(&mut self, key: &str) -> Option<CheckedContent> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.clock;
        Some(entry.content.clone())
    }

    fn insert(&mut self, key: String, content: CheckedContent, weight: usize) {
        let weight = weight.saturating_add(compiled_size(&content));
        // One content must not empty the cache of all others.
        if weight > CAPACITY / 4 {
            return release(&content);
        }
        if self.weight + weight > CAPACITY {
            self.drop_older_half();
        }
        self.clock += 1;
        let entry = Entry { content, weight, used: self.clock };
        let replaced = self.entries.insert(key, entry);
        self.weight = self.weight + weight - replaced.as_ref().map_or(0, |entry| entry.weight);
        replaced.into_iter().for_each(|entry| release(&entry.content));
    }

    fn drop_older_half(&mut self) {
        let mut uses: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        uses.sort_unstable();
        let middle = uses.get(uses.len() / 2).copied().unwrap_or(u64::MAX);
        self.entries
            .extract_if(|_, entry| entry.used <= middle)
            .for_each(|(_, entry)| release(&entry.content));
        self.weight = self.entries.values().map(|entry| entry.weight).sum();
    }
}

/// Returns the schemas of a content.
fn schemas(content: &CheckedContent) -> impl Iterator<Item = &Schema> {
    let valid = content.iter();
    valid.flat_map(|content| [&content.input_schema, &content.output_schema]).flatten().map(Arc::as_ref)
}

fn compiled_size(content: &CheckedContent) -> usize {
    schemas(content).map(Schema::compiled_size).sum()
}

/// Frees the compiled schemas of a content, which runs may still hold.
fn release(content: &CheckedContent) {
    schemas(content).for_each(Schema::release);
}

/// Returns the key of a part. A uid has neither a slash nor an exclamation mark.
fn key(uid: &str, part: &RunPart) -> String {
    match part {
        RunPart::Program => uid.to_owned(),
        RunPart::Script(path) => format!("{uid}/{path}"),
        RunPart::Command(text) => format!("{uid}!{text}"),
        RunPart::McpServer(name) => format!("{uid}@{name}"),
    }
}

fn validate(version: &SkillVersion, part: &RunPart, policy: &SkillPolicySpec) -> CheckedContent {
    let actual = digest(&version.spec);
    if actual != version.spec.digest {
        let message = format!(
            "the content has the digest {actual}; delete this SkillVersion, it was not made by the operator"
        );
        let field = "spec.digest".to_owned();
        return Err(Arc::from(vec![FieldError { reason: Reason::SpecInvalid, field, message }]));
    }
    part.validate(&version.spec, policy).map(Arc::new).map_err(Arc::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skillet_api::SkillSpec;

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
        let first = cache.get(&version("u", "cat"), &RunPart::Program, &policy).unwrap();
        let second = cache.get(&version("u", "cat"), &RunPart::Program, &policy).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn an_object_without_uid_is_not_cached() {
        let cache = ContentCache::new();
        assert!(cache.get(&version("", "cat"), &RunPart::Program, &SkillPolicySpec::default()).is_ok());
        assert!(cache.is_empty());
    }

    #[test]
    fn another_policy_clears_the_cache() {
        let (cache, policy) = (ContentCache::new(), SkillPolicySpec::default());
        assert!(cache.get(&version("u", "cat"), &RunPart::Program, &policy).is_ok());
        let strict: SkillPolicySpec = serde_saphyr::from_str("{maximums: {memory: 1Mi}}").unwrap();
        assert!(cache.get(&version("u", "cat"), &RunPart::Program, &strict).is_err());
        assert_eq!(cache.len(), 1);
        assert!(cache.get(&version("u", "cat"), &RunPart::Program, &policy).is_ok());
    }

    #[test]
    fn a_digest_that_differs_from_the_content_is_refused() {
        let mut forged = version("u", "cat");
        forged.spec.digest = version("v", "rm").spec.digest;
        let errors =
            ContentCache::new().get(&forged, &RunPart::Program, &SkillPolicySpec::default()).unwrap_err();
        assert_eq!((errors[0].reason(), errors[0].field.as_str()), (Reason::SpecInvalid, "spec.digest"));
        assert!(errors[0].message.contains("delete this SkillVersion"), "{}", errors[0]);
    }

    #[test]
    fn a_full_cache_keeps_the_most_recently_used_versions() {
        let (cache, policy) = (ContentCache::new(), SkillPolicySpec::default());
        let hot = cache.get(&version("hot", "cat"), &RunPart::Program, &policy).unwrap();
        for n in 0..=CAPACITY / WEIGHT {
            let _ = cache.get(&version(&n.to_string(), "cat"), &RunPart::Program, &policy);
            let _ = cache.get(&version("hot", "cat"), &RunPart::Program, &policy);
        }
        assert!(cache.len() <= CAPACITY / WEIGHT, "{}", cache.len());
        assert!(Arc::ptr_eq(&hot, &cache.get(&version("hot", "cat"), &RunPart::Program, &policy).unwrap()));
    }

    #[test]
    fn a_content_that_leaves_the_cache_has_no_compiled_schema_and_is_still_checked() {
        let spec: SkillSpec = serde_json::from_value(json!({
            "version": "1.0.0",
            "run": { "sandbox": { "runtime": "shell", "script": "cat" } },
            "tool": { "inputSchema": { "type": "object" }, "outputSchema": { "pattern": r"^\w{1,9}$" } },
        }))
        .unwrap();
        let mut version = SkillVersion::new("demo-1.0.0", seal("demo", &spec));
        version.metadata.uid = Some("u".into());
        let (cache, policy) = (ContentCache::new(), SkillPolicySpec::default());
        let is_compiled = |content: &ValidContent| {
            let [input, output] =
                [&content.input_schema, &content.output_schema].map(|s| s.as_ref().unwrap());
            assert_eq!(input.is_compiled(), output.is_compiled());
            input.is_compiled()
        };
        let too_large = cache.check(&version, &RunPart::Program, &policy, CAPACITY / 4).unwrap();
        assert!(cache.is_empty() && !is_compiled(&too_large));
        let kept = cache.check(&version, &RunPart::Program, &policy, WEIGHT).unwrap();
        assert!(is_compiled(&kept));
        let strict: SkillPolicySpec = serde_saphyr::from_str("{maximums: {memory: 1Mi}}").unwrap();
        assert!(cache.find("u", &RunPart::Program, &strict).is_none() && !is_compiled(&kept));
        let output = kept.output_schema.as_ref().unwrap();
        assert!(output.check(&json!("word")).is_ok() && output.check(&json!("two words")).is_err());
        assert!(output.compiled_size() > 50_000, "a class of Unicode characters has many states");
    }

    #[test]
    fn large_contents_are_kept_up_to_the_bound_in_bytes() {
        let (cache, policy) = (ContentCache::new(), SkillPolicySpec::default());
        for n in 0..100 {
            assert!(
                cache.check(&version(&n.to_string(), "cat"), &RunPart::Program, &policy, 4 << 20).is_ok()
            );
            let weight = cache.len() * (4 << 20);
            assert!(weight <= CAPACITY, "{weight}");
        }
        assert!(cache.check(&version("whale", "cat"), &RunPart::Program, &policy, CAPACITY).is_ok());
        assert!(
            cache.find("whale", &RunPart::Program, &policy).is_none()
                && cache.find("99", &RunPart::Program, &policy).is_some()
        );
    }

    #[test]
    fn each_part_of_a_version_is_an_entry_of_its_own() {
        let yaml = "{version: 1.0.0, instructions: {}, files: [{path: a.sh, content: ls}, {path: b.sh, content: ls}]}";
        let mut version =
            SkillVersion::new("demo-1.0.0", seal("demo", &serde_saphyr::from_str(yaml).unwrap()));
        version.metadata.uid = Some("u".into());
        let (cache, policy) = (ContentCache::new(), SkillPolicySpec::default());
        let reasons = |part: RunPart| match cache.get(&version, &part, &policy) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.iter().map(FieldError::reason).collect::<Vec<Reason>>(),
        };
        let script = |path: &str| RunPart::Script(path.to_owned());
        assert_eq!(reasons(RunPart::Program), [Reason::NoProgram]);
        assert_eq!(reasons(script("a.sh")), []);
        assert_eq!(reasons(script("b.sh")), []);
        assert_eq!(reasons(script("c.sh")), [Reason::FileNotFound]);
        // A command is no script, also if it reads like the path of one.
        assert_eq!(reasons(RunPart::Command("a.sh".into())), [Reason::DynamicContentDisabled]);
        assert_eq!(cache.len(), 5);
        let [a, b] = ["a.sh", "b.sh"]
            .map(|path| cache.find("u", &RunPart::Script(path.to_owned()), &policy).unwrap().unwrap());
        assert_ne!(a.sandbox().unwrap().program, b.sandbox().unwrap().program);
    }
}
