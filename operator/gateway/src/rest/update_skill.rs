//! Changing how a skill is offered: `enabled` and `mode`, each exactly itself. Content is changed by its owner's tools.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    catalog::{CachedSkill, CatalogEntry},
    error::ApiError,
    resolve::ResolvedSkill,
    rest::{
        body::Body,
        openapi::{AuthErrors, BodyErrors, ConflictErrors, NotFoundErrors, ValidationErrors},
        params::{AuthenticatedCaller, ObjectName, Params},
        skill_view::{Mode, SkillView},
    },
    service::SkillService,
};

/// The fields to change; at least one of the two.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(min_properties = 1)]
pub(crate) struct SkillUpdate {
    /// False switches the skill off for every use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    enabled: Option<bool>,
    /// The rule by which the skill is offered to models.
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
    State(service): State<SkillService>,
    ObjectName(name): ObjectName,
    params: Params,
    Body(switches, _room): Body<SkillUpdate>,
) -> Result<Json<SkillView>, ApiError> {
    change(&service, &caller, &name, params, &switches).await
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
    State(service): State<SkillService>,
    ObjectName(name): ObjectName,
    params: Params,
    Body(switches, _room): Body<SkillUpdate>,
) -> Result<Json<SkillView>, ApiError> {
    change(&service, &caller, &name, params, &switches).await
}

async fn change(
    service: &SkillService,
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
    let seen = service.get(caller, name, namespace.as_deref()).await?;
    let changed = service.update(caller, &seen, switches).await?;
    let changed = CachedSkill::of(&changed).map_or_else(|| seen.known.skill.clone(), Arc::new);
    let known = CatalogEntry::new(changed, seen.known.versions.clone());
    let seen = ResolvedSkill { known: Arc::new(known), ..seen };
    Ok(Json(SkillView::of(&seen, caller, &service.catalog.policy())))
}

#[cfg(test)]
mod tests;
