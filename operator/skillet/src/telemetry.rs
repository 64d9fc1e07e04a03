//! Logs and spans, set up once in a process.
//!
//! Log lines go to standard error, each with the fields of its spans. Spans also go to an OpenTelemetry collector if
//! `--otlp-endpoint` names one.

mod otlp;
#[cfg(test)]
mod tests;

use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Metadata, Subscriber, level_filters::LevelFilter, warn};
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::{FilterExt as _, filter_fn},
    fmt::{self, MakeWriter},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use crate::config::{LogFormat, TelemetryConfig};

/// Runs `work` with logs and spans, and then sends the spans that are still queued.
pub(crate) async fn run_with(
    service: &'static str,
    config: &TelemetryConfig,
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let provider = start(service, config)?;
    let result = work.await;
    if let Some(provider) = provider {
        otlp::shut_down(provider).await;
    }
    result
}

fn start(service: &'static str, config: &TelemetryConfig) -> anyhow::Result<Option<SdkTracerProvider>> {
    let TelemetryConfig { log_format, log_filter, otlp_endpoint } = config;
    let provider = otlp_endpoint.as_ref().map(|endpoint| otlp::provider(service, endpoint)).transpose()?;
    tracing_subscriber::registry()
        .with(provider.as_ref().map(otlp::layer))
        .with(log_layer(*log_format, log_filter, std::io::stderr)?)
        .init();
    Ok(provider)
}

/// Writes events as log lines. The filter chooses events; the product's own spans are always part of their lines.
fn log_layer<S, W>(format: LogFormat, filter: &str, writer: W) -> anyhow::Result<impl Layer<S> + use<S, W>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let own_spans = filter_fn(|metadata| metadata.is_span() && is_own(metadata));
    let filter = EnvFilter::try_new(with_quiet_libraries(filter))?.or(own_spans);
    let lines = fmt::layer().with_writer(writer);
    Ok(match format {
        // The list of spans ends with the current one.
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).boxed(),
        LogFormat::Text => lines.boxed(),
    }
    .with_filter(filter))
}

/// True for spans and events of this workspace's crates, from level info on.
fn is_own(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("skillet") && *metadata.level() <= LevelFilter::INFO
}

/// Silences two libraries unless the filter names them. The Kubernetes client logs every unsuccessful response as an
/// error, although a run begins with refused attaches. The MCP library logs each request, and its content from debug on.
fn with_quiet_libraries(filter: &str) -> String {
    let quiet = [("kube_client", "kube_client::client=off"), ("rmcp", "rmcp=error")];
    let quiet = quiet.into_iter().filter(|(library, _)| !filter.contains(library));
    quiet.fold(filter.to_owned(), |filter, (_, directive)| format!("{filter},{directive}"))
}
