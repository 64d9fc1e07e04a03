//! Names looked up for a caller: own namespace, platform, catalogues. What the caller may not see is not there, and
//! hides nothing.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::{
    error::ApiError,
    identity::{Caller, IdentityError, Verb},
    rest::Rest,
    skills::Known,
};

/// A skill as one caller sees it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) known: Arc<Known>,
    pub(crate) namespace: Arc<str>,
    /// A nearer namespace that has a skill of this name, so that the name alone means that one.
    pub(crate) hidden_by: Option<Arc<str>>,
}

impl Seen {
    pub(crate) fn name(&self) -> String {
        self.known.skill.name.to_string()
    }
}

/// Where the caller's names are looked up, each once.
fn everywhere(rest: &Rest, caller: &Caller) -> Vec<Arc<str>> {
    let mut met = HashSet::new();
    let all = rest.catalogue.namespaces(caller);
    all.into_iter().filter(|namespace| met.insert(namespace.clone())).collect()
}

/// The same, or the one of them that is chosen.
pub(crate) fn namespaces(
    rest: &Rest,
    caller: &Caller,
    chosen: Option<&str>,
) -> Result<Vec<Arc<str>>, ApiError> {
    let mut all = everywhere(rest, caller);
    if let Some(chosen) = chosen {
        all.retain(|namespace| &**namespace == chosen);
        if all.is_empty() {
            let message = format!("namespace {chosen} is not among those looked up for this caller");
            return Err(ApiError::forbidden(message).at("namespace"));
        }
    }
    Ok(all)
}

/// Those of the namespaces where the caller may do this, with all skills or with the one given; never none.
pub(crate) async fn allowed(
    rest: &Rest,
    caller: &Caller,
    verb: Verb,
    among: Vec<Arc<str>>,
    skill: Option<&str>,
) -> Result<Vec<Arc<str>>, ApiError> {
    let mut allowed = Vec::new();
    let mut first = None;
    for namespace in among {
        match refusal(rest, caller, verb, &namespace, skill).await? {
            None => allowed.push(namespace),
            Some(error) => {
                first.get_or_insert(error);
            }
        }
    }
    match first {
        Some(error) if allowed.is_empty() => Err(error),
        _ => Ok(allowed),
    }
}

/// Why the caller may not do this. Failing is for everything else that can be wrong with asking.
async fn refusal(
    rest: &Rest,
    caller: &Caller,
    verb: Verb,
    namespace: &str,
    skill: Option<&str>,
) -> Result<Option<ApiError>, ApiError> {
    match rest.rights.check(caller, verb, namespace, skill).await {
        Ok(()) => Ok(None),
        Err(error @ IdentityError::Forbidden { .. }) => Ok(Some(error.into())),
        Err(error @ (IdentityError::Missing | IdentityError::Unknown | IdentityError::Unreachable(_))) => {
            Err(error.into())
        }
    }
}

/// The nearest skill of that name, or the one of the chosen namespace.
pub(crate) async fn find(
    rest: &Rest,
    caller: &Caller,
    name: &str,
    chosen: Option<&str>,
) -> Result<Seen, ApiError> {
    namespaces(rest, caller, chosen)?;
    let mut nearest = None;
    let mut first_refusal = None;
    let mut is_any_visible = false;
    for namespace in everywhere(rest, caller) {
        let is_chosen = chosen == Some(&*namespace);
        // Rights come before existence: that there is a skill must not show to whoever may not see it.
        match refusal(rest, caller, Verb::Get, &namespace, Some(name)).await? {
            Some(error) if is_chosen => return Err(error),
            Some(error) => {
                first_refusal.get_or_insert(error);
                continue;
            }
            None => is_any_visible = true,
        }
        match rest.catalogue.get(&namespace, name) {
            Some(known) if is_chosen || chosen.is_none() => {
                return Ok(Seen { known, namespace, hidden_by: nearest });
            }
            Some(_) => {
                nearest.get_or_insert(namespace);
            }
            None if is_chosen => break,
            None => {}
        }
    }
    match first_refusal {
        Some(error) if !is_any_visible => Err(error),
        _ => Err(not_found(name, chosen)),
    }
}

fn not_found(name: &str, chosen: Option<&str>) -> ApiError {
    let place = chosen.map_or_else(
        || "none of the namespaces looked up for this caller has".to_owned(),
        |namespace| format!("namespace {namespace} does not have"),
    );
    ApiError::new(http::StatusCode::NOT_FOUND, "SkillNotFound", format!("{place} a Skill {name}"))
}

/// Every skill the caller sees, nearest namespace first and then by name.
pub(crate) async fn all(rest: &Rest, caller: &Caller, chosen: Option<&str>) -> Result<Vec<Seen>, ApiError> {
    namespaces(rest, caller, chosen)?;
    let visible = allowed(rest, caller, Verb::Get, everywhere(rest, caller), None).await?;
    let mut nearest = HashMap::new();
    let mut seen = Vec::new();
    for namespace in visible {
        for known in rest.catalogue.list(&namespace) {
            let first = nearest.entry(known.skill.name.clone()).or_insert_with(|| namespace.clone());
            let hidden_by = Some(first.clone()).filter(|first| *first != namespace);
            seen.push(Seen { known, namespace: namespace.clone(), hidden_by });
        }
    }
    if let Some(chosen) = chosen {
        rest.rights.check(caller, Verb::Get, chosen, None).await?;
        seen.retain(|seen| &*seen.namespace == chosen);
    }
    Ok(seen)
}
