//! The error of a call of a built-in, with the reference's code.

use skillet_api::Reason;

/// The word of the reference for a request that was refused or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    InvalidUrl,
    UrlGuardBlocked,
    Timeout,
    RedirectBlocked,
    NetworkError,
}

/// The reason why a call has no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", code.map(|code| format!(" ({})", code.as_str())).unwrap_or_default())]
pub struct BuiltinError {
    reason: Reason,
    /// `None` for an input that names no request.
    pub code: Option<Code>,
    message: String,
}

impl Code {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidUrl => "INVALID_URL",
            Self::UrlGuardBlocked => "URL_GUARD_BLOCKED",
            Self::Timeout => "TIMEOUT",
            Self::RedirectBlocked => "REDIRECT_BLOCKED",
            Self::NetworkError => "NETWORK_ERROR",
        }
    }

    const fn reason(self) -> Reason {
        match self {
            Self::InvalidUrl => Reason::InputInvalid,
            Self::UrlGuardBlocked => Reason::AddressNotAllowed,
            Self::Timeout => Reason::TimedOut,
            Self::RedirectBlocked => Reason::RedirectNotAllowed,
            Self::NetworkError => Reason::ConnectFailed,
        }
    }

    /// Returns the code of a reason for which there was no whole response. Reasons of Skillet alone have none.
    const fn of_reason(reason: Reason) -> Option<Self> {
        match reason {
            Reason::AddressNotAllowed => Some(Self::UrlGuardBlocked),
            Reason::TimedOut | Reason::ConnectTimedOut => Some(Self::Timeout),
            Reason::RedirectNotAllowed => Some(Self::RedirectBlocked),
            // Of a response, this reason is a status, which has no code.
            Reason::ConnectFailed | Reason::NameNotFound | Reason::HostMismatch | Reason::UpstreamFailed => {
                Some(Self::NetworkError)
            }
            _ => None,
        }
    }
}

impl BuiltinError {
    pub(super) fn input(message: impl Into<String>) -> Self {
        Self { reason: Reason::InputInvalid, code: None, message: message.into() }
    }

    pub(super) fn with_code(code: Code, message: impl Into<String>) -> Self {
        Self { reason: code.reason(), code: Some(code), message: message.into() }
    }

    /// Returns the error of a call that has no code of the reference.
    pub(super) fn without_code(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, code: None, message: message.into() }
    }

    /// Returns the error of a request that brought no whole response, with the reference's code of its reason.
    pub fn without_response(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, code: Code::of_reason(reason), message: message.into() }
    }

    /// Returns the error of a status that is no success.
    pub(super) fn of_status(status: u16, url: &str) -> Self {
        let reason = match status {
            404 => Reason::UpstreamNotFound,
            429 => Reason::UpstreamRateLimited,
            500.. => Reason::UpstreamFailed,
            _ => Reason::UpstreamRefused,
        };
        Self::without_code(reason, format!("{url} responded with {status}"))
    }

    pub fn reason(&self) -> Reason {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_broker_have_the_code_of_the_reference() {
        for (reason, message) in [
            (Reason::AddressNotAllowed, "x (URL_GUARD_BLOCKED)"),
            (Reason::ConnectTimedOut, "x (TIMEOUT)"),
            (Reason::TimedOut, "x (TIMEOUT)"),
            (Reason::RedirectNotAllowed, "x (REDIRECT_BLOCKED)"),
            (Reason::ConnectFailed, "x (NETWORK_ERROR)"),
            (Reason::NameNotFound, "x (NETWORK_ERROR)"),
            (Reason::UpstreamFailed, "x (NETWORK_ERROR)"),
            (Reason::HostNotAllowed, "x"),
            (Reason::BrokerUnavailable, "x"),
        ] {
            let error = BuiltinError::without_response(reason, "x");
            assert_eq!((error.reason(), error.to_string().as_str()), (reason, message));
        }
    }

    #[test]
    fn statuses_have_the_reasons_of_http_skills() {
        for (status, reason) in [
            (404, Reason::UpstreamNotFound),
            (429, Reason::UpstreamRateLimited),
            (503, Reason::UpstreamFailed),
            (403, Reason::UpstreamRefused),
        ] {
            let error = BuiltinError::of_status(status, "https://a.b/");
            assert_eq!(
                (error.reason(), error.to_string()),
                (reason, format!("https://a.b/ responded with {status}"))
            );
        }
    }
}
