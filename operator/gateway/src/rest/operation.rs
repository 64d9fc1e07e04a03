//! Parameters and responses that operations share in the OpenAPI document.

use std::collections::BTreeMap;

use utoipa::{
    IntoParams, IntoResponses,
    openapi::{
        ContentBuilder, ObjectBuilder, Ref, RefOr, Required, Response, ResponseBuilder, Type,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::Schema,
    },
};

/// The name of a skill, and the namespace to look it up in.
pub(crate) enum SkillParams {}
/// The name of a run, and the namespace to look it up in.
pub(crate) enum ExecutionParams {}
/// The page of a list, and the only namespace whose items are listed.
pub(crate) enum ListParams {}

impl IntoParams for SkillParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![path("name", "Name of the skill."), namespace("One of the namespaces looked up for the caller.")]
    }
}

impl IntoParams for ExecutionParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![
            path("id", "Name of the SkillExecution."),
            namespace("One of the namespaces looked up for the caller."),
        ]
    }
}

impl IntoParams for ListParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let number = |maximum: Option<i32>| {
            let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
            number.maximum(maximum).build().into()
        };
        vec![
            namespace("Only this one of the namespaces looked up for the caller."),
            query("page", "Default 1.", number(None)),
            query("limit", "Items on a page, default 50.", number(Some(200))),
        ]
    }
}

fn namespace(text: &str) -> Parameter {
    query("namespace", text, ObjectBuilder::new().schema_type(Type::String).build().into())
}

fn query(name: &str, text: &str, schema: Schema) -> Parameter {
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query);
    parameter.description(Some(text)).required(Required::False).schema(Some(schema)).build()
}

fn path(name: &str, text: &str) -> Parameter {
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path);
    let schema: Schema = ObjectBuilder::new().schema_type(Type::String).build().into();
    parameter.description(Some(text)).required(Required::True).schema(Some(schema)).build()
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
