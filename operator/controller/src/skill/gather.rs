//! Reads for one Skill: its sealed versions, and which of them executions need.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, ResourceExt, api::ListParams};
use skillet_api::{Skill, SkillVersion, names, skill::SecretEnvVar};
use skillet_core::version::SkillSemver;
use thiserror::Error;
use tracing::debug;

use skillet_kube::{ObjectHead, RawObject, list_pages};

use crate::{context::Context, version_head::VersionHead};

#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("could not read Skill {namespace}/{name}")]
    Skill { namespace: String, name: String, source: Box<kube::Error> },
    #[error("could not list the versions of Skill {namespace}/{name}")]
    Versions { namespace: String, name: String, source: Box<kube::Error> },
    #[error("could not read ConfigMap {namespace}/{name}")]
    ConfigMap { namespace: String, name: String, source: Box<kube::Error> },
    #[error("could not read SkillVersion {namespace}/{name}")]
    Version { namespace: String, name: String, source: Box<kube::Error> },
}

/// Reads a Skill; `None` if it was deleted.
pub(crate) async fn skill(
    ctx: &Context,
    head: &ObjectHead<Skill>,
) -> Result<Option<RawObject<Skill>>, Error> {
    // The API server gives a namespace to every Skill.
    let Some(namespace) = head.namespace() else { return Ok(None) };
    let name = head.name_any();
    let api: Api<RawObject<Skill>> = Api::namespaced(ctx.client.clone(), &namespace);
    api.get_opt(&name).await.map_err(|source| Error::Skill { namespace, name, source: Box::new(source) })
}

/// Reads a ConfigMap; `None` if there is none.
pub(crate) async fn config_map(
    ctx: &Context,
    namespace: &str,
    name: &str,
) -> Result<Option<ConfigMap>, Error> {
    let api: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), namespace);
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    api.get_opt(&name).await.map_err(|source| Error::ConfigMap { namespace, name, source: Box::new(source) })
}

/// Reads the instructions' text of a version; `None` if the version is gone or does not parse.
pub(crate) async fn sealed_body(ctx: &Context, namespace: &str, name: &str) -> Result<Option<String>, Error> {
    let api: Api<RawObject<SkillVersion>> = Api::namespaced(ctx.client.clone(), namespace);
    let this = ListParams::default().fields(&format!("metadata.name={name}"));
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    let listed = api.list(&this).await;
    let listed = listed.map_err(|source| Error::Version { namespace, name, source: Box::new(source) })?;
    let version = listed.items.first().and_then(|version| version.parse().ok());
    Ok(version.and_then(|version| version.spec.instructions).map(|instructions| instructions.body))
}

/// The sealed versions of a Skill.
pub(crate) struct Observed {
    /// Without their content.
    pub(crate) versions: Vec<SkillVersion>,
    /// Versions that executions wait for or run.
    pub(crate) pinned: BTreeSet<SkillSemver>,
}

/// Returns the Secrets and keys of `secretEnv` that do not exist. One that cannot be read now is left to the run.
pub(crate) async fn missing_secrets(ctx: &Context, namespace: &str, wanted: &[SecretEnvVar]) -> Vec<String> {
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), namespace);
    let names: BTreeSet<&str> = wanted.iter().map(|variable| variable.secret.as_str()).collect();
    let mut missing = Vec::new();
    for name in names {
        let keys =
            wanted.iter().filter(|variable| variable.secret == name).map(|variable| variable.key.as_str());
        match api.get_opt(name).await {
            Ok(found) => missing.extend(missing_of(name, found.as_ref(), keys)),
            Err(error) => debug!(%error, name, "Secret could not be checked"),
        }
    }
    missing
}

fn missing_of<'a>(name: &str, found: Option<&Secret>, keys: impl Iterator<Item = &'a str>) -> Vec<String> {
    let Some(secret) = found else { return vec![format!("Secret {name}")] };
    let has = |key: &str| secret.data.as_ref().is_some_and(|data| data.contains_key(key));
    let missing: BTreeSet<&str> = keys.filter(|key| !has(key)).collect();
    missing.into_iter().map(|key| format!("key {key} of Secret {name}")).collect()
}

/// The age that a read may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consistency {
    /// At least as new as every version that this operator has seen.
    AtLeastSeen,
    /// As new as the API server's store.
    Strong,
}

/// Lists the versions of a skill.
///
/// The catalog does not suffice: it may get a change later than the watch that started this reconcile. A version that
/// another client seals unseen is not sealed with other content, because its name is taken.
pub(crate) async fn gather(
    ctx: &Context,
    skill: &Skill,
    consistency: Consistency,
) -> Result<Observed, Error> {
    let (namespace, name) = (skill.namespace().unwrap_or_default(), skill.name_any());
    let api: Api<RawObject<SkillVersion>> = Api::namespaced(ctx.client.clone(), &namespace);
    let of_skill = ListParams::default().labels(&format!("{}={name}", names::LABEL_SKILL));
    let list =
        async |params: ListParams| list_pages(&api, &params, |version| VersionHead::read(&version)).await;
    let listed = match consistency {
        Consistency::Strong => list(of_skill).await,
        Consistency::AtLeastSeen => match list(ctx.newest_version.at_least(of_skill.clone())).await {
            // This server is behind another one, or the store was restored to an earlier state.
            Err(kube::Error::Api(status)) if status.code == 504 => list(of_skill).await,
            listed => listed,
        },
    };
    let versions = listed.map_err(|source| Error::Versions {
        namespace: namespace.clone(),
        name: name.clone(),
        source: Box::new(source),
    })?;
    let pinned = ctx.version_pins.of(&namespace, &name);
    Ok(Observed { versions, pinned })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_secret_is_named_once_and_each_missing_key() {
        let secret: Secret = serde_saphyr::from_str("data: {a: YQ==}").unwrap();
        let missing = |found, keys: &[&str]| missing_of("s", found, keys.iter().copied());
        assert_eq!(missing(None, &["a", "b"]), ["Secret s"]);
        assert_eq!(missing(Some(&secret), &["a", "b", "b", "c"]), ["key b of Secret s", "key c of Secret s"]);
        assert_eq!(missing(Some(&secret), &["a"]), Vec::<String>::new());
    }
}
