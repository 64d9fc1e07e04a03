//! The request of a skill that runs without a sandbox, and the reason why its response is no output.

use skillet_api::{Reason, http::HttpMethod};

/// A request as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedRequest {
    pub method: HttpMethod,
    /// URL with scheme `https` or `http`, in its normal form.
    pub url: String,
    /// Names and values without line ends.
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
}

/// The reason why a run without a sandbox has no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ResponseError {
    pub reason: Reason,
    pub message: String,
}

impl ResponseError {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    pub fn reason(&self) -> Reason {
        self.reason
    }
}
