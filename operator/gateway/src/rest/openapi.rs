//! The OpenAPI document, put together from the handlers and types themselves.

use utoipa::{
    Modify, OpenApi,
    openapi::{
        path::Operation,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use crate::{
    error::ErrorResponse,
    rest::{cancel, create_execution, events, executions, openapi_others, skills, update_skill, workspace},
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Skillet gateway",
        description = "Skills and their runs, under the rights of the caller. Every error under /api has one shape, ErrorResponse."
    ),
    paths(
        skills::list,
        skills::get,
        skills::versions,
        skills::resolve,
        update_skill::update,
        create_execution::create,
        executions::list,
        executions::get,
        cancel::cancel,
        events::events,
        workspace::list,
        workspace::read,
        workspace::write,
        workspace::remove,
    ),
    components(schemas(ErrorResponse)),
    security(("token" = [])),
    modifiers(&Additions)
)]
struct ApiDoc;

/// The scheme of the token, and the operations that do what another one does under a second method.
struct Additions;

impl Modify for Additions {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let text = "A service-account token for the audience `skillet`, or an API key of the tenant.";
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(text)).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
        let paths = &mut document.paths.paths;
        let cancel =
            paths.get("/api/skills/executions/{execution}/cancel").and_then(|path| path.post.clone());
        if let Some(path) = paths.get_mut("/api/skills/executions/{execution}") {
            let summary = "Cancel a run; the same as `POST .../cancel`. The record of the run stays.";
            path.delete = cancel.map(|cancel| alias(cancel, "deleteExecution", summary));
        }
        if let Some(path) = paths.get_mut("/api/skills/{name}") {
            let summary = "Switch a skill, or set its mode; the same as PUT.";
            path.patch = path.put.clone().map(|put| alias(put, "patchSkill", summary));
        }
        openapi_others::add(document);
    }
}

fn alias(mut operation: Operation, id: &str, summary: &str) -> Operation {
    operation.operation_id = Some(id.to_owned());
    operation.summary = Some(summary.to_owned());
    operation
}

/// Returns the document of these routes.
pub(super) fn document() -> utoipa::openapi::OpenApi {
    ApiDoc::openapi()
}
