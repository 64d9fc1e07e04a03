//! The next hop by status, method and target.

use http::HeaderValue;
use skillet_protocol::HostRule;

use super::*;
use crate::RunPolicy;

fn rules() -> Vec<HostRule> {
    let rule = |name: &str, ports: &[u16]| HostRule { name: name.into(), ports: ports.into() };
    vec![rule("a.example", &[80, 443, 8080]), rule("b.example", &[80, 443])]
}

fn hop(method: &Method, url: &str) -> Hop {
    let mut headers = HeaderMap::new();
    for name in
        ["authorization", "cookie", "x-api-key", "accept", "content-type", "content-language", "user-agent"]
    {
        headers.insert(name, HeaderValue::from_static("v"));
    }
    Hop { method: method.clone(), url: Url::parse(url).unwrap(), headers, has_body: true }
}

fn redirect(hop: &Hop, status: u16, location: &str, others: &[HostRule]) -> Result<Hop, Refused> {
    let policy = Policy::new(&RunPolicy { hosts: rules(), ..RunPolicy::default() }).unwrap();
    let others = HostRules::new(others).unwrap();
    next(hop, StatusCode::from_u16(status).unwrap(), location.as_bytes(), &policy, &others)
}

#[test]
fn method_and_body_change_as_in_browsers() {
    for (status, method, expected) in [
        (301, Method::POST, Method::GET),
        (302, Method::POST, Method::GET),
        (303, Method::POST, Method::GET),
        (303, Method::PUT, Method::GET),
        (303, Method::HEAD, Method::HEAD),
        (301, Method::PUT, Method::PUT),
        (302, Method::DELETE, Method::DELETE),
        (307, Method::POST, Method::POST),
        (308, Method::POST, Method::POST),
        (302, Method::GET, Method::GET),
    ] {
        let next = redirect(&hop(&method, "https://a.example/x/y?q=1"), status, "../z#part", &[]).unwrap();
        assert_eq!(next.url.as_str(), "https://a.example/z");
        assert_eq!((&next.method, next.has_body), (&expected, method == expected), "{status} {method}");
        assert_eq!(next.headers.contains_key("content-type"), method == expected, "{status} {method}");
        assert!(next.headers.contains_key("authorization"));
    }
}

#[test]
fn another_origin_gets_no_headers_of_the_caller() {
    for (from, to, keeps) in [
        ("https://a.example/", "https://a.example/next", true),
        ("https://a.example/", "https://A.EXAMPLE.:443/next", true),
        ("http://a.example/", "https://a.example/", true),
        ("https://a.example/", "https://b.example/", false),
        ("https://a.example/", "https://a.example:8080/", false),
        ("http://a.example:8080/", "https://a.example/", false),
    ] {
        let next = redirect(&hop(&Method::GET, from), 307, to, &rules()).unwrap();
        let mut names: Vec<&str> = next.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let safe = ["accept", "content-type", "user-agent"];
        assert_eq!(names == safe, !keeps, "{from} {to}: {names:?}");
        assert_eq!(next.headers.contains_key("authorization"), keeps, "{from} {to}");
    }
}

#[test]
fn targets_are_refused_for_their_reason() {
    for (location, others, verdict, said) in [
        ("http://a.example/", rules(), None, "from https to http"),
        ("ftp://a.example/", rules(), None, "neither http nor https"),
        ("file:///etc/passwd", rules(), None, "neither http nor https"),
        ("https://u@a.example/", rules(), None, "user name"),
        ("https://", rules(), None, "no URL"),
        ("https://a.example:99999/", rules(), None, "no URL"),
        ("https://a.example%00.b.example/", rules(), None, "no URL"),
        ("https://c.example/", rules(), Some(Verdict::HostNotAllowed), "policy"),
        ("https://b.example:22/", rules(), Some(Verdict::PortNotAllowed), "policy"),
        ("https://127.0.0.1/", rules(), Some(Verdict::HostNotAllowed), "policy"),
        ("https://[::ffff:127.0.0.1]/", rules(), Some(Verdict::HostNotAllowed), "policy"),
        ("https://0x7f000001/", rules(), Some(Verdict::HostNotAllowed), "policy"),
        ("//metadata/", rules(), Some(Verdict::HostNotAllowed), "policy"),
        ("\\\\c.example\\", rules(), Some(Verdict::HostNotAllowed), "policy"),
        ("https://b.example/", Vec::new(), Some(Verdict::HostNotAllowed), "may not be redirected"),
        ("https://a.example:8080/", Vec::new(), Some(Verdict::HostNotAllowed), "may not be redirected"),
        (
            "https://b.example/",
            vec![HostRule { name: "b.example".into(), ports: vec![80] }],
            Some(Verdict::PortNotAllowed),
            "may not be redirected",
        ),
    ] {
        let refused = redirect(&hop(&Method::GET, "https://a.example/"), 302, location, &others).unwrap_err();
        assert_eq!(refused.verdict, verdict, "{location}");
        assert!(refused.message.contains(said), "{location}: {}", refused.message);
    }
}

#[test]
fn only_the_five_statuses_with_a_location_redirect() {
    let mut headers = HeaderMap::new();
    assert_eq!(location(StatusCode::FOUND, &headers), None);
    headers.insert("location", HeaderValue::from_static("/next"));
    for status in [301, 302, 303, 307, 308] {
        assert_eq!(
            location(StatusCode::from_u16(status).unwrap(), &headers),
            Some(&b"/next"[..]),
            "{status}"
        );
    }
    for status in [200, 201, 300, 304, 305, 306, 400] {
        assert_eq!(location(StatusCode::from_u16(status).unwrap(), &headers), None, "{status}");
    }
}
