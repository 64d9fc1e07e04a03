//! The catalog after each event of a watch.

use kube::runtime::watcher::Event;
use skillet_kube::Unlisted;

use super::*;

fn skill(name: &str, mode: &str) -> Skill {
    serde_saphyr::from_str(&format!(
        "apiVersion: skillet.dev/v1alpha1\nkind: Skill\nmetadata: {{name: {name}, namespace: ns}}\nspec: {{version: 1.0.0, mode: {mode}, run: {{}}}}"
    ))
    .unwrap()
}

fn version(number: &str) -> SkillVersion {
    serde_saphyr::from_str(&format!(
        "apiVersion: skillet.dev/v1alpha1\nkind: SkillVersion\nmetadata: {{name: a-{number}, namespace: ns}}\nspec: {{skill: a, version: {number}, digest: d, run: {{}}}}"
    ))
    .unwrap()
}

fn at(name: &str) -> Key {
    key("ns", name)
}

fn raw(skill: &Skill) -> RawObject<Skill> {
    RawObject::new(skill).unwrap()
}

/// Changes a catalog by events of the watch of skills.
fn handle(catalog: &Arc<Catalog>, events: impl IntoIterator<Item = Event<RawObject<Skill>>>) {
    let mut mirror = CatalogMirror::<Skill>::new(catalog.clone(), watch::channel(false).0);
    let mut unlisted = Unlisted::default();
    events.into_iter().for_each(|event| unlisted.handle(event, &mut mirror));
}

fn numbers(catalog: &Catalog) -> Vec<String> {
    catalog.versions("ns", "a").iter().map(|v| v.spec.version.clone()).collect()
}

#[test]
fn versions_come_newest_first_by_number() {
    let catalog = Catalog::default();
    for number in ["1.2.0", "1.10.0", "0.9.0"] {
        version(number).put(&catalog);
    }
    assert_eq!(numbers(&catalog), ["1.10.0", "1.2.0", "0.9.0"]);
    SkillVersion::remove(&catalog, &at("a-1.2.0"));
    assert_eq!(numbers(&catalog), ["1.10.0", "0.9.0"]);
}

#[test]
fn a_relist_removes_the_skills_that_it_does_not_show() {
    let catalog = Arc::new(Catalog::default());
    skill("old", "auto").put(&catalog);
    handle(&catalog, [Event::Init, Event::InitApply(raw(&skill("new", "auto"))), Event::InitDone]);
    assert!(catalog.skill("ns", "old").is_none());
    assert!(catalog.skill("ns", "new").is_some());
    assert_eq!(catalog.skill_count(), 1);
}

#[test]
fn a_skill_that_no_longer_parses_keeps_its_last_good_state() {
    let catalog = Arc::new(Catalog::default());
    let broken = || -> RawObject<Skill> {
        serde_json::from_str(r#"{"metadata": {"namespace": "ns", "name": "a"}, "spec": 7}"#).unwrap()
    };
    handle(&catalog, [Event::Apply(raw(&skill("a", "auto"))), Event::Apply(broken())]);
    assert!(catalog.skill("ns", "a").is_some());
    handle(&catalog, [Event::Delete(broken())]);
    assert!(catalog.skill("ns", "a").is_none());
}

#[test]
fn a_skill_read_outside_the_watch_counts_only_if_it_is_newer() {
    let catalog = Catalog::default();
    let revised = |mode: &str, revision: &str| {
        let mut skill = skill("a", mode);
        skill.metadata.resource_version = Some(revision.into());
        skill
    };
    let mode = || catalog.skill("ns", "a").unwrap().spec.mode;
    revised("auto", "10").put(&catalog);
    catalog.learn_skill(revised("off", "9"));
    assert_eq!(mode(), skillet_api::skill::Mode::Auto);
    catalog.learn_skill(revised("off", "11"));
    assert_eq!(mode(), skillet_api::skill::Mode::Off);
}

#[test]
fn a_change_of_the_policys_content_is_signaled_once() {
    let catalog = Catalog::default();
    let changes = catalog.policy_changes.subscribe();
    assert!(!catalog.is_policy_known());
    let off = SkillPolicySpec { execution_enabled: false, ..SkillPolicySpec::default() };
    SkillPolicy::new("default", off.clone()).put(&catalog);
    SkillPolicy::new("default", off).put(&catalog);
    assert_eq!((catalog.policy().execution_enabled, *changes.borrow()), (false, 1));
    SkillPolicy::new("other", SkillPolicySpec::default()).put(&catalog);
    assert!(!catalog.policy().execution_enabled, "only the object named default counts");
    assert!(catalog.is_policy_known());
    SkillPolicy::remove(&catalog, &key("", "default"));
    assert_eq!((catalog.is_policy_known(), *changes.borrow()), (false, 2));
    SkillPolicy::new("default", SkillPolicySpec::default()).put(&catalog);
    assert_eq!((catalog.is_policy_known(), *changes.borrow()), (true, 3), "equal to the defaults, but known");
}

#[test]
fn every_change_of_the_catalog_is_signaled() {
    let catalog = Catalog::default();
    let mut changes = catalog.changes();
    skill("a", "auto").put(&catalog);
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    assert!(!changes.has_changed().unwrap());
}

#[test]
fn the_catalog_drops_the_content_of_a_skill() {
    let catalog = Catalog::default();
    let mut whole = skill("a", "on");
    whole.spec.run = Some(skillet_api::skill::Run::default());
    whole.status = serde_json::from_value(serde_json::json!({
        "observedGeneration": 3, "digest": "d", "conditions": [
            { "type": "Ready", "status": "False", "reason": "SpecInvalid", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z" },
            { "type": "Sealed", "status": "True", "reason": "Sealed", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" },
        ]
    }))
    .unwrap();
    whole.put(&catalog);
    let kept = catalog.skill("ns", "a").unwrap();
    assert_eq!(kept.spec.run, None);
    assert_eq!(kept.spec.mode, skillet_api::skill::Mode::On);
    let status = kept.status.clone().unwrap();
    let types: Vec<_> = status.conditions.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!((status.observed_generation, status.digest, types), (Some(3), None, vec!["Ready"]));
}
