//! `--request-timeout`: a limit on the wait for the response to each request. A watch has its response at once.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use kube::client::Body;
use thiserror::Error;
use tokio::time::timeout;
use tower::{BoxError, Service};

/// Ends requests that have no response within `limit`, if there is one.
#[derive(Clone)]
pub(crate) struct LimitRequests<S> {
    pub(crate) inner: S,
    pub(crate) limit: Option<Duration>,
}

#[derive(Debug, Error)]
#[error("the API server did not respond within {0:?}; --request-timeout gives it more time")]
struct TimedOut(Duration);

impl<S, B> Service<Request<Body>> for LimitRequests<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(task).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (response, limit) = (self.inner.call(request), self.limit);
        Box::pin(async move {
            match limit {
                None => response.await.map_err(Into::into),
                Some(limit) => match timeout(limit, response).await {
                    Ok(response) => response.map_err(Into::into),
                    Err(_) => Err(TimedOut(limit).into()),
                },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use kube::Client;
    use tower::service_fn;

    use super::*;
    use crate::{error::CliError, exit::Exit};

    #[tokio::test(start_paused = true)]
    async fn a_request_without_a_response_ends_at_its_limit() {
        let silent =
            service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, BoxError>>());
        let limited = LimitRequests { inner: silent, limit: Some(Duration::from_secs(2)) };
        let error = Client::new(limited, "default").apiserver_version().await.unwrap_err();
        let error = CliError::from_api("read the version", &error);
        assert!(error.to_string().contains("did not respond within 2s"), "{error}");
        assert_eq!(error.exit(), Exit::Cluster);
    }
}
