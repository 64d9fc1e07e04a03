//! A name for every request, told in the answer's headers: the client's own where it gave one, else one made here.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{extract::Request, middleware::Next, response::Response};
use http::{HeaderName, HeaderValue};

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id of a client's that is passed on.
const LONGEST: usize = 128;

/// Sees to it that request and answer carry the same id. A provider's own id, where it has one, stays.
pub async fn name(mut request: Request, next: Next) -> Response {
    let given = request.headers().get(HEADER).filter(|value| value.len() <= LONGEST).cloned();
    let id = given.unwrap_or_else(made);
    request.headers_mut().insert(HEADER, id.clone());
    let mut response = next.run(request).await;
    response.headers_mut().entry(HEADER).or_insert(id);
    response
}

/// Unlike those of other processes by the time of its first use, unlike those of this one by a number.
fn made() -> HeaderValue {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static STARTED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let started = STARTED.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or_default()
    });
    let text = format!("{started:016x}-{:x}", NEXT.fetch_add(1, Ordering::Relaxed));
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("none"))
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, middleware, routing::get};
    use tower::ServiceExt as _;

    use super::*;

    async fn answered(id: Option<&str>) -> String {
        let routes = Router::new().route("/", get(async || "")).layer(middleware::from_fn(name));
        let mut request = Request::new(Body::empty());
        if let Some(id) = id {
            request.headers_mut().insert(HEADER, id.parse().unwrap());
        }
        routes.oneshot(request).await.unwrap().headers()[HEADER].to_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_request_keeps_its_id_and_gets_one_where_it_has_none() {
        assert_eq!(answered(Some("mine")).await, "mine");
        let (one, two) = (answered(None).await, answered(None).await);
        assert!(one != two && one.len() > 16, "{one} {two}");
        assert_ne!(answered(Some(&"x".repeat(200))).await, "x".repeat(200));
    }
}
