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
/// Deletions of one Skill in one look, each of what the Skill then is.
const DELETE_ATTEMPTS: usize = 3;

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
    /// Skills that somebody changed whenever they were to be deleted. The next look decides about them.
    pub(crate) unsettled: usize,
    /// Files whose Skill the API server refused, and those that the plan refused.
    pub(crate) refused: Vec<RefusedFile>,
    /// Skills that need a higher version, since theirs was sealed with other content.
    pub(crate) in_conflict: usize,
}

/// The end of a deletion.
#[derive(Debug, PartialEq, Eq)]
enum Deletion {
    Done,
    /// The Skill is gone, or is no longer one of a source.
    Unneeded,
    Unsettled,
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
    while let Some(deletion) = pruned.next().await {
        match deletion? {
            Deletion::Done => applied.pruned += 1,
            Deletion::Unneeded => {}
            Deletion::Unsettled => applied.unsettled += 1,
        }
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
async fn delete(api: &Api<Skill>, name: String) -> Result<Deletion, Error> {
    let failed = |source| Error::Delete { name: name.clone(), source: Box::new(source) };
    for _ in 0..DELETE_ATTEMPTS {
        let Some(skill) = api.get_opt(&name).await.map_err(failed)? else { return Ok(Deletion::Unneeded) };
        if PresentSkill::of(&skill).source.is_none() {
            return Ok(Deletion::Unneeded);
        }
        let preconditions =
            Preconditions { uid: skill.metadata.uid, resource_version: skill.metadata.resource_version };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match api.delete(&name, &params).await {
            Ok(_) => return Ok(Deletion::Done),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Deletion::Unneeded),
            // Somebody has changed it meanwhile, as the operator does that seals it; its mark decides again.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(source) => return Err(failed(source)),
        }
    }
    Ok(Deletion::Unsettled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skillet_api::names::LABEL_SOURCE;
    use skillet_kube::testing::FakeApiServer;

    use super::*;

    /// Deletes a Skill that so many deletions find changed.
    async fn delete_changed(times: usize) -> (Deletion, usize) {
        let server = FakeApiServer::default();
        server.put(
            "skills",
            json!({
                "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill",
                "metadata": {
                    "name": "a", "namespace": "team", "uid": "u", "labels": { LABEL_SOURCE: "s" },
                    "managedFields": [{ "manager": SOURCES_FIELD_MANAGER, "operation": "Apply" }],
                },
                "spec": { "version": "1.0.0" },
            }),
        );
        for _ in 0..times {
            server.fail_next("DELETE /apis/skillet.dev/v1alpha1/namespaces/team/skills/a", 409, "changed");
        }
        let api = Api::namespaced(server.client(), "team");
        let deletion = delete(&api, "a".to_owned()).await.unwrap();
        let requests = server.requests().iter().filter(|request| request.starts_with("DELETE")).count();
        (deletion, requests)
    }

    #[tokio::test]
    async fn a_skill_that_changes_while_it_is_deleted_is_deleted_as_it_then_is() {
        assert_eq!(delete_changed(0).await, (Deletion::Done, 1));
        assert_eq!(delete_changed(2).await, (Deletion::Done, 3));
        assert_eq!(delete_changed(3).await, (Deletion::Unsettled, 3));
    }
}
