//! `http_request`: one request as the input says, and its response as it came.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skillet_api::http::HttpMethod;

use super::{
    BuiltinCall, BuiltinError, CallKind, Response,
    arguments::{scalar_text, text},
    headers, max_body_bytes, timeout,
    url_guard::check_url,
};
use crate::{http::RenderedRequest, output::text_head};

const METHODS: [HttpMethod; 6] = [
    HttpMethod::Get,
    HttpMethod::Head,
    HttpMethod::Post,
    HttpMethod::Put,
    HttpMethod::Patch,
    HttpMethod::Delete,
];

pub(super) fn render(input: &Value) -> Result<BuiltinCall, BuiltinError> {
    let url = text(input, "url").ok_or_else(|| BuiltinError::input("Missing required field: url"))?;
    let method = method(input.get("method"))?;
    let url = check_url(url)?.to_string();
    let mut sent = headers::filter(input.get("headers"))?;
    headers::check(&sent)?;
    let body = if method.is_safe() { None } else { body(input.get("body")) };
    let is_json = matches!(input.get("body"), Some(Value::Object(_) | Value::Array(_)));
    if body.is_some() && is_json && !sent.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        sent.push(("Content-Type".to_owned(), "application/json".to_owned()));
    }
    Ok(BuiltinCall {
        request: RenderedRequest { method, url, headers: sent, body },
        timeout: timeout(input),
        max_body_bytes: max_body_bytes(input),
        kind: CallKind::HttpRequest,
    })
}

fn method(value: Option<&Value>) -> Result<HttpMethod, BuiltinError> {
    let word = match value {
        None | Some(Value::Null) => return Ok(HttpMethod::Get),
        Some(Value::String(word)) => word.trim(),
        Some(_) => "",
    };
    METHODS.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(word)).ok_or_else(|| {
        BuiltinError::input(format!("method: must be GET, HEAD, POST, PUT, PATCH or DELETE, not {word:?}"))
    })
}

fn body(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::Null => None,
        scalar @ (Value::String(_) | Value::Number(_) | Value::Bool(_)) => scalar_text(scalar),
        json @ (Value::Object(_) | Value::Array(_)) => Some(json.to_string()),
    }
}

pub(super) fn read(call: &BuiltinCall, response: Response<'_>, context: &str) -> Result<Value, BuiltinError> {
    let Response { status, headers, body } = response;
    if (300..400).contains(&status) {
        return Err(call.redirect_error(status));
    }
    let RenderedRequest { method, url, .. } = &call.request;
    let body = if *method == HttpMethod::Head { &[] } else { body };
    Ok(json!({
        "success": (200..300).contains(&status),
        "url": url,
        "method": method.as_str(),
        "status": status,
        // HTTP/2 has no text beside the number.
        "statusText": "",
        "headers": joined(headers),
        "body": text_head(body, call.max_body_bytes),
        "truncated": body.len() > call.max_body_bytes,
        "context": context,
    }))
}

/// Returns the headers by their names in lower case, several values of one name with a comma between.
fn joined(headers: &[(String, String)]) -> BTreeMap<String, String> {
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        joined
            .entry(name.to_ascii_lowercase())
            .and_modify(|values| {
                values.push_str(", ");
                values.push_str(value);
            })
            .or_insert_with(|| value.clone());
    }
    joined
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use skillet_api::Reason;

    use super::{super::Step, *};

    fn request(input: &Value) -> RenderedRequest {
        render(input).unwrap().request
    }

    fn error(input: &Value) -> (Reason, String) {
        let error = render(input).unwrap_err();
        (error.reason(), error.to_string())
    }

    #[test]
    fn a_url_alone_is_a_get_without_headers() {
        let call = render(&json!({"url": "https://example.com", "body": "x"})).unwrap();
        let RenderedRequest { method, url, headers, body } = call.request;
        assert_eq!(
            (method, url.as_str(), headers.len(), body),
            (HttpMethod::Get, "https://example.com/", 0, None)
        );
        assert_eq!((call.timeout, call.max_body_bytes), (Duration::from_secs(10), 256_000));
    }

    #[test]
    fn an_object_is_sent_as_json_under_its_content_type() {
        let post = |body: Value, headers: Value| {
            let RenderedRequest { headers, body, .. } =
                request(&json!({"url": "https://a.b/", "method": "post", "headers": headers, "body": body}));
            (headers.into_iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>(), body)
        };
        let json_type = vec!["Content-Type: application/json".to_owned()];
        assert_eq!(post(json!({"a": 1}), json!({})), (json_type.clone(), Some(r#"{"a":1}"#.into())));
        assert_eq!(post(json!([1]), json!(null)), (json_type, Some("[1]".into())));
        let own = json!({"content-type": "a/b"});
        assert_eq!(post(json!({}), own), (vec!["content-type: a/b".to_owned()], Some("{}".into())));
        assert_eq!(post(json!("raw"), json!({})), (Vec::new(), Some("raw".into())));
        assert_eq!(post(json!(5), json!({})), (Vec::new(), Some("5".into())));
        assert_eq!(post(json!(null), json!({})), (Vec::new(), None));
    }

    #[test]
    fn limits_are_capped() {
        let call =
            render(&json!({"url": "https://a.b/", "timeoutMs": 90_000, "maxBytes": 1_000_000})).unwrap();
        assert_eq!((call.timeout, call.max_body_bytes), (Duration::from_mins(1), 256_000));
        let call = render(&json!({"url": "https://a.b/", "timeoutMs": "500", "maxBytes": 3})).unwrap();
        assert_eq!((call.timeout, call.max_body_bytes), (Duration::from_millis(500), 3));
    }

    #[test]
    fn inputs_that_are_no_request_are_refused() {
        for url in [json!(null), json!(5), json!(" ")] {
            let refused = error(&json!({"url": url}));
            assert_eq!(refused, (Reason::InputInvalid, "Missing required field: url".into()));
        }
        let (reason, message) = error(&json!({"url": "https://a.b/", "method": "TRACE"}));
        assert_eq!(reason, Reason::InputInvalid);
        assert_eq!(message, r#"method: must be GET, HEAD, POST, PUT, PATCH or DELETE, not "TRACE""#);
        let (reason, message) = error(&json!({"url": "http://127.0.0.1:9000"}));
        assert_eq!(reason, Reason::AddressNotAllowed);
        assert_eq!(message, "the URL names a private or local host (URL_GUARD_BLOCKED)");
        let (reason, message) = error(&json!({"url": "ftp://a.b/"}));
        assert_eq!(reason, Reason::InputInvalid);
        assert_eq!(message, "the URL needs the scheme https or http (INVALID_URL)");
        let (_, message) = error(&json!({"url": "https://a.b/", "headers": {"a b": 1}}));
        assert_eq!(message, r#"headers: "a b" is not the name of a header"#);
    }

    fn response(
        input: &Value,
        status: u16,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Value, BuiltinError> {
        let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let response = Response { status, headers: &headers, body };
        match render(input)?.read_response(response, "caller")? {
            Step::Output(output) => Ok(output),
            Step::Request(call) => unreachable!("http_request follows no redirect: {call:?}"),
        }
    }

    #[test]
    fn a_response_is_the_output_whatever_its_status() {
        let input = json!({"url": "https://a.b/", "maxBytes": 3});
        let headers = [("Content-Type", "text/plain"), ("set-cookie", "a"), ("Set-Cookie", "b")];
        let expected = json!({
            "success": false, "url": "https://a.b/", "method": "GET", "status": 404, "statusText": "",
            "headers": {"content-type": "text/plain", "set-cookie": "a, b"},
            "body": "abc", "truncated": true, "context": "caller",
        });
        assert_eq!(response(&input, 404, &headers, b"abcd").unwrap(), expected);
        let whole = response(&input, 204, &[], b"abc").unwrap();
        assert_eq!((&whole["truncated"], &whole["success"]), (&json!(false), &json!(true)));
        let cut = response(&input, 200, &[], "aéé".as_bytes()).unwrap();
        assert_eq!((&cut["body"], &cut["truncated"]), (&json!("aé"), &json!(true)));
        let head = json!({"url": "https://a.b/", "method": "HEAD"});
        let head = response(&head, 200, &[], b"zzz").unwrap();
        assert_eq!((&head["body"], &head["truncated"]), (&json!(""), &json!(false)));
    }

    #[test]
    fn redirects_are_errors() {
        for status in [301, 302, 304, 308] {
            let error = response(&json!({"url": "https://a.b/"}), status, &[], b"").unwrap_err();
            let message = format!("Redirect blocked for GET https://a.b/ ({status}) (REDIRECT_BLOCKED)");
            assert_eq!((error.reason(), error.to_string()), (Reason::RedirectNotAllowed, message));
        }
    }
}
