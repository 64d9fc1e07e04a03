//! Requests to search engines, and the results of each.

use super::{super::Step, *};

fn provider(yaml: &str) -> Arc<WebSearchProvider> {
    Arc::new(serde_saphyr::from_str(yaml).unwrap())
}

fn request(yaml: &str, input: &Value) -> RenderedRequest {
    render(&provider(yaml), input, Some("k\n")).unwrap().request
}

fn headers(request: &RenderedRequest) -> Vec<String> {
    request.headers.iter().skip(1).map(|(name, value)| format!("{name}: {value}")).collect()
}

const FULL: &str = r#"{"query": " a b&c ", "max_results": 50, "search_type": "news", "country": "de", "language": "en", "time_range": "week"}"#;

#[test]
fn every_engine_gets_the_query_in_its_own_words() {
    let input: Value = serde_json::from_str(FULL).unwrap();
    let searxng = request("{provider: SearXNG, url: 'https://s.example/x/'}", &input);
    let url = "https://s.example/x/search?q=a+b%26c&format=json&categories=news&language=en&time_range=week";
    assert_eq!((searxng.url.as_str(), headers(&searxng)), (url, vec!["Authorization: Bearer k".to_owned()]));
    let brave = request("{provider: Brave}", &input);
    let url = "https://api.search.brave.com/res/v1/web/search?q=a+b%26c&count=20&result_filter=news&country=de&search_lang=en&freshness=pw";
    assert_eq!((brave.url.as_str(), headers(&brave)), (url, vec!["X-Subscription-Token: k".to_owned()]));
    let tavily = request("{provider: Tavily}", &input);
    let body = r#"{"country":"de","max_results":20,"query":"a b&c","time_range":"week","topic":"news"}"#;
    assert_eq!((tavily.url.as_str(), tavily.body.as_deref()), ("https://api.tavily.com/search", Some(body)));
    assert_eq!((tavily.method, headers(&tavily).len()), (HttpMethod::Post, 2));
    let json = request(
        "{provider: Json, url: 'https://j.example/{{query}}?n={{limit}}', keyHeader: X-Key, results: {}}",
        &json!({"query": "a b/c?d", "limit": "3"}),
    );
    assert_eq!(
        (json.url.as_str(), headers(&json)),
        ("https://j.example/a%20b%2Fc%3Fd?n=3", vec!["X-Key: k".to_owned()])
    );
}

#[test]
fn a_search_is_limited_to_domains_by_each_engine_and_by_its_results() {
    let input =
        json!({"query": "q", "filters": {"include_domains": ["a.com"], "exclude_domains": ["b.com"]}});
    for (yaml, expected) in [
        (
            "{provider: SearXNG, url: 'https://s.example'}",
            "search?q=q+site%3Aa.com+-site%3Ab.com&format=json",
        ),
        ("{provider: Brave}", "search?q=q+site%3Aa.com+-site%3Ab.com&count=8"),
        ("{provider: Json, url: 'https://j.example/{{query}}', results: {}}", "/q"),
    ] {
        let url = request(yaml, &input).url;
        assert!(url.ends_with(expected), "{url}");
    }
    let body: Value = serde_json::from_str(&request("{provider: Tavily}", &input).body.unwrap()).unwrap();
    assert_eq!((&body["include_domains"], &body["exclude_domains"]), (&json!(["a.com"]), &json!(["b.com"])));

    let provider = provider("{provider: SearXNG, url: 'https://s.example'}");
    let call = render(&provider, &input, None).unwrap();
    let found =
        json!({"results": [{"url": "https://c.com"}, {"url": "https://x.a.com"}, {"url": "https://b.com"}]})
            .to_string();
    let response = Response { status: 200, headers: &[], body: found.as_bytes() };
    let Step::Output(output) = call.read_response(response, "c").unwrap() else { panic!("no output") };
    assert_eq!(
        output["results"],
        json!([{"title": "", "url": "https://x.a.com", "snippet": "", "position": 1}])
    );
    let other = render(&provider, &json!({"query": "q"}), None).unwrap();
    assert_ne!(call.cache().unwrap().0, other.cache().unwrap().0);
}

#[test]
fn a_search_needs_the_host_of_its_engine() {
    for (yaml, expected) in [
        ("{provider: SearXNG, url: 'http://searxng.tools.svc:8080'}", Some(("searxng.tools.svc", 8080))),
        ("{provider: Brave}", Some(("api.search.brave.com", 443))),
        ("{provider: Tavily}", Some(("api.tavily.com", 443))),
        ("{provider: Json, url: 'https://j.example/{{query}}'}", Some(("j.example", 443))),
        ("{provider: SearXNG}", None),
        ("{provider: Json}", None),
    ] {
        let expected = expected.map(|(name, port)| (name.to_owned(), port));
        assert_eq!(host(&provider(yaml)), expected, "{yaml}");
    }
    let error = render(&provider("{provider: SearXNG}"), &json!({"query": "x"}), None).unwrap_err();
    assert_eq!(error.to_string(), "spec.webSearch.url of SkillPolicy default is no URL");
}

fn respond(yaml: &str, status: u16, body: &str) -> Result<Value, BuiltinError> {
    let call = render(&provider(yaml), &json!({"query": "q", "limit": 2}), None)?;
    match call.read_response(Response { status, headers: &[], body: body.as_bytes() }, "caller")? {
        Step::Output(output) => Ok(output),
        Step::Request(call) => unreachable!("{call:?}"),
    }
}

#[test]
fn results_have_one_form_whatever_the_engine() {
    let expected = json!({
        "success": true, "provider": "searxng", "query": "q",
        "results": [
            {"title": "A", "url": "https://a.example/", "snippet": "x y", "position": 1},
            {"title": "B", "url": "http://b.example/", "snippet": "", "position": 2},
        ],
        "answer": "42", "usage": {"queries_used": 1}, "metrics": {"total_results": 2}, "cached": false, "context": "caller",
    });
    let body = r#"{"answers": [{"answer": " 42 "}], "results": [{"title": "A", "url": "https://a.example/", "content": "x\n y"},
        {"title": "no", "url": "javascript:x"}, {"title": "no"}, {"title": "B", "url": "http://b.example/"}, {"url": "http://c.example/"}]}"#;
    let searxng = respond("{provider: SearXNG, url: 'https://s.example'}", 200, body).unwrap();
    assert_eq!(searxng, expected);
    let cached = from_cache(&searxng, "other");
    assert_eq!(
        (&cached["cached"], &cached["usage"]["queries_used"], &cached["context"]),
        (&json!(true), &json!(0), &json!("other"))
    );
    let brave = r#"{"type": "search", "web": {"results": [{"title": "A &amp; B", "url": "https://a.example/", "description": "the <strong>x</strong>"}]}}"#;
    let brave = respond("{provider: Brave}", 200, brave).unwrap();
    assert_eq!(
        brave["results"][0],
        json!({"title": "A & B", "url": "https://a.example/", "snippet": "the x", "position": 1})
    );
    assert_eq!(respond("{provider: Brave}", 200, r#"{"type": "search"}"#).unwrap()["results"], json!([]));
    let tavily = r#"{"answer": "yes", "results": []}"#;
    assert_eq!(respond("{provider: Tavily}", 200, tavily).unwrap()["answer"], "yes");
    let own = "{provider: Json, url: 'https://j.example/{{query}}', results: {list: d.items, title: name, url: link, snippet: t.x}}";
    let body = r#"{"d": {"items": [{"name": "N", "link": "https://n.example", "t": {"x": "S"}}]}}"#;
    assert_eq!(respond(own, 200, body).unwrap()["results"][0]["snippet"], "S");
}

#[test]
fn responses_without_results_are_errors() {
    let check = |status, body: &str, reason, message: &str| {
        let error = respond("{provider: Tavily}", status, body).unwrap_err();
        assert_eq!((error.reason(), error.to_string().as_str()), (reason, message));
    };
    check(401, "", Reason::UpstreamRefused, "the search engine responded with 401");
    check(429, "", Reason::UpstreamRateLimited, "the search engine responded with 429");
    check(200, "<html>", Reason::ResponseInvalid, "the search engine: has not responded with JSON");
    check(200, "{}", Reason::ResponseInvalid, "the search engine: its response has no list of results");
    let redirect = "Redirect blocked for POST https://api.tavily.com/search (302) (REDIRECT_BLOCKED)";
    check(302, "", Reason::RedirectNotAllowed, redirect);
    let large = "x".repeat(1_024_001);
    check(
        200,
        &large,
        Reason::ResponseInvalid,
        "the search engine: has responded with more than 1024000 bytes",
    );
    let error = render(&provider("{provider: Brave}"), &json!({"query": " "}), None).unwrap_err();
    assert_eq!(error.to_string(), "Missing required field: query");
}
