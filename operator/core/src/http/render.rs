//! Fills the templates of an HTTP skill with an input and the values of Secrets.
//!
//! Each value is put in its place once; what it holds is never read as a template. The messages of errors name inputs and
//! Secrets, and never their values.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::{Map, Value};
use skillet_api::Reason;

use super::{
    HttpProgram, RenderedRequest,
    encode::{form_encode, percent_encode, plain_text},
    filling::Filling,
    template::Placeholder,
    url::dot_segment,
};

/// Most bytes of a URL.
const MAX_URL: usize = 16 << 10;
/// Most bytes of the value of a header.
const MAX_HEADER: usize = 16 << 10;

/// A request with the Secrets that stand in it.
#[derive(Clone, PartialEq, Eq)]
pub struct SkillRequest {
    /// Its headers have the names that the skill writes, then the defaults. Values may have letters beyond ASCII, as UTF-8.
    pub request: RenderedRequest,
    /// Names of the Secrets that stand in the request.
    pub used_secrets: BTreeSet<String>,
    /// Each text as which a Secret stands in the request, for those who mask messages.
    pub secret_texts: BTreeSet<String>,
}

/// Leaves out everything that may hold the value of a Secret.
impl fmt::Debug for SkillRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, used_secrets, secret_texts: _ } = self;
        f.debug_struct("SkillRequest")
            .field("method", &request.method)
            .field("used_secrets", used_secrets)
            .finish_non_exhaustive()
    }
}

/// The reason why an input cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RenderError {
    pub reason: Reason,
    pub message: String,
    /// Names of the Secrets without a value.
    pub missing_secrets: Vec<String>,
}

impl RenderError {
    pub(super) fn input(message: impl Into<String>) -> Self {
        Self { reason: Reason::InputInvalid, message: message.into(), missing_secrets: Vec::new() }
    }
}

impl HttpProgram {
    /// Renders the request. `secrets` has the values by the names of `secrets()`; an empty value is none.
    pub fn render(
        &self,
        input: &Value,
        secrets: &BTreeMap<String, String>,
    ) -> Result<SkillRequest, RenderError> {
        let nothing = Map::new();
        let input = match input {
            Value::Object(map) => map,
            Value::Null => &nothing,
            _ => {
                return Err(RenderError::input(
                    "the input must be an object with a field for each parameter",
                ));
            }
        };
        self.check_secrets(secrets)?;
        let mut filling = Filling::new(input, secrets, self.missing_inputs);
        let mut url = self.url(&mut filling)?;
        let mut headers = self.rendered_headers(&mut filling)?;
        let mut body = self.body.as_ref().and_then(|body| filling.body(body).transpose()).transpose()?;
        if self.append_inputs {
            self.append(&filling, &mut url, &mut body);
        }
        if url.len() > MAX_URL {
            let message =
                format!("the URL has {} bytes with its inputs; at most {MAX_URL} are sent", url.len());
            return Err(RenderError::input(message));
        }
        let (body, content_type) = written(body);
        add_defaults(&mut headers, content_type);
        let secret_texts = filling.secret_texts();
        let used_secrets = filling.used_secrets;
        let request = RenderedRequest { method: self.method, url, headers, body };
        Ok(SkillRequest { request, used_secrets, secret_texts })
    }

    /// Refuses a run for which a Secret of a template has no value, before anything is rendered.
    fn check_secrets(&self, secrets: &BTreeMap<String, String>) -> Result<(), RenderError> {
        let mut missing: Vec<String> = Vec::new();
        for (_, placeholder) in self.placeholders() {
            if let Placeholder::Secret { name } = placeholder
                && secrets.get(name).is_none_or(String::is_empty)
                && !missing.contains(name)
            {
                missing.push(name.clone());
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{} of spec.run.http.secrets has no value; nothing was sent; put it into the Secret",
            missing.join(", ")
        );
        Err(RenderError { reason: Reason::SecretMissing, message, missing_secrets: missing })
    }

    fn url(&self, filling: &mut Filling<'_>) -> Result<String, RenderError> {
        let rest = filling.text(&self.url.rest, percent_encode)?.map_err(|name| {
            RenderError::input(format!("input {name} has no value, and the URL needs one; give it"))
        })?;
        if let Some(segment) = dot_segment(&rest) {
            let message = format!(
                "an input makes {segment:?} a segment of the URL's path, which would lead to another path; give another value"
            );
            return Err(RenderError::input(message));
        }
        let mut parameters = Vec::new();
        for (name, template) in &self.query {
            // A list alone is a parameter for each element.
            if let Some(Placeholder::Input { name: input, .. }) = template.sole_placeholder()
                && let Some(Value::Array(list)) = filling.input.get(input)
            {
                filling.used_inputs.insert(input.clone());
                for element in list {
                    let text = plain_text(element);
                    filling.count(&text)?;
                    parameters.push((percent_encode(name), percent_encode(&text)));
                }
            } else if let Ok(text) = filling.text(template, percent_encode)? {
                parameters.push((percent_encode(name), text));
            }
        }
        let url = format!("{}{rest}", self.url.origin);
        Ok(with_query(url, &parameters))
    }

    fn rendered_headers(&self, filling: &mut Filling<'_>) -> Result<Vec<(String, String)>, RenderError> {
        let mut headers = Vec::new();
        for (name, template) in &self.headers {
            for placeholder in template.placeholders() {
                filling.check_header(name, placeholder)?;
            }
            // A header with an input that has no value is left out.
            let Ok(text) = filling.text(template, str::to_owned)? else { continue };
            if text.len() > MAX_HEADER {
                let message =
                    format!("header {name} has {} bytes; at most {MAX_HEADER} are sent", text.len());
                return Err(RenderError::input(message));
            }
            headers.push((name.clone(), text));
        }
        Ok(headers)
    }

    /// Adds the inputs that no template uses.
    fn append(&self, filling: &Filling<'_>, url: &mut String, body: &mut Option<Value>) {
        let unused = filling.input.iter().filter(|(name, _)| !filling.used_inputs.contains(*name));
        if self.method.is_safe() {
            let encoded =
                |(name, value): (&String, &Value)| (form_encode(name), form_encode(&plain_text(value)));
            let parameters: Vec<_> = unused.map(encoded).collect();
            *url = with_query(std::mem::take(url), &parameters);
            return;
        }
        let unused: Vec<_> = unused.map(|(name, value)| (name.clone(), value.clone())).collect();
        if unused.is_empty() {
            return;
        }
        if let Value::Object(fields) = body.get_or_insert_with(|| Value::Object(Map::new())) {
            for (name, value) in unused {
                fields.entry(name).or_insert(value);
            }
        }
    }
}

fn with_query(mut url: String, parameters: &[(String, String)]) -> String {
    for (name, value) in parameters {
        let separator = match url.chars().last() {
            _ if !url.contains('?') => "?",
            Some('?' | '&') => "",
            _ => "&",
        };
        url = format!("{url}{separator}{name}={value}");
    }
    url
}

/// Returns a body as it is sent, and its content type. A text is sent as it is, other values as JSON.
fn written(body: Option<Value>) -> (Option<String>, Option<&'static str>) {
    match body {
        None => (None, None),
        Some(Value::String(text)) => (Some(text), Some("text/plain; charset=utf-8")),
        Some(value) => (Some(value.to_string()), Some("application/json")),
    }
}

fn add_defaults(headers: &mut Vec<(String, String)>, content_type: Option<&str>) {
    let agent = concat!("skillet/", env!("CARGO_PKG_VERSION"));
    let defaults = [
        ("User-Agent", Some(agent)),
        ("Accept", Some("application/json, text/plain, */*")),
        ("Content-Type", content_type),
    ];
    for (name, value) in defaults {
        let Some(value) = value else { continue };
        if !headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)) {
            headers.push((name.to_owned(), value.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests;
