//! HTTP for sources: only to allowed hosts, over at most a few redirects, with a limit of bytes and a time at which it ends.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use reqwest::{
    Client, Method, Response, StatusCode, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
    redirect::{Action, Attempt, Policy},
};
use skillet_kube::lock;
use tokio::time::Instant;

use crate::{allowed_hosts::AllowedHosts, failure::Failure};

/// Most bytes of all responses of one transfer.
pub(crate) const TRANSFER_LIMIT: u64 = 256 << 20;
const MAX_REDIRECTS: usize = 5;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The client of one transfer.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient {
    client: Client,
    allowed: AllowedHosts,
    authorization: Option<HeaderValue>,
    /// The host that the credentials are for; a redirect to another gets none.
    origin: Url,
    deadline: Instant,
    left: Arc<AtomicU64>,
    /// The host that a redirect led to and that is not allowed.
    refused: Arc<Mutex<Option<Failure>>>,
}

/// Credentials and trust of one transfer.
#[derive(Clone, Default)]
pub(crate) struct Credentials {
    pub(crate) authorization: Option<HeaderValue>,
    /// PEM certificates that are trusted beside the public ones.
    pub(crate) authorities: Vec<u8>,
}

impl HttpClient {
    /// Prepares a transfer from `origin`, which ends at the deadline.
    pub(crate) fn new(
        origin: Url,
        allowed: AllowedHosts,
        credentials: Credentials,
        deadline: Instant,
    ) -> Result<Self, Failure> {
        allowed.check(&origin)?;
        if credentials.authorization.is_some() && origin.scheme() != "https" {
            return Err(Failure::BadUrl(
                "credentials are not sent without TLS; write https, or remove spec.git.secretRef".to_owned(),
            ));
        }
        let refused = Arc::new(Mutex::new(None));
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("skillet/", env!("CARGO_PKG_VERSION")))
            .redirect(redirects(allowed.clone(), Arc::clone(&refused)));
        if !credentials.authorities.is_empty() {
            let authorities = reqwest::Certificate::from_pem_bundle(&credentials.authorities).ok();
            let authorities = authorities
                .filter(|found| !found.is_empty())
                .ok_or_else(|| Failure::Secret("ca.crt is no PEM certificate".to_owned()))?;
            builder = authorities.into_iter().fold(builder, reqwest::ClientBuilder::add_root_certificate);
        }
        let client = builder.build().map_err(|error| Failure::Unavailable(words(&error)))?;
        Ok(Self {
            client,
            allowed,
            authorization: credentials.authorization,
            origin,
            deadline,
            left: Arc::new(AtomicU64::new(TRANSFER_LIMIT)),
            refused,
        })
    }

    /// Sends one request. A response that is no success is a failure.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &str,
        mut headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response, Failure> {
        let url = Url::parse(url).map_err(|error| Failure::BadUrl(error.to_string()))?;
        self.allowed.check(&url)?;
        if let Some(authorization) = &self.authorization
            && url.origin() == self.origin.origin()
        {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let request = self.client.request(method, url).headers(headers).body(body);
        let response = match tokio::time::timeout_at(self.deadline, request.send()).await {
            Err(_) => return Err(Failure::TimedOut),
            Ok(Err(error)) => return Err(Failure::Unavailable(words(&error))),
            Ok(Ok(response)) => response,
        };
        if let Some(refused) = lock(&self.refused).take() {
            return Err(refused);
        }
        match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(self.failure(status)),
        }
    }

    /// Returns the next bytes of a response; `None` at its end.
    pub(crate) async fn chunk(&self, response: &mut Response) -> Result<Option<Bytes>, Failure> {
        match tokio::time::timeout_at(self.deadline, response.chunk()).await {
            Err(_) => Err(Failure::TimedOut),
            Ok(Err(error)) => Err(Failure::Unavailable(words(&error))),
            Ok(Ok(None)) => Ok(None),
            Ok(Ok(Some(chunk))) => {
                let length = chunk.len() as u64;
                let took = |left: u64| left.checked_sub(length);
                match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, took) {
                    Ok(_) => Ok(Some(chunk)),
                    Err(_) => Err(Failure::TooLarge(format!(
                        "the repository has more than {} MiB",
                        TRANSFER_LIMIT >> 20
                    ))),
                }
            }
        }
    }

    fn failure(&self, status: StatusCode) -> Failure {
        let host = self.origin.host_str().unwrap_or_default();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failure::AccessDenied(format!(
                "{host} answered {status}; {}",
                if self.authorization.is_some() {
                    "check the Secret of spec.git.secretRef"
                } else {
                    "name a Secret in spec.git.secretRef"
                }
            )),
            // Servers hide private repositories in this way.
            StatusCode::NOT_FOUND => Failure::AccessDenied(format!(
                "{host} answered {status}: the repository does not exist, or needs other credentials; check spec.git"
            )),
            status => Failure::Unavailable(format!("{host} answered {status}")),
        }
    }
}

/// Follows a redirect to an allowed host, and never from TLS to clear text.
fn redirects(allowed: AllowedHosts, refused: Arc<Mutex<Option<Failure>>>) -> Policy {
    Policy::custom(move |attempt: Attempt<'_>| -> Action {
        let url = attempt.url().clone();
        let is_downgrade =
            url.scheme() != "https" && attempt.previous().iter().any(|url| url.scheme() == "https");
        if attempt.previous().len() > MAX_REDIRECTS {
            return attempt.error("too many redirects");
        }
        if is_downgrade {
            return attempt.error("a redirect leads from https to http");
        }
        match allowed.check(&url) {
            Ok(()) => attempt.follow(),
            Err(failure) => {
                *lock(&refused) = Some(failure);
                attempt.stop()
            }
        }
    })
}

/// The innermost cause, which says what happened. The URL is known to the reader.
fn words(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let place = if error.is_connect() { "could not connect" } else { "the request failed" };
    format!("{place}: {cause}")
}
