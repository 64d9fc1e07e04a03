//! Names looked up for a caller of the HTTP interface: the rule of [`crate::resolve`], and the words for what it
//! does not find.

use std::sync::Arc;

pub(crate) use crate::resolve::ResolvedSkill;
use crate::{
    auth::{AuthError, Caller, Verb},
    catalog::CatalogEntry,
    error::ApiError,
    resolve::{self, Shelves},
    rest::Rest,
};

impl Shelves for Rest {
    async fn check(
        &self,
        caller: &Caller,
        verb: Verb,
        namespace: &str,
        skill: Option<&str>,
    ) -> Result<(), AuthError> {
        self.rights.check(caller, verb, namespace, skill).await
    }

    fn namespaces(&self, caller: &Caller) -> Vec<Arc<str>> {
        self.catalogue.namespaces(caller)
    }

    fn skills(&self, namespace: &str) -> Vec<Arc<CatalogEntry>> {
        self.catalogue.list(namespace)
    }

    fn skill(&self, namespace: &str, name: &str) -> Option<Arc<CatalogEntry>> {
        self.catalogue.get(namespace, name)
    }
}

/// Where the caller's names are looked up, or the one place of these that is chosen.
pub(crate) fn namespaces(
    rest: &Rest,
    caller: &Caller,
    chosen: Option<&str>,
) -> Result<Vec<Arc<str>>, ApiError> {
    let mut all = rest.catalogue.namespaces(caller);
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
        Err(error @ AuthError::Forbidden { .. }) => Ok(Some(error.into())),
        Err(error @ (AuthError::Missing | AuthError::Unknown | AuthError::Unreachable(_))) => {
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
) -> Result<ResolvedSkill, ApiError> {
    let looked_into = namespaces(rest, caller, chosen)?;
    if let Some(seen) = resolve::one(rest, caller, name, chosen).await? {
        return Ok(seen);
    }
    // That there is a skill must not show to whoever may not see it: the answer is the same where there is none.
    allowed(rest, caller, Verb::Get, looked_into, Some(name)).await?;
    Err(not_found(name, chosen))
}

fn not_found(name: &str, chosen: Option<&str>) -> ApiError {
    let place = chosen.map_or_else(
        || "none of the namespaces looked up for this caller has".to_owned(),
        |namespace| format!("namespace {namespace} does not have"),
    );
    ApiError::new(http::StatusCode::NOT_FOUND, "SkillNotFound", format!("{place} a Skill {name}"))
}

/// Every skill the caller sees, nearest namespace first and then by name.
pub(crate) async fn all(
    rest: &Rest,
    caller: &Caller,
    chosen: Option<&str>,
) -> Result<Vec<ResolvedSkill>, ApiError> {
    namespaces(rest, caller, chosen)?;
    let visible = allowed(rest, caller, Verb::Get, rest.catalogue.namespaces(caller), None).await?;
    let mut seen = resolve::all(rest, &visible);
    if let Some(chosen) = chosen {
        rest.rights.check(caller, Verb::Get, chosen, None).await?;
        seen.retain(|seen| &*seen.namespace == chosen);
    }
    Ok(seen)
}
