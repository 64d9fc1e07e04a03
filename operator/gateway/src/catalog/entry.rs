//! The cached part of a Skill: the fields that the APIs return and that selection needs.
//!
//! Programs are dropped: for thousands of skills they would be most of the memory.

use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use skillet_api::{
    Skill, SkillVersion,
    builtin::Builtin,
    reason::{READY, SECRETS_PRESENT},
    skill::{Invocation, Mode, Run, Tool},
};
use skillet_core::{
    builtin,
    json_text::JsonText,
    skill::yanked_versions,
    version::{self, SkillSemver},
};
use skillet_offer::Candidate;

use super::instructions::CachedInstructions;

/// One skill with its versions.
#[derive(Clone, Debug)]
pub struct CatalogEntry {
    pub skill: Arc<CachedSkill>,
    pub versions: Versions,
    /// As it is offered, or hides others of its name; none where it is on its way out.
    pub(super) candidate: Option<Arc<Candidate>>,
}

/// A Skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedSkill {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub uid: Option<Box<str>>,
    /// Creation time in seconds since 1970.
    pub created: i64,
    pub is_being_deleted: bool,
    pub spec: CachedSpec,
    /// The version in its spec.
    pub wanted: Option<SkillSemver>,
    /// Versions that its status lists.
    pub listed: Box<[SkillSemver]>,
    /// Versions that it withdraws.
    pub yanked: Box<[SkillSemver]>,
    /// True if the present content can run.
    pub is_ready: bool,
    /// A Secret that it names does not exist, so each run would fail.
    pub lacks_secret: bool,
    /// The reason of a skill that is not ready, in one word.
    pub reason: Option<Box<str>>,
}

/// The cached part of a Skill's spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedSpec {
    pub mode: Mode,
    pub enabled: bool,
    pub invocation: Invocation,
    pub tags: Arc<[String]>,
    pub examples: Arc<[String]>,
    pub description: Arc<str>,
    pub tool: ToolSchemas,
}

/// A SkillVersion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedVersion {
    pub number: SkillSemver,
    pub spec: CachedContent,
}

/// The cached part of a SkillVersion's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedContent {
    pub version: Arc<str>,
    /// Stands for the digest: no other content has the same.
    pub seal: u128,
    /// False for instructions alone, which nothing runs.
    pub has_program: bool,
    /// The program of Skillet itself that runs.
    pub builtin: Option<Builtin>,
    pub instructions: Option<Arc<CachedInstructions>>,
    pub description: Arc<str>,
    pub tool: ToolSchemas,
}

/// The schemas of input and output as their author wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSchemas {
    pub input: Option<JsonText>,
    pub output: Option<JsonText>,
}

/// The sealed versions of one skill, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct Versions(Vec<Arc<CachedVersion>>);

impl CatalogEntry {
    /// Returns an entry without a candidate for offers. It is offered only by a [`super::Namespace`].
    pub fn new(skill: Arc<CachedSkill>, versions: Versions) -> Self {
        Self { skill, versions, candidate: None }
    }

    /// The version that is offered, and that runs if a request names none. None where nothing can run.
    pub fn current(&self) -> Option<&Arc<CachedVersion>> {
        self.versions.current(&self.skill)
    }
}

impl CachedSkill {
    /// None where it has no name or no namespace, which no API server stores.
    pub fn of(skill: &Skill) -> Option<Self> {
        let Skill { metadata, spec, status } = skill;
        let conditions = || status.iter().flat_map(|status| &status.conditions);
        let lacking = conditions().find(|one| one.type_ == SECRETS_PRESENT && one.status == "False");
        let condition = lacking.or_else(|| conditions().find(|condition| condition.type_ == READY));
        let is_ready = condition.is_some_and(|condition| condition.status == "True");
        let reason = condition.filter(|_| !is_ready).map(|condition| condition.reason.as_str().into());
        let listed = status.iter().flat_map(|status| &status.versions);
        Some(Self {
            namespace: metadata.namespace.as_deref()?.into(),
            name: metadata.name.as_deref()?.into(),
            uid: metadata.uid.as_deref().map(Into::into),
            created: metadata.creation_timestamp.as_ref().map_or(0, |at| at.0.as_second()),
            is_being_deleted: metadata.deletion_timestamp.is_some(),
            spec: CachedSpec {
                mode: spec.mode,
                enabled: spec.enabled,
                invocation: spec.invocation,
                tags: spec.tags.as_slice().into(),
                examples: spec.examples.as_slice().into(),
                description: builtin::description(&spec.description, spec.run.as_ref()).into(),
                tool: ToolSchemas::of(spec.tool.as_ref(), spec.run.as_ref()),
            },
            wanted: spec.version.parse().ok(),
            listed: listed.filter_map(|version| version.parse().ok()).collect(),
            yanked: yanked_versions(spec).into_iter().collect(),
            is_ready,
            lacks_secret: lacking.is_some(),
            reason,
        })
    }

    /// Keeps once what a version says in the same words.
    pub(super) fn share(&mut self, version: &CachedVersion) {
        share(&mut self.spec.description, &version.spec.description);
        self.spec.tool.share(&version.spec.tool);
    }
}

impl CachedVersion {
    /// None where its number is none.
    pub fn of(version: &SkillVersion) -> Option<Self> {
        let spec = &version.spec;
        Some(Self {
            number: spec.version.parse().ok()?,
            spec: CachedContent {
                version: spec.version.as_str().into(),
                seal: seal(&spec.digest),
                has_program: spec.run.is_some(),
                builtin: spec.run.as_ref().and_then(|run| run.builtin),
                instructions: CachedInstructions::of(spec).map(Arc::new),
                description: builtin::description(&spec.description, spec.run.as_ref()).into(),
                tool: ToolSchemas::of(spec.tool.as_ref(), spec.run.as_ref()),
            },
        })
    }

    /// Keeps once what its skill says in the same words.
    pub(super) fn share(&mut self, skill: &CachedSkill) {
        share(&mut self.spec.description, &skill.spec.description);
        self.spec.tool.share(&skill.spec.tool);
    }
}

impl ToolSchemas {
    fn of(tool: Option<&Tool>, run: Option<&Run>) -> Self {
        let text = |schema: Option<&Value>| schema.map(JsonText::new);
        Self {
            input: text(builtin::input_schema(tool, run)),
            output: text(tool.and_then(|tool| tool.output_schema.as_ref())),
        }
    }

    /// The schema of the input.
    pub fn input_schema(&self) -> Option<Value> {
        self.input.as_ref().map(JsonText::value)
    }

    /// The schema of the output.
    pub fn output_schema(&self) -> Option<Value> {
        self.output.as_ref().map(JsonText::value)
    }

    fn share(&mut self, other: &Self) {
        for (mine, theirs) in [(&mut self.input, &other.input), (&mut self.output, &other.output)] {
            if let (Some(mine), Some(theirs)) = (mine, theirs) {
                mine.share(theirs);
            }
        }
    }
}

/// The first half of a SHA-256, which is the same in every release.
fn seal(digest: &str) -> u128 {
    Sha256::digest(digest).iter().take(16).fold(0, |seal, byte| seal << 8 | u128::from(*byte))
}

fn share(mine: &mut Arc<str>, theirs: &Arc<str>) {
    if mine == theirs {
        *mine = theirs.clone();
    }
}

impl Versions {
    /// The version in the spec of `skill`, or the one that stands in for it.
    pub fn current(&self, skill: &CachedSkill) -> Option<&Arc<CachedVersion>> {
        let usable = self.0.iter().filter(|version| !skill.yanked.contains(&version.number));
        let current = version::current(skill.wanted.as_ref(), usable.map(|version| &version.number))?;
        self.0.iter().find(|version| version.number == *current)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<CachedVersion>> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// With this one in the place of the one of its number.
    #[must_use]
    pub fn with(&self, version: CachedVersion) -> Self {
        let mut versions = self.without(&version.number);
        let place = versions.0.partition_point(|other| other.number < version.number);
        versions.0.insert(place, Arc::new(version));
        versions
    }

    /// Without the one of a number.
    #[must_use]
    pub fn without(&self, number: &SkillSemver) -> Self {
        Self(self.0.iter().filter(|version| version.number != *number).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version(number: &str, description: &str) -> CachedVersion {
        let version = json!({
            "metadata": { "namespace": "ns", "name": format!("a-{number}") },
            "spec": { "skill": "a", "version": number, "digest": "d", "description": description,
                "tool": { "inputSchema": { "q": "string" } }, "run": {} },
        });
        CachedVersion::of(&serde_json::from_value(version).unwrap()).unwrap()
    }

    fn skill(status: &Value) -> CachedSkill {
        let skill = json!({
            "metadata": { "namespace": "ns", "name": "a", "uid": "u", "creationTimestamp": "1970-01-01T00:01:00Z" },
            "spec": { "version": "1.0.0", "description": "says", "mode": "on", "invocation": "hybrid", "tags": ["t"], "examples": ["say it"],
                "tool": { "inputSchema": { "q": "string" } }, "run": {} },
            "status": status,
        });
        CachedSkill::of(&serde_json::from_value(skill).unwrap()).unwrap()
    }

    fn condition(status: &str, reason: &str) -> Value {
        json!({ "versions": ["1.0.0", "no version"], "conditions": [{ "type": READY, "status": status, "reason": reason,
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] })
    }

    #[test]
    fn a_cached_skill_has_the_fields_of_the_apis() {
        let known = skill(&condition("True", "Ready"));
        assert_eq!((&*known.namespace, &*known.name, known.uid.as_deref()), ("ns", "a", Some("u")));
        assert_eq!((known.created, known.is_being_deleted), (60, false));
        let CachedSpec { mode, enabled, invocation, tags, examples, description, tool } = &known.spec;
        assert_eq!((*mode, *enabled, *invocation), (Mode::On, true, Invocation::Hybrid));
        assert_eq!((&**tags, &**description), (&["t".to_owned()][..], "says"));
        assert_eq!(**examples, ["say it".to_owned()]);
        assert_eq!((tool.input_schema(), tool.output_schema()), (Some(json!({ "q": "string" })), None));
        assert_eq!(*known.listed, ["1.0.0".parse().unwrap()]);
    }

    #[test]
    fn a_built_in_has_a_description_and_a_schema_of_its_own() {
        let object = json!({ "metadata": { "name": "a", "namespace": "ns" }, "spec": { "version": "1.0.0", "run": { "builtin": "web_fetch" } } });
        let known = CachedSkill::of(&serde_json::from_value(object).unwrap()).unwrap();
        assert_eq!(&*known.spec.description, "Read a web page as text, with its title and links.");
        assert_eq!(known.spec.tool.input_schema().unwrap()["required"], json!(["url"]));
    }

    #[test]
    fn a_reason_is_kept_only_of_what_is_not_ready() {
        let ready = |status: &Value| {
            let known = skill(status);
            (known.is_ready, known.reason.map(String::from))
        };
        assert_eq!(ready(&condition("True", "Ready")), (true, None));
        assert_eq!(ready(&condition("False", "SpecInvalid")), (false, Some("SpecInvalid".into())));
        assert_eq!(ready(&json!({})), (false, None));
    }

    #[test]
    fn what_skill_and_version_say_alike_is_kept_once() {
        let mut known = skill(&json!({}));
        let (same, other) = (version("1.0.0", "says"), version("1.1.0", "says more"));
        known.share(&other);
        assert_eq!(&*known.spec.description, "says");
        known.share(&same);
        assert!(Arc::ptr_eq(&known.spec.description, &same.spec.description));
        let mut again = version("1.0.0", "says");
        again.share(&known);
        assert!(Arc::ptr_eq(&known.spec.description, &again.spec.description));
    }

    #[test]
    fn versions_are_in_the_order_of_their_numbers() {
        let numbers = |versions: &Versions| -> Vec<String> {
            versions.iter().map(|version| version.number.to_string()).collect()
        };
        let none = Versions::default();
        let versions =
            none.with(version("1.10.0", "")).with(version("1.9.0", "")).with(version("1.10.0", "b"));
        assert_eq!(numbers(&versions), ["1.9.0", "1.10.0"]);
        let mut skill = skill(&json!({}));
        assert_eq!(&*versions.current(&skill).unwrap().spec.description, "b");
        skill.wanted = "1.9.5".parse().ok();
        assert_eq!(&*versions.current(&skill).unwrap().spec.version, "1.9.0");
        skill.wanted = "1.10.0".parse().ok();
        skill.yanked = ["1.10.0", "2.0.0"].map(|number| number.parse().unwrap()).into();
        assert_eq!(&*versions.current(&skill).unwrap().spec.version, "1.9.0");
        let rest = versions.without(&"1.10.0".parse().unwrap());
        assert_eq!((numbers(&rest), none.is_empty()), (vec!["1.9.0".to_owned()], true));
    }
}
