//! Model providers: address, key and headers of a request to one.
//!
//! Forwards end-to-end headers only, and never the caller's token for the gateway, cookies or `x-skillet-` headers. A
//! client's own provider key is forwarded only if the policy allows it; else the platform's key replaces it. Redirects
//! are not followed, because they would carry the key to another host.

mod embeddings;
mod provider_keys;
mod response;
mod transport_error;
mod url;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use skillet_api::gateway::{ConversationPolicy, KeySecret, Provider, StoredObjects};
use skillet_llm::DialectName;

pub(crate) use self::embeddings::{EmbeddingsFailure, EmbeddingsLimits};
pub use self::response::ProviderResponse;
use self::{provider_keys::ProviderKeys, transport_error::transport_error, url::request_url};
use crate::{
    error::ApiError,
    idempotency,
    model::{provider_choice::ChosenProvider, request_record::RequestRecord, shared_key::sends_caller_id},
};

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Of one hop only, or made anew for the next.
const HOP_BY_HOP: [&str; 14] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "content-length",
    // Says that two requests are one. The rounds of a conversation are not.
    idempotency::HEADER,
    // The gateway reads what comes back.
    "accept-encoding",
    "content-encoding",
];
/// Names a client, not a request.
const PRIVATE: [&str; 2] = ["cookie", "set-cookie"];
/// Headers in which providers take keys.
const KEYS: [&str; 4] = ["authorization", "x-api-key", "x-goog-api-key", AZURE_KEY];
const AZURE_KEY: &str = "api-key";
/// Headers that choose an organization, a project or a bill of a key's owner.
const OF_KEY: [&str; 3] = ["openai-organization", "openai-project", "x-goog-user-project"];
const OWN_PREFIX: &str = "x-skillet-";

/// One request to a provider, ready to be sent as often as a conversation needs.
pub struct Upstream {
    client: reqwest::Client,
    url: String,
    headers: HeaderMap,
    /// The provider's name in SkillPolicy.
    provider: Arc<str>,
    key: KeyOwner,
    /// The Secret of the platform's key that the request carries.
    secret: Option<KeySecret>,
    keys: Arc<ProviderKeys>,
    shared_key: SharedKeyRules,
    /// Longest time for one whole response. Models that reason take tens of minutes, and clients wait for them.
    timeout: Duration,
    /// Longest silence within a response. Providers send pings more often.
    idle: Duration,
    record: Arc<RequestRecord>,
}

/// The policy's rules for requests with the platform's key.
#[derive(Clone, Copy, Debug)]
pub struct SharedKeyRules {
    pub stored_objects: StoredObjects,
    pub sends_caller_id: bool,
}

/// The owner of the key that a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOwner {
    Platform,
    Client,
    /// The request carries no key.
    Nobody,
}

/// A client's request to a provider, without its token for the gateway.
#[derive(Clone, Copy, Debug)]
pub struct ProviderRequest<'a> {
    pub dialect: DialectName,
    /// The model, if the request names one where the gateway looks.
    pub model: Option<&'a str>,
    /// Models that a router may fall back to.
    pub fallbacks: &'a [&'a str],
    /// Path and query.
    pub path: &'a str,
    pub headers: &'a HeaderMap,
}

/// The client for all providers, with the platform's keys.
pub struct ProviderClient {
    http: reqwest::Client,
    keys: Arc<ProviderKeys>,
}

impl ProviderClient {
    /// `namespace` is the operator's, which has the Secrets of the platform's keys.
    pub fn new(client: kube::Client, namespace: &str) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_LIMIT)
            // A provider that sends clients elsewhere would be sent their keys there.
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .build()?;
        Ok(Self { http, keys: Arc::new(ProviderKeys::new(client, namespace)) })
    }

    /// Prepares a client's request for this provider.
    pub(super) async fn prepare(
        &self,
        provider: &ChosenProvider<'_>,
        request: &ProviderRequest<'_>,
        limits: &ConversationPolicy,
        record: Arc<RequestRecord>,
    ) -> Result<Upstream, ApiError> {
        let name: Arc<str> = provider.name.into();
        let (ProviderRequest { dialect, model, fallbacks: _, path, headers }, provider) =
            (*request, provider.settings);
        let takes_client_key = provider.takes_client_key();
        let mut sent = request_headers(headers, takes_client_key);
        let has_own = KEYS.iter().any(|name| sent.contains_key(*name)) || without_key(path, true) != path;
        let mut owner = if takes_client_key && has_own { KeyOwner::Client } else { KeyOwner::Nobody };
        if let Some(secret) = &provider.key_secret
            && owner != KeyOwner::Client
        {
            put_key(&mut sent, key_header(provider, dialect), self.keys.get(&name, secret).await?)?;
            OF_KEY.iter().for_each(|name| drop(sent.remove(*name)));
            owner = KeyOwner::Platform;
        }
        // A server of one's own may need no key. The public ones all do.
        if owner == KeyOwner::Nobody && provider.base_url.is_empty() {
            return Err(no_key(&name, takes_client_key));
        }
        sent.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let path = without_key(path, owner == KeyOwner::Platform || !takes_client_key);
        let url = request_url(provider, dialect, model, &path);
        Ok(Upstream {
            client: self.http.clone(),
            url,
            headers: sent,
            provider: name,
            key: owner,
            secret: if owner == KeyOwner::Platform { provider.key_secret.clone() } else { None },
            keys: self.keys.clone(),
            shared_key: SharedKeyRules {
                stored_objects: provider.stored_objects,
                sends_caller_id: sends_caller_id(provider),
            },
            timeout: limits.response_timeout.0,
            idle: limits.idle_timeout.0,
            record,
        })
    }
}

impl Upstream {
    /// Sends a request to the provider. Any status is a response.
    pub async fn send(&self, body: Bytes) -> Result<ProviderResponse, ApiError> {
        self.send_request(Method::POST, body.into(), None).await
    }

    /// The owner of the key that the request carries.
    pub fn key_owner(&self) -> KeyOwner {
        self.key
    }

    /// The rules of the platform's key, if the request carries it.
    pub fn shared_key(&self) -> Option<SharedKeyRules> {
        (self.key == KeyOwner::Platform).then_some(self.shared_key)
    }

    /// The record of the client's request.
    pub(super) fn record(&self) -> &RequestRecord {
        &self.record
    }

    /// Reads what stands at `path` in the place of `end`, the end of this request's own path.
    pub async fn get_beside(&self, end: &str, path: &str) -> Result<ProviderResponse, ApiError> {
        let own = self.url.split('?').next().unwrap_or_default();
        let base =
            own.strip_suffix(end).ok_or_else(|| ApiError::not_found("the provider has no such path"))?;
        self.request(Method::GET, &format!("{base}{path}"), reqwest::Body::default(), None).await
    }

    /// Sends a request of any method. `length` is that of a streamed body, if it is known.
    pub(super) async fn send_request(
        &self,
        method: Method,
        body: reqwest::Body,
        length: Option<u64>,
    ) -> Result<ProviderResponse, ApiError> {
        self.request(method, &self.url, body, length).await
    }

    async fn request(
        &self,
        method: Method,
        url: &str,
        body: reqwest::Body,
        length: Option<u64>,
    ) -> Result<ProviderResponse, ApiError> {
        let bytes = body.as_bytes().map_or(0, <[u8]>::len) as u64;
        self.record.add_round();
        let mut request = self.client.request(method, url).headers(self.headers.clone()).body(body);
        if let Some(length) = length {
            request = request.header(header::CONTENT_LENGTH, length);
        }
        let response = request.timeout(self.timeout).send().await;
        self.record.answer(outcome(&response));
        let response = response.map_err(|error| transport_error(error, &self.provider))?;
        if response.status() == StatusCode::UNAUTHORIZED
            && let Some(secret) = &self.secret
        {
            self.keys.forget(secret);
        }
        Ok(ProviderResponse::new(response, &self.provider, self.idle, bytes, self.record.clone()))
    }
}

/// The outcome of a request to a provider, for the metric.
fn outcome(response: &Result<reqwest::Response, reqwest::Error>) -> &'static str {
    match response {
        Err(error) if error.is_timeout() => "timeout",
        Err(_) => "unreachable",
        Ok(response) => match response.status() {
            StatusCode::TOO_MANY_REQUESTS => "throttled",
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "denied",
            status if status.is_server_error() => "server_error",
            status if status.is_client_error() => "client_error",
            _ => "success",
        },
    }
}

/// Refuses a request that a public provider would refuse for want of a key.
fn no_key(provider: &str, takes_client_key: bool) -> ApiError {
    let own = if takes_client_key { ", and the request has no key of its own" } else { "" };
    let message = format!("SkillPolicy names no keySecret for the provider {provider}{own}");
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "SecretMissing", message)
}

/// The path, where `is_dropped` without a key of the client's in its query. Also one whose name is written in another
/// way, for the provider would read it.
fn without_key(path: &str, is_dropped: bool) -> String {
    let Some((bare, query)) = path.split_once('?').filter(|_| is_dropped) else { return path.to_owned() };
    let is_key = |part: &&str| {
        let name = part.split('=').next().unwrap_or_default();
        name.contains('%') || name.eq_ignore_ascii_case("key")
    };
    let kept: Vec<&str> = query.split('&').filter(|part| !is_key(part)).collect();
    if kept.is_empty() { bare.to_owned() } else { format!("{bare}?{}", kept.join("&")) }
}

fn request_headers(headers: &HeaderMap, takes_client_key: bool) -> HeaderMap {
    let mut kept = end_to_end(headers);
    if !takes_client_key {
        KEYS.iter().for_each(|name| drop(kept.remove(*name)));
    }
    kept
}

/// Returns the end-to-end headers that are neither hop-by-hop nor meant for the gateway.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let connection = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let of_this_hop: Vec<&[u8]> = connection.map(<[u8]>::trim_ascii).collect();
    let is_passed = |name: &HeaderName| {
        let name = name.as_str();
        !HOP_BY_HOP.contains(&name)
            && !PRIVATE.contains(&name)
            && !name.starts_with(OWN_PREFIX)
            && !of_this_hop.iter().any(|named| named.eq_ignore_ascii_case(name.as_bytes()))
    };
    let kept = headers.iter().filter(|(name, _)| is_passed(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The header in which the provider looks for a key.
fn key_header(provider: &Provider, dialect: DialectName) -> &'static str {
    match dialect {
        DialectName::OpenAiChat | DialectName::OpenAiResponses if provider.azure.is_some() => AZURE_KEY,
        DialectName::OpenAiChat | DialectName::OpenAiResponses => "authorization",
        DialectName::Anthropic => "x-api-key",
        DialectName::Gemini => "x-goog-api-key",
    }
}

fn put_key(headers: &mut HeaderMap, name: &'static str, key: HeaderValue) -> Result<(), ApiError> {
    KEYS.iter().for_each(|name| drop(headers.remove(*name)));
    let mut value = if name == "authorization" {
        let bearer = [b"Bearer ", key.as_bytes()].concat();
        HeaderValue::from_bytes(&bearer)
            .map_err(|_| ApiError::unavailable("the provider's key cannot be sent"))?
    } else {
        key
    };
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

/// Returns the provider's headers that the client gets.
pub fn response_headers(headers: &HeaderMap) -> HeaderMap {
    end_to_end(headers)
}

#[cfg(test)]
mod tests;
