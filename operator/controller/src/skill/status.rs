//! The Skill's status: conditions from the result of a reconcile, pure, then one apply where something changed.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::{Resource, ResourceExt, runtime::events::EventType};
use skillet_api::{
    Reason, Skill, SkillPolicySpec, SkillStatus,
    reason::{DEPENDENCIES_MET, READY, SEALED, SECRETS_PRESENT, STALLED},
    skill::Mode,
};
use skillet_core::{
    import::findings,
    skill::{
        Dependencies, dependencies, effective_limits, is_image_pinned, maximum_limits, warnings,
        yanked_versions,
    },
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
    match result {
        Err(error) if is_news(&old, &new) => {
            ctx.reporter.problem(&reference, KIND, error.reason(), &chain(error)).await;
        }
        Ok(_) => {
            if let Some(findings) = new_findings(skill, &old, &new) {
                let reason = Reason::ImportWarnings;
                ctx.reporter.event(&reference, KIND, EventType::Warning, reason, &findings).await;
            }
        }
        Err(_) => {}
    }
    Ok(())
}

/// Returns the findings in the file of a Skill, if the status did not show them before.
fn new_findings(skill: &Skill, old: &SkillStatus, new: &SkillStatus) -> Option<String> {
    let findings = findings(skill.annotations()).join("; ");
    let shows = |status: &SkillStatus| {
        find_condition(&status.conditions, SEALED).is_some_and(|sealed| sealed.message.contains(&findings))
    };
    (!findings.is_empty() && shows(new) && !shows(old)).then_some(findings)
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
        let note = result.as_ref().ok().and_then(|applied| applied.body_note.clone());
        let notes = warnings(&skill.spec).into_iter().chain(findings(skill.annotations())).chain(note);
        sealed.message = notes.collect::<Vec<_>>().join("; ");
    }
    let (versions, digest) = match result {
        Ok(applied) => (texts(&applied.versions), Some(applied.digest.clone())),
        Err(SkillError::Build(conflict)) => (texts(&conflict.sealed), old.digest.clone()),
        Err(
            SkillError::Parse(_)
            | SkillError::Gather(_)
            | SkillError::Validate { .. }
            | SkillError::Body { .. }
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
    let builder = Conditions { old: &old.conditions, generation, now };
    let condition = |type_: &str, Verdict { is_true, reason, message }: &Verdict| {
        builder.build(type_, if *is_true { "True" } else { "False" }, reason.as_str(), message)
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
    if let (Ok(_), Some(dependencies)) = (result, dependencies(&skill.spec, policy)) {
        let (status, reason, message) = dependencies_verdict(&dependencies);
        conditions.push(builder.build(DEPENDENCIES_MET, status, reason.as_str(), &message));
    }
    // kstatus, which Flux and Argo CD read, takes a Skill with this condition for failed instead of waiting.
    // A ConfigMap is often created a moment after its Skill, so a missing one is waited for.
    if is_decided && !sealed.is_true && sealed.reason != Reason::ConfigMapMissing {
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
        limits: Some(effective_limits(skill.spec.run.as_ref(), skill.spec.limits.as_ref(), policy)),
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

fn dependencies_verdict(dependencies: &Dependencies) -> (&'static str, Reason, String) {
    let message = dependencies.to_string();
    match dependencies {
        Dependencies::Met => ("True", Reason::Ready, message),
        Dependencies::Missing { .. } => ("False", Reason::DependencyMissing, message),
        Dependencies::Unknown { .. } => ("Unknown", Reason::DependenciesUnknown, message),
    }
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
                SkillError::Validate { serving, .. } | SkillError::Body { serving, .. } => {
                    choice.current(serving)
                }
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
mod tests;
