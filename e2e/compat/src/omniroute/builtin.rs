//! `http_request`, `http_request_sizes`, `header_filter`, `url_guard`: OmniRoute's built-in tools.
//!
//! Skillet has tools of the same names as handlers of Skills.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Map, Value, json};
use skillet_api::{Reason, http::HttpMethod};
use skillet_core::builtin::{
    BuiltinCall, BuiltinError, BuiltinProgram, Response, Step, check_url, is_public_address,
};
use url::{Host, Url};

use crate::{
    case::Case,
    judge::{Answer, Sense, mentions},
};

/// Caller of the reference's cases.
const CALLER: &str = "key-123";
/// Hosts that the reference's second mode refuses.
const METADATA_HOSTS: [&str; 4] =
    ["metadata.google.internal", "metadata.goog", "100.100.100.200", "[fd00:ec2::254]"];

pub(super) fn header_filter(case: &Case) -> Result<Answer, String> {
    let arguments = json!({ "url": "https://a.example/", "headers": case.input["headers"] });
    let value = match BuiltinProgram::HttpRequest.render(&arguments, None) {
        Ok(call) => json!({ "headers": object_or_null(&call.request.headers) }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    let sent = value["headers"].as_object().map_or(0, Map::len);
    let is_less = sent < case.expected["headers"].as_object().map_or(0, Map::len);
    let answer = Answer::exact(case, value);
    let asks = case.want.as_deref().is_some_and(|want| mentions(want, &["drop", "reject", "refuse"]));
    Ok(Answer { meets_want: if asks { Sense::of(is_less) } else { Sense::Unknown }, ..answer })
}

fn object_or_null(headers: &[(String, String)]) -> Value {
    if headers.is_empty() {
        return Value::Null;
    }
    headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
}

pub(super) fn url_guard(case: &Case) -> Result<Answer, String> {
    let url = case.text("url");
    let value = match case.text("mode") {
        "public-only" => public_only(url),
        "block-metadata" => block_metadata(url),
        other => return Err(format!("the mode {other} is not known")),
    };
    let is_ok = value["ok"] == json!(true);
    let answer = Answer::by_fields(case, value, &["ok", "code", "normalised"]);
    let want = case.want.as_deref().unwrap_or_default();
    let meets_want = if mentions(want, &["must be refused", "refuse", "block", "reject"]) {
        Sense::of(!is_ok)
    } else if mentions(want, &["accept", "allow", "pass"]) {
        Sense::of(is_ok)
    } else {
        Sense::Unknown
    };
    Ok(Answer { meets_want, ..answer })
}

/// The product's check of the URL, and of the addresses of the few names that the cases need to resolve.
fn public_only(text: &str) -> Value {
    match check_url(text) {
        Ok(url) if resolve(&url).is_none_or(is_public_address) => passed(&url),
        Ok(_) => blocked("the name resolves to an address that is not public"),
        Err(refusal) if refusal.is_invalid() => invalid(&refusal.to_string()),
        Err(refusal) => blocked(&refusal.to_string()),
    }
}

/// Stands in for DNS, which the broker asks: names that answer with loopback, or with the address in their text.
fn resolve(url: &Url) -> Option<IpAddr> {
    let Some(Host::Domain(name)) = url.host() else { return None };
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_under = |parent: &str| {
        name.strip_suffix(parent).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    if ["localtest.me", "lvh.me", "vcap.me", "lacolhost.com"].into_iter().any(is_under) {
        return Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let parent = ["nip.io", "sslip.io", "xip.io"].into_iter().find(|parent| is_under(parent))?;
    let before = name.strip_suffix(parent)?.trim_end_matches('.').replace('-', ".");
    let labels: Vec<&str> = before.split('.').collect();
    let last = labels.get(labels.len().checked_sub(4)?..)?.join(".");
    last.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

/// A mode of the reference that no skill of it uses, and that the product does not have.
fn block_metadata(text: &str) -> Value {
    let url = match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url,
        Ok(_) | Err(_) => return invalid("no URL of HTTP"),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return blocked("credentials");
    }
    let is_link_local = matches!(url.host(), Some(Host::Ipv4(address)) if address.is_link_local());
    if is_link_local || url.host_str().is_some_and(|host| METADATA_HOSTS.contains(&host)) {
        return blocked("a metadata service");
    }
    passed(&url)
}

fn passed(url: &Url) -> Value {
    json!({ "ok": true, "normalised": url.as_str() })
}

fn invalid(error: &str) -> Value {
    json!({ "ok": false, "code": "OUTBOUND_URL_INVALID", "error": error })
}

fn blocked(error: &str) -> Value {
    json!({ "ok": false, "code": "OUTBOUND_URL_GUARD_BLOCKED", "error": error })
}

pub(super) fn http_request(case: &Case) -> Result<Answer, String> {
    let rendered = BuiltinProgram::HttpRequest.render(&case.input["arguments"], None);
    let outbound = rendered.as_ref().map_or(Value::Null, outbound);
    let mut value = json!({ "outbound": outbound });
    match rendered.and_then(|call| respond(&call, &case.input["upstream"])) {
        Ok(result) => value["result"] = result,
        Err(error) => {
            value["error"] = json!(error.to_string());
            value["code"] = json!(error.code.map(skillet_core::builtin::Code::as_str));
        }
    }
    let has_type = value["outbound"]["headers"].get("Content-Type").is_some();
    let is_more = has_type && case.expected["outbound"]["headers"].is_null();
    let answer = Answer::by_fields(case, value, &["outbound", "result", "code"]);
    let asks = case.want.as_deref().is_some_and(|want| mentions(want, &["content-type"]));
    Ok(Answer {
        meets_want: if asks { Sense::of(has_type) } else { Sense::Unknown },
        difference: is_more.then(|| "a JSON body always has its content type".to_owned()),
        ..answer
    })
}

pub(super) fn http_request_sizes(case: &Case) -> Result<Answer, String> {
    let call = BuiltinProgram::HttpRequest.render(&case.input["arguments"], None);
    let result = call.and_then(|call| respond(&call, &case.input["upstream"]));
    let result = result.map_err(|error| error.to_string())?;
    let bytes = result["body"].as_str().map(str::len);
    let value = json!({ "bodyBytes": bytes, "truncated": result["truncated"] });
    Ok(Answer::by_fields(case, value, &["bodyBytes", "truncated"]))
}

fn outbound(call: &BuiltinCall) -> Value {
    json!({
        "url": call.request.url,
        "method": call.request.method.as_str(),
        "headers": object_or_null(&call.request.headers),
        "body": call.request.body,
        // The product follows no redirect of this tool.
        "redirect": "manual",
    })
}

fn respond(call: &BuiltinCall, upstream: &Value) -> Result<Value, BuiltinError> {
    let Some(status) = upstream["status"].as_u64().and_then(|status| u16::try_from(status).ok()) else {
        return Err(call.failure(Reason::ConnectFailed, "there is no upstream"));
    };
    let body = body(upstream);
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, value) in upstream["headers"].as_object().into_iter().flatten() {
        headers.push((name.clone(), value.as_str().unwrap_or_default().to_owned()));
    }
    // The type that the stand-in of the reference gives to a text.
    if body.is_some() && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        headers.push(("content-type".to_owned(), "text/plain;charset=UTF-8".to_owned()));
    }
    let body = body.unwrap_or_default();
    match call.read_response(Response { status, headers: &headers, body: body.as_bytes() }, CALLER)? {
        Step::Output(output) => Ok(output),
        Step::Request(next) => {
            debug_assert_eq!(next.request.method, HttpMethod::Get);
            Err(next.failure(Reason::RedirectNotAllowed, "the product would follow a redirect"))
        }
    }
}

/// Returns the text of the upstream, or a text of its size.
fn body(upstream: &Value) -> Option<String> {
    let size = || {
        let named = ["bodyBytes", "bodyLength", "bodySize", "size", "bytes", "length"];
        named.into_iter().find_map(|name| upstream[name].as_u64())
    };
    let text = upstream["body"].as_str().map(str::to_owned);
    text.or_else(|| usize::try_from(size()?).ok().map(|size| "x".repeat(size)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::replay_case;

    fn check(kind: &str, input: &Value, expected: &Value) {
        assert_eq!(replay_case(kind, "compat", None, input, expected), "passed", "{input}");
    }

    #[test]
    fn names_that_resolve_to_loopback_are_refused() {
        let want = Some("must be refused");
        for url in ["http://a.localtest.me/", "http://127.0.0.1.nip.io/", "http://app-10-0-0-1.sslip.io/"] {
            let input = json!({"url": url, "mode": "public-only"});
            let copied = json!({"ok": true, "normalised": url});
            assert_eq!(replay_case("url_guard", "defect", want, &input, &copied), "passed", "{url}");
        }
        let public = json!({"url": "http://8.8.8.8.nip.io/", "mode": "public-only"});
        check("url_guard", &public, &json!({"ok": true, "normalised": "http://8.8.8.8.nip.io/"}));
    }

    #[test]
    fn bodies_of_a_size_are_cut() {
        let input = json!({"arguments": {"url": "https://a.example/"}, "upstream": {"status": 200, "bodyBytes": 256_001}});
        check("http_request_sizes", &input, &json!({"bodyBytes": 256_000, "truncated": true}));
    }

    #[test]
    fn a_content_type_more_than_the_reference_is_an_intended_difference() {
        let input = json!({"arguments": {"url": "https://a.example/", "method": "POST", "body": {}}, "upstream": {"status": 200, "body": "ok"}});
        let expected = json!({"outbound": {"url": "https://a.example/", "method": "POST", "headers": null, "body": "{}", "redirect": "manual"}});
        let judged = replay_case("http_request", "compat", None, &input, &expected);
        assert!(judged.starts_with("a JSON body always has its content type"), "{judged}");
        let want = Some("send Content-Type: application/json");
        assert_eq!(replay_case("http_request", "defect", want, &input, &expected), "passed");
    }
}
