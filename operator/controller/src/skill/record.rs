//! Reads and writes records of sealed versions: ConfigMaps of the operator's namespace (docs/adr/0012).
//!
//! A record belongs to the Namespace object of its skills, so Kubernetes deletes it with that namespace.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, PostParams},
};
use skillet_api::{Skill, names};
use skillet_core::seal_record::{SealRecord, shard};
use thiserror::Error as ThisError;

use super::build::{Conflict, Desired};
use crate::context::Context;

/// Tries to write a record that the reconciles of other skills change at the same time.
const TRIES: usize = 10;

#[derive(Debug, ThisError)]
pub(crate) enum Error {
    #[error(transparent)]
    Conflict(#[from] Conflict),
    #[error(transparent)]
    Request(#[from] RequestError),
}

#[derive(Debug, ThisError)]
pub(crate) enum RequestError {
    #[error("could not read Namespace {name}")]
    Namespace { name: String, source: Box<kube::Error> },
    #[error("could not read ConfigMap {name}")]
    Read { name: String, source: Box<kube::Error> },
    #[error("could not write ConfigMap {name}")]
    Write { name: String, source: Box<kube::Error> },
}

/// Adds the versions of a Skill to their record, before any of them is created or deleted. Refuses the version that is to
/// be sealed if it was sealed before with other content.
pub(crate) async fn add(ctx: &Context, skill: &Skill, desired: &Desired) -> Result<(), Error> {
    // The API server gives a namespace to every Skill.
    let Some(namespace) = skill.namespace() else { return Ok(()) };
    let skill = skill.name_any();
    let name = record_name(&namespace, &skill);
    let api: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), &ctx.namespace);
    let mut tries = 1;
    loop {
        let owner = namespace_owner(&ctx.client, &namespace).await?;
        let found = api.get_opt(&name).await;
        let found =
            found.map_err(|source| RequestError::Read { name: name.clone(), source: Box::new(source) })?;
        let mut record =
            SealRecord::new(found.as_ref().map(|found| entries(found, &owner)).unwrap_or_default());
        let place = format!("{}/{name}", ctx.namespace);
        if !desired.record(&skill, &mut record, &place)? {
            return Ok(());
        }
        let object = config_map(name.clone(), &namespace, owner, found.as_ref(), record);
        let params = PostParams::default();
        let written = match found {
            Some(_) => api.replace(&name, &params, &object).await,
            None => api.create(&params, &object).await,
        };
        match written {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) && tries < TRIES => tries += 1,
            Err(source) => return Err(RequestError::Write { name, source: Box::new(source) }.into()),
        }
    }
}

/// Returns the name of the record that has the versions of a skill. The name of a namespace has no dots.
fn record_name(namespace: &str, skill: &str) -> String {
    format!("sealed.{namespace}.{}", shard(skill))
}

async fn namespace_owner(client: &Client, name: &str) -> Result<OwnerReference, RequestError> {
    let found = Api::<Namespace>::all(client.clone()).get_metadata(name).await;
    let found = found
        .map_err(|source| RequestError::Namespace { name: name.to_owned(), source: Box::new(source) })?;
    Ok(OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        name: name.to_owned(),
        uid: found.metadata.uid.unwrap_or_default(),
        ..OwnerReference::default()
    })
}

/// Returns the entries of a record, and none if it is of an earlier namespace of the same name.
fn entries(found: &ConfigMap, owner: &OwnerReference) -> BTreeMap<String, String> {
    let is_owned = found.owner_references().iter().any(|reference| reference.uid == owner.uid);
    if is_owned { found.data.clone().unwrap_or_default() } else { BTreeMap::new() }
}

fn config_map(
    name: String,
    namespace: &str,
    owner: OwnerReference,
    found: Option<&ConfigMap>,
    record: SealRecord,
) -> ConfigMap {
    let labels = [(names::LABEL_MANAGED_BY, names::MANAGED_BY), (names::LABEL_SEALED_NAMESPACE, namespace)];
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            owner_references: Some(vec![owner]),
            // A record that was changed meanwhile is not overwritten.
            uid: found.and_then(ResourceExt::uid),
            resource_version: found.and_then(ResourceExt::resource_version),
            ..ObjectMeta::default()
        },
        data: Some(record.into_entries()),
        ..ConfigMap::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(uid: &str) -> OwnerReference {
        OwnerReference { uid: uid.into(), name: "team-a".into(), ..OwnerReference::default() }
    }

    fn record(entries: &[(&str, &str)]) -> SealRecord {
        SealRecord::new(entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_record_is_named_after_its_namespace_and_says_so() {
        let name = record_name("team-a", "word-count");
        assert!(name.starts_with("sealed.team-a."), "{name}");
        let new = config_map(name, "team-a", owner("u1"), None, record(&[("word-count-1.0.0", "d")]));
        assert_eq!(new.labels()[names::LABEL_SEALED_NAMESPACE], "team-a");
        assert_eq!(new.owner_references()[0].uid, "u1");
        assert_eq!(entries(&new, &owner("u1"))["word-count-1.0.0"], "d");
    }

    #[test]
    fn a_namespace_that_was_created_again_begins_with_an_empty_record() {
        let old = config_map("r".into(), "team-a", owner("u1"), None, record(&[("word-count-1.0.0", "d")]));
        assert!(entries(&old, &owner("u2")).is_empty());
    }

    #[test]
    fn a_write_names_the_state_that_was_read() {
        let mut read = config_map("r".into(), "team-a", owner("u1"), None, record(&[]));
        (read.metadata.uid, read.metadata.resource_version) = (Some("u".into()), Some("7".into()));
        let written = config_map("r".into(), "team-a", owner("u1"), Some(&read), record(&[("a-1.0.0", "d")]));
        assert_eq!((written.uid().as_deref(), written.resource_version().as_deref()), (Some("u"), Some("7")));
    }
}
