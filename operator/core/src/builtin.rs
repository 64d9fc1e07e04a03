//! The programs of Skillet itself that `run.builtin` names: one request, and what of its response is the output. Pure.
//!
//! Inputs, outputs, limits and codes are those of OmniRoute's tools of the same names. What its guard lets through although
//! it is not public is refused here.

mod arguments;
mod browser;
mod error;
mod file;
mod headers;
mod http_request;
mod interface;
mod page;
mod public_address;
mod sandbox;
mod url_guard;
mod web_fetch;
mod web_search;
mod workspace_path;

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use skillet_api::{
    Reason,
    builtin::{Builtin, WebSearchProvider},
    gateway::KeySecret,
};

use self::web_search::host;
// `positive_int` is public for the replay of the reference's cases in `e2e/compat`.
pub use self::{
    arguments::{command_args, positive_int},
    browser::{BrowserOutput, Picture, browser_program, needs_workspace, printed_bytes},
    error::{BuiltinError, Code},
    file::{Encoding, FileCall, FileMode, FileProgram, MAX_FILE_BYTES, written},
    interface::{description, input_schema},
    public_address::is_public_address,
    sandbox::{SandboxCall, sandbox_call, sandbox_program},
    url_guard::{UrlRefusal, check_url},
    workspace_path::{PathRefusal, WorkspacePath, workspace_owner},
};
use crate::http::{RenderedRequest, ResponseError};

/// Longest time that a call waits, unless it says otherwise.
const DEFAULT_TIMEOUT_MS: u64 = 10_000;
/// Longest time that a call may ask for.
const MAX_TIMEOUT_MS: u64 = 60_000;
/// Most bytes of a response's body.
const MAX_BODY_BYTES: u64 = 256_000;

/// A built-in that SkillPolicy enables.
#[derive(Clone, Debug, PartialEq)]
pub enum BuiltinProgram {
    HttpRequest,
    WebFetch,
    WebSearch(Arc<WebSearchProvider>),
}

/// One call of a built-in: its request, and all that its response needs.
#[derive(Clone, Debug, PartialEq)]
pub struct BuiltinCall {
    pub request: RenderedRequest,
    /// Time limit of the whole request. The limit of the run holds, too.
    pub timeout: Duration,
    /// Bytes of the response's body that are read. A longer one is cut here, so the sender reads one byte more.
    pub max_body_bytes: usize,
    kind: CallKind,
}

#[derive(Clone, Debug, PartialEq)]
enum CallKind {
    HttpRequest,
    WebFetch(web_fetch::Page),
    WebSearch(web_search::Query),
}

/// A response whose redirects are the call's to follow.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    pub status: u16,
    pub headers: &'a [(String, String)],
    /// Bytes without a content encoding.
    pub body: &'a [u8],
}

/// The step that follows a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The output of the run.
    Output(Value),
    /// A redirect that is followed.
    Request(Box<BuiltinCall>),
}

impl BuiltinProgram {
    pub fn builtin(&self) -> Builtin {
        match self {
            Self::HttpRequest => Builtin::HttpRequest,
            Self::WebFetch => Builtin::WebFetch,
            Self::WebSearch(_) => Builtin::WebSearch,
        }
    }

    /// Returns the Secret of the operator's namespace whose value `render` takes.
    pub fn key_secret(&self) -> Option<&KeySecret> {
        match self {
            Self::WebSearch(provider) => provider.key_secret.as_ref(),
            Self::HttpRequest | Self::WebFetch => None,
        }
    }

    /// Renders the request of an input. `key` is the value of `key_secret`.
    pub fn render(&self, input: &Value, key: Option<&str>) -> Result<BuiltinCall, BuiltinError> {
        match self {
            Self::HttpRequest => http_request::render(input),
            Self::WebFetch => web_fetch::render(input),
            Self::WebSearch(provider) => web_search::render(provider, input, key),
        }
    }
}

impl BuiltinCall {
    /// Reads the response. `context` names the caller.
    pub fn read_response(&self, response: Response<'_>, context: &str) -> Result<Step, BuiltinError> {
        match &self.kind {
            CallKind::HttpRequest => http_request::read(self, response, context).map(Step::Output),
            CallKind::WebFetch(page) => web_fetch::read(self, page, response, context),
            CallKind::WebSearch(query) => web_search::read(self, query, response, context).map(Step::Output),
        }
    }

    /// Returns the error of a request that brought no whole response, with the reference's code of its reason.
    pub fn failure(&self, reason: Reason, message: &str) -> BuiltinError {
        BuiltinError::without_response(reason, message)
    }

    /// Returns the name of the call for a cache, and the time for which its output is kept. `None` if it is not cached.
    pub fn cache(&self) -> Option<(String, Duration)> {
        let CallKind::WebSearch(query) = &self.kind else { return None };
        let RenderedRequest { method, url, headers: _, body } = &self.request;
        let key = format!(
            "{} {url} {}{}\n{}",
            method.as_str(),
            query.limit(),
            query.domains(),
            body.as_deref().unwrap_or_default()
        );
        Some((key, query.cache_ttl()))
    }

    /// Returns the output of an earlier call of the same name as the output of this one.
    pub fn from_cache(&self, output: &Value, context: &str) -> Value {
        web_search::from_cache(output, context)
    }

    fn redirect_error(&self, status: u16) -> BuiltinError {
        let RenderedRequest { method, url, .. } = &self.request;
        let message = format!("Redirect blocked for {} {url} ({status})", method.as_str());
        BuiltinError::with_code(Code::RedirectBlocked, message)
    }
}

impl From<BuiltinError> for ResponseError {
    fn from(error: BuiltinError) -> Self {
        Self::new(error.reason(), error.to_string())
    }
}

/// Returns the name and port of the host of a search engine. `None` if its address is no URL.
pub fn search_host(provider: &WebSearchProvider) -> Option<(String, u16)> {
    host(provider)
}

/// Returns the time limit that an input asks for.
fn timeout(input: &Value) -> Duration {
    Duration::from_millis(positive_int(input.get("timeoutMs"), DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS))
}

/// Returns the bytes of a body that an input asks for.
fn max_body_bytes(input: &Value) -> usize {
    let bytes = positive_int(input.get("maxBytes"), MAX_BODY_BYTES, MAX_BODY_BYTES);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Returns the first value of a header, whose name is in lower case.
fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}
