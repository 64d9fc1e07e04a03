//! Writes the Skills of a plan, some at a time, under the field manager of sources.

use futures::{StreamExt as _, stream};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use skillet_api::{Skill, names::SOURCES_FIELD_MANAGER, source::RefusedFile};
use thiserror::Error;

use crate::plan::{Change, Plan, PresentSkill};

/// Writes at one time.
const SIDE_BY_SIDE: usize = 8;

#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("could not apply Skill {name}")]
    Apply { name: String, source: Box<kube::Error> },
    #[error("could not delete Skill {name}")]
    Delete { name: String, source: Box<kube::Error> },
}

/// The changes that were written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Applied {
    /// Skills that are there.
    pub(crate) skills: usize,
    /// Those whose content the operator has not looked at yet.
    pub(crate) changed: usize,
    pub(crate) pruned: usize,
    /// Files whose Skill the API server refused, and those that the plan refused.
    pub(crate) refused: Vec<RefusedFile>,
    /// Skills that need a higher version, since theirs was sealed with other content.
    pub(crate) in_conflict: usize,
}

/// One Skill that was applied.
enum Outcome {
    There { is_changed: bool, is_in_conflict: bool },
    Refused(RefusedFile),
}

/// Applies all Skills, and then removes those whose files are gone. One that is refused leaves the others.
pub(crate) async fn apply(api: &Api<Skill>, plan: Plan) -> Result<Applied, Error> {
    let mut applied = Applied { refused: plan.refused, ..Applied::default() };
    let mut outcomes =
        stream::iter(plan.apply).map(|change| apply_one(api, change)).buffer_unordered(SIDE_BY_SIDE);
    while let Some(outcome) = outcomes.next().await {
        match outcome? {
            Outcome::There { is_changed, is_in_conflict } => {
                applied.skills += 1;
                applied.changed += usize::from(is_changed);
                applied.in_conflict += usize::from(is_in_conflict);
            }
            Outcome::Refused(file) => applied.refused.push(file),
        }
    }
    drop(outcomes);
    let mut pruned =
        stream::iter(plan.prune).map(|name| async { delete(api, name).await }).buffer_unordered(SIDE_BY_SIDE);
    while let Some(is_deleted) = pruned.next().await {
        applied.pruned += usize::from(is_deleted?);
    }
    drop(pruned);
    applied.refused.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(applied)
}

async fn apply_one(api: &Api<Skill>, change: Change) -> Result<Outcome, Error> {
    let Change { name, path, object } = change;
    let params = PatchParams::apply(SOURCES_FIELD_MANAGER).force();
    match api.patch(&name, &params, &Patch::Apply(&object)).await {
        Ok(skill) => {
            let seen = skill.status.as_ref().and_then(|status| {
                status.conditions.iter().filter_map(|condition| condition.observed_generation).max()
            });
            Ok(Outcome::There {
                is_changed: seen != skill.metadata.generation,
                is_in_conflict: PresentSkill::of(&skill).is_in_conflict,
            })
        }
        // The object itself is refused: by its definition, a quota or an admission rule.
        Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 409 | 413 | 422) => {
            Ok(Outcome::Refused(RefusedFile { path, message: status.message }))
        }
        Err(source) => Err(Error::Apply { name, source: Box::new(source) }),
    }
}

/// Deletes a Skill that still has the mark of a source.
async fn delete(api: &Api<Skill>, name: String) -> Result<bool, Error> {
    let failed = |source| Error::Delete { name: name.clone(), source: Box::new(source) };
    let Some(skill) = api.get_opt(&name).await.map_err(failed)? else { return Ok(false) };
    if PresentSkill::of(&skill).source.is_none() {
        return Ok(false);
    }
    let preconditions =
        Preconditions { uid: skill.metadata.uid, resource_version: skill.metadata.resource_version };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(&name, &params).await {
        Ok(_) => Ok(true),
        // Somebody has changed or removed it meanwhile; the next look decides again.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
        Err(source) => Err(failed(source)),
    }
}
