//! Skills whose program is part of Skillet, and the settings of SkillPolicy for them.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{duration::SkillDuration, gateway::KeySecret, schema};

/// A program that is part of Skillet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Builtin {
    /// The content of a file in the caller's workspace.
    FileRead,
    /// A file of the caller's workspace, written or added to.
    FileWrite,
    /// One HTTP request to a public host.
    HttpRequest,
    /// The text, title and links of a page.
    WebFetch,
    /// The results of the search engine of SkillPolicy.
    WebSearch,
    /// JavaScript or Python code in a sandbox.
    EvalCode,
    /// A program of the runtime `shell` in a sandbox.
    ExecuteCommand,
    /// A browser without a window in a sandbox.
    Browser,
}

impl Builtin {
    /// Every built-in, in the order of the reference page.
    pub const ALL: [Self; 8] = [
        Self::FileRead,
        Self::FileWrite,
        Self::HttpRequest,
        Self::WebSearch,
        Self::WebFetch,
        Self::EvalCode,
        Self::ExecuteCommand,
        Self::Browser,
    ];

    /// Returns the word that users write.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FileRead => "file_read",
            Self::FileWrite => "file_write",
            Self::HttpRequest => "http_request",
            Self::WebFetch => "web_fetch",
            Self::WebSearch => "web_search",
            Self::EvalCode => "eval_code",
            Self::ExecuteCommand => "execute_command",
            Self::Browser => "browser",
        }
    }
}

/// The search engine of `web_search`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = ("!(self.provider in ['SearXNG', 'Json']) || has(self.url)", "set url for SearXNG and Json: the address of the engine"))]
#[x_kube(validation = ("self.provider != 'Json' || has(self.results)", "set results for Json: the place of the results in the response"))]
#[x_kube(validation = ("!(self.provider in ['Brave', 'Tavily']) || has(self.keySecret)", "set keySecret for Brave and Tavily: the Secret with the key"))]
#[serde(rename_all = "camelCase")]
pub struct WebSearchProvider {
    /// Kind of the engine: `SearXNG`, `Brave`, `Tavily`, or `Json` for any that answers a GET with JSON.
    pub provider: SearchEngine,
    /// Address. Of SearXNG its beginning, such as `https://search.example.com`. Of `Json` a template with `{{query}}` and, if wanted, `{{limit}}`. Of Brave and Tavily by default their own. `network` must allow its host.
    #[schemars(length(min = 1, max = 2048), regex(pattern = "^https?://"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Key of the engine, a Secret in the operator's namespace. Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_secret: Option<KeySecret>,
    /// Header with the key, for `Json`. Default `Authorization`, where the key stands behind `Bearer`.
    #[schemars(length(min = 1, max = 128), regex(pattern = "^[-A-Za-z0-9_]+$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_header: Option<String>,
    /// Places of the results in the response, for `Json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<SearchResultFields>,
    /// Time for which the results of a query answer the same query. Default `5m`.
    #[schemars(schema_with = "schema::positive_duration")]
    #[serde(default = "five_minutes")]
    pub cache_ttl: SkillDuration,
}

/// Kind of a search engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SearchEngine {
    #[default]
    #[serde(rename = "SearXNG")]
    SearXng,
    Brave,
    Tavily,
    Json,
}

/// Names of fields, with dots between those of nested objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SearchResultFields {
    /// List of the results, such as `data.items`. Default `results`.
    #[schemars(length(min = 1, max = 128))]
    pub list: String,
    /// Title of one result. Default `title`.
    #[schemars(length(min = 1, max = 128))]
    pub title: String,
    /// URL of one result. Default `url`.
    #[schemars(length(min = 1, max = 128))]
    pub url: String,
    /// Text of one result. Default `snippet`.
    #[schemars(length(min = 1, max = 128))]
    pub snippet: String,
}

impl Default for SearchResultFields {
    fn default() -> Self {
        Self { list: "results".into(), title: "title".into(), url: "url".into(), snippet: "snippet".into() }
    }
}

fn five_minutes() -> SkillDuration {
    SkillDuration(std::time::Duration::from_secs(300))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_is_written_as_it_is_named() {
        for builtin in Builtin::ALL {
            assert_eq!(serde_json::to_value(builtin).unwrap(), builtin.as_str());
        }
    }
}
