//! Files and present Skills, and what is planned for them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use skillet_core::import::read;
use skillet_instructions::tree::FileTree;

use super::*;

fn source() -> SkillSource {
    serde_json::from_value(json!({
        "apiVersion": "skillet.dev/v1alpha1",
        "kind": "SkillSource",
        "metadata": { "name": "team", "namespace": "a", "uid": "u" },
        "spec": { "git": { "url": "https://git.example.com/a.git" } },
    }))
    .unwrap()
}

fn verdicts(files: &[(&str, &str)]) -> Vec<Verdict> {
    let mut tree = FileTree::default();
    for (path, text) in files {
        tree.add_file(path, text.as_bytes().to_vec()).unwrap();
    }
    read(&tree, "")
}

/// The Skill that the API server shows after a change was applied.
fn stored(change: &Change) -> Skill {
    let mut skill: Skill = serde_json::from_value(change.object.clone()).unwrap();
    skill.metadata.generation = Some(3);
    skill.metadata.managed_fields = Some(vec![ManagedFieldsEntry {
        manager: Some(SOURCES_FIELD_MANAGER.to_owned()),
        operation: Some("Apply".to_owned()),
        ..ManagedFieldsEntry::default()
    }]);
    skill
}

fn present(skill: &Skill) -> Present {
    Present::from([(skill.metadata.name.clone().unwrap(), PresentSkill::of(skill))])
}

fn single(files: &[(&str, &str)], present: &Present) -> Change {
    let plan = plan(&source(), &verdicts(files), &[], present);
    assert_eq!((plan.apply.len(), plan.refused.len()), (1, 0), "{plan:?}");
    plan.apply[0].clone()
}

fn version_of(change: &Change) -> &str {
    change.object["spec"]["version"].as_str().unwrap()
}

#[test]
fn a_new_skill_has_a_mark_a_label_and_an_owner() {
    let change = single(&[("pdf/SKILL.md", "x")], &Present::new());
    let metadata = &change.object["metadata"];
    assert_eq!(
        (change.name.as_str(), change.path.as_str(), version_of(&change)),
        ("pdf", "pdf/SKILL.md", "1.0.0")
    );
    assert_eq!(
        (&metadata["namespace"], &metadata["labels"]),
        (&json!("a"), &json!({ "skillet.dev/source": "team" }))
    );
    assert_eq!(metadata["ownerReferences"][0]["uid"], "u");
    assert_eq!(metadata["annotations"]["skillet.dev/imported-file"], "pdf/SKILL.md");
    let mut kept = source();
    kept.spec.prune = false;
    let plan = plan(&kept, &verdicts(&[("pdf/SKILL.md", "x")]), &[], &Present::new());
    assert_eq!(plan.apply[0].object["metadata"].get("ownerReferences"), None);
}

#[test]
fn equal_content_keeps_its_version_and_other_content_gets_the_next() {
    let first = single(&[("pdf/SKILL.md", "x")], &Present::new());
    let there = present(&stored(&first));
    let again = single(&[("pdf/SKILL.md", "x")], &there);
    assert_eq!(again, first, "the same apply costs no write");
    let second = single(&[("pdf/SKILL.md", "y")], &there);
    assert_eq!(version_of(&second), "1.0.1");
    // Back to the first content: its number was used before, but the order of versions is that of the commits.
    let third = single(&[("pdf/SKILL.md", "x")], &present(&stored(&second)));
    assert_eq!(version_of(&third), "1.0.2");
    let named = single(&[("pdf/SKILL.md", "---\nversion: 2.0.0\n---\ny")], &there);
    assert_eq!(version_of(&named), "2.0.0");
    let lower = single(&[("pdf/SKILL.md", "---\nversion: 0.1.0\n---\nz")], &present(&stored(&named)));
    assert_eq!(version_of(&lower), "2.0.1");
}

#[test]
fn what_others_changed_is_undone_under_a_number_that_is_free() {
    let first = single(&[("pdf/SKILL.md", "x")], &Present::new());
    let mut edited = stored(&first);
    edited.spec.version = "1.0.7".to_owned();
    edited.spec.description = "By hand.".to_owned();
    let undone = single(&[("pdf/SKILL.md", "x")], &present(&edited));
    assert_eq!(undone, first, "1.0.0 is sealed with this content");
    let changed = single(&[("pdf/SKILL.md", "y")], &present(&edited));
    assert_eq!(version_of(&changed), "1.0.8");
}

#[test]
fn a_version_that_was_sealed_with_other_content_is_raised() {
    let first = single(&[("pdf/SKILL.md", "x")], &Present::new());
    let mut refused = stored(&first);
    let conflict = |generation: i64| {
        json!({ "conditions": [{ "type": "Sealed", "status": "False", "reason": "VersionConflict", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": generation }] })
    };
    refused.status = serde_json::from_value(conflict(3)).unwrap();
    assert_eq!(version_of(&single(&[("pdf/SKILL.md", "x")], &present(&refused))), "1.0.1");
    // The condition is of an older generation: the operator has not looked yet.
    refused.status = serde_json::from_value(conflict(2)).unwrap();
    assert_eq!(version_of(&single(&[("pdf/SKILL.md", "x")], &present(&refused))), "1.0.0");
}

#[test]
fn only_skills_that_the_source_made_are_changed_or_removed() {
    let made = stored(&single(&[("pdf/SKILL.md", "x")], &Present::new()));
    let mut copied = made.clone();
    copied.metadata.managed_fields = None;
    let mut of_another = made.clone();
    of_another.metadata.labels = Some([(LABEL_SOURCE.to_owned(), "other".to_owned())].into());
    let by_hand = Skill { metadata: ObjectMeta::default(), ..made.clone() };
    for (there, prune, words) in [
        (&made, vec!["pdf"], ""),
        (&copied, vec![], "is not of this source"),
        (&by_hand, vec![], "is not of this source"),
        (&of_another, vec![], "is of the SkillSource other"),
    ] {
        let present = Present::from([("pdf".to_owned(), PresentSkill::of(there))]);
        assert_eq!(plan(&source(), &[], &[], &present).prune, prune, "{words}");
        let plan = plan(&source(), &verdicts(&[("pdf/SKILL.md", "x"), ("csv/SKILL.md", "x")]), &[], &present);
        let messages: Vec<&str> = plan.refused.iter().map(|file| file.message.as_str()).collect();
        assert!(messages.iter().all(|message| message.contains(words)), "{messages:?}");
        assert_eq!((plan.apply.len(), messages.len()), if words.is_empty() { (2, 0) } else { (1, 1) });
    }
    let mut kept = source();
    kept.spec.prune = false;
    assert_eq!(plan(&kept, &[], &[], &present(&made)).prune, Vec::<String>::new());
}

#[test]
fn one_bad_file_leaves_the_others_and_all_are_named_in_order() {
    let found = verdicts(&[("b/SKILL.md", "---\ndescription: 42\n---\n"), ("c/SKILL.md", "x")]);
    let unreadable = [("a".to_owned(), "has a name that is not UTF-8".to_owned())];
    let plan = plan(&source(), &found, &unreadable, &Present::new());
    let paths: Vec<&str> = plan.refused.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["a", "b/SKILL.md"]);
    assert!(plan.refused[1].message.contains("2:14: description must be text"), "{:?}", plan.refused);
    assert_eq!(plan.apply.len(), 1);
}
