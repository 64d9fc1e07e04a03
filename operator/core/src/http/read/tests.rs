//! Specs that are refused, with the field and the fix.

use super::*;

fn problems(http: &str, network: &str) -> Vec<String> {
    let http: Http = serde_saphyr::from_str(http).unwrap();
    let network: Option<Network> = serde_saphyr::from_str(network).unwrap();
    match HttpProgram::read(&http, network.as_ref()) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(|it| format!("{}: {}", it.field, it.message)).collect(),
    }
}

/// Checks the beginning and a part of the one problem.
fn check(http: &str, field: &str, expected: &str) {
    let found = problems(http, "null");
    assert_eq!(found.len(), 1, "{http}: {found:?}");
    let field = format!("spec.run.http.{field}: ");
    assert!(found[0].starts_with(&field) && found[0].contains(expected), "{http}: {}", found[0]);
}

#[test]
fn a_request_is_read_with_defaults() {
    let http: Http = serde_saphyr::from_str("url: https://up.example/").unwrap();
    let program = HttpProgram::read(&http, None).unwrap();
    assert_eq!((program.method().as_str(), program.redirects()), ("POST", 0));
    assert_eq!((program.host().name.as_str(), program.host().ports), ("up.example", vec![443]));
    assert!(program.append_inputs && program.secrets().is_empty());
}

#[test]
fn mistakes_are_found_with_their_field_and_fix() {
    for (http, field, expected) in [
        ("{url: 'ftp://a.b/'}", "url", "must begin with https://"),
        ("{url: 'http://a.b/'}", "url", "has no TLS; write https://, or name the port"),
        ("{url: 'https://a.b/../c'}", "url", "has the segment \"..\""),
        ("{url: 'https://a.b/{{ x }}'}", "url", "is no placeholder"),
        ("{url: 'https://a.b/', headers: {X-Key: '{{ x'}}", "headers[\"X-Key\"]", "is no placeholder"),
        ("{url: 'https://a.b/', headers: {'X Key': x}}", "headers[\"X Key\"]", "is no name of a header"),
        ("{url: 'https://a.b/', headers: {Host: x}}", "headers[\"Host\"]", "is set by the client"),
        (
            "{url: 'https://a.b/', headers: {Transfer-Encoding: x}}",
            "headers[\"Transfer-Encoding\"]",
            "is set by the client",
        ),
        ("{url: 'https://a.b/', headers: {X: \"a\\nb\"}}", "headers[\"X\"]", "has a control character"),
        ("{url: 'https://a.b/', headers: {x-a: b, X-A: c}}", "headers[\"x-a\"]", "is named twice"),
        ("{url: 'https://a.b/', query: {q: '{{'}}", "query[\"q\"]", "is no placeholder"),
        ("{url: 'https://a.b/', method: GET, body: {a: 1}}", "body", "a GET request has none"),
        ("{url: 'https://a.b/', method: HEAD, body: a}", "body", "a HEAD request has none"),
        ("{url: 'https://a.b/', body: {a: ['{{ x }}']}}", "body[\"a\"][0]", "is no placeholder"),
        ("{url: 'https://a.b/', body: [], appendInputs: true}", "appendInputs", "that is an object"),
        ("{url: 'https://a.b/', responseMapping: {o: '$..c'}}", "responseMapping[\"o\"]", "at every depth"),
        (
            "{url: 'https://a.b/', responseMapping: {o: $.c}, responseFormat: Text}",
            "responseFormat",
            "is Text",
        ),
        ("{url: 'https://a.b/', responseMapping: {o: $.c}, method: HEAD}", "responseMapping", "no body"),
        ("{url: 'https://a.b/', redirects: 6}", "redirects", "at most 5"),
        ("{url: 'https://a.b/?k={{SECRETS.K}}'}", "url", "secrets has no K; add {name: K"),
        ("{url: 'https://a.b/', body: {a: '{{SECRETS.K}}'}}", "body", "secrets has no K"),
        ("{url: 'https://a.b/', secrets: [{name: 'a b', secret: s, key: k}]}", "secrets[0].name", "letters"),
    ] {
        check(http, field, expected);
    }
    let twice =
        "{url: 'https://a.b/', secrets: [{name: a, secret: s, key: k}, {name: a, secret: t, key: k}]}";
    check(twice, "secrets[1].name", "a is named twice");
}

#[test]
fn all_mistakes_are_found_at_once() {
    let http = "{url: 'ftp://a', headers: {Host: x}, body: '{{', responseMapping: {o: '*'}}";
    assert_eq!(problems(http, "null").len(), 4);
}

#[test]
fn the_host_of_the_url_is_among_the_hosts_of_the_skill() {
    let good = |url: &str, network: &str| {
        assert_eq!(problems(&format!("url: {url}"), network), Vec::<String>::new(), "{url} {network}");
    };
    good("https://api.a.b/", "null");
    good("https://api.a.b/", "hosts: [{name: api.a.b}]");
    good("https://api.a.b/", "hosts: [{name: '*.a.b'}, {name: c.d}]");
    good("http://api.a.b/", "hosts: [{name: api.a.b, ports: [80]}]");
    good("http://api.a.b:8080/", "hosts: [{name: '*.a.b'}, {name: api.a.b, ports: [8080]}]");
    let bad = |url: &str, network: &str, expected: &str| {
        let found = problems(&format!("url: {url}"), network);
        assert!(found.len() == 1 && found[0].contains(expected), "{url} {network}: {found:?}");
    };
    bad("https://a.b/", "hosts: [{name: '*.a.b'}]", "which spec.network.hosts does not; add it there");
    bad("https://a.b/", "hosts: [{name: c.d}]", "names the host a.b");
    bad("http://a.b/", "hosts: [{name: a.b}]", "asks for port 80 of a.b; add the port");
    bad("https://a.b:8443/", "hosts: [{name: a.b}]", "asks for port 8443");
}

#[test]
fn inputs_are_appended_unless_something_is_a_template() {
    for (http, expected) in [
        ("{url: 'https://a.b/'}", true),
        ("{url: 'https://a.b/{{x}}'}", false),
        ("{url: 'https://a.b/', headers: {X: '{{x}}'}}", false),
        ("{url: 'https://a.b/', query: {x: '{{x}}'}}", false),
        ("{url: 'https://a.b/', body: {a: 1}}", false),
        ("{url: 'https://a.b/', body: {a: 1}, appendInputs: true}", true),
        ("{url: 'https://a.b/{{x}}', appendInputs: true}", true),
        ("{url: 'https://a.b/', appendInputs: false}", false),
    ] {
        let http: Http = serde_saphyr::from_str(http).unwrap();
        assert_eq!(HttpProgram::read(&http, None).unwrap().append_inputs, expected, "{http:?}");
    }
}
