//! Objects with only the fields that lists show.
//!
//! An execution may contain half a megabyte of output and a version its files: a list must not keep them. Fields are
//! plain text, so that a value that this plugin is too old to know does not hide the whole list.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Api, Client,
    api::{ApiResource, ListParams},
    core::{NotUsed, Object},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use skillet_api::{Skill, SkillExecution, SkillSpec, SkillVersion};

use crate::error::CliError;

/// Number of objects in one response; with their outputs they may be large on the wire.
const PAGE: u32 = 100;

pub(crate) type PartialExecution = Object<PartialExecutionSpec, PartialExecutionStatus>;
pub(crate) type PartialVersion = Object<PartialVersionSpec, NotUsed>;
pub(crate) type PartialSkill = Object<PartialSkillSpec, PartialSkillStatus>;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PartialExecutionSpec {
    #[serde(default)]
    pub(crate) skill: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PartialExecutionStatus {
    #[serde(default)]
    pub(crate) phase: Option<String>,
    #[serde(default)]
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) message: Option<String>,
    #[serde(default)]
    pub(crate) resolved_version: Option<String>,
    #[serde(default)]
    pub(crate) duration_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PartialVersionSpec {
    #[serde(default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) digest: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PartialSkillSpec {
    #[serde(default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) mode: Value,
    #[serde(default = "yes")]
    pub(crate) enabled: bool,
    #[serde(default)]
    pub(crate) invocation: Option<String>,
    #[serde(default)]
    pub(crate) yanked_versions: Vec<String>,
}

fn yes() -> bool {
    true
}

impl PartialSkillSpec {
    /// The mode in its own word: YAML 1.1 stores a bare `on` or `off` as a boolean.
    pub(crate) fn mode(&self) -> &str {
        match &self.mode {
            Value::Bool(true) => "on",
            Value::Bool(false) => "off",
            mode => mode.as_str().unwrap_or("auto"),
        }
    }
}

impl From<&SkillSpec> for PartialSkillSpec {
    fn from(spec: &SkillSpec) -> Self {
        Self {
            version: spec.version.clone(),
            yanked_versions: spec.yanked_versions.clone(),
            ..Self::default()
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PartialSkillStatus {
    #[serde(default)]
    pub(crate) latest_version: Option<String>,
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

/// Executions of one namespace, or of all.
pub(crate) fn executions(client: Client, namespace: Option<&str>) -> Api<PartialExecution> {
    let kind = ApiResource::erase::<SkillExecution>(&());
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &kind),
        None => Api::all_with(client, &kind),
    }
}

pub(crate) fn versions(client: Client, namespace: &str) -> Api<PartialVersion> {
    Api::namespaced_with(client, namespace, &ApiResource::erase::<SkillVersion>(&()))
}

pub(crate) fn skills(client: Client, namespace: &str) -> Api<PartialSkill> {
    Api::namespaced_with(client, namespace, &ApiResource::erase::<Skill>(&()))
}

pub(crate) fn all_skills(client: Client) -> Api<PartialSkill> {
    Api::all_with(client, &ApiResource::erase::<Skill>(&()))
}

/// Lists every object that `params` selects, page by page, and keeps what `keep` returns of each.
pub(crate) async fn list_all<K, T>(
    api: &Api<K>,
    params: ListParams,
    action: &str,
    keep: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, CliError>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let mut kept = Vec::new();
    let mut params = params.limit(PAGE);
    loop {
        let page = api.list(&params).await.map_err(|error| CliError::from_api(action, &error))?;
        kept.extend(page.items.into_iter().filter_map(&keep));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(kept),
        }
    }
}
