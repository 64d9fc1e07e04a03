//! Responses of a gateway that stops: each is the last one of its connection, so that the client's next request goes to another
//! gateway and meets no connection that is being closed.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderValue, Version, header::CONNECTION};
use tokio_util::sync::CancellationToken;

/// Adds `Connection: close` once the gateway stops. HTTP/2 has no such header, and says it by a frame.
pub(super) async fn announce(
    State(stop): State<CancellationToken>,
    request: Request,
    next: Next,
) -> Response {
    let has_header = request.version() <= Version::HTTP_11;
    let mut response = next.run(request).await;
    if has_header && stop.is_cancelled() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, middleware, routing::get};
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn a_response_is_the_last_of_its_connection_once_the_gateway_stops() {
        let stop = CancellationToken::new();
        let routes = Router::new()
            .route("/", get(async || "here"))
            .layer(middleware::from_fn_with_state(stop.clone(), announce));
        let ask = async |version: Version| {
            let request = http::Request::builder().version(version).uri("/").body(Body::empty()).unwrap();
            let response = routes.clone().oneshot(request).await.unwrap();
            response.headers().get(CONNECTION).cloned()
        };
        assert_eq!(ask(Version::HTTP_11).await, None);
        stop.cancel();
        assert_eq!(ask(Version::HTTP_11).await, Some(HeaderValue::from_static("close")));
        assert_eq!(ask(Version::HTTP_2).await, None);
    }
}
