//! Results of the search engines, in one form.

use serde_json::{Value, json};
use skillet_api::builtin::{SearchEngine, SearchResultFields, WebSearchProvider};
use url::Url;

use super::{super::page, domains::Domains};
use crate::text::{trim, truncate};

/// Most bytes of a title or a text.
const MAX_TEXT: usize = 2000;

/// Returns at most `limit` results of these domains; one without a URL is left out. `None` if the response has no list of results.
pub(super) fn read(
    provider: &WebSearchProvider,
    body: &Value,
    limit: usize,
    domains: &Domains,
) -> Option<Vec<Value>> {
    let fields = fields(provider);
    let list = at(body, &fields.list);
    let is_empty = || provider.provider == SearchEngine::Brave && body.get("type").is_some();
    let list = match list.and_then(Value::as_array) {
        Some(list) => list.as_slice(),
        // Brave leaves out the list of a query without results.
        None if is_empty() => &[],
        None => return None,
    };
    let read = |result: &Value| {
        let url = at(result, &fields.url)?.as_str()?;
        let is_web =
            Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && domains.allows(&url));
        is_web.then(|| (words(at(result, &fields.title)), url.to_owned(), words(at(result, &fields.snippet))))
    };
    let results = list.iter().filter_map(read).take(limit).enumerate();
    Some(
        results
            .map(|(place, (title, url, snippet))| {
                json!({ "title": title, "url": url, "snippet": snippet, "position": place + 1 })
            })
            .collect(),
    )
}

/// Returns the engine's own answer, if it has one.
pub(super) fn answer(body: &Value) -> Option<String> {
    let first = body.get("answers").and_then(|answers| answers.get(0));
    let text = [body.get("answer"), first.and_then(|answer| answer.get("answer")), first]
        .into_iter()
        .flatten()
        .find_map(Value::as_str)?;
    Some(truncate(trim(text), MAX_TEXT).0.to_owned()).filter(|text| !text.is_empty())
}

pub(super) const fn name(engine: SearchEngine) -> &'static str {
    match engine {
        SearchEngine::SearXng => "searxng",
        SearchEngine::Brave => "brave",
        SearchEngine::Tavily => "tavily",
        SearchEngine::Json => "json",
    }
}

fn fields(provider: &WebSearchProvider) -> SearchResultFields {
    let named = |list: &str, snippet: &str| SearchResultFields {
        list: list.to_owned(),
        snippet: snippet.to_owned(),
        ..SearchResultFields::default()
    };
    match provider.provider {
        SearchEngine::SearXng | SearchEngine::Tavily => named("results", "content"),
        SearchEngine::Brave => named("web.results", "description"),
        SearchEngine::Json => provider.results.clone().unwrap_or_default(),
    }
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

/// Returns the words of a text that may have tags and character references.
fn words(value: Option<&Value>) -> String {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    let text = truncate(text, MAX_TEXT).0;
    let base = Url::parse("https://results.invalid/").ok();
    let plain = base.filter(|_found| text.contains(['<', '&'])).map(|base| page::read(text, &base).markdown);
    plain.as_deref().unwrap_or(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
