//! The HTTP request of a skill and its outcome, as operator and broker exchange them in JSON.

use serde::{Deserialize, Serialize};
use skillet_protocol::{HostRule, Verdict};

use crate::policy::RunPolicy;

/// Most bytes of an [`EgressRequest`] in JSON.
pub const MAX_REQUEST_BYTES: usize = 16 << 20;

/// Most bytes of a response's body, whatever a request says.
pub const MAX_RESPONSE_BYTES: u64 = 16 << 20;

/// One HTTP request under a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EgressRequest {
    pub policy: RunPolicy,
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    #[serde(default, with = "optional_base64", skip_serializing_if = "Option::is_none")]
    pub body: Option<Vec<u8>>,
    /// Time for everything, redirects included.
    pub timeout_ms: u64,
    /// Most bytes of the response's body after decoding.
    pub response_bytes: u64,
    /// Cuts a longer body. Without it, a longer body is an error.
    #[serde(default)]
    pub cuts_body: bool,
    /// Most redirects that are followed. With 0 a redirect is a response like others.
    pub redirects: u32,
    /// Other hosts that a redirect may lead to with this request; the policy must allow them too.
    #[serde(default)]
    pub redirect_hosts: Vec<HostRule>,
}

/// The outcome of a request, and its connections in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EgressResponse {
    pub result: EgressResult,
    pub connections: Vec<ConnectionRecord>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum EgressResult {
    Response(HttpResponse),
    /// There is no connection, or a limit ended it.
    Failed {
        verdict: Verdict,
        message: String,
    },
    /// A redirect leads to what the request may not reach.
    RedirectRefused {
        /// Host of the redirect's target; absent when the target has none.
        host: Option<String>,
        /// The policy's verdict about the host, if that is why.
        verdict: Option<Verdict>,
        message: String,
    },
    BodyTooLarge {
        limit: u64,
    },
    /// The host's certificate is not valid, or TLS could not be agreed on.
    TlsFailed {
        message: String,
    },
    TimedOut,
    /// The request cannot be sent: its method, URL, headers or policy.
    Invalid {
        message: String,
    },
    /// The host ended the connection, or sent what is no HTTP.
    Broken {
        message: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpResponse {
    pub status: u16,
    /// Names in lower case, in the order of the response. A body that was decoded has no content-encoding and no content-length.
    pub headers: Vec<(String, String)>,
    #[serde(with = "plain_base64")]
    pub body: Vec<u8>,
    /// True if the body is longer, and was cut.
    #[serde(default)]
    pub is_truncated: bool,
    /// URL of the response after all redirects.
    pub url: String,
}

/// One connection, or one that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionRecord {
    pub host: String,
    pub port: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    pub verdict: Verdict,
    /// Bytes on the wire, TLS included.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Microseconds since 1970.
    pub started_at: u64,
    pub duration_ms: u64,
}

impl EgressResult {
    /// Label of the outcome in metrics.
    pub(crate) fn outcome(&self) -> &'static str {
        match self {
            Self::Response(_) => "Response",
            Self::Failed { verdict, .. } => verdict.as_str(),
            Self::RedirectRefused { .. } => "RedirectRefused",
            Self::BodyTooLarge { .. } => "BodyTooLarge",
            Self::TlsFailed { .. } => "TlsFailed",
            Self::TimedOut => "TimedOut",
            Self::Invalid { .. } => "Invalid",
            Self::Broken { .. } => "Broken",
        }
    }
}

mod plain_base64 {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map_err(|_| D::Error::custom("the body is not base64"))
    }
}

mod optional_base64 {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    #[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
    pub(super) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => serializer.serialize_some(&BASE64_STANDARD.encode(bytes)),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        BASE64_STANDARD.decode(text).map(Some).map_err(|_| D::Error::custom("the body is not base64"))
    }
}
