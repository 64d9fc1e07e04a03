//! The result of one check.

use serde::Serialize;

/// Ordered from best to worst: the greatest status of all checks is the report's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CheckStatus {
    Ok,
    Warn,
    Fail,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    #[serde(rename = "check")]
    pub(crate) name: &'static str,
    pub(crate) verdict: CheckStatus,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<String>,
}

impl Check {
    pub(crate) fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, verdict: CheckStatus::Ok, message: message.into(), advice: None }
    }

    pub(crate) fn warn(name: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, verdict: CheckStatus::Warn, message: message.into(), advice: Some(advice.into()) }
    }

    pub(crate) fn fail(name: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, verdict: CheckStatus::Fail, message: message.into(), advice: Some(advice.into()) }
    }

    /// A check whose objects the user may not read.
    pub(crate) fn hidden(name: &'static str, what: &str) -> Self {
        Self::warn(
            name,
            format!("you may not read {what}"),
            "ask someone who may, or run this as an administrator",
        )
    }

    pub(crate) fn unread(name: &'static str, what: &str, why: &str) -> Self {
        Self::fail(
            name,
            format!("{what} could not be read: {why}"),
            "try again; if it stays, the API server's log has more",
        )
    }
}
