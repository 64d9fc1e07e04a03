//! The one way out of Skillet: a policy, a resolver and a dialer, the broker that holds them, and the operator's client for it.
//!
//! The broker dials for programs without a network, whose connections are channels of a run's link, and sends the HTTP
//! requests of skills. It has no credentials of the cluster.

pub mod accept;
mod client;
mod dialer;
mod frames;
mod fronting;
mod http_request;
pub mod keepalive;
mod limits;
mod metrics;
pub mod mounted;
pub mod policy;
mod request;
mod resolver;
mod run_link;
mod server;
mod wire;

pub use client::{
    BrokerClient, BrokerError, BrokerSettings, ClientIdentity, Connector, PeerStream, RunLink, RunReceiver,
    RunSender,
};
pub use dialer::{Connect, DIAL_LIMIT, SystemConnect};
pub use limits::LimitSettings;
pub use metrics::Metrics;
pub use mounted::TlsError;
pub use policy::{HostName, InternalHostRule, InvalidPolicy, Policy, RunPolicy};
pub use request::{
    ConnectionRecord, EgressRequest, EgressResponse, EgressResult, HttpResponse, MAX_REQUEST_BYTES,
    MAX_RESPONSE_BYTES,
};
pub use resolver::{Resolve, ResolveError, SystemResolver};
pub use server::{Server, ServerError, ServerSettings};
pub use wire::{BROKER_NAME, MAX_POLICY_BYTES};

#[cfg(test)]
mod testing;
