//! The Skill's status: conditions from the result of a reconcile, pure, then one apply where something changed.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use skillet_api::{
    Reason, Skill, SkillStatus,
    reason::{READY, SEALED},
};
use skillet_core::{
    skill::{is_image_pinned, yanked_versions},
    version::SkillSemver,
};
use skillet_kube::{Conditions, apply_status, find_condition, is_gone};
use thiserror::Error as ThisError;

use super::{Error as SkillError, KIND, apply::Applied};
use crate::{context::Context, report::chain};

#[derive(Debug, ThisError)]
pub(crate) enum Error {
    #[error("could not apply the status of Skill {name}")]
    Apply { name: String, source: Box<kube::Error> },
}

/// Writes the status for `result`, and reports a problem that is new.
pub(crate) async fn report(
    ctx: &Context,
    skill: &Skill,
    result: &Result<Applied, SkillError>,
) -> Result<(), Error> {
    let old = skill.status.clone().unwrap_or_default();
    let new = status(skill, result, Timestamp::now());
    if new == old {
        return Ok(());
    }
    let reference = skill.object_ref(&());
    match apply_status::<Skill>(&ctx.client, &reference, &new).await {
        Ok(()) => {}
        // The skill was deleted meanwhile, so nobody needs its status.
        Err(kube::Error::Api(status)) if is_gone(&status) => return Ok(()),
        Err(source) => return Err(Error::Apply { name: skill.name_any(), source: Box::new(source) }),
    }
    if let Err(error) = result
        && is_news(&old, &new)
    {
        ctx.reporter.problem(&reference, KIND, error.reason(), &chain(error)).await;
    }
    Ok(())
}

fn is_news(old: &SkillStatus, new: &SkillStatus) -> bool {
    let said = |status: &SkillStatus| {
        let of = |type_: &str| {
            find_condition(&status.conditions, type_).map(|c| (c.reason.clone(), c.message.clone()))
        };
        (of(READY), of(SEALED))
    };
    said(old) != said(new)
}

fn status(skill: &Skill, result: &Result<Applied, SkillError>, now: Timestamp) -> SkillStatus {
    let (generation, old) = (skill.metadata.generation, skill.status.clone().unwrap_or_default());
    let yanked = yanked_versions(&skill.spec);
    let (ready, sealed) = verdicts(result, &yanked);
    let (versions, digest) = match result {
        Ok(applied) => (texts(&applied.versions), Some(applied.digest.clone())),
        Err(SkillError::Build(conflict)) => (texts(&conflict.sealed), old.digest.clone()),
        Err(
            SkillError::Parse(_)
            | SkillError::Gather(_)
            | SkillError::Validate { .. }
            | SkillError::Record(_)
            | SkillError::Apply(_)
            | SkillError::Status(_),
        ) => (old.versions.clone(), old.digest.clone()),
    };
    // After a failed read or write nothing is decided: the reconcile is retried, and clients keep waiting.
    let is_decided = !matches!(
        result,
        Err(SkillError::Gather(_) | SkillError::Record(_) | SkillError::Apply(_) | SkillError::Status(_))
    );
    let conditions = Conditions { old: &old.conditions, generation, now };
    let condition = |type_: &str, Verdict { is_true, reason, message }: &Verdict| {
        conditions.build(type_, if *is_true { "True" } else { "False" }, reason.as_str(), message)
    };
    // A failed request says nothing of what was sealed before.
    let kept = |type_: &str, is_current: bool| {
        find_condition(&old.conditions, type_).filter(|_| is_current && !is_decided).cloned()
    };
    SkillStatus {
        observed_generation: if is_decided { generation } else { old.observed_generation },
        latest_version: newest(versions.iter().filter_map(|text| text.parse().ok()), &yanked),
        versions,
        digest,
        image_pinned: is_image_pinned(&skill.spec),
        conditions: vec![
            kept(READY, true).unwrap_or_else(|| condition(READY, &ready)),
            kept(SEALED, old.observed_generation == generation).unwrap_or_else(|| condition(SEALED, &sealed)),
        ],
    }
}

fn texts(versions: &[SkillSemver]) -> Vec<String> {
    versions.iter().map(ToString::to_string).collect()
}

/// Returns the first version that is not yanked.
fn newest(versions: impl IntoIterator<Item = SkillSemver>, yanked: &BTreeSet<SkillSemver>) -> Option<String> {
    versions.into_iter().find(|version| !yanked.contains(version)).map(|version| version.to_string())
}

struct Verdict {
    is_true: bool,
    reason: Reason,
    message: String,
}

/// Returns the verdicts of `Ready` (a version can run) and `Sealed` (the Skill's content is what runs).
fn verdicts(result: &Result<Applied, SkillError>, yanked: &BTreeSet<SkillSemver>) -> (Verdict, Verdict) {
    match result {
        Ok(applied) => {
            let ready = match newest(applied.versions.iter().cloned(), yanked) {
                Some(newest) => Verdict {
                    is_true: true,
                    reason: Reason::Ready,
                    message: format!("{newest} is the newest version"),
                },
                None => Verdict {
                    is_true: false,
                    reason: Reason::VersionYanked,
                    message: "spec.yankedVersions withdraws every sealed version".to_owned(),
                },
            };
            (ready, Verdict { is_true: true, reason: Reason::Sealed, message: String::new() })
        }
        Err(error) => {
            let problem = || Verdict { is_true: false, reason: error.reason(), message: chain(error) };
            let serving = match error {
                // Versions that were sealed before stay in use.
                SkillError::Build(conflict) => newest(conflict.sealed.iter().cloned(), yanked),
                SkillError::Validate { serving, .. } => newest(serving.iter().cloned(), yanked),
                SkillError::Parse(_)
                | SkillError::Gather(_)
                | SkillError::Record(_)
                | SkillError::Apply(_)
                | SkillError::Status(_) => None,
            };
            let ready = match serving {
                Some(newest) => Verdict {
                    is_true: true,
                    reason: Reason::Ready,
                    message: format!("{newest} is the newest version; the present content is not sealed"),
                },
                None => problem(),
            };
            (ready, problem())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn skill(generation: i64, yanked: &[&str], status: SkillStatus) -> Skill {
        let mut skill: Skill = serde_saphyr::from_str(
            "apiVersion: skillet.dev/v1alpha1\nkind: Skill\nmetadata: {name: a}\nspec: {version: 1.0.0, run: {}}",
        )
        .unwrap();
        skill.metadata.generation = Some(generation);
        skill.spec.yanked_versions = yanked.iter().map(|text| (*text).to_owned()).collect();
        skill.status = Some(status);
        skill
    }

    fn applied(versions: &[&str]) -> Applied {
        let versions = versions.iter().map(|text| text.parse().unwrap()).collect();
        Applied { versions, digest: "d".into() }
    }

    fn sealed() -> SkillStatus {
        status(&skill(1, &[], SkillStatus::default()), &Ok(applied(&["1.0.0"])), now())
    }

    fn condition_of(status: &SkillStatus, type_: &str) -> (String, String) {
        let found = status.conditions.iter().find(|condition| condition.type_ == type_).unwrap();
        (found.status.clone(), found.reason.clone())
    }

    #[test]
    fn a_sealed_skill_is_ready() {
        let status = sealed();
        assert_eq!(condition_of(&status, READY), ("True".into(), "Ready".into()));
        assert_eq!(condition_of(&status, SEALED), ("True".into(), "Sealed".into()));
        assert_eq!((status.observed_generation, status.latest_version.as_deref()), (Some(1), Some("1.0.0")));
    }

    #[test]
    fn an_image_without_a_digest_is_not_pinned() {
        let of = |sandbox: &str| {
            let mut skill = skill(1, &[], SkillStatus::default());
            skill.spec.run = serde_saphyr::from_str(&format!("{{sandbox: {{{sandbox}}}}}")).unwrap();
            status(&skill, &Ok(applied(&["1.0.0"])), now()).image_pinned
        };
        assert_eq!(of("image: 'r.example:5000/a:1', command: [cat]"), Some(false));
        assert_eq!(of("image: 'r.example/a', command: [cat]"), Some(false));
        assert_eq!(
            of(&format!("image: 'r.example/a:1@sha256:{}', command: [cat]", "0".repeat(64))),
            Some(true)
        );
        assert_eq!(of("runtime: shell, script: cat"), None);
    }

    #[test]
    fn the_newest_version_that_is_not_yanked_is_the_latest() {
        let of = |yanked: &[&str]| {
            let skill = skill(1, yanked, SkillStatus::default());
            status(&skill, &Ok(applied(&["1.1.0", "1.0.0"])), now())
        };
        let one = of(&["1.1.0", "3.0.0"]);
        assert_eq!((one.latest_version.as_deref(), one.versions.len()), (Some("1.0.0"), 2));
        assert_eq!(condition_of(&one, READY), ("True".into(), "Ready".into()));
        let all = of(&["1.1.0", "1.0.0"]);
        assert_eq!(all.latest_version, None);
        assert_eq!(condition_of(&all, READY), ("False".into(), "VersionYanked".into()));
        assert_eq!(condition_of(&all, SEALED), ("True".into(), "Sealed".into()));
    }

    #[test]
    fn a_conflict_leaves_what_is_sealed_ready() {
        let conflict = crate::skill::build::Conflict {
            cause: Box::new(crate::skill::build::Cause::Sealed("1.0.0".parse().unwrap())),
            sealed: vec!["1.0.0".parse().unwrap()],
        };
        let status = status(&skill(2, &[], sealed()), &Err(SkillError::Build(conflict)), now());
        assert_eq!(condition_of(&status, READY), ("True".into(), "Ready".into()));
        assert_eq!(condition_of(&status, SEALED), ("False".into(), "VersionConflict".into()));
        assert_eq!(status.observed_generation, Some(2));
    }

    fn failed_write() -> Result<Applied, SkillError> {
        Err(SkillError::Apply(crate::skill::apply::Error::Seal {
            name: "a-1.1.0".into(),
            source: Box::new(kube::Error::LinesCodecMaxLineLengthExceeded),
        }))
    }

    #[test]
    fn a_failed_write_decides_nothing() {
        let failed = status(&skill(2, &[], sealed()), &failed_write(), now());
        assert_eq!(condition_of(&failed, READY), ("True".into(), "Ready".into()));
        assert_eq!(condition_of(&failed, SEALED), ("False".into(), "ApiError".into()));
        assert_eq!(failed.observed_generation, Some(1));
        assert_eq!(
            status(&skill(1, &[], sealed()), &failed_write(), now()),
            sealed(),
            "nothing was to be done"
        );
        let first = status(&skill(1, &[], SkillStatus::default()), &failed_write(), now());
        assert_eq!(condition_of(&first, READY), ("False".into(), "ApiError".into()));
    }

    #[test]
    fn content_that_is_not_valid_leaves_ready_what_is_sealed_and_serves() {
        let invalid = |serving: &[&str]| {
            let message = "must be more than 0".to_owned();
            let problems = vec![skillet_core::skill::FieldError {
                reason: Reason::SpecInvalid,
                field: "spec.limits.cpu".into(),
                message,
            }];
            let serving = serving.iter().map(|version| version.parse().unwrap()).collect();
            status(&skill(2, &[], sealed()), &Err(SkillError::Validate { problems, serving }), now())
        };
        let serves = invalid(&["1.0.0"]);
        assert_eq!(condition_of(&serves, READY), ("True".into(), "Ready".into()));
        assert_eq!(condition_of(&serves, SEALED), ("False".into(), "SpecInvalid".into()));
        assert_eq!(serves.observed_generation, Some(2));
        assert_eq!(condition_of(&invalid(&[]), READY), ("False".into(), "SpecInvalid".into()));
    }
}
