//! The status of a source: conditions from the end of a look, pure, then one apply where something changed.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use skillet_api::{
    Reason, SkillSource, SkillSourceStatus,
    names::ANNOTATION_SYNC_REQUEST,
    reason::{PARTIALLY_INVALID, READY, STALLED},
    source::RefusedFile,
};
use skillet_core::text::truncate;
use skillet_kube::{Conditions, replace_unprintable};

use crate::failure::Failure;

/// Most refused files in a status, and the longest message of one.
const MAX_REFUSED: usize = 64;
const MAX_MESSAGE: usize = 512;

/// The end of a look.
#[derive(Debug)]
pub(crate) enum End {
    Suspended,
    /// The repository still has the revision.
    Unchanged,
    Synced {
        revision: String,
        skills: usize,
        refused: Vec<RefusedFile>,
    },
    Failed(Failure),
    /// The cluster could not be read or written; it is tried again.
    Interrupted(String),
}

impl End {
    /// Returns one word for condition, event and metric.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            End::Suspended => Reason::Suspended,
            End::Unchanged | End::Synced { .. } => Reason::Synced,
            End::Failed(failure) => failure.reason(),
            End::Interrupted(_) => Reason::ApiError,
        }
    }
}

/// Returns the status after a look.
pub(crate) fn status(source: &SkillSource, end: &End, now: Timestamp) -> SkillSourceStatus {
    let old = source.status.clone().unwrap_or_default();
    let conditions = Conditions { old: &old.conditions, generation: source.metadata.generation, now };
    let request = source
        .metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(ANNOTATION_SYNC_REQUEST))
        .cloned();
    let mut new = SkillSourceStatus {
        observed_generation: source.metadata.generation,
        last_handled_sync_request: request,
        conditions: Vec::new(),
        ..old.clone()
    };
    let (ready, message) = match end {
        End::Suspended => ("False", "spec.suspend is true; the Skills stay as they are".to_owned()),
        End::Unchanged => ("True", synced(&old)),
        End::Synced { revision, skills, refused } => {
            new.revision = Some(revision.clone());
            new.last_sync_time = Some(Time(now));
            new.skills = u32::try_from(*skills).unwrap_or(u32::MAX);
            new.refused = shown(refused);
            ("True", synced(&new))
        }
        End::Failed(failure) => ("False", failure.to_string()),
        End::Interrupted(message) => ("False", message.clone()),
    };
    new.conditions.push(conditions.build(READY, ready, end.reason().as_str(), &message));
    let refused = match end {
        End::Synced { refused, .. } => refused.len(),
        // A look that took no files knows no more than the look before.
        End::Suspended | End::Unchanged | End::Failed(_) | End::Interrupted(_) => {
            let kept = old.conditions.iter().filter(|condition| condition.type_ == PARTIALLY_INVALID);
            new.conditions.extend(kept.cloned());
            0
        }
    };
    if refused > 0 {
        let message = refused_words(refused, &new.refused);
        new.conditions.push(conditions.build(
            PARTIALLY_INVALID,
            "True",
            Reason::FilesRefused.as_str(),
            &message,
        ));
    }
    if let End::Failed(failure) = end
        && failure.waits_for_an_edit()
    {
        new.conditions.push(conditions.build(STALLED, "True", failure.reason().as_str(), &message));
    }
    new
}

fn synced(status: &SkillSourceStatus) -> String {
    let revision = status.revision.as_deref().unwrap_or("the repository");
    let skills = if status.skills == 1 { "1 Skill".to_owned() } else { format!("{} Skills", status.skills) };
    format!("{skills} of {revision}")
}

fn refused_words(count: usize, shown: &[RefusedFile]) -> String {
    let first: Vec<String> =
        shown.iter().take(3).map(|file| format!("{}: {}", file.path, file.message)).collect();
    let rest = if count > first.len() { "; see status.refused" } else { "" };
    let files = if count == 1 { "1 file is".to_owned() } else { format!("{count} files are") };
    format!("{files} no Skill: {}{rest}", first.join("; "))
}

/// The first refused files, each path once.
fn shown(refused: &[RefusedFile]) -> Vec<RefusedFile> {
    let mut shown: Vec<RefusedFile> = refused.iter().take(MAX_REFUSED).map(bounded).collect();
    shown.dedup_by(|a, b| a.path == b.path);
    shown
}

fn bounded(file: &RefusedFile) -> RefusedFile {
    let text = |text: &str| replace_unprintable(truncate(text, MAX_MESSAGE).0).into_owned();
    RefusedFile { path: text(&file.path), message: text(&file.message) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skillet_kube::find_condition;

    use super::*;

    fn source(status: &SkillSourceStatus) -> SkillSource {
        serde_json::from_value(json!({
            "apiVersion": "skillet.dev/v1alpha1",
            "kind": "SkillSource",
            "metadata": { "name": "team", "namespace": "a", "generation": 4,
                "annotations": { "skillet.dev/sync-requested-at": "now" } },
            "spec": { "git": { "url": "https://git.example.com/a.git" } },
            "status": status,
        }))
        .unwrap()
    }

    fn condition<'a>(status: &'a SkillSourceStatus, type_: &str) -> Option<(&'a str, &'a str, &'a str)> {
        let condition = find_condition(&status.conditions, type_)?;
        Some((&condition.status, &condition.reason, &condition.message))
    }

    fn refused(count: usize) -> Vec<RefusedFile> {
        let file = |n: usize| RefusedFile { path: format!("{n}/SKILL.md"), message: "is bad".to_owned() };
        (0..count).map(file).collect()
    }

    fn synced_with(skills: usize, refused: Vec<RefusedFile>) -> End {
        End::Synced { revision: "main@sha1:1".to_owned(), skills, refused }
    }

    #[test]
    fn a_sync_shows_revision_skills_and_what_was_refused() {
        let new = status(
            &source(&SkillSourceStatus::default()),
            &synced_with(2, refused(100)),
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(
            (new.observed_generation, new.last_handled_sync_request.as_deref()),
            (Some(4), Some("now"))
        );
        assert_eq!((new.skills, new.refused.len(), new.last_sync_time.is_some()), (2, 64, true));
        assert_eq!(condition(&new, READY), Some(("True", "Synced", "2 Skills of main@sha1:1")));
        let message = "100 files are no Skill: 0/SKILL.md: is bad; 1/SKILL.md: is bad; 2/SKILL.md: is bad; see status.refused";
        assert_eq!(condition(&new, PARTIALLY_INVALID), Some(("True", "FilesRefused", message)));
        let clean = status(&source(&new), &synced_with(1, Vec::new()), Timestamp::UNIX_EPOCH);
        assert_eq!((condition(&clean, PARTIALLY_INVALID), clean.refused.len()), (None, 0));
        assert_eq!(condition(&clean, READY).unwrap().2, "1 Skill of main@sha1:1");
    }

    #[test]
    fn other_ends_keep_what_the_last_sync_found() {
        let old = status(
            &source(&SkillSourceStatus::default()),
            &synced_with(2, refused(1)),
            Timestamp::UNIX_EPOCH,
        );
        let later = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(60);
        for (end, ready, is_stalled) in [
            (End::Unchanged, ("True", "Synced", "2 Skills of main@sha1:1"), false),
            (
                End::Suspended,
                ("False", "Suspended", "spec.suspend is true; the Skills stay as they are"),
                false,
            ),
            (
                End::Failed(Failure::TimedOut),
                ("False", "SourceUnavailable", "the transfer took longer than spec.timeout"),
                false,
            ),
            (End::Interrupted("no answer".to_owned()), ("False", "ApiError", "no answer"), false),
            (
                End::Failed(Failure::HostNotAllowed("x".to_owned())),
                (
                    "False",
                    "HostNotAllowed",
                    "the host x is not allowed; an administrator adds it to spec.sources.allowedHosts of SkillPolicy default",
                ),
                true,
            ),
        ] {
            let new = status(&source(&old), &end, later);
            assert_eq!(condition(&new, READY), Some(ready));
            assert_eq!((new.skills, &new.revision, &new.refused), (old.skills, &old.revision, &old.refused));
            assert_eq!(condition(&new, PARTIALLY_INVALID), condition(&old, PARTIALLY_INVALID));
            assert_eq!(condition(&new, STALLED).is_some(), is_stalled);
        }
        assert_eq!(status(&source(&old), &End::Unchanged, later), old, "nothing to write");
    }

    #[test]
    fn texts_of_a_repository_are_bounded_and_can_be_shown() {
        let file = RefusedFile { path: "p".repeat(1000), message: "a\u{7f}b".to_owned() };
        let new = status(
            &source(&SkillSourceStatus::default()),
            &synced_with(0, vec![file]),
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!((new.refused[0].path.len(), new.refused[0].message.as_str()), (512, "a\u{fffd}b"));
    }
}
