//! Limits of the requests to the API server: a number of places, and a time for each response.
//!
//! A burst of work must not become as many requests at once: the API server answers a part of them with 429, and every
//! other request of this process waits behind them. Watches and attached streams last, so they take no place. Requests
//! for the Lease take none either: a leader that cannot renew is no leader.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, header::UPGRADE};
use http_body::{Body as HttpBody, Frame, SizeHint};
use prometheus_client::metrics::gauge::Gauge;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep, sleep, timeout},
};
use tower::{BoxError, Service};

use super::metrics::{ApiError, ApiMetrics};

/// Requests in flight at one time.
pub(super) const PLACES: usize = 64;
/// The API server responds within this time, and sends each further part of a body within it.
pub(super) const RESPONSE_LIMIT: Duration = Duration::from_secs(15);

/// The error of a request without a response.
#[derive(Debug)]
struct NoResponse;

impl fmt::Display for NoResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the API server did not respond within {RESPONSE_LIMIT:?}")
    }
}

impl std::error::Error for NoResponse {}

/// The kinds of requests, which have different limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    /// Needs a place, and has a time limit.
    Plain,
    /// Has a time limit, and needs no place.
    Lease,
    /// Has no limits.
    Watch,
    /// Has no limits. Its failures are no errors: an attach is tried until the container runs.
    Upgrade,
}

impl RequestKind {
    fn of<B>(request: &Request<B>) -> Self {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let has = |wanted: &str| {
            query.split('&').any(|pair| {
                pair.split_once('=').is_some_and(|(name, value)| name == wanted && value != "false")
            })
        };
        if request.headers().contains_key(UPGRADE) {
            Self::Upgrade
        } else if has("watch") || has("follow") {
            Self::Watch
        } else if path.starts_with("/apis/coordination.k8s.io/") {
            Self::Lease
        } else {
            Self::Plain
        }
    }

    fn has_time_limit(self) -> bool {
        match self {
            Self::Plain | Self::Lease => true,
            Self::Watch | Self::Upgrade => false,
        }
    }
}

/// A service that limits the requests of another one.
pub(super) struct LimitRequests<S> {
    service: S,
    places: Arc<Semaphore>,
    metrics: ApiMetrics,
}

impl<S> LimitRequests<S> {
    pub(super) fn new(service: S, metrics: ApiMetrics) -> Self {
        Self { service, places: Arc::new(Semaphore::new(PLACES)), metrics }
    }
}

impl<S, B, R> Service<Request<R>> for LimitRequests<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<LimitedBody<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.service.poll_ready(task).map_err(Into::into)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let kind = RequestKind::of(&request);
        if kind == RequestKind::Watch {
            self.metrics.count_watch(request.uri().path());
        }
        let (places, metrics) = (self.places.clone(), self.metrics.clone());
        // Nothing is sent before the response is polled, for which the request needs its place.
        let response = self.service.call(request);
        Box::pin(async move {
            let place =
                if kind == RequestKind::Plain { Some(Place::wait(places, &metrics).await) } else { None };
            let response = respond(kind, response).await;
            let error = match &response {
                Ok(response) => ApiError::of(response.status()),
                Err(error) if error.is::<NoResponse>() => Some(ApiError::Timeout),
                Err(_) => Some(ApiError::Connection),
            };
            if let Some(error) = error.filter(|_| kind != RequestKind::Upgrade) {
                metrics.count_error(error);
            }
            Ok(response?.map(|body| LimitedBody::new(body, place, kind.has_time_limit())))
        })
    }
}

async fn respond<T, E: Into<BoxError>>(
    kind: RequestKind,
    response: impl Future<Output = Result<T, E>>,
) -> Result<T, BoxError> {
    if !kind.has_time_limit() {
        return response.await.map_err(Into::into);
    }
    timeout(RESPONSE_LIMIT, response).await.map_err(|_| NoResponse)?.map_err(Into::into)
}

/// A place among the requests in flight, until it is dropped.
struct Place {
    /// Nothing closes the semaphore, so there is always a permit.
    _permit: Option<OwnedSemaphorePermit>,
    _in_flight: Counted,
}

impl Place {
    async fn wait(places: Arc<Semaphore>, metrics: &ApiMetrics) -> Self {
        let waiting = Counted::new(&metrics.waiting);
        let permit = places.acquire_owned().await.ok();
        drop(waiting);
        Self { _permit: permit, _in_flight: Counted::new(&metrics.in_flight) }
    }
}

/// One in a gauge, until it is dropped.
struct Counted(Gauge);

impl Counted {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The body of a response. Its request keeps its place until the body has ended.
pub(super) struct LimitedBody<B> {
    body: Pin<Box<B>>,
    place: Option<Place>,
    /// The end of the time for the next part.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<B> LimitedBody<B> {
    fn new(body: B, place: Option<Place>, has_time_limit: bool) -> Self {
        let deadline = has_time_limit.then(|| Box::pin(sleep(RESPONSE_LIMIT)));
        Self { body: Box::pin(body), place, deadline }
    }
}

impl<B> HttpBody for LimitedBody<B>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = this.body.as_mut().poll_frame(task) {
            match (&frame, &mut this.deadline) {
                (Some(_), Some(deadline)) => deadline.as_mut().reset(Instant::now() + RESPONSE_LIMIT),
                (Some(_), None) => {}
                (None, _) => this.place = None,
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        match &mut this.deadline {
            Some(deadline) => deadline.as_mut().poll(task).map(|()| Some(Err(NoResponse.into()))),
            None => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
