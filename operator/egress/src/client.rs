//! The operator's client of the broker: HTTP requests of skills, and links of runs, over kept connections of mutual TLS.

mod connector;
mod link;
#[cfg(test)]
mod tests;

use std::{error::Error, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use skillet_protocol::MessageError;
use thiserror::Error;
use tokio::{
    io::AsyncWriteExt as _,
    time::{error::Elapsed, timeout},
};

pub use self::connector::{ClientIdentity, Connector, PeerStream};
pub use self::link::{RunLink, RunReceiver, RunSender};
use crate::{
    mounted::{LOOK_EVERY, TlsError},
    policy::RunPolicy,
    request::{EgressRequest, EgressResponse, MAX_REQUEST_BYTES},
    wire::{BROKER_NAME, MAX_POLICY_BYTES, REQUESTS_PATH, RUNS_PATH, UPGRADE, encode_policy},
};

/// Time for a connection with its TLS.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// Time for the broker's own part of an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
const IDLE_LIMIT: Duration = Duration::from_secs(60);
const IDLE_CONNECTIONS: usize = 64;
/// Most bytes of a response: its largest body in base64, and its headers.
const MAX_ANSWER_BYTES: usize = 32 << 20;

/// Address of the broker and identity of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerSettings {
    /// Host and port of the broker.
    pub address: String,
    /// Folder with `tls.crt`, `tls.key` and `ca.crt`.
    pub tls_folder: PathBuf,
}

/// Failure of the broker, not of a host.
#[derive(Debug, Error)]
pub enum BrokerError {
    #[error("could not use the certificates for the broker {address}: {source}")]
    Tls { address: String, source: Box<TlsError> },
    #[error("could not reach the broker {address}: {cause}")]
    Unreachable { address: String, cause: String },
    #[error("the connection to the broker {address} broke before its answer: {cause}")]
    Broken { address: String, cause: String },
    #[error("the broker {address} did not answer in time")]
    TimedOut { address: String },
    #[error("the broker {address} answered {status}: {message}")]
    Refused { address: String, status: u16, message: String },
    #[error("the broker {address} answered what is no answer: {cause}")]
    Malformed { address: String, cause: String },
    #[error("the policy of the run is larger than {} KiB", MAX_POLICY_BYTES >> 10)]
    PolicyTooLarge,
    #[error("the request is larger than {} MiB", MAX_REQUEST_BYTES >> 20)]
    RequestTooLarge,
    #[error("the frame cannot be sent to the broker")]
    Frame(#[source] MessageError),
    #[error("the link of the run to the broker {address} has ended")]
    LinkEnded { address: String },
}

impl BrokerError {
    /// Returns false if the request certainly did not reach a host, and true if the broker may have sent it on.
    pub fn was_sent(&self) -> bool {
        match self {
            Self::Tls { .. }
            | Self::Unreachable { .. }
            | Self::PolicyTooLarge
            | Self::RequestTooLarge
            | Self::Frame(_) => false,
            // With these statuses the broker refuses a request before it dials.
            Self::Refused { status, .. } => !matches!(status, 400..=499 | 503),
            Self::TimedOut { .. } | Self::Broken { .. } | Self::Malformed { .. } | Self::LinkEnded { .. } => {
                true
            }
        }
    }
}

/// A client of the broker. Clones share their connections.
#[derive(Clone)]
pub struct BrokerClient {
    settings: Arc<BrokerSettings>,
    identity: ClientIdentity,
    http: Client<Connector, Full<Bytes>>,
}

impl BrokerClient {
    /// Makes a client. It reads its certificates and connects when it is first used.
    pub fn new(settings: BrokerSettings) -> Self {
        Self::renewed_every(LOOK_EVERY, settings)
    }

    pub(crate) fn renewed_every(every: Duration, settings: BrokerSettings) -> Self {
        let identity = ClientIdentity::renewed_every(every, settings.tls_folder.clone());
        let connector = Connector::new(&settings.address, BROKER_NAME, identity.clone());
        let http = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_LIMIT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Self { settings: Arc::new(settings), identity, http }
    }

    /// Sends one HTTP request of a skill. The request ends when the future is dropped.
    pub async fn request(&self, request: EgressRequest) -> Result<EgressResponse, BrokerError> {
        let limit = Duration::from_millis(request.timeout_ms) + CONNECT_LIMIT + ANSWER_LIMIT;
        let json = serde_json::to_vec(&request).expect("texts, numbers and lists are always JSON");
        if json.len() > MAX_REQUEST_BYTES {
            return Err(BrokerError::RequestTooLarge);
        }
        let sent = Request::builder()
            .method(Method::POST)
            .uri(format!("http://{BROKER_NAME}{REQUESTS_PATH}"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::from(json))
            .expect("every part but the body is constant");
        let answer = async {
            let response = self.send(sent).await?;
            if response.status() != StatusCode::OK {
                return Err(self.refused(response).await);
            }
            let body = self.body(response).await?;
            serde_json::from_slice(&body).map_err(|error| self.malformed(&error))
        };
        timeout(limit, answer).await.map_err(|elapsed| self.timed_out(elapsed))?
    }

    /// Opens the link of a run. Frames may be sent at once; a policy that the broker cannot read ends the link.
    pub async fn open_run(&self, policy: &RunPolicy) -> Result<RunLink, BrokerError> {
        let first = encode_policy(policy).ok_or(BrokerError::PolicyTooLarge)?;
        let sent = Request::builder()
            .method(Method::POST)
            .uri(format!("http://{BROKER_NAME}{RUNS_PATH}"))
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, UPGRADE)
            .body(Full::default())
            .expect("every part is constant");
        let open = async {
            let response = self.send(sent).await?;
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                return Err(self.refused(response).await);
            }
            let stream = hyper::upgrade::on(response).await.map_err(|error| self.broken(&error))?;
            let mut stream = TokioIo::new(stream);
            stream.write_all(&first).await.map_err(|error| self.broken(&error))?;
            Ok(RunLink::new(self.settings.address.clone(), stream))
        };
        timeout(CONNECT_LIMIT + ANSWER_LIMIT, open).await.map_err(|elapsed| self.timed_out(elapsed))?
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, BrokerError> {
        self.load_certificates()?;
        self.http.request(request).await.map_err(|error| {
            if !error.is_connect() {
                return self.broken(&error);
            }
            BrokerError::Unreachable { address: self.settings.address.clone(), cause: innermost(&error) }
        })
    }

    fn load_certificates(&self) -> Result<(), BrokerError> {
        let address = || self.settings.address.clone();
        let loaded = self.identity.load();
        loaded.map_err(|source| BrokerError::Tls { address: address(), source: Box::new(source) })
    }

    async fn refused(&self, response: Response<Incoming>) -> BrokerError {
        let status = response.status().as_u16();
        // The status alone says enough when the message does not come.
        let body = self.body(response).await.unwrap_or_default();
        let message = String::from_utf8_lossy(&body).chars().take(500).collect();
        BrokerError::Refused { address: self.settings.address.clone(), status, message }
    }

    async fn body(&self, response: Response<Incoming>) -> Result<Bytes, BrokerError> {
        let read = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
        read.map(http_body_util::Collected::to_bytes).map_err(|error| self.broken(&*error))
    }

    fn broken(&self, error: &(dyn Error + 'static)) -> BrokerError {
        BrokerError::Broken { address: self.settings.address.clone(), cause: innermost(error) }
    }

    // The message of serde may quote the body of a host, and this error is logged.
    fn malformed(&self, error: &serde_json::Error) -> BrokerError {
        let (category, line, column) = (error.classify(), error.line(), error.column());
        let cause = format!("{category:?} error in line {line}, column {column}");
        BrokerError::Malformed { address: self.settings.address.clone(), cause }
    }

    fn timed_out(&self, _: Elapsed) -> BrokerError {
        BrokerError::TimedOut { address: self.settings.address.clone() }
    }
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
