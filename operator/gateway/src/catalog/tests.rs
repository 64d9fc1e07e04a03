//! The catalog that a caller sees after each change that a watch may report.
// Shorter to call.
#![allow(clippy::needless_pass_by_value)]

use serde_json::{Value, json};
use skillet_api::gateway::OfferMatching;

use super::*;

fn skill(namespace: &str, name: &str, change: Value) -> Skill {
    let mut object = json!({
        "metadata": { "namespace": namespace, "name": name },
        "spec": { "version": "1.0.0", "run": { "sandbox": { "runtime": "shell", "script": "cat" } } },
    });
    object["spec"].as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    serde_json::from_value(object).unwrap()
}

fn version(namespace: &str, name: &str, number: &str, description: &str) -> SkillVersion {
    serde_json::from_value(json!({
        "metadata": { "namespace": namespace, "name": format!("{name}-{number}") },
        "spec": {
            "skill": name,
            "version": number,
            "digest": "sha256:0",
            "description": description,
            "run": { "sandbox": { "runtime": "shell", "script": "cat" } },
        },
    }))
    .unwrap()
}

fn offered(skills: &SkillCatalog, name: &str) -> Option<(String, String)> {
    let namespace = skills.namespace("ns")?;
    let found = namespace.index().get(name).filter(|found| found.is_ready)?;
    Some((found.version.to_string(), found.description.to_string()))
}

// What `offered` gives.
#[allow(clippy::unnecessary_wraps)]
fn some(version: &str, description: &str) -> Option<(String, String)> {
    Some((version.to_owned(), description.to_owned()))
}

#[test]
fn a_skill_is_offered_with_its_current_version_whatever_comes_first() {
    let skills = SkillCatalog::default();
    skills.put_version(&version("ns", "a", "1.9.0", "nine"));
    assert_eq!(offered(&skills, "a"), None, "a version without its skill");
    skills.put_skill(&skill("ns", "a", json!({})));
    assert_eq!(offered(&skills, "a"), some("1.9.0", "nine"));
    skills.put_version(&version("ns", "a", "1.10.0", "ten"));
    assert_eq!(offered(&skills, "a"), some("1.10.0", "ten"));
    skills.put_skill(&skill("ns", "a", json!({ "version": "1.9.0" })));
    assert_eq!(offered(&skills, "a"), some("1.9.0", "nine"), "an older version in the spec rolls back");
    skills.remove_version(&version("ns", "a", "1.10.0", "ten"));
    assert_eq!(offered(&skills, "a"), some("1.9.0", "nine"));
    skills.forget_version("ns", "a-1.9.0");
    assert_eq!(offered(&skills, "a"), None);
    assert!(skills.get("ns", "a").is_some(), "it can be looked at all the same");
}

#[test]
fn a_skill_that_is_deleted_and_made_again_has_its_versions_again() {
    let skills = SkillCatalog::default();
    skills.put_skill(&skill("ns", "a", json!({})));
    skills.put_version(&version("ns", "a", "1.0.0", "one"));
    skills.remove_skill("ns", "a");
    assert!(offered(&skills, "a").is_none() && skills.get("ns", "a").is_none());
    skills.put_skill(&skill("ns", "a", json!({ "mode": "off" })));
    assert_eq!(offered(&skills, "a"), some("1.0.0", "one"));
}

#[test]
fn a_namespace_of_which_nothing_is_left_is_not_kept() {
    let skills = SkillCatalog::default();
    let is_kept = || skills.namespace("ns").is_some();
    skills.remove_skill("ns", "a");
    skills.forget_version("ns", "a-1.0.0");
    assert!(!is_kept(), "nothing was ever there");
    skills.put_skill(&skill("ns", "a", json!({})));
    skills.put_version(&version("ns", "a", "1.0.0", "one"));
    skills.put_skill(&skill("other", "b", json!({})));
    skills.remove_skill("ns", "a");
    assert!(is_kept(), "its version may be needed");
    skills.remove_version(&version("ns", "a", "1.0.0", "one"));
    assert!(!is_kept() && skills.get("other", "b").is_some());
    skills.put_skill(&skill("ns", "a", json!({})));
    assert!(is_kept() && offered(&skills, "a").is_none());
}

#[test]
fn every_change_is_there_at_once_however_many_readers_there_are() {
    let skills = SkillCatalog::default();
    let mut held = Vec::new();
    for number in 0..50 {
        let name = format!("s{}", number % 7);
        skills.put_skill(&skill("ns", &name, json!({ "version": format!("1.{number}.0") })));
        skills.put_version(&version("ns", &name, &format!("1.{number}.0"), ""));
        assert_eq!(offered(&skills, &name).unwrap().0, format!("1.{number}.0"));
        // Some readers stay in the copy they have read.
        if number % 3 == 0 {
            held.push(Arc::clone(&skills.namespace("ns").unwrap()));
        }
    }
    let names: Vec<String> = skills.list("ns").iter().map(|known| known.skill.name.to_string()).collect();
    assert_eq!(names, ["s0", "s1", "s2", "s3", "s4", "s5", "s6"]);
    assert_eq!(held.first().unwrap().list().count(), 1, "what was read does not change");
}

#[test]
fn a_change_counts_for_its_own_namespace_only() {
    let skills = SkillCatalog::default();
    let numbers = || [skills.last_change("ns"), skills.last_change("other")];
    assert_eq!(numbers(), [0, 0]);
    skills.put_skill(&skill("ns", "a", json!({})));
    skills.put_skill(&skill("other", "a", json!({})));
    let [before, other] = numbers();
    assert!(0 < before && before < other && other == *skills.changes().borrow());
    skills.put_version(&version("ns", "a", "1.0.0", ""));
    skills.set_policy(SkillPolicySpec::default());
    let [after, same] = numbers();
    assert!(after > other && same == other);
    skills.remove_version(&version("ns", "a", "1.0.0", ""));
    skills.remove_skill("ns", "a");
    assert_eq!(numbers(), [0, other]);
    skills.put_skill(&skill("ns", "a", json!({})));
    assert!(numbers()[0] > after, "one that is made again is not taken for the one before");
}

#[test]
fn names_are_looked_up_in_the_callers_namespace_first() {
    let skills = SkillCatalog::default();
    let mut policy = SkillPolicySpec::default();
    policy.gateway.platform_namespaces = vec!["platform".into(), "mine".into()];
    policy.gateway.catalog_namespaces = vec!["catalogue".into(), "platform".into()];
    skills.set_policy(policy);
    let caller = Caller { namespace: "mine".into(), user: "u".into(), groups: Arc::new([]) };
    assert_eq!(
        skills.namespaces(&caller).iter().map(|n| &**n).collect::<Vec<_>>(),
        ["mine", "platform", "catalogue"]
    );
}

#[test]
fn another_rule_of_offering_makes_every_index_anew() {
    let skills = SkillCatalog::default();
    skills.put_skill(&skill("ns", "a", json!({})));
    skills.put_version(&version("ns", "a", "1.0.0", "one"));
    let mut policy = SkillPolicySpec::default();
    policy.gateway.offer.matching = OfferMatching::Words;
    skills.set_policy(policy);
    assert_eq!(skills.namespace("ns").unwrap().index().matching(), MatchMode::Words);
    assert_eq!(offered(&skills, "a"), some("1.0.0", "one"));
}

#[test]
fn the_tools_parameters_are_an_object_whatever_the_author_wrote() {
    let skills = SkillCatalog::default();
    skills.put_skill(&skill("ns", "a", json!({})));
    let mut sealed = version("ns", "a", "1.0.0", "one");
    skills.put_version(&sealed);
    let parameters = |skills: &SkillCatalog| {
        let namespace = skills.namespace("ns").unwrap();
        namespace.index().get("a").unwrap().tool.parameters.value()
    };
    assert_eq!(parameters(&skills), json!({ "type": "object", "properties": {} }));
    sealed.spec.tool = serde_json::from_value(json!({ "inputSchema": { "q": "string" } })).unwrap();
    skills.put_version(&sealed);
    assert_eq!(parameters(&skills)["properties"]["q"]["type"], json!("string"));
}

#[test]
fn a_skill_whose_secret_does_not_exist_is_not_offered_and_says_why() {
    let skills = SkillCatalog::default();
    let mut lacking = serde_json::to_value(skill("ns", "a", json!({}))).unwrap();
    let condition = |type_: &str, status: &str, reason: &str| {
        json!({ "type": type_, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    lacking["status"]["conditions"] =
        json!([condition("Ready", "True", "Ready"), condition("SecretsPresent", "False", "SecretMissing")]);
    skills.put_skill(&serde_json::from_value(lacking.clone()).unwrap());
    skills.put_version(&version("ns", "a", "1.0.0", "one"));
    assert_eq!(offered(&skills, "a"), None);
    let known = skills.get("ns", "a").unwrap();
    assert_eq!((known.skill.is_ready, known.skill.reason.as_deref()), (false, Some("SecretMissing")));
    lacking["status"]["conditions"] = json!([condition("SecretsPresent", "True", "Ready")]);
    skills.put_skill(&serde_json::from_value(lacking).unwrap());
    assert_eq!(offered(&skills, "a"), some("1.0.0", "one"));
}
