//! The routes in the OpenAPI document whose bodies are not the gateway's own: those of model providers, of routers, and of MCP.

use utoipa::openapi::{
    ContentBuilder, HttpMethod, OpenApi, PathItem, Ref, RefOr, Required, ResponseBuilder,
    path::{OperationBuilder, ParameterBuilder, ParameterIn},
    request_body::RequestBodyBuilder,
    schema::{ObjectBuilder, Schema, Type},
};

/// One route: path, tag, operation id, summary, description.
type Route = [&'static str; 5];

const PROVIDER: &str = "The body and the response are the provider's. The model gets fitting skills as tools, and the gateway runs those that it calls. Errors have the provider's form.";
const ROUTES: [Route; 8] = [
    ["/v1/chat/completions", "models", "createChatCompletion", "OpenAI: Chat Completions", PROVIDER],
    ["/v1/responses", "models", "createResponse", "OpenAI: Responses", PROVIDER],
    ["/v1/messages", "models", "createMessage", "Anthropic: Messages", PROVIDER],
    [
        "/v1beta/models/{call}",
        "models",
        "generateContent",
        "Gemini: MODEL:generateContent, MODEL:streamGenerateContent",
        PROVIDER,
    ],
    [
        "/v1/inject",
        "routers",
        "inject",
        "Add skills as tools to a request",
        "Fields: `dialect`, `request`, and `model` for Gemini. The response has the `request` to send and the tools that were `offered`.",
    ],
    [
        "/v1/intercept",
        "routers",
        "intercept",
        "Run the skill calls of a response",
        "Fields: `dialect`, `request`, `answer`, `offered`, `round`. The response has `results`, and `nextRequest` or `answer`.",
    ],
    [
        "/v1/explain",
        "routers",
        "explain",
        "Say why each skill is or is not offered",
        "Fields as for inject. The response has `skills`, each with score and reason, and `forbidden` with the rights that the caller lacks.",
    ],
    [
        "/mcp",
        "mcp",
        "mcp",
        "MCP server (streamable HTTP)",
        "JSON-RPC messages of the Model Context Protocol.",
    ],
];

/// Adds the routes to the document.
pub(super) fn add(document: &mut OpenApi) {
    for [path, tag, id, summary, description] in ROUTES {
        let mut operation = OperationBuilder::new()
            .tag(tag)
            .operation_id(Some(id))
            .summary(Some(summary))
            .description(Some(description))
            .request_body(Some(RequestBodyBuilder::new().content("application/json", any_object()).build()))
            .response(
                "200",
                ResponseBuilder::new().description("Done.").content("application/json", any_object()),
            );
        for (status, text) in [
            ("400", "The request cannot be read."),
            ("401", "No token, or one that does not count."),
            ("403", "The caller may not do this."),
        ] {
            let content = ContentBuilder::new().schema(Some(error(tag))).build();
            let response = ResponseBuilder::new().description(text).content("application/json", content);
            operation = operation.response(status, response);
        }
        if path.contains("{call}") {
            let call =
                ParameterBuilder::new().name("call").parameter_in(ParameterIn::Path).required(Required::True);
            let call =
                call.description(Some("The model and the method, as in `gemini-3-pro:generateContent`."));
            operation =
                operation.parameter(call.schema(Some(ObjectBuilder::new().schema_type(Type::String))));
        }
        document.paths.paths.insert(path.to_owned(), PathItem::new(HttpMethod::Post, operation));
    }
}

fn any_object() -> utoipa::openapi::Content {
    ContentBuilder::new().schema(Some(ObjectBuilder::new())).build()
}

/// The providers' errors have forms of their own.
fn error(tag: &str) -> RefOr<Schema> {
    if tag == "models" {
        Schema::from(ObjectBuilder::new().build()).into()
    } else {
        Ref::from_schema_name("ErrorResponse").into()
    }
}
