//! Responses as outputs, and the reason of each that is none.

use skillet_api::http::Http;

use super::*;

fn program(fields: &str) -> HttpProgram {
    let http: Http = serde_saphyr::from_str(&format!("{{url: 'https://up.example/', {fields}}}")).unwrap();
    HttpProgram::read(&http, None).unwrap()
}

fn response<'a>(status: u16, content_type: &'a str, body: &'a str) -> HttpResponse<'a> {
    let content_type = (!content_type.is_empty()).then_some(content_type);
    HttpResponse { status, content_type, location: None, body: body.as_bytes(), is_truncated: false }
}

fn check(fields: &str, content_type: &str, body: &str, expected: &Value) {
    let read = program(fields).read_response(&response(200, content_type, body));
    assert_eq!(read.as_ref(), Ok(expected), "{fields} {content_type} {body}");
}

fn check_error(fields: &str, given: &HttpResponse<'_>, reason: Reason, expected: &str) {
    let error = program(fields).read_response(given).unwrap_err();
    assert_eq!(error.reason, reason, "{error:?}");
    assert!(error.message.contains(expected), "{}", error.message);
    assert!(!error.message.contains('\n') && error.message.len() < 700, "{}", error.message);
}

const JSON: &str = "application/json; charset=utf-8";

#[test]
fn json_is_the_output_as_a_programs_would_be() {
    check("", JSON, r#" {"a": 1} "#, &json!({"a": 1}));
    check("", "application/problem+json", "[1, 2]", &json!([1, 2]));
    check("", JSON, "5", &json!({"value": 5}));
    check("", JSON, "\"x\"", &json!({"value": "x"}));
    check("", JSON, "null", &json!({"value": null}));
    check("", "", r#"{"a": 1}"#, &json!({"a": 1}));
    check("responseFormat: Json", "text/html", "[1]", &json!([1]));
    check("", JSON, "\u{feff}{}", &json!({}));
}

#[test]
fn text_is_wrapped_in_output() {
    check("", "text/plain", " hello \n", &json!({"output": "hello"}));
    check("", "text/plain", "{\"a\": 1}", &json!({"output": "{\"a\": 1}"}));
    check("", "", "hello", &json!({"output": "hello"}));
    check("responseFormat: Text", JSON, "{\"a\": 1}", &json!({"output": "{\"a\": 1}"}));
    check("", "application/yaml", "a: 1", &json!({"output": "a: 1"}));
    check("", "image/svg+xml", "<svg/>", &json!({"output": "<svg/>"}));
    let latin = HttpResponse { body: b"caf\xe9", ..response(200, "text/plain; charset=ISO-8859-1", "") };
    assert_eq!(program("").read_response(&latin), Ok(json!({"output": "caf\u{e9}"})));
}

#[test]
fn a_response_without_a_body_is_its_status() {
    let nothing = response(204, "", "");
    assert_eq!(program("responseMapping: {o: $.a}").read_response(&nothing), Ok(json!({"status": 204})));
    assert_eq!(program("method: HEAD").read_response(&response(200, JSON, "")), Ok(json!({"status": 200})));
    check("", "", "", &json!({"output": ""}));
    check_error("", &response(200, JSON, ""), Reason::ResponseInvalid, "is no JSON");
}

#[test]
fn a_response_of_another_form_is_refused() {
    check_error(
        "",
        &response(200, JSON, "<html>\n x"),
        Reason::ResponseInvalid,
        "it begins with \"<html> x\"",
    );
    check_error(
        "responseFormat: Json",
        &response(200, "text/html", "x"),
        Reason::ResponseInvalid,
        "(text/html)",
    );
    check_error(
        "responseMapping: {o: $.a}",
        &response(200, "text/plain", "x"),
        Reason::ResponseInvalid,
        "no JSON",
    );
    let image = HttpResponse { body: b"\x89PNG\xff", ..response(200, "image/png", "") };
    check_error("", &image, Reason::ResponseInvalid, "is image/png, which is no text");
    let cut = HttpResponse { is_truncated: true, ..response(200, JSON, "[1]") };
    check_error("", &cut, Reason::OutputTooLarge, "longer than the 3 bytes");
    check_error("", &response(199, JSON, ""), Reason::ResponseInvalid, "no final status");
}

#[test]
fn fields_are_mapped_and_those_without_a_value_left_out() {
    let fields = "responseMapping: {name: '$.data[0].name', count: data.length, no: $.x.y, nil: $.n}";
    check(
        fields,
        JSON,
        r#"{"data": [{"name": "a"}], "n": null}"#,
        &json!({"name": "a", "count": 1, "nil": null}),
    );
    check(fields, "", "[]", &json!({}));
    check("responseMapping: {o: $}", JSON, "7", &json!({"o": 7}));
}

#[test]
fn numbers_are_exact_or_refused() {
    let big = r#"{"id": 12345678901234567890, "name": "a", "twice": 1, "twice": 2, "half": 0.5}"#;
    check_error(
        "",
        &response(200, JSON, big),
        Reason::ResponseInvalid,
        "the integer 12345678901234567890 has more",
    );
    check("responseMapping: {o: $.name, h: $.half}", JSON, big, &json!({"o": "a", "h": 0.5}));
    let fields = "responseMapping: {o: $.id}";
    check_error(fields, &response(200, JSON, big), Reason::ResponseInvalid, "field o of responseMapping");
    check("", JSON, "{\"a\": 9007199254740993}", &json!({"a": 9_007_199_254_740_993_i64}));
}

#[test]
fn a_status_that_is_no_success_has_its_reason() {
    for (status, reason, expected) in [
        (301, Reason::RedirectNotAllowed, "responded with 301, a redirect; set spec.run.http.redirects"),
        (304, Reason::RedirectNotAllowed, "304"),
        (400, Reason::UpstreamRefused, "up.example refused the request with 400: why"),
        (401, Reason::UpstreamRefused, "401: why"),
        (404, Reason::UpstreamNotFound, "404 Not Found: why"),
        (429, Reason::UpstreamRateLimited, "429 Too Many Requests; try again later: why"),
        (500, Reason::UpstreamFailed, "up.example failed with 500: why"),
        (599, Reason::UpstreamFailed, "599: why"),
    ] {
        check_error("", &response(status, "text/plain", "why"), reason, expected);
    }
    let moved = HttpResponse { location: Some("https://b.c/\nx"), ..response(302, "", "") };
    check_error("", &moved, Reason::RedirectNotAllowed, "a redirect to https://b.c/ x; set");
}

#[test]
fn the_hosts_own_words_are_one_short_line() {
    let detail = |kind: &str, body: &str| {
        let message = program("").read_response(&response(400, kind, body)).unwrap_err().message;
        message
            .strip_prefix("up.example refused the request with 400")
            .unwrap()
            .trim_start_matches(": ")
            .to_owned()
    };
    assert_eq!(detail(JSON, r#"{"detail": "bad q", "message": "m", "error": "e"}"#), "bad q");
    assert_eq!(detail(JSON, r#"{"detail": "", "message": "m", "error": "e"}"#), "m");
    assert_eq!(detail(JSON, r#"{"error": {"code": 5}}"#), r#"{"code":5}"#);
    assert_eq!(detail(JSON, r#"{"other": 1}"#), r#"{"other": 1}"#);
    assert_eq!(detail("text/plain", "nope"), "nope");
    assert_eq!(detail("text/plain", "a\r\n\tb\u{0}c"), "a b c");
    assert_eq!(detail("text/html", "<html>x"), "an HTML page");
    assert_eq!(detail("", ""), "");
    let long = detail("", &"é".repeat(1000));
    assert!(long.len() <= MAX_DETAIL + 3 && long.ends_with("..."), "{}", long.len());
}
