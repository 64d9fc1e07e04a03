//! Requests for embeddings in OpenAI's form, with the address and the key of the policy's provider. It reads no vectors.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use skillet_api::gateway::{EmbeddingsProvider, Provider};
use skillet_llm::DialectName;
use tokio::time::timeout;

use super::{ProviderClient, key_header, outcome, put_key, request_url, transport_error::transport_error};
use crate::error::ApiError;

/// The name of the provider in errors and logs.
const NAME: &str = "of embeddings";

/// A request for embeddings that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EmbeddingsFailure {
    /// The outcome in the metric.
    pub(crate) outcome: &'static str,
    pub(crate) message: String,
    /// True if the provider may accept other texts.
    pub(crate) is_of_texts: bool,
}

impl EmbeddingsFailure {
    pub(crate) fn new(outcome: &'static str, message: impl Into<String>) -> Self {
        Self { outcome, message: message.into(), is_of_texts: false }
    }

    fn of_key(error: ApiError) -> Self {
        Self::new("no_key", error.message)
    }

    fn of_status(outcome: &'static str, status: StatusCode) -> Self {
        let advice = match status.as_u16() {
            401 | 403 => "; look at the key in keySecret",
            404 => "; look at baseUrl and model",
            400 | 413 | 422 => "; look at model and dimensions",
            _ => "",
        };
        let message = format!("the provider {NAME} answered {}{advice}", status.as_u16());
        Self { is_of_texts: matches!(status.as_u16(), 400 | 413 | 422), ..Self::new(outcome, message) }
    }
}

/// Limits of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmbeddingsLimits {
    pub(crate) timeout: Duration,
    /// Most bytes of the response.
    pub(crate) bytes: usize,
}

impl ProviderClient {
    /// Sends a body to the provider of embeddings, and returns the body of its response.
    pub(crate) async fn post_embeddings(
        &self,
        settings: &EmbeddingsProvider,
        body: String,
        limits: EmbeddingsLimits,
    ) -> Result<Vec<u8>, EmbeddingsFailure> {
        let late = |_| {
            let message = format!("the provider {NAME} did not answer within {:?}", limits.timeout);
            EmbeddingsFailure::new("timeout", message)
        };
        timeout(limits.timeout, self.post(settings, body, limits.bytes)).await.map_err(late)?
    }

    async fn post(
        &self,
        settings: &EmbeddingsProvider,
        body: String,
        max_bytes: usize,
    ) -> Result<Vec<u8>, EmbeddingsFailure> {
        let EmbeddingsProvider { base_url, key_secret, azure, model, dimensions: _, timeout: _ } = settings;
        let provider = Provider { base_url: base_url.clone(), azure: azure.clone(), ..Provider::default() };
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(secret) = key_secret {
            let key = self.keys.get(NAME, secret).await.map_err(EmbeddingsFailure::of_key)?;
            put_key(&mut headers, key_header(&provider, DialectName::OpenAiChat), key)
                .map_err(EmbeddingsFailure::of_key)?;
        }
        let url = request_url(&provider, DialectName::OpenAiChat, Some(model), "/v1/embeddings");
        let response = self.http.post(url).headers(headers).body(body).send().await;
        let outcome = outcome(&response);
        let broken = |error| EmbeddingsFailure::new("unreachable", transport_error(error, NAME).message);
        let mut response = response.map_err(broken)?;
        if !response.status().is_success() {
            if let Some(secret) = key_secret
                && response.status() == StatusCode::UNAUTHORIZED
            {
                self.keys.forget(secret);
            }
            return Err(EmbeddingsFailure::of_status(outcome, response.status()));
        }
        let mut read = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            read.extend_from_slice(&chunk);
            if read.len() > max_bytes {
                let message = format!("the provider {NAME} answered more than {max_bytes} bytes");
                return Err(EmbeddingsFailure::new("invalid", message));
            }
        }
        Ok(read)
    }
}
