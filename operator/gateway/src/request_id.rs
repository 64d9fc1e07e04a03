//! Request ids and spans: every request has an id, and every log line of it carries the id.
//!
//! The id is the client's `x-request-id` if it is at most 128 visible ASCII characters, else a generated one. The
//! response returns it, unless a provider has set one of its own. Executions that the request creates carry it as an
//! annotation. Tasks that outlive the handler keep the span only if they are spawned with it.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tracing::{Instrument as _, Span, field, info, info_span, warn};

use crate::error::ApiError;

pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Longest client id that is kept.
const MAX_LENGTH: usize = 128;

/// Runs a request in its span, and gives request and response the same id. Logs one line if the request fails.
pub async fn trace(mut request: Request, next: Next) -> Response {
    let id = request.headers().get(HEADER).filter(|value| is_valid(value)).cloned().unwrap_or_else(generate);
    request.headers_mut().insert(HEADER, id.clone());
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    let id_text = id.to_str().unwrap_or_default();
    let (method, began) = (request.method().clone(), Instant::now());
    let span = info_span!(
        "request",
        id = id_text,
        route,
        caller_namespace = field::Empty,
        caller = field::Empty,
        api_key = field::Empty
    );
    // MCP handles a request in a task of its own, which finds the span here.
    request.extensions_mut().insert(span.clone());
    let mut response = next.run(request).instrument(span.clone()).await;
    span.in_scope(|| log_failure(&method, &response, began));
    response.headers_mut().entry(HEADER).or_insert(id);
    response
}

/// Logs a response that is no success. Its message may quote the request, so the line has the code and the field alone.
fn log_failure(method: &Method, response: &Response, began: Instant) {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return;
    }
    let error = response.extensions().get::<ApiError>();
    let code = error.map(|error| error.code.as_str()).unwrap_or_default();
    let field = error.and_then(|error| error.field.as_deref()).unwrap_or_default();
    let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let status = status.as_u16();
    if status >= 500 {
        warn!(%method, status, code, field, duration_ms, "Request failed");
    } else {
        info!(%method, status, code, field, duration_ms, "Request refused");
    }
}

/// Adds the authenticated caller to the span of the current request.
pub fn record_caller(namespace: &str, user: &str) {
    Span::current().record("caller_namespace", namespace);
    Span::current().record("caller", user);
}

/// Adds the namespace and name of an ApiKey to the span of the current request.
pub fn record_key(key: &str) {
    Span::current().record("api_key", key);
}

/// Returns the id that [`trace`] has put into these headers.
pub fn get(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(HEADER).filter(|value| is_valid(value))?;
    id.to_str().ok().map(ToOwned::to_owned)
}

fn is_valid(id: &HeaderValue) -> bool {
    (1..=MAX_LENGTH).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
}

/// Process start time plus a counter: unique across processes and within one.
fn generate() -> HeaderValue {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static STARTED: OnceLock<u64> = OnceLock::new();
    let started = STARTED.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or_default()
    });
    let text = format!("{started:016x}-{:x}", NEXT.fetch_add(1, Ordering::Relaxed));
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("none"))
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use axum::{Router, body::Body, middleware, response::IntoResponse as _, routing::get};
    use skillet_kube::lock;
    use tower::ServiceExt as _;

    use super::*;

    async fn id_of_response(id: Option<&[u8]>) -> String {
        let echo = async |headers: HeaderMap| super::get(&headers).unwrap();
        let routes = Router::new().route("/", get(echo)).layer(middleware::from_fn(trace));
        let mut request = Request::new(Body::empty());
        if let Some(id) = id {
            request.headers_mut().insert(HEADER, HeaderValue::from_bytes(id).unwrap());
        }
        let (parts, body) = routes.oneshot(request).await.unwrap().into_parts();
        let seen = axum::body::to_bytes(body, 1024).await.unwrap();
        assert_eq!(parts.headers[HEADER].as_bytes(), seen, "handler and client see the same id");
        parts.headers[HEADER].to_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_valid_client_id_is_kept_and_any_other_is_replaced() {
        assert_eq!(id_of_response(Some(b"mine-1:a/b")).await, "mine-1:a/b");
        let (one, two) = (id_of_response(None).await, id_of_response(None).await);
        assert!(one != two && one.len() > 16, "{one} {two}");
        for wrong in [&b"x".repeat(129)[..], b"", b"a b", b"caf\xe9", b"a\tb"] {
            assert!(id_of_response(Some(wrong)).await.len() > 16, "{wrong:?}");
        }
        assert_eq!(id_of_response(Some(&b"x".repeat(128))).await, "x".repeat(128));
    }

    /// The fields of the one log line of a request that gets this response, its span's included.
    async fn line(response: fn() -> Response) -> Vec<String> {
        let written = Arc::new(Mutex::new(Vec::new()));
        let writer = written.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || Writer(writer.clone()));
        let _guard = tracing::subscriber::set_default(subscriber.finish());
        // With one subscriber alone, a span that another test has met before would stay disabled.
        let _second = tracing::Dispatch::new(tracing_subscriber::registry());
        let handler = async move || {
            record_caller("team", "system:serviceaccount:team:agent");
            response()
        };
        let routes = Router::new().route("/", get(handler)).layer(middleware::from_fn(trace));
        routes.oneshot(Request::new(Body::empty())).await.unwrap();
        let written = lock(&written);
        String::from_utf8_lossy(&written).lines().map(ToOwned::to_owned).collect()
    }

    struct Writer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Writer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_request_that_fails_is_logged_once_with_caller_and_code() {
        let [refused] = &line(|| ApiError::forbidden("secret words").at("/input").into_response()).await[..]
        else {
            panic!("not one line")
        };
        for part in [
            "status=403",
            "code=\"Forbidden\"",
            "field=\"/input\"",
            "route=\"/\"",
            "Request refused",
            "system:serviceaccount:team:agent",
            "id=",
        ] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        assert!(!refused.contains("secret words"), "{refused}");
        let failed = line(|| ApiError::unavailable("no").into_response()).await;
        assert!(failed.len() == 1 && failed[0].contains("WARN"), "{failed:?}");
        assert_eq!(line(|| "fine".into_response()).await, Vec::<String>::new());
    }
}
