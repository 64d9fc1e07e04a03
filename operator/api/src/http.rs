//! A skill that is one HTTP request: a template, the Secrets in it, and what of the response is the output.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema;

/// An HTTP request. No pod is made: the broker of egress sends it.
///
/// `{{name}}` in `url`, `headers`, `query` and `body` is the input of that name, and `{{name|text}}` has a default.
/// `{{SECRETS.KEY}}` is a value of `secrets`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Http {
    /// Method. Default `POST`.
    #[serde(default)]
    pub method: HttpMethod,
    /// URL with scheme `https`, or `http` if its host and port 80 are among the hosts of `network`. A value in it is percent-encoded.
    #[schemars(length(min = 1, max = 4096), regex(pattern = "^[hH][tT][tT][pP][sS]?://"))]
    pub url: String,
    /// Headers. One that has an input without a value and without a default is left out. At most 32.
    #[schemars(schema_with = "schema::header_values")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Parameters behind the `?` of the URL. One that has an input without a value and without a default is left out. At most 64.
    #[schemars(schema_with = "schema::query_values")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// Body: any JSON, which is sent as JSON, or a text. A text that is one placeholder keeps the type of its value.
    #[schemars(schema_with = "schema::any_json")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Inputs that no template uses go into the query of a GET or HEAD request, and into the JSON body of others. Default true if nothing has a placeholder and there is no `body`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_inputs: Option<bool>,
    /// `Omit` leaves a header, parameter or field of the body out if an input in it has no value and no default, and refuses a run without a value for the URL. `Keep` sends the placeholder itself in URL, query and headers. Default `Omit`.
    #[serde(default, skip_serializing_if = "MissingInputs::is_omit")]
    pub missing_inputs: MissingInputs,
    /// Secrets of the skill's namespace, by the name that templates use. The annotations `skillet.dev/skills` and `skillet.dev/hosts` of each Secret must name this skill and the host. At most 16.
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<HttpSecret>,
    /// Fields of the output, each with a JSONPath of the response, such as `$.data[0].name`. A path without a value leaves its field out. Unset: the whole response. At most 64.
    #[schemars(schema_with = "schema::response_paths")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub response_mapping: BTreeMap<String, String>,
    /// Form of the response: `Json`, `Text`, or `Auto` by its content type. Default `Auto`.
    #[serde(default)]
    pub response_format: ResponseFormat,
    /// Redirects that are followed, if each host is allowed. Default 0.
    #[schemars(range(max = 5))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<u32>,
}

/// Method of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    Get,
    Head,
    #[default]
    Post,
    Put,
    Patch,
    Delete,
}

impl HttpMethod {
    /// Returns the word of the method.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// True if the request changes nothing, so that it can be sent again.
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }
}

/// Treatment of inputs that have no value and no default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MissingInputs {
    #[default]
    Omit,
    Keep,
}

impl MissingInputs {
    // serde gives a reference.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_omit(&self) -> bool {
        *self == Self::Omit
    }
}

/// Form of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ResponseFormat {
    #[default]
    Auto,
    Json,
    Text,
}

/// A value of a Secret for templates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpSecret {
    /// Name in `{{SECRETS.NAME}}`.
    #[schemars(length(max = 128), regex(pattern = "^[A-Za-z_][A-Za-z0-9_.-]*$"))]
    pub name: String,
    /// Name of the Secret, in the skill's namespace.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub secret: String,
    /// Key in the Secret.
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}
