//! One request of a run, and the reading of its response. Pure.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use skillet_api::{Reason, http::HttpMethod};
use skillet_core::{
    builtin::{BuiltinCall, Response, Step},
    http::{HttpProgram, HttpResponse, RenderedRequest, SkillRequest, next_try},
};
use skillet_egress::HttpResponse as Received;
use skillet_protocol::{HostRule, Masker};

use super::end::Tried;

/// Most bytes of a response. More do not fit into a status.
const MAX_RESPONSE: u64 = 1 << 20;

/// A request and its program.
#[derive(Clone, Debug)]
pub(super) struct Call {
    kind: Kind,
    /// Hosts that a redirect may lead to.
    pub(super) redirect_hosts: Vec<HostRule>,
    /// Masks values of Secrets in what comes back.
    pub(super) masker: Masker,
}

#[derive(Clone, Debug)]
enum Kind {
    Http { program: Arc<HttpProgram>, request: Box<RenderedRequest> },
    Builtin { call: Box<BuiltinCall>, context: String },
}

/// The meaning of a response.
#[derive(Debug)]
pub(super) enum Read {
    Output(Value),
    /// Another request, which takes the place of this one.
    Next(Box<Call>),
}

/// The reason why there is no output, and a message that may have values of Secrets.
pub(super) type Failure = (Reason, String);

impl Call {
    /// The request of an HTTP skill.
    pub(super) fn of_skill(
        program: Arc<HttpProgram>,
        request: SkillRequest,
        redirect_hosts: Vec<HostRule>,
    ) -> Self {
        let SkillRequest { request, used_secrets: _, secret_texts } = request;
        let masker = Masker::new(secret_texts.iter().map(String::as_str));
        Self { kind: Kind::Http { program, request: Box::new(request) }, redirect_hosts, masker }
    }

    /// The request of a built-in, of which `key` is a secret and `context` names the caller.
    pub(super) fn of_builtin(call: BuiltinCall, key: Option<&str>, context: String) -> Self {
        let kind = Kind::Builtin { call: Box::new(call), context };
        Self { kind, redirect_hosts: Vec::new(), masker: Masker::new(key) }
    }

    pub(super) fn request(&self) -> &RenderedRequest {
        match &self.kind {
            Kind::Http { request, .. } => request,
            Kind::Builtin { call, .. } => &call.request,
        }
    }

    /// Returns the host of an HTTP skill, for messages; else the whole URL.
    pub(super) fn place(&self) -> String {
        match &self.kind {
            Kind::Http { program, .. } => program.host().name,
            Kind::Builtin { call, .. } => call.request.url.clone(),
        }
    }

    pub(super) fn redirects(&self) -> u32 {
        match &self.kind {
            Kind::Http { program, .. } => program.redirects(),
            // A built-in follows those that it follows by itself, after its own check of each.
            Kind::Builtin { .. } => 0,
        }
    }

    /// Returns the time that the request may take, of the time that the run has left.
    pub(super) fn timeout(&self, left: Duration) -> Duration {
        match &self.kind {
            Kind::Http { .. } => left,
            Kind::Builtin { call, .. } => call.timeout.min(left),
        }
    }

    /// Returns the bytes of the body that are read, and if a longer one is cut.
    pub(super) fn response_bytes(&self) -> (u64, bool) {
        match &self.kind {
            Kind::Http { .. } => (MAX_RESPONSE, false),
            // One byte more shows that it is cut.
            Kind::Builtin { call, .. } => (call.max_body_bytes as u64 + 1, true),
        }
    }

    /// Returns the pause before the request is sent again, if it is.
    pub(super) fn next_try(
        &self,
        tried: &Tried,
        done: u32,
        (elapsed, limit): (Duration, Duration),
    ) -> Option<Duration> {
        match &self.kind {
            Kind::Http { program, .. } => {
                // A request that the broker never got is as good as a new one, whatever its method.
                let is_new = matches!(tried, Tried::NoBroker { was_sent: false, .. });
                let method = if is_new { HttpMethod::Get } else { program.method() };
                next_try(method, tried.outcome()?, done, elapsed, limit)
            }
            // A model sends its request again if it wants.
            Kind::Builtin { .. } => None,
        }
    }

    /// Returns the name of an output that is kept for a time, and the time.
    pub(super) fn cache(&self) -> Option<(String, Duration)> {
        match &self.kind {
            Kind::Http { .. } => None,
            Kind::Builtin { call, .. } => call.cache(),
        }
    }

    /// Returns a kept output as the output of this call.
    pub(super) fn cached_output(&self, kept: &Value) -> Option<Value> {
        match &self.kind {
            Kind::Http { .. } => None,
            Kind::Builtin { call, context } => Some(call.from_cache(kept, context)),
        }
    }

    pub(super) fn read(&self, response: &Received) -> Result<Read, Failure> {
        match &self.kind {
            Kind::Http { program, .. } => {
                let read = HttpResponse {
                    status: response.status,
                    content_type: header(&response.headers, "content-type"),
                    location: header(&response.headers, "location"),
                    body: &response.body,
                    is_truncated: response.is_truncated,
                };
                program.read_response(&read).map(Read::Output).map_err(|error| (error.reason, error.message))
            }
            Kind::Builtin { call, context } => {
                let Received { status, headers, body, .. } = response;
                let read = Response { status: *status, headers, body };
                match call.read_response(read, context) {
                    Ok(Step::Output(output)) => Ok(Read::Output(output)),
                    Ok(Step::Request(next)) => {
                        let kind = Kind::Builtin { call: next, context: context.clone() };
                        Ok(Read::Next(Box::new(Self { kind, ..self.clone() })))
                    }
                    Err(error) => Err((error.reason(), error.to_string())),
                }
            }
        }
    }

    /// Returns the failure of a request without a response in the words of its program.
    pub(super) fn failure(&self, (reason, message): Failure) -> Failure {
        match &self.kind {
            Kind::Http { .. } => (reason, message),
            Kind::Builtin { call, .. } => {
                let error = call.failure(reason, &message);
                (error.reason(), error.to_string())
            }
        }
    }
}

pub(super) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}
