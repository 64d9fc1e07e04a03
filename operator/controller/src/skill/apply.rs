//! Writes for one Skill: seal the version, delete what is past the history limit, label what is yanked.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use skillet_api::{SkillVersion, names};
use skillet_core::version::SkillSemver;
use skillet_kube::is_gone;
use thiserror::Error;
use tracing::info;

use super::build::Desired;
use crate::context::Context;

#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("could not seal SkillVersion {name}")]
    Seal { name: String, source: Box<kube::Error> },
    #[error("could not delete SkillVersion {name}")]
    Delete { name: String, source: Box<kube::Error> },
    #[error("could not label SkillVersion {name}")]
    Label { name: String, source: Box<kube::Error> },
}

impl Error {
    /// Tells if the API server refuses new objects because the namespace is being deleted.
    pub(crate) fn is_in_ending_namespace(&self) -> bool {
        match self {
            Error::Seal { source, .. } => matches!(
                source.as_ref(),
                kube::Error::Api(answer) if answer.code == 403 && answer.message.contains("being terminated")
            ),
            Error::Delete { .. } | Error::Label { .. } => false,
        }
    }
}

/// The state of the cluster after the writes.
pub(crate) struct Applied {
    /// Sealed versions, newest first.
    pub(crate) versions: Vec<SkillSemver>,
    /// Digest of the Skill's content.
    pub(crate) digest: String,
    /// Secrets and keys that the content names and that do not exist. `None` if it names none.
    pub(crate) missing_secrets: Option<Vec<String>>,
    /// A difference between the sealed text and the ConfigMap of `bodyFrom`.
    pub(crate) body_note: Option<String>,
}

/// Writes what was built. A version that another client sealed meanwhile is found at the next reconcile.
pub(crate) async fn apply(ctx: &Context, desired: Desired) -> Result<Applied, Error> {
    let Desired { seal, surplus, yanked, versions, digest, .. } = desired;
    if let Some(version) = seal {
        let api: Api<SkillVersion> =
            Api::namespaced(ctx.client.clone(), &version.namespace().unwrap_or_default());
        let name = version.name_any();
        let sealed = api
            .create(&PostParams::default(), &version)
            .await
            .map_err(|source| Error::Seal { name: name.clone(), source: Box::new(source) })?;
        ctx.newest_version.observe(&sealed);
        // The engine need not wait for the watch.
        ctx.catalog.learn_version(&sealed);
        info!(name, "Version sealed");
    }
    for version in surplus {
        let api: Api<SkillVersion> =
            Api::namespaced(ctx.client.clone(), &version.namespace().unwrap_or_default());
        let name = version.name_any();
        match api.delete(&name, &DeleteParams::default()).await {
            Ok(_) => info!(name, "Version past the history limit deleted"),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(source) => return Err(Error::Delete { name, source: Box::new(source) }),
        }
    }
    for (version, is_yanked) in yanked {
        label(ctx, &version, is_yanked).await?;
    }
    Ok(Applied { versions, digest, missing_secrets: None, body_note: None })
}

/// Shows in lists that a version is yanked, or is not any more. Only the Skill's spec decides.
async fn label(ctx: &Context, version: &SkillVersion, is_yanked: bool) -> Result<(), Error> {
    // The API server gives a namespace to every SkillVersion.
    let Some(namespace) = version.namespace() else { return Ok(()) };
    let api: Api<SkillVersion> = Api::namespaced(ctx.client.clone(), &namespace);
    let name = version.name_any();
    let value = is_yanked.then_some("true");
    let patch = json!({ "metadata": { "uid": version.uid(), "labels": { (names::LABEL_YANKED): value } } });
    match api.patch_metadata(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(labelled) => {
            ctx.newest_version.observe(&labelled);
            info!(name, is_yanked, "Version labelled");
            Ok(())
        }
        Err(kube::Error::Api(status)) if is_gone(&status) => Ok(()),
        Err(source) => Err(Error::Label { name, source: Box::new(source) }),
    }
}
