//! Export of spans to an OpenTelemetry collector, by OTLP over HTTP with protobuf.
//!
//! A thread of its own sends spans in batches from a queue of limited length. If the collector is away, spans are lost
//! and nothing else is: creating a span never waits, and the shutdown waits [`FLUSH_TIMEOUT`] at most.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use reqwest::Url;
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use super::{is_own, warn};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Exports the spans of `service` to the collector at `endpoint`, such as `http://collector:4318`.
pub(super) fn provider(service: &'static str, endpoint: &Url) -> anyhow::Result<SdkTracerProvider> {
    let client = reqwest::Client::builder().timeout(REQUEST_TIMEOUT).build();
    let collector = Collector {
        client: client.context("could not make the client for the collector")?,
        runtime: Handle::current(),
        is_failing: AtomicBool::new(false),
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(collector)
        .with_endpoint(format!("{}/v1/traces", endpoint.as_str().trim_end_matches('/')))
        .build()
        .context("could not make the exporter of spans")?;
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_service_name(service).with_attribute(version).build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// Hands the product's own spans to `provider`. Libraries are left out: the exporter's client has spans, too.
pub(super) fn layer<S>(provider: &SdkTracerProvider) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("skillet"))
        .with_location(false)
        .with_threads(false)
        .with_filter(filter_fn(is_own))
}

/// Sends the queued spans and ends the export.
pub(super) async fn shut_down(provider: SdkTracerProvider) {
    let flush = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FLUSH_TIMEOUT));
    if let Ok(Err(error)) = flush.await {
        warn!(%error, "The last spans could not be exported");
    }
}

/// Lets the exporter's thread, which has no async runtime, use an async client.
#[derive(Debug)]
struct Collector {
    client: reqwest::Client,
    runtime: Handle,
    is_failing: AtomicBool,
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let response = self.runtime.spawn(send(self.client.clone(), request)).await.map_err(HttpError::from);
        let response = response.and_then(|response| response.map_err(HttpError::from));
        let failure = match &response {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(response.status().to_string()),
            Err(error) => Some(error.to_string()),
        };
        let was_failing = self.is_failing.swap(failure.is_some(), Ordering::Relaxed);
        if let (Some(error), false) = (failure, was_failing) {
            warn!(%error, "Spans could not be exported");
        }
        response
    }
}

async fn send(client: reqwest::Client, request: Request<Bytes>) -> reqwest::Result<Response<Bytes>> {
    let received = client.execute(request.try_into()?).await?;
    let (status, headers) = (received.status(), received.headers().clone());
    let mut response = Response::new(received.bytes().await?);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}
