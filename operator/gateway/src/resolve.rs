//! Resolves a caller's skill names, by the same rule on every route.
//!
//! A name is looked up in the caller's own namespace, then in the platform's, then in the catalogs'. A name in a nearer
//! namespace shadows the same name in a farther one, even if the nearer skill cannot run. A skill that the caller may not
//! see shadows nothing, and neither does a skill that is being deleted.
//!
//! `skillet_offer` selects the skills for models over the same namespaces, by the same rule.

use std::{collections::HashMap, sync::Arc};

use crate::{
    auth::{Auth, AuthError, Caller, Verb},
    catalog::{CatalogEntry, SkillCatalog},
};

/// A skill as a caller's look-up finds it.
#[derive(Clone, Debug)]
pub struct ResolvedSkill {
    pub entry: Arc<CatalogEntry>,
    pub namespace: Arc<str>,
    /// A nearer namespace that has a skill of this name, so that the name alone means that one.
    pub shadowed_by: Option<Arc<str>>,
}

impl ResolvedSkill {
    pub fn name(&self) -> &Arc<str> {
        &self.entry.skill.name
    }
}

/// Returns every skill of these namespaces, which are in the order of look-up: nearest first, then by name.
pub fn list(catalog: &SkillCatalog, namespaces: &[Arc<str>]) -> Vec<ResolvedSkill> {
    let mut nearest: HashMap<Arc<str>, Arc<str>> = HashMap::new();
    let mut list = Vec::new();
    for namespace in namespaces {
        for entry in catalog.list(namespace).into_iter().filter(is_live) {
            let first = nearest.entry(entry.skill.name.clone()).or_insert_with(|| namespace.clone());
            let shadowed_by = (first != namespace).then(|| first.clone());
            list.push(ResolvedSkill { entry, namespace: namespace.clone(), shadowed_by });
        }
    }
    list
}

/// Returns the skill that a name means in these namespaces, which are in the order of look-up.
pub fn resolve_in(catalog: &SkillCatalog, namespaces: &[Arc<str>], name: &str) -> Option<ResolvedSkill> {
    namespaces.iter().find_map(|namespace| {
        let entry = catalog.get(namespace, name).filter(is_live)?;
        Some(ResolvedSkill { entry, namespace: namespace.clone(), shadowed_by: None })
    })
}

/// The skills within one caller's look-up, by the caller's rights.
#[derive(Clone, Copy)]
pub struct Lookup<'a> {
    pub auth: &'a Auth,
    pub catalog: &'a SkillCatalog,
    pub caller: &'a Caller,
}

impl Lookup<'_> {
    /// Returns the namespaces in which the caller may do all of `verbs` with any skill, nearest first.
    pub async fn allowed_namespaces(&self, verbs: &[Verb]) -> Result<Vec<Arc<str>>, AuthError> {
        self.auth.allowed(self.caller, verbs, self.catalog.namespaces(self.caller), None).await
    }

    /// Returns the skill that the caller means by a name, or the one of the chosen namespace, if the caller may see it.
    pub async fn resolve(
        &self,
        name: &str,
        chosen: Option<&str>,
    ) -> Result<Option<ResolvedSkill>, AuthError> {
        let mut nearest = None;
        for namespace in self.catalog.namespaces(self.caller) {
            let is_chosen = chosen == Some(&*namespace);
            let entry = self.catalog.get(&namespace, name).filter(is_live);
            if let Some(entry) = entry
                && self.may(Verb::Get, &namespace, Some(name)).await?
            {
                if is_chosen || chosen.is_none() {
                    return Ok(Some(ResolvedSkill { entry, namespace, shadowed_by: nearest }));
                }
                nearest.get_or_insert(namespace);
            } else if is_chosen {
                break;
            }
        }
        Ok(None)
    }

    /// Returns the namespaces, except `nearest`, in which the caller may run the skill of a name. An idempotency key may
    /// have started a run there while the name meant another skill.
    pub async fn other_namespaces(
        &self,
        name: &str,
        nearest: Option<&str>,
    ) -> Result<Vec<Arc<str>>, AuthError> {
        let mut others = self.catalog.namespaces(self.caller);
        others.retain(|namespace| nearest != Some(&**namespace));
        self.auth.allowed(self.caller, &[Verb::Execute], others, Some(name)).await
    }

    async fn may(&self, verb: Verb, namespace: &str, skill: Option<&str>) -> Result<bool, AuthError> {
        self.auth.may(self.caller, verb, namespace, skill).await
    }
}

fn is_live(entry: &Arc<CatalogEntry>) -> bool {
    !entry.skill.is_being_deleted
}

#[cfg(test)]
mod tests;
