//! Resolution of names, with nearer skills in the way.

use std::collections::{BTreeMap, HashSet};

use serde_json::json;

use super::*;
use crate::catalog::{CachedSkill, Versions};

/// Namespaces `a`, `b` and `c` in this order; a name that ends with `~` is being deleted.
struct Few {
    skills: BTreeMap<&'static str, Vec<Arc<CatalogEntry>>>,
    /// Namespace, and skill or any.
    denied: HashSet<(&'static str, Option<&'static str>)>,
}

impl Shelves for Few {
    async fn check(
        &self,
        _: &Caller,
        verb: Verb,
        namespace: &str,
        skill: Option<&str>,
    ) -> Result<(), AuthError> {
        let is_denied =
            |(of, name): &(&str, Option<&str>)| *of == namespace && (name.is_none() || *name == skill);
        if self.denied.iter().any(is_denied) {
            return Err(AuthError::Forbidden { verb, namespace: namespace.to_owned() });
        }
        Ok(())
    }

    fn namespaces(&self, _: &Caller) -> Vec<Arc<str>> {
        ["a", "b", "c"].map(Into::into).into()
    }

    fn skills(&self, namespace: &str) -> Vec<Arc<CatalogEntry>> {
        self.skills.get(namespace).cloned().unwrap_or_default()
    }

    fn skill(&self, namespace: &str, name: &str) -> Option<Arc<CatalogEntry>> {
        self.skills(namespace).into_iter().find(|known| *known.skill.name == *name)
    }
}

fn known(namespace: &str, text: &str) -> Arc<CatalogEntry> {
    let (name, deleted) = match text.strip_suffix('~') {
        Some(name) => (name, json!("2026-01-01T00:00:00Z")),
        None => (text, json!(null)),
    };
    let skill = json!({
        "metadata": { "namespace": namespace, "name": name, "deletionTimestamp": deleted },
        "spec": { "version": "1.0.0", "run": {} },
    });
    let skill = CachedSkill::of(&serde_json::from_value(skill).unwrap()).unwrap();
    Arc::new(CatalogEntry::new(Arc::new(skill), Versions::default()))
}

/// `a: one two~`.
fn few(shelves: &[&'static str], denied: &[(&'static str, Option<&'static str>)]) -> Few {
    let shelf = |text: &&'static str| {
        let (namespace, names) = text.split_once(':').unwrap();
        (namespace, names.split_whitespace().map(|name| known(namespace, name)).collect())
    };
    Few { skills: shelves.iter().map(shelf).collect(), denied: denied.iter().copied().collect() }
}

fn caller() -> Caller {
    Caller { namespace: "a".into(), user: "u".into(), groups: [].into() }
}

fn display(seen: &ResolvedSkill) -> String {
    let hidden = seen.shadowed_by.as_ref().map(|by| format!(" hidden by {by}")).unwrap_or_default();
    format!("{}/{}{hidden}", seen.namespace, seen.name())
}

#[tokio::test]
async fn every_skill_is_listed_with_the_namespace_that_shadows_it() {
    let few = few(&["a: one two~", "b: one two three", "c: one two"], &[("c", None)]);
    let namespaces = allowed_namespaces(&few, &caller(), &[Verb::Get]).await.unwrap();
    let all: Vec<String> = list(&few, &namespaces).iter().map(display).collect();
    assert_eq!(all, ["a/one", "b/one hidden by a", "b/two", "b/three"]);
    let nearest = |name: &str| resolve_in(&few, &namespaces, name).map(|seen| display(&seen));
    assert_eq!((nearest("one"), nearest("two")), (Some("a/one".into()), Some("b/two".into())));
    assert_eq!(nearest("four"), None);
}

#[tokio::test]
async fn a_name_means_the_nearest_that_is_there_and_may_be_seen() {
    let few = few(&["a: one two~ three", "b: one two three", "c: one"], &[("a", Some("three"))]);
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
        let seen = resolve(&few, &caller(), name, chosen).await.unwrap();
        assert_eq!(seen.as_ref().map(display).as_deref(), expected, "{name} {chosen:?}");
    }
}
