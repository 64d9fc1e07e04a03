//! Changing how a skill is offered: `enabled` and `mode`, each exactly itself. Content is changed by its owner's tools.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use skillet_api::Skill;
use std::sync::Arc;
use utoipa::ToSchema;

use crate::{
    auth::{Caller, Verb},
    catalog::{self, CachedSkill, CatalogEntry},
    error::ApiError,
    rest::{
        Rest,
        body::Body,
        openapi::{AuthErrors, BodyErrors, ConflictErrors, NotFoundErrors, ValidationErrors},
        params::{AuthenticatedCaller, ObjectName, Params},
        resolve::{self, ResolvedSkill},
        skill_view::{Mode, SkillView},
    },
};

/// What is to change; at least one of the two.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(min_properties = 1)]
pub(crate) struct SkillUpdate {
    /// Whether the skill can be used at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    enabled: Option<bool>,
    /// Whether it is offered to models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    mode: Option<Mode>,
}

/// Switch a skill, or set its mode.
#[utoipa::path(
    put, path = "/api/skills/{name}", tag = "skills", operation_id = "putSkill",
    params(
        ("name" = String, Path, description = "Name of the skill."),
        ("namespace" = Option<String>, Query, description = "One of the namespaces looked up for the caller."),
    ),
    request_body = SkillUpdate,
    responses((status = 200, body = SkillView), AuthErrors, NotFoundErrors, ConflictErrors, BodyErrors, ValidationErrors)
)]
pub(crate) async fn put(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(rest): State<Rest>,
    ObjectName(name): ObjectName,
    params: Params,
    Body(switches, _room): Body<SkillUpdate>,
) -> Result<Json<SkillView>, ApiError> {
    change(&rest, &caller, &name, params, &switches).await
}

/// Switch a skill, or set its mode; the same as PUT.
#[utoipa::path(
    patch, path = "/api/skills/{name}", tag = "skills", operation_id = "patchSkill",
    params(
        ("name" = String, Path, description = "Name of the skill."),
        ("namespace" = Option<String>, Query, description = "One of the namespaces looked up for the caller."),
    ),
    request_body = SkillUpdate,
    responses((status = 200, body = SkillView), AuthErrors, NotFoundErrors, ConflictErrors, BodyErrors, ValidationErrors)
)]
pub(crate) async fn patch(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(rest): State<Rest>,
    ObjectName(name): ObjectName,
    params: Params,
    Body(switches, _room): Body<SkillUpdate>,
) -> Result<Json<SkillView>, ApiError> {
    change(&rest, &caller, &name, params, &switches).await
}

async fn change(
    rest: &Rest,
    caller: &Caller,
    name: &str,
    mut params: Params,
    switches: &SkillUpdate,
) -> Result<Json<SkillView>, ApiError> {
    let namespace = params.take("namespace")?;
    params.finish()?;
    if switches.enabled.is_none() && switches.mode.is_none() {
        return Err(ApiError::bad_request("give enabled, mode or both"));
    }
    let seen = resolve::find(rest, caller, name, namespace.as_deref()).await?;
    rest.rights.check(caller, Verb::Patch, &seen.namespace, Some(name)).await?;
    let changed = write(rest, &seen, switches).await?;
    let changed = CachedSkill::of(&changed).map_or_else(|| seen.known.skill.clone(), Arc::new);
    let known = CatalogEntry::new(changed, seen.known.versions.clone());
    let seen = ResolvedSkill { known: Arc::new(known), ..seen };
    Ok(Json(SkillView::of(&seen, caller, &rest.catalogue.policy())))
}

async fn write(rest: &Rest, seen: &ResolvedSkill, switches: &SkillUpdate) -> Result<Skill, ApiError> {
    let (name, namespace) = (seen.name(), &seen.namespace);
    catalog::update_skill(rest.client.clone(), &seen.known.skill, switches).await.map_err(|error| {
        let text = format!("could not change Skill {namespace}/{name}");
        match error {
            kube::Error::Api(status) => {
                let told = format!("{text}: {}", status.message);
                match status.code {
                    403 => ApiError::forbidden(told),
                    404 => ApiError::not_found(told),
                    409 => ApiError::new(http::StatusCode::CONFLICT, "Conflict", told),
                    400 | 422 => ApiError::new(http::StatusCode::UNPROCESSABLE_ENTITY, "Invalid", told),
                    _ => ApiError::unavailable(text),
                }
            }
            _ => ApiError::unavailable(text),
        }
    })
}

#[cfg(test)]
mod tests;
