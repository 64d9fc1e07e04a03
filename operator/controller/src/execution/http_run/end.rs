//! The end of an HTTP skill's run, from the outcome of its last request. Pure.

use std::time::Duration;

use serde_json::Value;
use skillet_api::{Phase, Reason, Verdict, duration::SkillDuration, http::HttpMethod};
use skillet_core::{
    admission::Admitted, builtin::BuiltinError, http::TryOutcome, output::fit, schema::summarize,
    skill::HostPattern,
};
use skillet_egress::{EgressResult, HttpResponse as Received};
use skillet_protocol::{HostRule, Masker};

use super::{
    RequestProgram,
    call::{Call, Failure, Read, header},
};
use crate::execution::conclude::Conclusion;

/// A JSON text of many small values takes this much more memory once it is parsed.
const PARSED_FACTOR: usize = 40;

/// The outcome of one request.
#[derive(Debug)]
pub(super) enum Tried {
    Answered(EgressResult),
    /// The broker gave no answer. If the request `was_sent`, the host may have it.
    NoBroker {
        message: String,
        was_sent: bool,
    },
}

impl Tried {
    /// For the decision to send again. `None`: another try has the same end.
    pub(super) fn outcome(&self) -> Option<TryOutcome<'_>> {
        match self {
            Self::Answered(EgressResult::Response(response)) => Some(TryOutcome::Response {
                status: response.status,
                retry_after: header(&response.headers, "retry-after"),
            }),
            Self::NoBroker { .. }
            | Self::Answered(EgressResult::Failed {
                verdict: Verdict::ConnectFailed | Verdict::ConnectTimedOut,
                ..
            }) => Some(TryOutcome::ConnectFailed),
            Self::Answered(EgressResult::Broken { .. }) => Some(TryOutcome::ConnectionLost),
            Self::Answered(
                EgressResult::Failed { .. }
                | EgressResult::RedirectRefused { .. }
                | EgressResult::BodyTooLarge { .. }
                | EgressResult::TlsFailed { .. }
                | EgressResult::TimedOut
                | EgressResult::Invalid { .. },
            ) => None,
        }
    }

    pub(super) fn body_bytes(&self) -> usize {
        match self {
            Self::Answered(EgressResult::Response(response)) => response.body.len(),
            Self::Answered(_) | Self::NoBroker { .. } => 0,
        }
    }
}

/// Returns most of the memory that a body takes while it is read.
pub(super) fn parsed_size_of(bytes: usize) -> usize {
    bytes.saturating_mul(PARSED_FACTOR)
}

/// The step that follows a request.
#[derive(Debug)]
pub(super) enum Next {
    End(Box<Conclusion>),
    /// Another request, which takes the place of this one.
    Call(Box<Call>),
}

/// Reads what came of a request. Values of Secrets that the host sent back are masked in output and message.
pub(super) fn read(call: &Call, tried: Tried, admitted: &Admitted) -> Next {
    let read = response_of(call, tried, admitted.timeout).and_then(|response| {
        // A message has a part of the body. It is of the masked one, since a part of a value would not be found.
        call.read(&response).map_err(|(reason, _)| {
            let body = masked_text(&String::from_utf8_lossy(&response.body), &call.masker).into_bytes();
            let message = call.read(&Received { body, ..response }).err().map(|(_, message)| message);
            (reason, message.unwrap_or_else(|| "the response cannot be read".to_owned()))
        })
    });
    Next::End(Box::new(match read {
        Ok(Read::Next(next)) => return Next::Call(next),
        Ok(Read::Output(output)) => succeeded(output, admitted, &call.masker),
        Err((reason, message)) => failed(reason, &message, &call.masker),
    }))
}

/// Returns the response, or the reason why there is none in the words of the program. `limit` is that of the run.
fn response_of(call: &Call, tried: Tried, limit: Duration) -> Result<Received, Failure> {
    let place = call.place();
    let result = match tried {
        Tried::NoBroker { message, was_sent: true } if !call.request().method.is_safe() => {
            return Err((Reason::ResultLost, with_open_end(message, call.request().method)));
        }
        Tried::NoBroker { message, .. } => return Err((Reason::BrokerUnavailable, message)),
        Tried::Answered(result) => result,
    };
    Err(call.failure(match result {
        EgressResult::Response(response) => return Ok(response),
        EgressResult::Failed { verdict, message } => {
            (Reason::of_verdict(verdict).unwrap_or(Reason::ConnectFailed), message)
        }
        EgressResult::RedirectRefused { message, .. } => (Reason::RedirectNotAllowed, message),
        EgressResult::BodyTooLarge { limit } => {
            let message =
                format!("the response of {place} is longer than {limit} bytes, which are read at most");
            (Reason::OutputTooLarge, message)
        }
        EgressResult::TlsFailed { message } => {
            (Reason::ConnectFailed, format!("no TLS connection to {place}: {message}"))
        }
        EgressResult::TimedOut => {
            let message = no_response_within(call.timeout(limit));
            (Reason::TimedOut, with_open_end(message, call.request().method))
        }
        EgressResult::Invalid { message } => (Reason::InputInvalid, message),
        EgressResult::Broken { message } => {
            let message = format!("{place} sent no whole response: {message}");
            (Reason::UpstreamFailed, with_open_end(message, call.request().method))
        }
    }))
}

/// Adds that the host may have done what a request asks for, if that changes something.
fn with_open_end(message: String, method: HttpMethod) -> String {
    if method.is_safe() {
        return message;
    }
    let method = method.as_str();
    format!(
        "{message}; the host may have got the {method} request: look there if it took effect, before you send it again"
    )
}

pub(super) fn succeeded(output: Value, admitted: &Admitted, masker: &Masker) -> Conclusion {
    let output = masked(output, masker);
    if let Some(schema) = &admitted.content.output_schema
        && let Err(violations) = schema.check(&output)
    {
        let message = format!("the output breaks tool.outputSchema: {}", summarize(&violations));
        return failed(Reason::OutputInvalid, &message, masker);
    }
    let (output, is_cut) = fit(output);
    if is_cut && admitted.content.output_schema.is_some() {
        let message = "the output was cut, so tool.outputSchema cannot be checked; take less of the response by spec.run.http.responseMapping";
        return failed(Reason::OutputTooLarge, message, masker);
    }
    Conclusion {
        phase: Phase::Succeeded,
        reason: Some(Reason::Succeeded),
        output: Some(output),
        truncated: is_cut,
        ..Conclusion::default()
    }
}

fn failed(reason: Reason, message: &str, masker: &Masker) -> Conclusion {
    let phase = if reason == Reason::TimedOut { Phase::TimedOut } else { Phase::Failed };
    Conclusion { phase, ..Conclusion::failed(reason, masked_text(message, masker)) }
}

/// Names the request whose end nobody knows, if it may change something, in the message of a run that was ended meanwhile.
pub(super) fn with_open_request(conclusion: Conclusion, method: Option<HttpMethod>) -> Conclusion {
    match (method, conclusion.reason, &conclusion.message) {
        (Some(method), Some(Reason::Cancelled | Reason::TimedOut), Some(message)) => {
            Conclusion { message: Some(with_open_end(message.clone(), method)), ..conclusion }
        }
        _ => conclusion,
    }
}

/// The end of a run whose request was sent by an operator that is gone.
pub(super) fn lost(method: HttpMethod) -> Conclusion {
    let message = format!(
        "the operator ended after it sent the {} request and before its response; look at the host if the request took effect",
        method.as_str()
    );
    Conclusion::failed(Reason::ResultLost, message)
}

/// The end of a run whose broker did not even tell that the time is over.
pub(super) fn timed_out(program: &RequestProgram, limit: Duration) -> Conclusion {
    let message = match (program, no_response_within(limit)) {
        (RequestProgram::Http(_), message) => message,
        (RequestProgram::Builtin(_), message) => {
            BuiltinError::without_response(Reason::TimedOut, message).to_string()
        }
    };
    Conclusion { phase: Phase::TimedOut, ..Conclusion::failed(Reason::TimedOut, message) }
}

fn no_response_within(limit: Duration) -> String {
    format!("there was no whole response within the limit of {}", SkillDuration(limit))
}

/// Returns the hosts that a redirect may lead to: those of the skill to which each used Secret may go.
pub(super) fn redirect_hosts(hosts: &[HostRule], granted: &[&[String]]) -> Vec<HostRule> {
    let may_go = |host: &&HostRule| {
        let host = HostPattern::of(&host.name);
        granted.iter().all(|patterns| {
            patterns.iter().any(|pattern| HostPattern::of(&pattern.to_ascii_lowercase()).covers(host))
        })
    };
    hosts.iter().filter(may_go).cloned().collect()
}

/// Masks each text of the output, names too.
fn masked(value: Value, masker: &Masker) -> Value {
    match value {
        Value::String(text) => Value::String(masked_text(&text, masker)),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| masked(item, masker)).collect()),
        Value::Object(fields) => {
            let fields =
                fields.into_iter().map(|(name, value)| (masked_text(&name, masker), masked(value, masker)));
            Value::Object(fields.collect())
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

fn masked_text(text: &str, masker: &Masker) -> String {
    let mut masker = masker.clone();
    let mut bytes = masker.push(text.as_bytes());
    bytes.extend(masker.finish());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
