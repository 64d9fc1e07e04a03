//! Conditions and versions of a Skill by the result of a reconcile.

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
    Applied { versions, digest: "d".into(), missing_secrets: None, body_note: None }
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
        skill.spec.run = Some(serde_saphyr::from_str(&format!("{{sandbox: {{{sandbox}}}}}")).unwrap());
        status(&skill, &Ok(applied(&["1.0.0"])), now()).image_pinned
    };
    assert_eq!(of("image: 'r.example:5000/a:1', command: [cat]"), Some(false));
    assert_eq!(of("image: 'r.example/a', command: [cat]"), Some(false));
    assert_eq!(of(&format!("image: 'r.example/a:1@sha256:{}', command: [cat]", "0".repeat(64))), Some(true));
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
    let message = |status: &SkillStatus| find_condition(&status.conditions, READY).unwrap().message.clone();
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
fn findings_in_the_imported_file_are_shown_and_reported_once() {
    let finding = "3:14: warning: description is no YAML (repaired)";
    let imported = |status: SkillStatus| {
        let mut skill = skill(1, &[], status);
        let annotations = skill.annotations_mut();
        annotations.insert("skillet.dev/imported-file".into(), "csv/SKILL.md".into());
        annotations.insert("skillet.dev/import-findings".into(), finding.into());
        skill
    };
    let first = imported(SkillStatus::default());
    let shown = status(&first, &Ok(applied(&["1.0.0"])), now());
    let message = &find_condition(&shown.conditions, SEALED).unwrap().message;
    assert!(message.ends_with(&format!("; csv/SKILL.md:{finding}")), "{message}");
    let news = new_findings(&first, &SkillStatus::default(), &shown);
    assert_eq!(news, Some(format!("csv/SKILL.md:{finding}")));
    assert_eq!(new_findings(&imported(shown.clone()), &shown, &shown), None);
    let without = skill(1, &[], SkillStatus::default());
    assert_eq!(new_findings(&without, &SkillStatus::default(), &sealed()), None);
}

#[test]
fn packages_of_scripts_are_reported_only_of_a_skill_that_declares_some() {
    let with = |image: &str| {
        let mut skill = skill(1, &[], SkillStatus::default());
        skill.spec.files = serde_saphyr::from_str(
            "[{path: a.py, content: import yaml}, {path: requirements.txt, content: pyyaml}]",
        )
        .unwrap();
        let policy = format!("{{scriptImages: {{{image}}}}}");
        let policy: SkillPolicySpec = serde_saphyr::from_str(&policy).unwrap();
        super::status(&skill, &Ok(applied(&["1.0.0"])), &policy, now())
    };
    assert!(find_condition(&sealed().conditions, DEPENDENCIES_MET).is_none());
    let missing = with("");
    assert_eq!(condition_of(&missing, DEPENDENCIES_MET), ("False".into(), "DependencyMissing".into()));
    let message = &find_condition(&missing.conditions, DEPENDENCIES_MET).unwrap().message;
    assert!(message.starts_with("the runtime of the scripts lacks pyyaml (requirements.txt)"), "{message}");
    assert_eq!(condition_of(&missing, READY).0, "True", "scripts without the package run");
    let unknown = condition_of(&with("python: 'py:1'"), DEPENDENCIES_MET);
    assert_eq!(unknown, ("Unknown".into(), "DependenciesUnknown".into()));
    assert_eq!(dependencies_verdict(&Dependencies::Met), ("True", Reason::Ready, String::new()));
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
fn a_missing_text_is_waited_for_and_one_that_cannot_be_sealed_stalls() {
    let without_text = |reason: Reason, serving: &[&str]| {
        let (field, message) = ("spec.instructions.bodyFrom".to_owned(), "create it".to_owned());
        let problem = skillet_core::skill::FieldError { reason, field, message };
        let serving = serving.iter().map(|version| version.parse().unwrap()).collect();
        status(&skill(2, &[], sealed()), &Err(SkillError::Body { problem, serving }), now())
    };
    let missing = without_text(Reason::ConfigMapMissing, &[]);
    for type_ in [READY, SEALED] {
        assert_eq!(condition_of(&missing, type_), ("False".into(), "ConfigMapMissing".into()));
    }
    assert!(find_condition(&missing.conditions, STALLED).is_none());
    let serves = without_text(Reason::ConfigMapMissing, &["1.0.0"]);
    assert_eq!(condition_of(&serves, READY).0, "True");
    let too_large = without_text(Reason::SpecInvalid, &[]);
    assert_eq!(condition_of(&too_large, STALLED), ("True".into(), "SpecInvalid".into()));
    let noted = Applied { body_note: Some("the text has changed".into()), ..applied(&["1.0.0"]) };
    let noted = status(&skill(1, &[], SkillStatus::default()), &Ok(noted), now());
    let message = &find_condition(&noted.conditions, SEALED).unwrap().message;
    assert!(message.ends_with("; the text has changed"), "{message}");
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
    assert_eq!(status(&skill(1, &[], sealed()), &failed_write(), now()), sealed(), "nothing was to be done");
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
