//! The Skill's status: conditions from the result of a reconcile, pure, then one apply where something changed.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use skillet_api::{
    Reason, Skill, SkillPolicySpec, SkillStatus,
    reason::{READY, SEALED, SECRETS_PRESENT, STALLED},
    skill::Mode,
};
use skillet_core::{
    skill::{effective_limits, is_image_pinned, maximum_limits, warnings, yanked_versions},
    version::{SkillSemver, current},
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
    let new = status(skill, result, &ctx.catalog.policy(), Timestamp::now());
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

fn status(
    skill: &Skill,
    result: &Result<Applied, SkillError>,
    policy: &SkillPolicySpec,
    now: Timestamp,
) -> SkillStatus {
    let (generation, old) = (skill.metadata.generation, skill.status.clone().unwrap_or_default());
    let choice = Choice { wanted: skill.spec.version.parse().ok(), yanked: yanked_versions(&skill.spec) };
    let (ready, mut sealed) = verdicts(result, &choice);
    if sealed.is_true {
        sealed.message = warnings(&skill.spec).join("; ");
    }
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
    let mut conditions = vec![
        kept(READY, true).unwrap_or_else(|| condition(READY, &ready)),
        kept(SEALED, old.observed_generation == generation).unwrap_or_else(|| condition(SEALED, &sealed)),
    ];
    if let Ok(Applied { missing_secrets: Some(missing), .. }) = result {
        conditions.push(condition(SECRETS_PRESENT, &secrets_verdict(missing)));
    }
    // kstatus, which Flux and Argo CD read, takes a Skill with this condition for failed instead of waiting.
    if is_decided && !sealed.is_true {
        conditions.push(condition(STALLED, &Verdict { is_true: true, ..sealed }));
    }
    let numbers: Vec<SkillSemver> = versions.iter().filter_map(|text| text.parse().ok()).collect();
    SkillStatus {
        observed_generation: if is_decided { generation } else { old.observed_generation },
        current_version: choice.current(&numbers).map(ToString::to_string),
        latest_version: choice.newest(&numbers).map(ToString::to_string),
        versions,
        digest,
        mode: Some(mode_word(skill.spec.mode).to_owned()),
        limits: Some(effective_limits(skill.spec.limits.as_ref(), policy)),
        maximums: Some(maximum_limits(policy)),
        image_pinned: is_image_pinned(&skill.spec),
        conditions,
    }
}

fn secrets_verdict(missing: &[String]) -> Verdict {
    if missing.is_empty() {
        return Verdict { is_true: true, reason: Reason::Ready, message: String::new() };
    }
    let message = format!("this namespace lacks {}; models are not offered the skill", missing.join(", "));
    Verdict { is_true: false, reason: Reason::SecretMissing, message }
}

fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::On => "on",
        Mode::Auto => "auto",
        Mode::Off => "off",
    }
}

fn texts(versions: &[SkillSemver]) -> Vec<String> {
    versions.iter().map(ToString::to_string).collect()
}

/// The Skill's own part in the choice of a version.
struct Choice {
    wanted: Option<SkillSemver>,
    yanked: BTreeSet<SkillSemver>,
}

impl Choice {
    /// Returns the version that runs if a request names none.
    fn current<'a>(&self, versions: &'a [SkillSemver]) -> Option<&'a SkillSemver> {
        current(self.wanted.as_ref(), self.usable(versions))
    }

    fn newest<'a>(&self, versions: &'a [SkillSemver]) -> Option<&'a SkillSemver> {
        self.usable(versions).max()
    }

    fn usable<'a>(&self, versions: &'a [SkillSemver]) -> impl Iterator<Item = &'a SkillSemver> {
        versions.iter().filter(|version| !self.yanked.contains(version))
    }

    /// Says which version runs, and why not the one that a reader expects.
    fn explain(&self, current: &SkillSemver, versions: &[SkillSemver]) -> String {
        match &self.wanted {
            Some(wanted) if wanted == current => {
                match self.newest(versions).filter(|newest| *newest > current) {
                    Some(newest) => format!("{current} runs, as spec.version says; {newest} is newer"),
                    None => format!("{current} runs"),
                }
            }
            Some(wanted) if self.yanked.contains(wanted) => {
                format!("{current} runs, because spec.yankedVersions withdraws {wanted}")
            }
            Some(_) | None => format!("{current} runs"),
        }
    }
}

struct Verdict {
    is_true: bool,
    reason: Reason,
    message: String,
}

/// Returns the verdicts of `Ready` (a version can run) and `Sealed` (the Skill's content is what runs).
fn verdicts(result: &Result<Applied, SkillError>, choice: &Choice) -> (Verdict, Verdict) {
    let runs = |message: String| Verdict { is_true: true, reason: Reason::Ready, message };
    match result {
        Ok(applied) => {
            let ready = match choice.current(&applied.versions) {
                Some(current) => runs(choice.explain(current, &applied.versions)),
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
                SkillError::Build(conflict) => choice.current(&conflict.sealed),
                SkillError::Validate { serving, .. } => choice.current(serving),
                SkillError::Parse(_)
                | SkillError::Gather(_)
                | SkillError::Record(_)
                | SkillError::Apply(_)
                | SkillError::Status(_) => None,
            };
            let ready = match serving {
                Some(current) => runs(format!("{current} runs; the present content is not sealed")),
                None => problem(),
            };
            (ready, problem())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status under the built-in policy.
    fn status(skill: &Skill, result: &Result<Applied, SkillError>, now: Timestamp) -> SkillStatus {
        super::status(skill, result, &SkillPolicySpec::default(), now)
    }

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
        Applied { versions, digest: "d".into(), missing_secrets: None }
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
    fn the_version_in_the_spec_is_current_and_a_newer_one_is_named() {
        let rolled_back =
            status(&skill(1, &[], SkillStatus::default()), &Ok(applied(&["1.1.0", "1.0.0"])), now());
        assert_eq!(
            (rolled_back.current_version.as_deref(), rolled_back.latest_version.as_deref()),
            (Some("1.0.0"), Some("1.1.0"))
        );
        let message =
            |status: &SkillStatus| find_condition(&status.conditions, READY).unwrap().message.clone();
        assert_eq!(message(&rolled_back), "1.0.0 runs, as spec.version says; 1.1.0 is newer");
        let yanked =
            status(&skill(1, &["1.0.0"], SkillStatus::default()), &Ok(applied(&["1.0.0", "0.9.0"])), now());
        assert_eq!(message(&yanked), "0.9.0 runs, because spec.yankedVersions withdraws 1.0.0");
        assert_eq!(message(&sealed()), "1.0.0 runs");
    }

    #[test]
    fn warnings_and_limits_of_the_policy_are_shown() {
        let status = sealed();
        let message = &find_condition(&status.conditions, SEALED).unwrap().message;
        assert!(message.starts_with("spec.description: is empty"), "{message}");
        let (limits, maximums) = (status.limits.unwrap(), status.maximums.unwrap());
        assert_eq!((limits.memory.as_str(), maximums.memory.as_str()), ("256Mi", "2Gi"));
        assert_eq!(status.mode.as_deref(), Some("auto"));
    }

    #[test]
    fn secrets_are_reported_only_of_a_skill_that_names_some() {
        let with = |missing: &[&str]| {
            let missing = missing.iter().map(|text| (*text).to_owned()).collect();
            let applied = Applied { missing_secrets: Some(missing), ..applied(&["1.0.0"]) };
            status(&skill(1, &[], SkillStatus::default()), &Ok(applied), now())
        };
        assert!(find_condition(&sealed().conditions, SECRETS_PRESENT).is_none());
        assert_eq!(condition_of(&with(&[]), SECRETS_PRESENT), ("True".into(), "Ready".into()));
        let missing = with(&["Secret a", "key k of Secret b"]);
        assert_eq!(condition_of(&missing, SECRETS_PRESENT), ("False".into(), "SecretMissing".into()));
        let message = &find_condition(&missing.conditions, SECRETS_PRESENT).unwrap().message;
        assert!(message.starts_with("this namespace lacks Secret a, key k of Secret b;"), "{message}");
        assert_eq!(condition_of(&missing, READY).0, "True", "kubectl may run it and gets the reason");
    }

    #[test]
    fn content_that_nobody_can_seal_is_stalled_and_a_failed_request_is_not() {
        let conflict = crate::skill::build::Conflict {
            cause: Box::new(crate::skill::build::Cause::Sealed("1.0.0".parse().unwrap())),
            sealed: vec!["1.0.0".parse().unwrap()],
        };
        let stalled = status(&skill(2, &[], sealed()), &Err(SkillError::Build(conflict)), now());
        assert_eq!(condition_of(&stalled, STALLED), ("True".into(), "VersionConflict".into()));
        assert!(find_condition(&sealed().conditions, STALLED).is_none());
        let failed = status(&skill(2, &[], sealed()), &failed_write(), now());
        assert!(find_condition(&failed.conditions, STALLED).is_none());
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
