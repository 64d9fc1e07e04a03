//! Log lines with the fields of their spans, and spans on the wire as a collector reads them.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Bytes, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{ResourceSpans, Span},
};
use prost::Message as _;
use tokio::{net::TcpListener, sync::mpsc, time::timeout};
use tracing::{info, info_span};

use super::*;

/// Far more than anything here takes on a busy machine, and less than a collector could be waited for.
const LIMIT: Duration = Duration::from_secs(60);

/// Starts a collector; each export request comes out of the channel, decoded.
async fn collector() -> (reqwest::Url, mpsc::UnboundedReceiver<ExportTraceServiceRequest>) {
    let (received, requests) = mpsc::unbounded_channel();
    let export = async move |body: Bytes| {
        received.send(ExportTraceServiceRequest::decode(body).unwrap()).unwrap();
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(axum::serve(listener, Router::new().route("/v1/traces", post(export))).into_future());
    (endpoint, requests)
}

/// Makes `count` spans of an execution, with a log line in each.
fn make_spans(provider: &SdkTracerProvider, count: usize) {
    let subscriber = tracing_subscriber::registry().with(otlp::layer(provider));
    tracing::subscriber::with_default(subscriber, || {
        for _ in 0..count {
            let span = info_span!("execution", namespace = "team-a", name = "sum-1", uid = "u-1");
            span.in_scope(|| info!(node = "n1", "Sandbox bound"));
            tracing::debug_span!("detail").in_scope(|| {});
        }
    });
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let attribute = attributes.iter().find(|attribute| attribute.key == key)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_reach_the_collector_with_name_attributes_and_service() {
    let (endpoint, mut requests) = collector().await;
    let provider = otlp::provider("skillet-operator", &endpoint).unwrap();
    make_spans(&provider, 1);
    otlp::shut_down(provider).await;
    let request = requests.recv().await.unwrap();
    let [ResourceSpans { resource: Some(resource), scope_spans, .. }] = &request.resource_spans[..] else {
        panic!("not one resource: {request:?}");
    };
    assert_eq!(text(&resource.attributes, "service.name"), Some("skillet-operator"));
    assert_eq!(text(&resource.attributes, "service.version"), Some(env!("CARGO_PKG_VERSION")));
    let spans: Vec<&Span> = scope_spans.iter().flat_map(|scope| &scope.spans).collect();
    let [span] = spans[..] else { panic!("not one span: {spans:?}") };
    assert_eq!(span.name, "execution");
    for (key, value) in [("namespace", "team-a"), ("name", "sum-1"), ("uid", "u-1")] {
        assert_eq!(text(&span.attributes, key), Some(value), "{key}");
    }
    assert_eq!(span.events[0].name, "Sandbox bound");
    assert_eq!(text(&span.events[0].attributes, "node"), Some("n1"));
    assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_absent_or_silent_collector_blocks_neither_spans_nor_shutdown() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let absent = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for address in [silent.local_addr().unwrap(), absent] {
        let provider =
            otlp::provider("skillet-gateway", &format!("http://{address}").parse().unwrap()).unwrap();
        // More than the queue holds.
        let spans = tokio::task::spawn_blocking({
            let provider = provider.clone();
            move || make_spans(&provider, 10_000)
        });
        timeout(LIMIT, spans).await.expect("spans wait for no collector").unwrap();
        timeout(LIMIT, otlp::shut_down(provider)).await.expect("shutdown waits for no collector");
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn json_log_lines_contain_the_fields_of_their_spans_at_any_filter() {
    let lines = Lines::default();
    let writer = lines.clone();
    let layer = log_layer(LogFormat::Json, "warn", move || writer.clone()).unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let request = info_span!("request", id = "r-1", route = "/v1/messages");
        let _request = request.enter();
        let call = info_span!("call", skill = "sum");
        let _call = call.enter();
        info!("not logged");
        warn!(status = 503, "Provider failed");
    });
    let line: serde_json::Value = serde_json::from_slice(&lines.0.lock().unwrap()).unwrap();
    assert_eq!(line["message"], "Provider failed");
    assert_eq!(line["status"], 503);
    assert_eq!(
        line["spans"],
        serde_json::json!([
            { "name": "request", "id": "r-1", "route": "/v1/messages" },
            { "name": "call", "skill": "sum" },
        ])
    );
    assert!(line.get("span").is_none(), "each span is there once");
}

#[test]
fn libraries_are_silenced_unless_the_filter_names_them() {
    assert_eq!(with_quiet_libraries("debug"), "debug,kube_client::client=off,rmcp=error");
    assert_eq!(with_quiet_libraries("info,rmcp=debug"), "info,rmcp=debug,kube_client::client=off");
}
