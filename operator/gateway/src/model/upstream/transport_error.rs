//! Errors of requests that reach no provider, or whose response breaks off: for the client by name and cause, for the log with
//! the host.

use std::error::Error as _;

use http::StatusCode;
use tracing::warn;

use crate::error::ApiError;

/// Words of an error's causes, and the class of the cause. The first that fits counts.
const CAUSES: [(&str, &str); 9] = [
    ("dns error", "its name does not resolve"),
    ("failed to lookup", "its name does not resolve"),
    ("connection refused", "it refused the connection"),
    ("certificate", "its TLS certificate is not accepted"),
    ("tls", "TLS failed"),
    ("handshake", "TLS failed"),
    ("network is unreachable", "there is no route to it"),
    ("host is unreachable", "there is no route to it"),
    ("connection reset", "it closed the connection"),
];

/// Maps a failed or late request to a provider to an error, and logs it with host and causes.
pub(super) fn transport_error(error: reqwest::Error, provider: &str) -> ApiError {
    let (status, code, what) = if error.is_timeout() {
        (StatusCode::GATEWAY_TIMEOUT, "ProviderTooSlow", "did not answer in time")
    } else if error.is_connect() {
        (StatusCode::BAD_GATEWAY, "ProviderUnreachable", "could not be reached")
    } else {
        (StatusCode::BAD_GATEWAY, "ProviderAnswerBroken", "broke off its answer")
    };
    let host = error.url().and_then(|url| url.host_str()).unwrap_or_default().to_owned();
    // The URL may contain a key.
    let cause = causes(&error.without_url());
    warn!(provider, host, code, cause, "Provider request failed");
    let class = class(&cause).map(|class| format!(": {class}")).unwrap_or_default();
    ApiError::new(status, code, format!("the provider {provider} {what}{class}"))
}

fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn class(cause: &str) -> Option<&'static str> {
    let cause = cause.to_lowercase();
    CAUSES.iter().find(|(words, _)| cause.contains(words)).map(|(_, class)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_error_names_provider_and_cause_and_no_address() {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = "http://127.0.0.1:1/v1?key=secret";
        let error = transport_error(client.get(url).send().await.unwrap_err(), "local");
        assert_eq!((error.status, error.code.as_str()), (StatusCode::BAD_GATEWAY, "ProviderUnreachable"));
        assert_eq!(error.message, "the provider local could not be reached: it refused the connection");
    }

    #[test]
    fn causes_have_classes() {
        for (cause, expected) in [
            (
                "client error: dns error: failed to lookup address information",
                Some("its name does not resolve"),
            ),
            ("invalid peer certificate: UnknownIssuer", Some("its TLS certificate is not accepted")),
            ("received fatal alert: HandshakeFailure", Some("TLS failed")),
            ("operation timed out", None),
        ] {
            assert_eq!(class(cause), expected, "{cause}");
        }
    }
}
