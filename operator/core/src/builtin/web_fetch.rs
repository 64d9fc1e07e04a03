//! `web_fetch`: the text of a page, with its title and links.

use serde_json::{Value, json};
use skillet_api::http::HttpMethod;
use url::Url;

use super::{
    BuiltinCall, BuiltinError, CallKind, Response, Step, arguments::text, header, max_body_bytes, page,
    timeout, url_guard::check_url,
};
use crate::{http::RenderedRequest, output::text_head, text::truncate};

/// Redirects that a fetch follows. Each hop passes the same checks as the first URL.
const MAX_REDIRECTS: u32 = 5;
/// Most bytes of the text.
const MAX_CONTENT: usize = 256_000;
const ACCEPT: &str = "text/html,application/xhtml+xml,text/plain;q=0.9,application/json;q=0.8,*/*;q=0.1";

/// The part of a fetch that its response needs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Page {
    form: Form,
    has_metadata: bool,
    redirects: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Markdown,
    Html,
}

pub(super) fn render(input: &Value) -> Result<BuiltinCall, BuiltinError> {
    let url = text(input, "url").ok_or_else(|| BuiltinError::input("Missing required field: url"))?;
    let form = match text(input, "format") {
        None | Some("markdown" | "text") => Form::Markdown,
        Some("html") => Form::Html,
        Some(other) => {
            let message = format!("format: must be markdown, text or html, not {other:?}");
            return Err(BuiltinError::input(message));
        }
    };
    let has_metadata = input.get("include_metadata").and_then(Value::as_bool).unwrap_or(true);
    Ok(BuiltinCall {
        request: get(&check_url(url)?),
        timeout: timeout(input),
        max_body_bytes: max_body_bytes(input),
        kind: CallKind::WebFetch(Page { form, has_metadata, redirects: 0 }),
    })
}

fn get(url: &Url) -> RenderedRequest {
    RenderedRequest {
        method: HttpMethod::Get,
        url: url.to_string(),
        headers: vec![("Accept".to_owned(), ACCEPT.to_owned())],
        body: None,
    }
}

pub(super) fn read(
    call: &BuiltinCall,
    page: &Page,
    response: Response<'_>,
    context: &str,
) -> Result<Step, BuiltinError> {
    let Response { status, headers, body } = response;
    if (300..400).contains(&status) {
        return follow(call, page, response).map(|call| Step::Request(Box::new(call)));
    }
    if !(200..300).contains(&status) {
        return Err(BuiltinError::of_status(status, &call.request.url));
    }
    let content_type = header(headers, "content-type").unwrap_or_default();
    let is_truncated = body.len() > call.max_body_bytes;
    let text = text_head(body, call.max_body_bytes);
    let read = if is_html(content_type, &text) {
        let url = check_url(&call.request.url)?;
        page::read(&text, &url)
    } else if is_text(content_type) {
        page::PageText { markdown: text.clone(), ..page::PageText::default() }
    } else {
        let message = format!("{} is no text but {content_type:?}", call.request.url);
        return Err(BuiltinError::without_code(skillet_api::Reason::ResponseInvalid, message));
    };
    let (kept, is_cut) = truncate(if page.form == Form::Html { &text } else { &read.markdown }, MAX_CONTENT);
    let metadata = json!({
        "title": read.title,
        "description": read.description,
        "language": read.language,
        "contentType": content_type,
        "status": status,
        "truncated": is_truncated || is_cut,
    });
    let links: Vec<Value> =
        read.links.iter().map(|(url, words)| json!({ "url": url, "text": words })).collect();
    Ok(Step::Output(json!({
        "success": true,
        "provider": "direct",
        "url": call.request.url,
        "content": kept,
        "links": links,
        "metadata": if page.has_metadata { metadata } else { Value::Null },
        "screenshot_url": null,
        "context": context,
    })))
}

/// Returns the call of the next hop.
fn follow(call: &BuiltinCall, page: &Page, response: Response<'_>) -> Result<BuiltinCall, BuiltinError> {
    let blocked = || call.redirect_error(response.status);
    if page.redirects >= MAX_REDIRECTS {
        return Err(blocked());
    }
    let location = header(response.headers, "location").ok_or_else(blocked)?;
    let base = check_url(&call.request.url)?;
    let next = base.join(location).map_err(|_| blocked())?;
    let next = check_url(next.as_str())?;
    Ok(BuiltinCall {
        request: get(&next),
        kind: CallKind::WebFetch(Page { redirects: page.redirects + 1, ..page.clone() }),
        ..call.clone()
    })
}

fn is_html(content_type: &str, text: &str) -> bool {
    let content_type = content_type.to_ascii_lowercase();
    let begin = text.trim_start().get(..5).unwrap_or_default().to_ascii_lowercase();
    content_type.starts_with("text/html")
        || content_type.starts_with("application/xhtml")
        || (content_type.is_empty() && (begin.starts_with("<!doc") || begin.starts_with("<html")))
}

fn is_text(content_type: &str) -> bool {
    let content_type = content_type.to_ascii_lowercase();
    content_type.is_empty()
        || content_type.starts_with("text/")
        || ["json", "xml", "yaml", "javascript", "csv", "markdown"]
            .iter()
            .any(|word| content_type.contains(word))
}

#[cfg(test)]
mod tests {
    use skillet_api::Reason;

    use super::*;

    fn respond(
        call: &BuiltinCall,
        status: u16,
        header: (&str, &str),
        body: &str,
    ) -> Result<Step, BuiltinError> {
        let headers = [(header.0.to_owned(), header.1.to_owned())];
        call.read_response(Response { status, headers: &headers, body: body.as_bytes() }, "caller")
    }

    fn fetch(input: &Value, content_type: &str, body: &str) -> Value {
        match respond(&render(input).unwrap(), 200, ("Content-Type", content_type), body).unwrap() {
            Step::Output(output) => output,
            Step::Request(call) => unreachable!("{call:?}"),
        }
    }

    #[test]
    fn a_page_is_read_as_markdown_with_its_title_and_links() {
        let html = "<title>T</title><h1>Hi</h1><a href=/x>x</a>";
        let output = fetch(&json!({"url": "https://a.example"}), "text/html; charset=utf-8", html);
        let expected = json!({
            "success": true, "provider": "direct", "url": "https://a.example/",
            "content": "# Hi\n\n[x](https://a.example/x)",
            "links": [{"url": "https://a.example/x", "text": "x"}],
            "metadata": {"title": "T", "description": "", "language": "",
                "contentType": "text/html; charset=utf-8", "status": 200, "truncated": false},
            "screenshot_url": null, "context": "caller",
        });
        assert_eq!(output, expected);
        let html_form = json!({"url": "https://a.example", "format": "html", "include_metadata": false});
        let output = fetch(&html_form, "text/html", html);
        assert_eq!((&output["content"], &output["metadata"]), (&json!(html), &json!(null)));
    }

    #[test]
    fn text_is_the_content_as_it_is() {
        let input = json!({"url": "https://a.example", "maxBytes": 4});
        let output = fetch(&input, "application/json", "{\"a\":1}");
        assert_eq!((&output["content"], &output["metadata"]["truncated"]), (&json!("{\"a\""), &json!(true)));
        let guessed = fetch(&json!({"url": "https://a.example"}), "", " <HTML><p>a<p>b");
        assert_eq!(guessed["content"], "a\n\nb");
    }

    #[test]
    fn redirects_are_followed_to_public_hosts_only() {
        let call = render(&json!({"url": "http://a.example/x"})).unwrap();
        let next = |call: &BuiltinCall, location: &str| -> Result<BuiltinCall, BuiltinError> {
            match respond(call, 301, ("location", location), "")? {
                Step::Request(next) => Ok(*next),
                Step::Output(output) => unreachable!("{output}"),
            }
        };
        let hop = next(&call, "https://b.example/y").unwrap();
        assert_eq!(hop.request.url, "https://b.example/y");
        assert_eq!(next(&call, "../z").unwrap().request.url, "http://a.example/z");
        let private = next(&call, "http://169.254.169.254/").unwrap_err();
        assert_eq!(private.reason(), Reason::AddressNotAllowed);
        let mut call = call;
        for _ in 0..5 {
            call = next(&call, "/again").unwrap();
        }
        assert_eq!(next(&call, "/again").unwrap_err().reason(), Reason::RedirectNotAllowed);
        let nowhere = respond(&call, 304, ("etag", "x"), "").unwrap_err();
        assert_eq!(
            nowhere.to_string(),
            "Redirect blocked for GET http://a.example/again (304) (REDIRECT_BLOCKED)"
        );
    }

    #[test]
    fn what_is_no_page_is_an_error() {
        let call = render(&json!({"url": "https://a.example"})).unwrap();
        let missing = respond(&call, 404, ("content-type", "text/html"), "").unwrap_err();
        assert_eq!(missing.reason(), Reason::UpstreamNotFound);
        let picture = respond(&call, 200, ("content-type", "image/png"), "").unwrap_err();
        assert_eq!(picture.to_string(), r#"https://a.example/ is no text but "image/png""#);
        assert_eq!(picture.reason(), Reason::ResponseInvalid);
        let error = render(&json!({"url": "https://a.example", "format": "pdf"})).unwrap_err();
        assert_eq!(error.to_string(), r#"format: must be markdown, text or html, not "pdf""#);
        assert_eq!(render(&json!({})).unwrap_err().to_string(), "Missing required field: url");
    }
}
