//! `web_search`: one request to the search engine of SkillPolicy, and its results in one form.

mod domains;
mod results;

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use skillet_api::{
    Reason,
    builtin::{SearchEngine, WebSearchProvider},
    http::HttpMethod,
};
use url::{Url, form_urlencoded::byte_serialize};

use self::domains::Domains;
use super::{
    BuiltinCall, BuiltinError, CallKind, DEFAULT_TIMEOUT_MS, MAX_BODY_BYTES, Response, arguments::text,
    positive_int,
};
use crate::{http::RenderedRequest, text::truncate};

/// Results of a call that names no number.
const DEFAULT_RESULTS: u64 = 8;
const MAX_RESULTS: u64 = 20;
/// Most bytes of a query.
const MAX_QUERY: usize = 1600;

/// The part of a search that its response needs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Query {
    text: String,
    limit: usize,
    domains: Domains,
    provider: Arc<WebSearchProvider>,
}

impl Query {
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the domains as a part of a cache's name.
    pub(super) fn domains(&self) -> String {
        self.domains.query("")
    }

    pub(super) fn cache_ttl(&self) -> Duration {
        self.provider.cache_ttl.0
    }
}

/// The input of a search.
struct Search<'a> {
    query: &'a str,
    limit: u64,
    is_news: bool,
    country: Option<&'a str>,
    language: Option<&'a str>,
    time_range: Option<&'a str>,
    domains: Domains,
}

pub(super) fn render(
    provider: &Arc<WebSearchProvider>,
    input: &Value,
    key: Option<&str>,
) -> Result<BuiltinCall, BuiltinError> {
    let search = Search::read(input)?;
    let (url, body) = match provider.provider {
        SearchEngine::SearXng => (search.searxng(address(provider, "")?), None),
        SearchEngine::Brave => {
            (search.brave(address(provider, "https://api.search.brave.com/res/v1/web/search")?), None)
        }
        SearchEngine::Tavily => {
            (address(provider, "https://api.tavily.com/search")?, Some(search.tavily().to_string()))
        }
        SearchEngine::Json => (search.template(provider.url.as_deref().unwrap_or_default())?, None),
    };
    let mut headers = vec![("Accept".to_owned(), "application/json".to_owned())];
    headers.extend(key.map(|key| key_header(provider, key)));
    if body.is_some() {
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    }
    let method = if body.is_some() { HttpMethod::Post } else { HttpMethod::Get };
    let query = Query {
        text: search.query.to_owned(),
        limit: count(search.limit),
        domains: search.domains,
        provider: Arc::clone(provider),
    };
    Ok(BuiltinCall {
        request: RenderedRequest { method, url: url.to_string(), headers, body },
        timeout: Duration::from_millis(DEFAULT_TIMEOUT_MS),
        // Engines write more than what is kept of a result.
        max_body_bytes: count(4 * MAX_BODY_BYTES),
        kind: CallKind::WebSearch(query),
    })
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn address(provider: &WebSearchProvider, default: &str) -> Result<Url, BuiltinError> {
    Url::parse(provider.url.as_deref().unwrap_or(default)).map_err(|_| no_engine())
}

fn no_engine() -> BuiltinError {
    BuiltinError::without_code(Reason::SpecInvalid, "spec.webSearch.url of SkillPolicy default is no URL")
}

fn key_header(provider: &WebSearchProvider, key: &str) -> (String, String) {
    let key = key.trim();
    match (provider.provider, provider.key_header.as_deref()) {
        (SearchEngine::Brave, _) => ("X-Subscription-Token".to_owned(), key.to_owned()),
        (SearchEngine::Json, Some(name)) if !name.eq_ignore_ascii_case("authorization") => {
            (name.to_owned(), key.to_owned())
        }
        (SearchEngine::SearXng | SearchEngine::Tavily | SearchEngine::Json, _) => {
            ("Authorization".to_owned(), format!("Bearer {key}"))
        }
    }
}

/// Returns the host and port of the engine, which are the only ones that a search needs.
pub(super) fn host(provider: &WebSearchProvider) -> Option<(String, u16)> {
    let url = Search::read(&json!({"query": "x"})).ok().and_then(|search| match provider.provider {
        SearchEngine::SearXng => address(provider, "").ok(),
        SearchEngine::Brave => address(provider, "https://api.search.brave.com/").ok(),
        SearchEngine::Tavily => address(provider, "https://api.tavily.com/").ok(),
        SearchEngine::Json => search.template(provider.url.as_deref().unwrap_or_default()).ok(),
    })?;
    Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
}

impl<'a> Search<'a> {
    fn read(input: &'a Value) -> Result<Self, BuiltinError> {
        let query =
            text(input, "query").ok_or_else(|| BuiltinError::input("Missing required field: query"))?;
        let limit = input.get("max_results").or_else(|| input.get("limit"));
        Ok(Self {
            query: truncate(query, MAX_QUERY).0,
            limit: positive_int(limit, DEFAULT_RESULTS, MAX_RESULTS),
            is_news: text(input, "search_type") == Some("news"),
            country: text(input, "country"),
            language: text(input, "language"),
            time_range: text(input, "time_range")
                .filter(|range| TIME_RANGES.iter().any(|(word, _)| word == range)),
            domains: Domains::read(input),
        })
    }

    fn searxng(&self, mut url: Url) -> Url {
        let path = url.path().trim_end_matches('/').to_owned();
        if !path.ends_with("/search") {
            url.set_path(&format!("{path}/search"));
        }
        let mut query = url.query_pairs_mut();
        query.append_pair("q", &self.domains.query(self.query)).append_pair("format", "json");
        if self.is_news {
            query.append_pair("categories", "news");
        }
        for (name, value) in [("language", self.language), ("time_range", self.time_range)] {
            value.map(|value| query.append_pair(name, value));
        }
        drop(query);
        url
    }

    fn brave(&self, mut url: Url) -> Url {
        let mut query = url.query_pairs_mut();
        query.append_pair("q", &self.domains.query(self.query)).append_pair("count", &self.limit.to_string());
        if self.is_news {
            query.append_pair("result_filter", "news");
        }
        let freshness =
            TIME_RANGES.iter().find(|(word, _)| Some(*word) == self.time_range).map(|(_, code)| *code);
        for (name, value) in
            [("country", self.country), ("search_lang", self.language), ("freshness", freshness)]
        {
            value.map(|value| query.append_pair(name, value));
        }
        drop(query);
        url
    }

    fn tavily(&self) -> Value {
        let mut body = Map::new();
        body.insert("query".to_owned(), json!(self.query));
        body.insert("max_results".to_owned(), json!(self.limit));
        body.insert("topic".to_owned(), json!(if self.is_news { "news" } else { "general" }));
        for (name, domains) in
            [("include_domains", &self.domains.included), ("exclude_domains", &self.domains.excluded)]
        {
            if !domains.is_empty() {
                body.insert(name.to_owned(), json!(domains));
            }
        }
        for (name, value) in [("country", self.country), ("time_range", self.time_range)] {
            value.map(|value| body.insert(name.to_owned(), json!(value)));
        }
        body.into()
    }

    fn template(&self, template: &str) -> Result<Url, BuiltinError> {
        // A plus is a blank in a query only, and the template may name a path.
        let query = byte_serialize(self.query.as_bytes()).collect::<String>().replace('+', "%20");
        let text = template.replace("{{query}}", &query).replace("{{limit}}", &self.limit.to_string());
        Url::parse(&text).map_err(|_| no_engine())
    }
}

/// Ages of results, and the words of Brave for them.
const TIME_RANGES: [(&str, &str); 4] = [("day", "pd"), ("week", "pw"), ("month", "pm"), ("year", "py")];

pub(super) fn read(
    call: &BuiltinCall,
    query: &Query,
    response: Response<'_>,
    context: &str,
) -> Result<Value, BuiltinError> {
    let Response { status, headers: _, body } = response;
    if (300..400).contains(&status) {
        return Err(call.redirect_error(status));
    }
    if !(200..300).contains(&status) {
        return Err(BuiltinError::of_status(status, "the search engine"));
    }
    let invalid =
        |why: &str| BuiltinError::without_code(Reason::ResponseInvalid, format!("the search engine: {why}"));
    if body.len() > call.max_body_bytes {
        return Err(invalid(&format!("has responded with more than {} bytes", call.max_body_bytes)));
    }
    let body: Value = serde_json::from_slice(body).map_err(|_| invalid("has not responded with JSON"))?;
    let results = results::read(&query.provider, &body, query.limit, &query.domains)
        .ok_or_else(|| invalid("its response has no list of results"))?;
    Ok(json!({
        "success": true,
        "provider": results::name(query.provider.provider),
        "query": query.text,
        "results": results,
        "answer": results::answer(&body),
        "usage": {"queries_used": 1},
        "metrics": {"total_results": results.len()},
        "cached": false,
        "context": context,
    }))
}

/// Returns the output of a search as another call with the same request gets it from a cache.
pub(super) fn from_cache(output: &Value, context: &str) -> Value {
    let mut output = output.clone();
    output["usage"] = json!({"queries_used": 0});
    output["cached"] = json!(true);
    output["context"] = json!(context);
    output
}

#[cfg(test)]
mod tests;
