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

use crate::{
    allowed_hosts::AllowedHosts,
    failure::{Failure, Place},
};

/// Most bytes of all responses of one transfer.
pub(crate) const TRANSFER_LIMIT: u64 = 256 << 20;
const MAX_REDIRECTS: usize = 5;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The client of one transfer.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient {
    client: Client,
    /// The field of the source, for messages.
    place: Place,
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
        place: Place,
        origin: Url,
        allowed: AllowedHosts,
        credentials: Credentials,
        deadline: Instant,
    ) -> Result<Self, Failure> {
        allowed.check(place, &origin)?;
        if credentials.authorization.is_some() && origin.scheme() != "https" {
            let tls = match place {
                Place::Git => "write https",
                Place::Oci => "remove spec.oci.insecure",
            };
            let message = format!("credentials are not sent without TLS; {tls}, or remove {place}.secretRef");
            return Err(Failure::BadUrl(place, message));
        }
        let refused = Arc::new(Mutex::new(None));
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("skillet/", env!("CARGO_PKG_VERSION")))
            .redirect(redirects(place, allowed.clone(), Arc::clone(&refused)));
        if !credentials.authorities.is_empty() {
            let authorities = reqwest::Certificate::from_pem_bundle(&credentials.authorities).ok();
            let authorities = authorities
                .filter(|found| !found.is_empty())
                .ok_or_else(|| Failure::Secret(place, "ca.crt is no PEM certificate".to_owned()))?;
            builder = authorities.into_iter().fold(builder, reqwest::ClientBuilder::add_root_certificate);
        }
        let client = builder.build().map_err(|error| Failure::Unavailable(words(&error)))?;
        Ok(Self {
            client,
            place,
            allowed,
            authorization: credentials.authorization,
            origin,
            deadline,
            left: Arc::new(AtomicU64::new(TRANSFER_LIMIT)),
            refused,
        })
    }

    /// Sends one request with the credentials, if it goes to their host. A response that is no success is a failure.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response, Failure> {
        let url = Url::parse(url).map_err(|error| Failure::BadUrl(self.place, error.to_string()))?;
        let authorization = if self.is_origin(&url) { self.authorization.as_ref() } else { None };
        let response = self.exchange(method, url, headers, authorization, body).await?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(self.failure(status)),
        }
    }

    /// Sends one request with these credentials, and returns whatever the server answers.
    pub(crate) async fn exchange(
        &self,
        method: Method,
        url: Url,
        mut headers: HeaderMap,
        authorization: Option<&HeaderValue>,
        body: Vec<u8>,
    ) -> Result<Response, Failure> {
        self.allowed.check(self.place, &url)?;
        if let Some(authorization) = authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let request = self.client.request(method, url).headers(headers).body(body);
        let response = match tokio::time::timeout_at(self.deadline, request.send()).await {
            Err(_) => return Err(Failure::TimedOut),
            Ok(Err(error)) => return Err(Failure::Unavailable(words(&error))),
            Ok(Ok(response)) => response,
        };
        match lock(&self.refused).take() {
            Some(refused) => Err(refused),
            None => Ok(response),
        }
    }

    /// Returns the credentials, which are for the source's own server.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// True for a URL of the source's own server.
    pub(crate) fn is_origin(&self, url: &Url) -> bool {
        url.origin() == self.origin.origin()
    }

    /// Reads the rest of a response, of which `what` says what it is.
    pub(crate) async fn body(
        &self,
        response: &mut Response,
        limit: usize,
        what: &str,
    ) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(response).await? {
            body.extend_from_slice(&chunk);
            if body.len() > limit {
                return Err(Failure::TooLarge(format!("{what} has more than {} KiB", limit >> 10)));
            }
        }
        Ok(body)
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

    /// Returns the failure that a status of the source's own server means.
    pub(crate) fn failure(&self, status: StatusCode) -> Failure {
        let place = self.place;
        let host = self.origin.host_str().unwrap_or_default();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failure::AccessDenied(format!(
                "{host} answered {status}; {}",
                if self.authorization.is_some() {
                    format!("check the Secret of {place}.secretRef")
                } else {
                    format!("name a Secret in {place}.secretRef")
                }
            )),
            // Servers hide private repositories in this way.
            StatusCode::NOT_FOUND => Failure::AccessDenied(format!(
                "{host} answered {status}: the repository does not exist, or needs other credentials; check {place}"
            )),
            status => Failure::Unavailable(format!("{host} answered {status}")),
        }
    }
}

/// Follows a redirect to an allowed host, and never from TLS to clear text.
fn redirects(place: Place, allowed: AllowedHosts, refused: Arc<Mutex<Option<Failure>>>) -> Policy {
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
        match allowed.check(place, &url) {
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
