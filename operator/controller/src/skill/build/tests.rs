//! Versions that are sealed, refused, recorded, labelled and deleted.

use std::collections::BTreeSet;

use skillet_core::skill::validate_skill;

use super::*;

fn skill(version: &str, script: &str) -> Skill {
    serde_saphyr::from_str(&format!(
        "apiVersion: skillet.dev/v1alpha1\nkind: Skill\nmetadata: {{name: word-count, namespace: team-a, uid: u1}}\nspec: {{version: {version}, run: {{sandbox: {{runtime: shell, script: {script}}}}}}}"
    ))
    .unwrap()
}

fn policy(history: u32) -> SkillPolicySpec {
    SkillPolicySpec { version_history: history, ..SkillPolicySpec::default() }
}

fn build_from(skill: &Skill, sealed: &[&Skill], pinned: &[&str], history: u32) -> Result<Desired, Conflict> {
    let policy = policy(history);
    let valid = validate_skill(&skill.name_any(), &skill.spec, &policy).unwrap();
    let observed = Observed {
        versions: sealed.iter().map(|skill| snapshot(skill)).collect(),
        pinned: pinned.iter().map(|text| text.parse().unwrap()).collect::<BTreeSet<_>>(),
    };
    build(skill, &valid, &observed, &policy)
}

fn texts(versions: &[SkillSemver]) -> Vec<String> {
    versions.iter().map(ToString::to_string).collect()
}

#[test]
fn sealed_versions_serve_unless_the_present_content_is_one_of_them() {
    let observed = |of: &[&Skill]| Observed {
        versions: of.iter().map(|skill| snapshot(skill)).collect(),
        pinned: BTreeSet::new(),
    };
    let (first, second) = (skill("1.0.0", "a"), skill("1.1.0", "b"));
    let changed = skill("1.2.0", "c");
    assert_eq!(texts(&serving(&changed, &observed(&[&first, &second]))), ["1.1.0", "1.0.0"]);
    assert!(serving(&second, &observed(&[&first, &second])).is_empty());
}

#[test]
fn a_new_version_is_sealed_under_its_name_and_owned_by_the_skill() {
    let desired = build_from(&skill("1.2.0", "cat"), &[&skill("1.1.0", "cat")], &[], 20).unwrap();
    let sealed = desired.seal.unwrap();
    assert_eq!(sealed.name_any(), "word-count-1.2.0");
    assert_eq!(sealed.namespace().as_deref(), Some("team-a"));
    assert_eq!(sealed.labels()[names::LABEL_SKILL], "word-count");
    assert_eq!(sealed.owner_references()[0].uid, "u1");
    assert_eq!(texts(&desired.versions), ["1.2.0", "1.1.0"]);
    assert_eq!(sealed.spec.digest, desired.digest);
}

#[test]
fn the_same_content_again_changes_nothing() {
    let same = skill("1.0.0", "cat");
    let desired = build_from(&same, &[&same], &[], 20).unwrap();
    assert!(desired.seal.is_none() && desired.surplus.is_empty());
}

#[test]
fn other_content_under_a_sealed_version_is_a_conflict_with_advice() {
    let conflict = build_from(&skill("1.0.0", "tac"), &[&skill("1.0.0", "cat")], &[], 20).err().unwrap();
    assert_eq!(conflict.to_string(), "1.0.0 is sealed with another content; raise spec.version");
    assert_eq!(texts(&conflict.sealed), ["1.0.0"]);
}

#[test]
fn a_version_is_labelled_as_long_as_the_skill_withdraws_it() {
    let (first, second) = (skill("1.0.0", "cat"), skill("1.1.0", "cat"));
    let mut present = skill("1.1.0", "cat");
    present.spec.yanked_versions = vec!["1.0.0".into()];
    let changes = |present: &Skill, sealed: &[&Skill]| -> Vec<(String, bool)> {
        let desired = build_from(present, sealed, &[], 20).unwrap();
        desired.yanked.iter().map(|(version, is_yanked)| (version.name_any(), *is_yanked)).collect()
    };
    assert_eq!(changes(&present, &[&first, &second]), [("word-count-1.0.0".into(), true)]);
    let mut labelled = first.clone();
    labelled.spec.yanked_versions = vec!["1.0.0".into()];
    assert_eq!(changes(&present, &[&labelled, &second]), []);
    assert_eq!(changes(&second, &[&labelled, &second]), [("word-count-1.0.0".into(), false)]);
}

const PLACE: &str = "skillet-system/sealed.team-a.1";

#[test]
fn a_version_is_recorded_with_all_others_before_it_is_sealed() {
    let mut record = SealRecord::default();
    let desired = build_from(&skill("1.1.0", "cat"), &[&skill("1.0.0", "cat")], &[], 20).unwrap();
    assert!(desired.needs_record());
    assert!(desired.record("word-count", &mut record, PLACE).unwrap());
    let keys: Vec<String> = record.into_entries().into_keys().collect();
    assert_eq!(keys, ["word-count-1.0.0", "word-count-1.1.0"]);
}

#[test]
fn a_skill_without_writes_needs_no_record() {
    let same = skill("1.0.0", "cat");
    assert!(!build_from(&same, &[&same], &[], 20).unwrap().needs_record());
    let newer = skill("1.1.0", "cat");
    assert!(build_from(&newer, &[&same, &newer], &[], 1).unwrap().needs_record(), "a version goes");
}

#[test]
fn a_collected_version_is_sealed_again_only_with_its_content() {
    let mut record = SealRecord::default();
    let first = build_from(&skill("1.0.0", "cat"), &[], &[], 20).unwrap();
    first.record("word-count", &mut record, PLACE).unwrap();
    let newer = skill("2.0.0", "cat");
    let same = build_from(&skill("1.0.0", "cat"), &[&newer], &[], 20).unwrap();
    assert!(same.record("word-count", &mut record, PLACE).unwrap(), "2.0.0 is new in the record");
    let other = build_from(&skill("1.0.0", "tac"), &[&newer], &[], 20).unwrap();
    let before = record.clone();
    let conflict = other.record("word-count", &mut record, PLACE).unwrap_err();
    assert_eq!(record, before);
    assert_eq!(conflict.reason(), Reason::VersionConflict);
    assert_eq!(texts(&conflict.sealed), ["2.0.0"]);
    let expected = format!(
        "1.0.0 was sealed before with the digest {}, and the present content has {}; raise spec.version, or let an administrator remove the key word-count-1.0.0 of ConfigMap {PLACE}",
        first.digest, other.digest
    );
    assert_eq!(conflict.to_string(), expected);
}

#[test]
fn a_version_whose_digest_was_dropped_names_the_key_of_its_skill() {
    let mut record = SealRecord::new(BTreeMap::from([("word-count".to_owned(), "2.0.0".to_owned())]));
    let old = build_from(&skill("1.0.0", "cat"), &[], &[], 20).unwrap();
    let conflict = old.record("word-count", &mut record, PLACE).unwrap_err().to_string();
    assert!(conflict.ends_with(&format!("the key word-count of ConfigMap {PLACE}")), "{conflict}");
}

#[test]
fn the_oldest_versions_are_surplus_but_never_a_pinned_one() {
    let (one, two, three) = (skill("1.0.0", "cat"), skill("2.0.0", "cat"), skill("3.0.0", "cat"));
    let desired = build_from(&skill("4.0.0", "cat"), &[&one, &two, &three], &["1.0.0"], 2).unwrap();
    let gone: Vec<String> = desired.surplus.iter().map(ResourceExt::name_any).collect();
    assert_eq!(gone, ["word-count-2.0.0"]);
    assert_eq!(texts(&desired.versions), ["4.0.0", "3.0.0", "1.0.0"]);
}
