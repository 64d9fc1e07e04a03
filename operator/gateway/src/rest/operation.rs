//! Parameters and responses that operations share in the OpenAPI document.

use std::collections::BTreeMap;

use skillet_api::Phase;
use utoipa::{
    IntoParams, IntoResponses, PartialSchema as _,
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
/// The phase of the runs that a list has.
pub(crate) enum PhaseParams {}
/// The path of a file.
pub(crate) enum FileParams {}
/// The namespace of a workspace, and a skill that the caller may run there.
pub(crate) enum WorkspaceParams {}
/// The page of a list, and the only namespace whose items are listed.
pub(crate) enum ListParams {}

impl IntoParams for SkillParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        named("name", "Name of the skill.").into()
    }
}

impl IntoParams for ExecutionParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        named("execution", "Name of the SkillExecution.").into()
    }
}

impl IntoParams for PhaseParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![query("phase", "Only runs in this phase.", phase_schema())]
    }
}

impl IntoParams for FileParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let path = ParameterBuilder::new().name("path").parameter_in(ParameterIn::Query);
        let path = path.description(Some("Path in the workspace, such as `reports/a.txt`."));
        vec![path.required(Required::True).schema(Some(String::schema())).build()]
    }
}

impl IntoParams for WorkspaceParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let namespace = "Namespace whose runs use the workspace. Default the caller's own.";
        let skill = "A skill of the namespace, for a caller that may run only some.";
        vec![query("namespace", namespace, String::schema()), query("skill", skill, String::schema())]
    }
}

/// Returns the schema of a phase: the words of the SkillExecution.
pub(crate) fn phase_schema() -> Schema {
    let words = Phase::ALL.map(|phase| format!("{phase:?}"));
    let builder = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words));
    builder.description(Some("Phase of the run, as its SkillExecution has it.")).build().into()
}

impl IntoParams for ListParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let number = || ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
        vec![
            query("namespace", "Only this one of the namespaces looked up for the caller.", String::schema()),
            query("page", "Default 1.", number().build()),
            query("limit", "Items on a page, default 50.", number().maximum(Some(200)).build()),
        ]
    }
}

fn named(name: &str, text: &str) -> [Parameter; 2] {
    let path = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path).description(Some(text));
    let path = path.required(Required::True).schema(Some(String::schema())).build();
    [path, query("namespace", "One of the namespaces looked up for the caller.", String::schema())]
}

fn query(name: &str, text: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    let query = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query).description(Some(text));
    query.required(Required::False).schema(Some(schema)).build()
}

/// Defines sets of error responses, each with a description by status.
macro_rules! error_responses {
    ($($(#[$doc:meta])* $name:ident { $($status:literal: $text:literal)+ })+) => {$(
        $(#[$doc])*
        pub(crate) enum $name {}

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                [$(($status.to_owned(), error_response($text))),+].into()
            }
        }
    )+};
}

error_responses! {
    /// Errors that any request may get.
    AuthErrors {
        "400": "The request cannot be read; `field` says where."
        "401": "No token, or one that is not known."
        "403": "The caller may not do this."
        "503": "The cluster cannot do it now, or other requests hold the memory: then `Retry-After` says when to ask again."
    }
    /// The caller has no such object.
    NotFoundErrors { "404": "There is no such thing for this caller." }
    /// The state of the object forbids the request.
    ConflictErrors {
        "409": "It is there and its state forbids, or the idempotency key was used for another call."
    }
    /// The object was deleted during the request.
    GoneErrors { "410": "The run was deleted before it ended." }
    /// The body is too large, or does not come.
    BodyErrors {
        "408": "The body did not come within a minute."
        "413": "The body is larger than 1 MiB, or has more small values than there is memory for in one request."
    }
    /// The store of files does not do it.
    FileErrors {
        "408": "The body came too slowly."
        "413": "The file is larger than 32 MiB, or than a file of the store may be, or the listing has too many files."
        "422": "The path is not valid, or is that of a folder."
        "507": "The write would exceed a quota of the workspace."
    }
    /// A value has the right type and is not valid.
    ValidationErrors { "422": "A value is not valid; `field` says which." }
}

fn error_response(text: &str) -> RefOr<Response> {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorResponse"))).build();
    ResponseBuilder::new().description(text).content("application/json", content).build().into()
}
