//! Reading skills: the list, one by name, its versions, and which of them a constraint means.

use axum::{Json, extract::State};
use http::StatusCode;
use serde::Serialize;
use skillet_api::Reason;
use skillet_core::{
    rest::Search,
    version::{Constraint, SkillSemver, current, list as list_versions, resolve as best},
};
use utoipa::ToSchema;

use crate::{
    catalog::{CachedSkill, CachedSpec},
    error::ApiError,
    rest::{
        operation::{AuthErrors, ListParams, NotFoundErrors, SkillParams, ValidationErrors},
        pagination,
        params::{AuthenticatedCaller, ObjectName, Params},
        skill_view::{Mode, SkillView, Source, versions as sealed_versions},
    },
    service::SkillService,
};

/// A page of skills, nearest namespace first and then by name.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SkillPage {
    /// Those of this page.
    data: Vec<SkillView>,
    /// Number of all, on every page.
    total: usize,
    /// Number of this page; the first is 1.
    page: usize,
    /// Most on one page.
    limit: usize,
    /// Number of pages.
    total_pages: usize,
}

/// The sealed versions of a skill, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SkillVersions {
    /// Namespace of the skill.
    namespace: String,
    /// Name of the skill.
    name: String,
    /// Every sealed version, the withdrawn ones too.
    versions: Vec<String>,
    /// The version that runs if a request names none. None if nothing can run.
    current: Option<String>,
    /// The newest that is not withdrawn. None if nothing can run.
    latest: Option<String>,
    /// Those of them that are withdrawn.
    yanked: Vec<String>,
}

/// The version that a constraint means now.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResolvedVersion {
    /// Namespace of the skill.
    namespace: String,
    /// Name of the skill.
    name: String,
    /// The constraint of the request, if it has one.
    constraint: Option<String>,
    /// The version that would run now.
    version: String,
}

/// List the skills that the caller sees.
#[utoipa::path(
    get, path = "/api/skills", tag = "skills", operation_id = "listSkills",
    params(
        ("q" = Option<String>, Query, description = "Text in name, description or tags; case does not count."),
        ("mode" = Option<Mode>, Query, description = "Only skills of this mode."),
        ("source" = Option<Source>, Query, description = "Only skills from there."),
        ("tag" = Option<String>, Query, description = "Only skills with exactly this tag."),
        ListParams,
    ),
    responses((status = 200, body = SkillPage), AuthErrors)
)]
pub(crate) async fn list(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    mut params: Params,
) -> Result<Json<SkillPage>, ApiError> {
    let page = pagination::take(&mut params)?;
    let search = Search::new(&params.take("q")?.unwrap_or_default());
    let mode: Option<Mode> = params.take_word("mode")?;
    let source: Option<Source> = params.take_word("source")?;
    let tag = params.take("tag")?;
    let namespace = params.take_namespace()?;
    let policy = service.catalog.policy();
    let mut found = service.list(&caller, namespace.as_deref()).await?;
    found.retain(|resolved| {
        let skill = &resolved.entry.skill;
        mode.is_none_or(|mode| mode == skill.spec.mode.into())
            && source.is_none_or(|source| source == Source::of(&resolved.namespace, &caller, &policy))
            && tag.as_ref().is_none_or(|tag| skill.spec.tags.contains(tag))
            && finds(&search, skill)
    });
    let total = found.len();
    let mut left = pagination::CONTENT;
    let view = |skill| SkillView::of(skill, &caller, &policy).within(&mut left);
    let data = page.of(&found).into_iter().map(view).collect();
    Ok(Json(SkillPage {
        data,
        total,
        page: page.number,
        limit: page.limit,
        total_pages: page.total_pages(total),
    }))
}

fn finds(search: &Search, skill: &CachedSkill) -> bool {
    let CachedSpec { description, tags, .. } = &skill.spec;
    search.is_in(&skill.name) || search.is_in(description) || tags.iter().any(|tag| search.is_in(tag))
}

/// One skill: the nearest of that name, or the one of the namespace given.
#[utoipa::path(
    get, path = "/api/skills/{name}", tag = "skills", operation_id = "getSkill",
    params(SkillParams),
    responses((status = 200, body = SkillView), AuthErrors, NotFoundErrors)
)]
pub(crate) async fn get(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    ObjectName(name): ObjectName,
    params: Params,
) -> Result<Json<SkillView>, ApiError> {
    let skill = service.get(&caller, &name, params.take_namespace()?.as_deref()).await?;
    Ok(Json(SkillView::of(&skill, &caller, &service.catalog.policy())))
}

/// The sealed versions of a skill.
#[utoipa::path(
    get, path = "/api/skills/{name}/versions", tag = "skills", operation_id = "listSkillVersions",
    params(SkillParams),
    responses((status = 200, body = SkillVersions), AuthErrors, NotFoundErrors)
)]
pub(crate) async fn versions(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    ObjectName(name): ObjectName,
    params: Params,
) -> Result<Json<SkillVersions>, ApiError> {
    let skill = service.get(&caller, &name, params.take_namespace()?.as_deref()).await?;
    let sealed = sealed_versions(&skill.entry);
    let (yanked, usable): (Vec<_>, Vec<_>) =
        sealed.iter().partition(|version| skill.entry.skill.yanked.contains(version));
    Ok(Json(SkillVersions {
        namespace: skill.namespace.to_string(),
        name,
        versions: sealed.iter().map(ToString::to_string).collect(),
        current: skill.entry.current().map(|current| current.number.to_string()),
        latest: usable.first().map(ToString::to_string),
        yanked: yanked.iter().map(ToString::to_string).collect(),
    }))
}

/// The version that a run with this constraint would take now.
#[utoipa::path(
    get, path = "/api/skills/{name}/resolve", tag = "skills", operation_id = "resolveSkillVersion",
    params(
        SkillParams,
        ("constraint" = Option<String>, Query, description = "Such as `^1.2.0`, `~1.2.0`, `>=1.0.0 <2.0.0`, `latest`. Without it, the version that runs if a request names none."),
    ),
    responses((status = 200, body = ResolvedVersion), AuthErrors, NotFoundErrors, ValidationErrors)
)]
pub(crate) async fn resolve(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    ObjectName(name): ObjectName,
    mut params: Params,
) -> Result<Json<ResolvedVersion>, ApiError> {
    let text = params.take("constraint")?;
    let skill = service.get(&caller, &name, params.take_namespace()?.as_deref()).await?;
    let constraint = text.as_deref().map(|text| constraint(text, "constraint")).transpose()?;
    let sealed = sealed_versions(&skill.entry);
    let (yanked, usable): (Vec<_>, Vec<_>) =
        sealed.iter().partition(|version| skill.entry.skill.yanked.contains(version));
    let numbers = usable.iter().copied();
    let found = match &constraint {
        Some(constraint) => best(constraint, numbers),
        None => current(skill.entry.skill.wanted.as_ref(), numbers),
    };
    let Some(version) = found else {
        let constraint = constraint.unwrap_or_else(Constraint::any);
        return Err(refuse_constraint(&name, &constraint, &usable, &yanked));
    };
    Ok(Json(ResolvedVersion {
        namespace: skill.namespace.to_string(),
        name,
        constraint: text,
        version: version.to_string(),
    }))
}

/// Refuses a constraint that no usable version fits. The message lists the versions that there are.
fn refuse_constraint(
    name: &str,
    constraint: &Constraint,
    usable: &[&SkillSemver],
    yanked: &[&SkillSemver],
) -> ApiError {
    let rest = if usable.is_empty() { "no other".to_owned() } else { list_versions(usable.iter().copied()) };
    let (reason, message) = if let Some(version) = best(constraint, yanked.iter().copied()) {
        let message = format!(
            "version {version} of Skill {name} is withdrawn, and no other fits {constraint}; there is {rest}"
        );
        (Reason::VersionYanked, message)
    } else {
        let rest = if usable.is_empty() { "no sealed version" } else { &*rest };
        let message = format!("no version of Skill {name} fits {constraint}; there is {rest}");
        (Reason::VersionNotFound, message)
    };
    ApiError::new(StatusCode::NOT_FOUND, reason.as_str(), message).at("constraint")
}

/// Reads a constraint; `field` is where the request has it.
pub(crate) fn constraint(text: &str, field: &str) -> Result<Constraint, ApiError> {
    Constraint::parse(text).map_err(|error| {
        let code = error.reason().as_str();
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, code, error.to_string()).at(field)
    })
}

#[cfg(test)]
mod tests;
