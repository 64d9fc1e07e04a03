//! Which skills a caller's names mean: the nearest namespace first, a nearer skill hides a farther one of its name.

use std::{collections::BTreeMap, sync::Arc};

use super::backend::{Backend, Listed};
use crate::identity::{Caller, IdentityError, Verb, is_allowed};

/// A skill as a caller's look-up finds it.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) listed: Listed,
}

impl Found {
    fn new(namespace: &Arc<str>, listed: Listed) -> Option<Self> {
        let name = listed.skill.name.clone();
        (!listed.skill.is_being_deleted).then(|| Self { namespace: namespace.clone(), name, listed })
    }
}

/// Every skill of the namespaces in which the caller may do all of `verbs`, by name.
pub(super) async fn all<B: Backend>(
    backend: &B,
    caller: &Caller,
    verbs: &[Verb],
) -> Result<BTreeMap<Arc<str>, Found>, IdentityError> {
    let mut all = BTreeMap::new();
    for namespace in namespaces(backend, caller, verbs).await? {
        for found in
            backend.skills(&namespace).into_iter().filter_map(|listed| Found::new(&namespace, listed))
        {
            all.entry(found.name.clone()).or_insert(found);
        }
    }
    Ok(all)
}

/// The skill that the caller means by a name, where it may see it.
pub(super) async fn one<B: Backend>(
    backend: &B,
    caller: &Caller,
    name: &str,
) -> Result<Option<Found>, IdentityError> {
    for namespace in backend.namespaces(caller) {
        let Some(found) = backend.skill(&namespace, name).and_then(|listed| Found::new(&namespace, listed))
        else {
            continue;
        };
        if is_allowed(backend.check(caller, Verb::Get, &namespace, Some(name)).await)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Namespaces of the caller's look-up in which it may do all of `verbs`, the nearest first.
pub(super) async fn namespaces<B: Backend>(
    backend: &B,
    caller: &Caller,
    verbs: &[Verb],
) -> Result<Vec<Arc<str>>, IdentityError> {
    let mut allowed = Vec::new();
    'namespaces: for namespace in backend.namespaces(caller) {
        for verb in verbs {
            if !is_allowed(backend.check(caller, *verb, &namespace, None).await)? {
                continue 'namespaces;
            }
        }
        allowed.push(namespace);
    }
    Ok(allowed)
}
