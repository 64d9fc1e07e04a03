//! A provider's response: its bytes within the policy's limit of silence, with its tokens counted as they pass.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, stream};
use http::{HeaderMap, StatusCode, header};
use tokio::time::timeout;

use super::transport_error::transport_error;
use crate::{
    error::ApiError,
    model::{request_record::RequestRecord, usage_meter::UsageMeter},
};

/// A response whose body has not been read.
pub struct ProviderResponse {
    inner: reqwest::Response,
    provider: Arc<str>,
    /// Longest silence within the body.
    idle: Duration,
    request_bytes: u64,
    meter: UsageMeter,
    record: Arc<RequestRecord>,
}

impl ProviderResponse {
    pub(super) fn new(
        inner: reqwest::Response,
        provider: &Arc<str>,
        idle: Duration,
        request_bytes: u64,
        record: Arc<RequestRecord>,
    ) -> Self {
        let kind = inner.headers().get(header::CONTENT_TYPE).map(http::HeaderValue::as_bytes);
        let meter = UsageMeter::new(kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")));
        Self { inner, provider: provider.clone(), idle, request_bytes, meter, record }
    }

    pub fn status(&self) -> StatusCode {
        self.inner.status()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// Returns the next bytes, `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ApiError> {
        let next = timeout(self.idle, self.inner.chunk()).await.map_err(|_| {
            let message = format!("the provider {} sent nothing for {:?}", self.provider, self.idle);
            ApiError::new(StatusCode::GATEWAY_TIMEOUT, "ProviderTooSlow", message)
        })?;
        let chunk = next.map_err(|error| transport_error(error, &self.provider))?;
        if let Some(chunk) = &chunk {
            self.meter.feed(chunk);
        }
        Ok(chunk)
    }

    /// Returns the rest of the body.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send {
        stream::try_unfold(self, |mut response| async {
            let chunk = response.chunk().await.map_err(|error| std::io::Error::other(error.message))?;
            Ok(chunk.map(|chunk| (chunk, response)))
        })
    }
}

impl Drop for ProviderResponse {
    /// Also a response that was not read to its end has cost tokens.
    fn drop(&mut self) {
        if self.status().is_success() {
            self.record.add_tokens(self.meter.tokens(self.request_bytes));
        }
    }
}
