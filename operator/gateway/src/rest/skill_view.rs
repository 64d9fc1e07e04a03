//! A skill as the HTTP interface writes it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use skillet_api::{
    SkillPolicySpec,
    skill::{self, Invocation},
};
use skillet_core::{
    json_text::JsonText,
    version::{SkillSemver, newest_first},
};
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    catalog::{CachedSpec, CatalogEntry},
    resolve::ResolvedSkill,
    rest::pagination,
};

/// The rule by which a skill is offered to models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    On,
    Auto,
    Off,
}

impl From<skill::Mode> for Mode {
    fn from(mode: skill::Mode) -> Self {
        match mode {
            skill::Mode::On => Self::On,
            skill::Mode::Auto => Self::Auto,
            skill::Mode::Off => Self::Off,
        }
    }
}

/// The origin of a skill, seen from the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    /// The caller's own namespace.
    Own,
    /// A platform namespace of the policy.
    Platform,
    /// A catalog namespace of the policy.
    Catalog,
}

impl Source {
    pub(crate) fn of(namespace: &str, caller: &Caller, policy: &SkillPolicySpec) -> Self {
        if *namespace == *caller.namespace {
            Self::Own
        } else if policy.gateway.platform_namespaces.iter().any(|platform| platform == namespace) {
            Self::Platform
        } else {
            Self::Catalog
        }
    }
}

/// One skill.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Skill)]
pub(crate) struct SkillView {
    /// Namespace of the skill.
    pub(crate) namespace: String,
    /// Name of the skill.
    pub(crate) name: String,
    pub(crate) source: Source,
    /// The version that runs if a request names none: the one in the Skill's spec if it is sealed and not withdrawn. None if nothing can run.
    pub(crate) version: Option<String>,
    /// Every sealed version that is not withdrawn, newest first.
    pub(crate) versions: Vec<String>,
    /// Description for models.
    pub(crate) description: String,
    pub(crate) mode: Mode,
    /// False refuses every run.
    pub(crate) enabled: bool,
    /// Callers that may call it: `auto`, `hybrid` or `manual`.
    pub(crate) invocation: &'static str,
    /// Words by which it is found.
    pub(crate) tags: Vec<String>,
    /// JSON Schema of the input; none where any input is taken.
    #[schema(value_type = Option<Object>)]
    pub(crate) input_schema: Option<Box<RawValue>>,
    /// JSON Schema of the output; none where any output is given.
    #[schema(value_type = Option<Object>)]
    pub(crate) output_schema: Option<Box<RawValue>>,
    /// In a list: the schemas are left out because the whole list has too many bytes of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) omitted: bool,
    /// True if the current content can run.
    pub(crate) ready: bool,
    /// The reason in one word, if it is not ready.
    pub(crate) reason: Option<String>,
    /// A nearer namespace with a skill of the same name: the name alone means that one.
    #[serde(rename = "hiddenBy")]
    pub(crate) shadowed_by: Option<String>,
}

impl SkillView {
    pub(crate) fn of(resolved: &ResolvedSkill, caller: &Caller, policy: &SkillPolicySpec) -> Self {
        let skill = &resolved.entry.skill;
        let CachedSpec { mode, enabled, invocation, tags, examples: _, description, tool } = &skill.spec;
        let sealed = resolved.entry.current().map(|version| &version.spec);
        // The schemas of the version that would run, not those of a spec that is being edited.
        let tool = sealed.map_or(tool, |sealed| &sealed.tool);
        Self {
            namespace: resolved.namespace.to_string(),
            name: skill.name.to_string(),
            source: Source::of(&resolved.namespace, caller, policy),
            version: sealed.map(|sealed| sealed.version.to_string()),
            versions: versions(&resolved.entry)
                .iter()
                .filter(|version| !skill.yanked.contains(version))
                .map(ToString::to_string)
                .collect(),
            description: sealed.map_or(description, |sealed| &sealed.description).to_string(),
            mode: (*mode).into(),
            enabled: *enabled,
            invocation: match invocation {
                Invocation::Auto => "auto",
                Invocation::Hybrid => "hybrid",
                Invocation::Manual => "manual",
            },
            tags: tags.to_vec(),
            input_schema: as_written(tool.input.as_ref()),
            output_schema: as_written(tool.output.as_ref()),
            omitted: false,
            ready: skill.is_ready,
            reason: skill.reason.as_deref().map(str::to_owned),
            shadowed_by: resolved.shadowed_by.as_deref().map(str::to_owned),
        }
    }
}

impl SkillView {
    /// As one of a list, whose schemas have so many bytes left.
    pub(crate) fn within(self, left: &mut usize) -> Self {
        if pagination::take_bytes(left, &[&self.input_schema, &self.output_schema]) {
            return self;
        }
        Self { input_schema: None, output_schema: None, omitted: true, ..self }
    }
}

/// Not read on the way: a schema of small values would take a hundred times its text.
fn as_written(schema: Option<&JsonText>) -> Option<Box<RawValue>> {
    RawValue::from_string(schema?.text().to_owned()).ok()
}

/// Every sealed version, newest first. Status and versions come by two watches: either may be the first to know.
pub(crate) fn versions(known: &CatalogEntry) -> Vec<SkillSemver> {
    let seen = known.versions.iter().map(|version| &version.number);
    let mut versions: Vec<SkillSemver> = known.skill.listed.iter().chain(seen).cloned().collect();
    newest_first(&mut versions);
    versions.dedup();
    versions
}
