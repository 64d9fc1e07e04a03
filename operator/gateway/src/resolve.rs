//! Resolves a caller's skill names, by the same rule on every route.
//!
//! A name is looked up in the caller's own namespace, then in the platform's, then in the catalogs'. A name in a nearer
//! namespace shadows the same name in a farther one, even if the nearer skill cannot run. A skill that the caller may not
//! see shadows nothing, and neither does a skill that is being deleted.
//!
//! `skillet_offer` selects the skills for models over the same namespaces, by the same rule.

use std::{collections::HashMap, future::Future, sync::Arc};

use crate::{
    auth::{AuthError, Caller, Verb, is_allowed},
    catalog::CatalogEntry,
};

/// Namespaces with their skills, and who may do what with them.
pub trait Shelves: Send + Sync {
    /// Fails unless the caller may do this with skills of the namespace, or with one of them.
    fn check(
        &self,
        caller: &Caller,
        verb: Verb,
        namespace: &str,
        skill: Option<&str>,
    ) -> impl Future<Output = Result<(), AuthError>> + Send;

    /// Returns the namespaces of a caller's look-up, each once, the nearest first.
    fn namespaces(&self, caller: &Caller) -> Vec<Arc<str>>;

    /// Every skill of a namespace, by name.
    fn skills(&self, namespace: &str) -> Vec<Arc<CatalogEntry>>;

    /// A skill by namespace and name.
    fn skill(&self, namespace: &str, name: &str) -> Option<Arc<CatalogEntry>>;
}

/// A skill as a caller's look-up finds it.
#[derive(Clone, Debug)]
pub struct ResolvedSkill {
    pub known: Arc<CatalogEntry>,
    pub namespace: Arc<str>,
    /// A nearer namespace that has a skill of this name, so that the name alone means that one.
    pub shadowed_by: Option<Arc<str>>,
}

impl ResolvedSkill {
    pub fn name(&self) -> &Arc<str> {
        &self.known.skill.name
    }
}

/// Namespaces of the caller's look-up in which it may do all of `verbs` with any skill, the nearest first.
pub async fn allowed_namespaces(
    shelves: &impl Shelves,
    caller: &Caller,
    verbs: &[Verb],
) -> Result<Vec<Arc<str>>, AuthError> {
    let mut allowed = Vec::new();
    'namespaces: for namespace in shelves.namespaces(caller) {
        for verb in verbs {
            if !is_allowed(shelves.check(caller, *verb, &namespace, None).await)? {
                continue 'namespaces;
            }
        }
        allowed.push(namespace);
    }
    Ok(allowed)
}

/// Every skill of these namespaces, which are in the order of look-up: the nearest first, then by name.
pub fn list(shelves: &impl Shelves, namespaces: &[Arc<str>]) -> Vec<ResolvedSkill> {
    let mut nearest: HashMap<Arc<str>, Arc<str>> = HashMap::new();
    let mut list = Vec::new();
    for namespace in namespaces {
        for known in shelves.skills(namespace).into_iter().filter(is_live) {
            let first = nearest.entry(known.skill.name.clone()).or_insert_with(|| namespace.clone());
            let shadowed_by = Some(first.clone()).filter(|first| first != namespace);
            list.push(ResolvedSkill { known, namespace: namespace.clone(), shadowed_by });
        }
    }
    list
}

/// The skill that a name means in these namespaces, which are in the order of look-up.
pub fn resolve_in(shelves: &impl Shelves, namespaces: &[Arc<str>], name: &str) -> Option<ResolvedSkill> {
    namespaces.iter().find_map(|namespace| {
        let known = shelves.skill(namespace, name).filter(is_live)?;
        Some(ResolvedSkill { known, namespace: namespace.clone(), shadowed_by: None })
    })
}

/// The skill that the caller means by a name, or the one of the chosen namespace, where it may see it.
pub async fn resolve(
    shelves: &impl Shelves,
    caller: &Caller,
    name: &str,
    chosen: Option<&str>,
) -> Result<Option<ResolvedSkill>, AuthError> {
    let mut nearest = None;
    for namespace in shelves.namespaces(caller) {
        let is_chosen = chosen == Some(&*namespace);
        let known = shelves.skill(&namespace, name).filter(is_live);
        if let Some(known) = known
            && is_allowed(shelves.check(caller, Verb::Get, &namespace, Some(name)).await)?
        {
            if is_chosen || chosen.is_none() {
                return Ok(Some(ResolvedSkill { known, namespace, shadowed_by: nearest }));
            }
            nearest.get_or_insert(namespace);
        } else if is_chosen {
            break;
        }
    }
    Ok(None)
}

/// Namespaces of the caller's look-up, but for one, in which it may run the skill of a name: where a key of its may have
/// made a run while the name meant another skill.
pub async fn other_namespaces(
    shelves: &impl Shelves,
    caller: &Caller,
    name: &str,
    besides: Option<&str>,
) -> Result<Vec<Arc<str>>, AuthError> {
    let mut others = Vec::new();
    for namespace in shelves.namespaces(caller) {
        if besides != Some(&*namespace)
            && is_allowed(shelves.check(caller, Verb::Execute, &namespace, Some(name)).await)?
        {
            others.push(namespace);
        }
    }
    Ok(others)
}

fn is_live(known: &Arc<CatalogEntry>) -> bool {
    !known.skill.is_being_deleted
}

#[cfg(test)]
mod tests;
