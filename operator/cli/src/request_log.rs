//! `-v 6`: a line on standard error for each request to the API server, as kubectl's.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use http::{Request, Response};
use kube::client::Body;
use tower::Service;

use crate::console;

/// Level from which requests are shown.
pub(crate) const REQUESTS: u8 = 6;

/// Shows method, URL, status and time of each request, never a header or a body.
#[derive(Clone)]
pub(crate) struct LogRequests<S>(pub(crate) S);

impl<S, B> Service<Request<Body>> for LogRequests<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(task)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let target = format!("{} {}", request.method(), request.uri());
        let started = Instant::now();
        let response = self.0.call(request);
        Box::pin(async move {
            let response = response.await;
            let status = response
                .as_ref()
                .map_or_else(|_| "no response".to_owned(), |response| response.status().to_string());
            console::explain(&format!("{target} {status} in {} ms\n", started.elapsed().as_millis()));
            response
        })
    }
}
