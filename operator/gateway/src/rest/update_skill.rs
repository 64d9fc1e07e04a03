//! Changing how a skill is offered: `enabled` and `mode`, each exactly itself. Content is changed by its owner's tools.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    error::ApiError,
    rest::{
        body::Body,
        operation::{AuthErrors, BodyErrors, ConflictErrors, NotFoundErrors, SkillParams, ValidationErrors},
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
    pub(crate) enabled: Option<bool>,
    /// The rule by which the skill is offered to models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) mode: Option<Mode>,
}

impl SkillUpdate {
    pub(crate) fn is_empty(&self) -> bool {
        self.enabled.is_none() && self.mode.is_none()
    }
}

/// Switch a skill, or set its mode.
#[utoipa::path(
    put, path = "/api/skills/{name}", tag = "skills", operation_id = "putSkill",
    params(SkillParams),
    request_body = SkillUpdate,
    responses((status = 200, body = SkillView), AuthErrors, NotFoundErrors, ConflictErrors, BodyErrors, ValidationErrors)
)]
pub(crate) async fn update(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    ObjectName(name): ObjectName,
    params: Params,
    Body(update, _memory): Body<SkillUpdate>,
) -> Result<Json<SkillView>, ApiError> {
    let namespace = params.take_namespace()?;
    if update.is_empty() {
        return Err(ApiError::bad_request("give enabled, mode or both"));
    }
    let changed = service.update(&caller, &name, namespace.as_deref(), &update).await?;
    Ok(Json(SkillView::of(&changed, &caller, &service.catalog.policy())))
}

#[cfg(test)]
mod tests;
