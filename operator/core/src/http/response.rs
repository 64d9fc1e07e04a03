//! Reads the response to an HTTP skill: an output, or the reason why it is none.
//!
//! A message holds the status and a short piece of the body. Those who show it mask the values of Secrets first, since a host
//! may send back what it got.

use serde_json::{Map, Value, json, value::RawValue};
use skillet_api::{
    Reason,
    http::{HttpMethod, ResponseFormat},
};

use super::{HttpProgram, ResponseError};
use crate::{
    exact_json::find_inexact,
    output::interpret,
    text::{trim, truncate},
};

/// Most bytes of a body in a message.
const MAX_DETAIL: usize = 300;

/// A response, with as much of its body as was read.
#[derive(Clone, Copy, Debug)]
pub struct HttpResponse<'a> {
    pub status: u16,
    /// The header `Content-Type`.
    pub content_type: Option<&'a str>,
    /// The header `Location`.
    pub location: Option<&'a str>,
    pub body: &'a [u8],
    /// True if the body is longer than what was read.
    pub is_truncated: bool,
}

/// Form of a body, by the skill and by the content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    /// JSON if it is some, else text.
    Either,
    Text,
    Binary,
}

impl HttpProgram {
    /// Returns the output: JSON as a program's output, or the mapped fields of it, or `{"output": TEXT}`.
    pub fn read_response(&self, response: &HttpResponse<'_>) -> Result<Value, ResponseError> {
        if let Some(error) = self.status_error(response) {
            return Err(error);
        }
        let has_no_body = self.method == HttpMethod::Head || matches!(response.status, 204 | 205);
        if has_no_body && response.body.is_empty() {
            return Ok(json!({ "status": response.status }));
        }
        let text = decoded(response);
        let wants_json = !self.mapping.is_empty();
        match form(self.format, response.content_type) {
            Form::Json => self.read_json(response, &text),
            _ if wants_json => self.read_json(response, &text),
            Form::Either if serde_json::from_str::<&RawValue>(trim(&text)).is_ok() => {
                self.read_json(response, &text)
            }
            Form::Text | Form::Either => Ok(interpret(text.as_bytes(), true)),
            Form::Binary if std::str::from_utf8(response.body).is_ok() => {
                Ok(interpret(text.as_bytes(), true))
            }
            Form::Binary => Err(invalid(format!(
                "the response is {}, which is no text, so it cannot be an output",
                one_line(response.content_type.unwrap_or_default())
            ))),
        }
    }

    fn status_error(&self, response: &HttpResponse<'_>) -> Option<ResponseError> {
        let status = response.status;
        let detail = detail(response);
        let host = &self.url.host;
        let said = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        let (reason, message) = match status {
            200..=299 => return None,
            300..=399 => {
                let to = response.location.map_or_else(String::new, |to| format!(" to {}", one_line(to)));
                let fix = "set spec.run.http.redirects, and name its host in spec.network.hosts, or write the new URL";
                (Reason::RedirectNotAllowed, format!("{host} responded with {status}, a redirect{to}; {fix}"))
            }
            404 => (Reason::UpstreamNotFound, format!("{host} responded with 404 Not Found{said}")),
            429 => (
                Reason::UpstreamRateLimited,
                format!("{host} responded with 429 Too Many Requests; try again later{said}"),
            ),
            400..=499 => (Reason::UpstreamRefused, format!("{host} refused the request with {status}{said}")),
            _ if status >= 500 => (Reason::UpstreamFailed, format!("{host} failed with {status}{said}")),
            _ => {
                (Reason::ResponseInvalid, format!("{host} responded with {status}, which is no final status"))
            }
        };
        Some(ResponseError::new(reason, message))
    }

    fn read_json(&self, response: &HttpResponse<'_>, text: &str) -> Result<Value, ResponseError> {
        let text = trim(text);
        if response.is_truncated {
            let message =
                format!("the response is longer than the {} bytes that are read", response.body.len());
            return Err(ResponseError::new(Reason::OutputTooLarge, message));
        }
        let value: Value = serde_json::from_str(text).map_err(|error| {
            let kind = response.content_type.map_or_else(String::new, |kind| format!(" ({})", one_line(kind)));
            let start = one_line(truncate(text, 80).0);
            invalid(format!(
                "the response{kind} is no JSON: {error}; it begins with {start:?}; responseFormat: Text takes it as a text"
            ))
        })?;
        let inexact = find_inexact(text);
        if self.mapping.is_empty() {
            return match inexact {
                Some(found) => Err(invalid(format!(
                    "the response would be changed in Kubernetes: {found}; map other fields with responseMapping, or take the text with responseFormat: Text"
                ))),
                None if value.is_object() || value.is_array() => Ok(value),
                None => Ok(json!({ "value": value })),
            };
        }
        if inexact.is_none() {
            let found =
                self.mapping.iter().filter_map(|(name, path)| Some((name.clone(), path.find(&value)?)));
            return Ok(Value::Object(found.collect()));
        }
        self.map_text(text)
    }

    /// Maps a response that would be changed as a whole. The mapped fields must be exact.
    fn map_text(&self, text: &str) -> Result<Value, ResponseError> {
        let document: &RawValue = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
        let mut fields = Map::new();
        for (name, path) in &self.mapping {
            let Some(found) = path.find_text(document) else { continue };
            if let Some(inexact) = find_inexact(&found) {
                return Err(invalid(format!(
                    "field {name} of responseMapping would be changed in Kubernetes: {inexact}"
                )));
            }
            let value = serde_json::from_str(&found).map_err(|error| invalid(error.to_string()))?;
            fields.insert(name.clone(), value);
        }
        Ok(Value::Object(fields))
    }
}

fn invalid(message: impl Into<String>) -> ResponseError {
    ResponseError::new(Reason::ResponseInvalid, message)
}

fn form(format: ResponseFormat, content_type: Option<&str>) -> Form {
    match format {
        ResponseFormat::Json => return Form::Json,
        ResponseFormat::Text => return Form::Text,
        ResponseFormat::Auto => {}
    }
    let Some(content_type) = content_type else { return Form::Either };
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/json" | "text/json" => Form::Json,
        _ if kind.ends_with("+json") => Form::Json,
        "" => Form::Either,
        _ if kind.starts_with("text/") || kind.ends_with("+xml") => Form::Text,
        _ => Form::Binary,
    }
}

/// Returns the body as text: UTF-8, or Latin-1 if the content type says so.
fn decoded(response: &HttpResponse<'_>) -> String {
    let kind = response.content_type.unwrap_or_default().to_ascii_lowercase();
    if kind.contains("charset=iso-8859-1") || kind.contains("charset=\"iso-8859-1\"") {
        return response.body.iter().map(|byte| char::from(*byte)).collect();
    }
    String::from_utf8_lossy(response.body).into_owned()
}

/// Returns what the host says of an error: the text of `detail`, `message` or `error` in JSON, else the body. A page in HTML
/// says nothing to a reader of one line.
fn detail(response: &HttpResponse<'_>) -> String {
    let text = decoded(response);
    let text = trim(&text);
    let kind = response.content_type.unwrap_or_default().to_ascii_lowercase();
    if kind.contains("text/html") {
        return "an HTML page".to_owned();
    }
    let Ok(Value::Object(fields)) = serde_json::from_str(text) else { return one_line(text) };
    let is_said = |value: &&Value| !matches!(value, Value::Null | Value::Bool(false)) && **value != json!("");
    let words = ["detail", "message", "error"].iter().find_map(|name| fields.get(*name).filter(is_said));
    match words {
        Some(Value::String(words)) => one_line(words),
        Some(other) => one_line(&other.to_string()),
        None => one_line(text),
    }
}

fn one_line(text: &str) -> String {
    let (text, is_cut) = truncate(text, MAX_DETAIL);
    let words: Vec<&str> = text.split(|c: char| c.is_control() || c.is_whitespace()).collect();
    let line = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if is_cut { line + "..." } else { line }
}

#[cfg(test)]
mod tests;
