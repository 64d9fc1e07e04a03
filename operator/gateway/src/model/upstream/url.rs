//! The address of a request: the provider's base URL, and the client's path after it. No I/O.

use std::fmt::Write as _;

use skillet_api::gateway::Provider;
use skillet_llm::DialectName;

use crate::model::provider_choice::family;

/// Builds the address of a request. `path` is the client's, with its query.
pub(super) fn request_url(
    provider: &Provider,
    dialect: DialectName,
    model: Option<&str>,
    path: &str,
) -> String {
    let base = match provider.base_url.as_str() {
        "" => family(dialect).public_url(),
        url => url,
    };
    match provider.azure.as_ref().and_then(|azure| azure.api_version.as_deref()) {
        Some(version) => azure_url(base, model, path, version),
        None if has_version(base, dialect) => format!("{base}{}", without_version(path)),
        None => format!("{base}{path}"),
    }
}

/// Returns true if the base URL names the version of the API, so that the path may not.
///
/// Base URLs for OpenAI's SDKs have it anywhere (`https://HOST/v1beta/openai`), others at their end.
fn has_version(base: &str, dialect: DialectName) -> bool {
    let mut segments = base.split('/').skip(3);
    match dialect {
        DialectName::OpenAiChat | DialectName::OpenAiResponses => segments.any(is_version),
        DialectName::Anthropic | DialectName::Gemini => segments.last().is_some_and(is_version),
    }
}

/// `v1`, `v1beta`, `v1alpha2` and the like.
fn is_version(segment: &str) -> bool {
    let Some(rest) = segment.strip_prefix('v') else { return false };
    let kind = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let stage = kind.trim_end_matches(|letter: char| letter.is_ascii_digit());
    kind.len() < rest.len() && matches!(stage, "" | "alpha" | "beta")
}

fn without_version(path: &str) -> &str {
    let Some((_, rest)) = path.strip_prefix('/').and_then(|path| path.split_once('/')) else { return path };
    let first = &path[1..path.len() - rest.len() - 1];
    if is_version(first) { &path[first.len() + 1..] } else { path }
}

/// The form of Azure OpenAI with dated versions: the deployment stands in the path.
fn azure_url(base: &str, model: Option<&str>, path: &str, version: &str) -> String {
    let (path, query) = without_version(path).split_once('?').unwrap_or((without_version(path), ""));
    let base = base.strip_suffix("/openai").unwrap_or(base);
    let deployment = match model {
        Some(model) if is_of_deployment(path) => format!("/deployments/{}", percent_encode(model)),
        Some(_) | None => String::new(),
    };
    let query = if query.is_empty() { String::new() } else { format!("&{query}") };
    format!("{base}/openai{deployment}{path}?api-version={version}{query}")
}

fn is_of_deployment(path: &str) -> bool {
    ["/chat/", "/completions", "/embeddings", "/audio/", "/images/"]
        .iter()
        .any(|family| path.starts_with(family))
}

fn percent_encode(name: &str) -> String {
    name.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            write!(encoded, "%{byte:02X}").ok();
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use DialectName::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
    use skillet_api::gateway::Azure;

    use super::*;

    fn check(provider: &Provider, dialect: DialectName, path: &str, expected: &str) {
        assert_eq!(request_url(provider, dialect, Some("my gpt"), path), expected);
    }

    #[test]
    fn a_version_in_the_base_url_takes_the_place_of_the_clients() {
        for (dialect, base, path, expected) in [
            (OpenAiChat, "", "/v1/models", "https://api.openai.com/v1/models"),
            (OpenAiChat, "https://a", "/v1/chat/completions", "https://a/v1/chat/completions"),
            (OpenAiChat, "http://a:11434/v1", "/v1/chat/completions", "http://a:11434/v1/chat/completions"),
            (OpenAiResponses, "https://a/api/v1", "/v1/responses?x=1", "https://a/api/v1/responses?x=1"),
            (OpenAiChat, "https://a/v1beta/openai", "/v1/models", "https://a/v1beta/openai/models"),
            (OpenAiChat, "https://a/paas/v4", "/v1/embeddings", "https://a/paas/v4/embeddings"),
            (OpenAiChat, "https://a/router", "/v1/models", "https://a/router/v1/models"),
            (OpenAiChat, "https://v1", "/v1/models", "https://v1/v1/models"),
            (Anthropic, "https://a/v1", "/v1/messages", "https://a/v1/messages"),
            (Anthropic, "https://a/v1/x/anthropic", "/v1/messages", "https://a/v1/x/anthropic/v1/messages"),
            (Gemini, "https://a/v1beta", "/v1beta/models/m:g", "https://a/v1beta/models/m:g"),
            (Gemini, "https://a/vertex", "/v1beta/models/m:g", "https://a/vertex/v1beta/models/m:g"),
            (Gemini, "https://a/v1beta", "/upload/v1beta/files", "https://a/v1beta/upload/v1beta/files"),
        ] {
            let provider = Provider { base_url: base.to_owned(), ..Provider::default() };
            check(&provider, dialect, path, expected);
        }
    }

    #[test]
    fn azure_names_the_deployment_in_the_path_or_has_its_version_in_the_base_url() {
        let azure = |base: &str, version: Option<&str>| Provider {
            base_url: base.to_owned(),
            azure: Some(Azure { api_version: version.map(str::to_owned) }),
            ..Provider::default()
        };
        let dated = azure("https://r.openai.azure.com", Some("2024-10-21"));
        let at = |path: &str| format!("https://r.openai.azure.com/openai{path}");
        let chat = "/deployments/my%20gpt/chat/completions?api-version=2024-10-21";
        check(&dated, OpenAiChat, "/v1/chat/completions", &at(chat));
        check(&dated, OpenAiChat, "/v1/chat/completions?x=1", &at(&format!("{chat}&x=1")));
        check(&dated, OpenAiResponses, "/v1/responses", &at("/responses?api-version=2024-10-21"));
        check(&azure(&at(""), Some("2024-10-21")), OpenAiChat, "/v1/chat/completions", &at(chat));
        check(&azure(&at("/v1"), None), OpenAiChat, "/v1/chat/completions", &at("/v1/chat/completions"));
    }

    #[test]
    fn only_a_version_is_taken_for_one() {
        for (segment, expected) in [
            ("v1", true),
            ("v1beta", true),
            ("v1alpha2", true),
            ("v", false),
            ("v2-proxy", false),
            ("1", false),
        ] {
            assert_eq!(is_version(segment), expected, "{segment}");
        }
    }
}
