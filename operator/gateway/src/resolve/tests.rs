//! Resolution of names, with nearer skills in the way.

use serde_json::json;
use skillet_api::SkillPolicySpec;
use skillet_kube::testing::FakeApiServer;

use super::*;

/// Namespaces `a`, `b` and `c` in this order, with what the API server says of rights.
struct Fixture {
    auth: Auth,
    catalog: SkillCatalog,
    caller: Caller,
}

impl Fixture {
    /// Skills as in `a: one two~`; a name that ends with `~` is being deleted. `denied` has namespaces, and a skill or all.
    fn new(namespaces: &[&str], denied: &[(&str, Option<&str>)]) -> Self {
        let api = FakeApiServer::default();
        api.open(&["b", "c"]);
        for (namespace, skill) in denied {
            api.deny("", "get", namespace, *skill);
        }
        let catalog = SkillCatalog::default();
        let mut policy = SkillPolicySpec::default();
        policy.gateway.platform_namespaces = vec!["b".into()];
        policy.gateway.catalog_namespaces = vec!["c".into()];
        catalog.set_policy(policy);
        for text in namespaces {
            let (namespace, names) = text.split_once(':').unwrap();
            names.split_whitespace().for_each(|name| put(&catalog, namespace, name));
        }
        let user = "system:serviceaccount:a:agent".into();
        let caller = Caller { namespace: "a".into(), user, groups: [].into() };
        Self { auth: Auth::new(api.client()), catalog, caller }
    }

    fn lookup(&self) -> Lookup<'_> {
        let Self { auth, catalog, caller } = self;
        Lookup { auth, catalog, caller }
    }
}

fn put(catalog: &SkillCatalog, namespace: &str, text: &str) {
    let (name, deleted) = match text.strip_suffix('~') {
        Some(name) => (name, json!("2026-01-01T00:00:00Z")),
        None => (text, json!(null)),
    };
    let skill = json!({
        "metadata": { "namespace": namespace, "name": name, "deletionTimestamp": deleted },
        "spec": { "version": "1.0.0", "run": {} },
    });
    catalog.put_skill(&serde_json::from_value(skill).unwrap());
}

fn display(skill: &ResolvedSkill) -> String {
    let hidden = skill.shadowed_by.as_ref().map(|by| format!(" hidden by {by}")).unwrap_or_default();
    format!("{}/{}{hidden}", skill.namespace, skill.name())
}

#[tokio::test]
async fn every_skill_is_listed_with_the_namespace_that_shadows_it() {
    let fixture = Fixture::new(&["a: one two~", "b: one two three", "c: one two"], &[("c", None)]);
    let namespaces = fixture.lookup().allowed_namespaces(&[Verb::Get]).await.unwrap();
    let all: Vec<String> = list(&fixture.catalog, &namespaces).iter().map(display).collect();
    assert_eq!(all, ["a/one", "b/one hidden by a", "b/three", "b/two"]);
    let nearest = |name: &str| resolve_in(&fixture.catalog, &namespaces, name).map(|skill| display(&skill));
    assert_eq!((nearest("one"), nearest("two")), (Some("a/one".into()), Some("b/two".into())));
    assert_eq!(nearest("four"), None);
}

#[tokio::test]
async fn a_name_means_the_nearest_that_is_there_and_may_be_seen() {
    let fixture = Fixture::new(&["a: one two~ three", "b: one two three", "c: one"], &[("a", Some("three"))]);
    for (name, chosen, expected) in [
        ("one", None, Some("a/one")),
        ("one", Some("b"), Some("b/one hidden by a")),
        ("one", Some("c"), Some("c/one hidden by a")),
        ("two", None, Some("b/two")),
        ("two", Some("a"), None),
        ("two", Some("b"), Some("b/two")),
        ("three", None, Some("b/three")),
        ("three", Some("a"), None),
        ("three", Some("c"), None),
        ("four", None, None),
        ("one", Some("d"), None),
    ] {
        let skill = fixture.lookup().resolve(name, chosen).await.unwrap();
        assert_eq!(skill.as_ref().map(display).as_deref(), expected, "{name} {chosen:?}");
    }
}
