//! The OpenAPI document, put together from the handlers and types themselves.

use std::collections::BTreeMap;

use utoipa::{
    IntoResponses, Modify, OpenApi,
    openapi::{
        ContentBuilder, Ref, RefOr, Response, ResponseBuilder,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use crate::{
    error::ErrorResponse,
    rest::{cancel, create_execution, events, executions, skills, update_skill},
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Skillet gateway",
        description = "SkillCatalog and their runs, under the rights of the caller. Every error has one shape, ErrorResponse."
    ),
    paths(
        skills::list,
        skills::get,
        skills::versions,
        skills::resolve,
        update_skill::put,
        update_skill::patch,
        create_execution::create,
        executions::list,
        executions::get,
        cancel::delete,
        cancel::cancel,
        events::events,
    ),
    components(schemas(ErrorResponse)),
    security(("token" = [])),
    modifiers(&Token)
)]
struct ApiDoc;

struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "A service-account token for the audience `skillet`, or an API key of the tenant.",
            ))
            .build();
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// The document of these routes, for others to add theirs.
pub fn document() -> utoipa::openapi::OpenApi {
    ApiDoc::openapi()
}

/// Errors that any request may get.
pub(crate) enum AuthErrors {}
/// There is no such thing for this caller.
pub(crate) enum NotFoundErrors {}
/// It is there, and its state forbids.
pub(crate) enum ConflictErrors {}
/// It was deleted in between.
pub(crate) enum GoneErrors {}
/// The body is too large, or does not come.
pub(crate) enum BodyErrors {}
/// It was understood and cannot be so.
pub(crate) enum ValidationErrors {}

impl IntoResponses for AuthErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        errors(&[
            ("400", "The request cannot be read; `field` says where."),
            ("401", "No token, or one that is not known."),
            ("403", "The caller may not do this."),
            (
                "503",
                "The cluster cannot do it now, or other requests hold the memory: then `Retry-After` says when to ask again.",
            ),
        ])
    }
}

impl IntoResponses for NotFoundErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        errors(&[("404", "There is no such thing for this caller.")])
    }
}

impl IntoResponses for ConflictErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        errors(&[(
            "409",
            "It is there and its state forbids, or the idempotency key was used for another call.",
        )])
    }
}

impl IntoResponses for GoneErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        errors(&[("410", "The run was deleted before it ended.")])
    }
}

impl IntoResponses for BodyErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        errors(&[
            ("408", "The body did not come within a minute."),
            (
                "413",
                "The body is larger than 1 MiB, or has more small values than there is memory for in one request.",
            ),
        ])
    }
}

impl IntoResponses for ValidationErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        errors(&[("422", "A value is not valid; `field` says which.")])
    }
}

fn errors(of: &[(&str, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let answer = |text: &str| {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorResponse"))).build();
        ResponseBuilder::new().description(text).content("application/json", content).build()
    };
    of.iter().map(|(status, text)| ((*status).to_owned(), answer(text).into())).collect()
}
