//! Errors of requests to the gateway.

use thiserror::Error;

use crate::exit::Exit;

#[derive(Debug, Error)]
pub(crate) enum GatewayError {
    #[error("this cluster has no Service of Skillet's gateway")]
    NoService,
    #[error("more than one Service calls itself Skillet's gateway: {}", places.join(", "))]
    ManyServices { places: Vec<String> },
    #[error("could not reach the gateway at {place}: {message}")]
    Unreachable { place: String, message: String },
    #[error("the gateway refused the request: {message}")]
    Refused { status: u16, message: String },
    #[error("the gateway's response cannot be read: {message}; is this plugin older than the gateway?")]
    Unreadable { message: String },
}

impl GatewayError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            GatewayError::Refused { status: 400..=499, .. } => Exit::Refused,
            GatewayError::NoService
            | GatewayError::ManyServices { .. }
            | GatewayError::Unreachable { .. }
            | GatewayError::Refused { .. }
            | GatewayError::Unreadable { .. } => Exit::Cluster,
        }
    }

    pub(crate) fn advice(&self) -> Option<String> {
        match self {
            GatewayError::NoService => {
                Some("name the gateway with --gateway URL, or install the chart with gateway.enabled".into())
            }
            GatewayError::ManyServices { .. } => {
                Some("the wrong one would get a token: name the gateway with --gateway URL".into())
            }
            GatewayError::Unreachable { .. } => {
                Some("see that a pod of the gateway is ready; --gateway URL names another place".into())
            }
            GatewayError::Refused { .. } | GatewayError::Unreadable { .. } => None,
        }
    }
}
