//! Connections of agents: accepted within limits, served by hyper, and closed when the gateway stops.
//!
//! A connection has a limited time for its first request, TLS included, so half a greeting or half a header holds no
//! place for long. The number of connections follows the container's memory; `places` decides which one is closed.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body};
use bytes::Bytes;
use http::Request;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use skillet_kube::lock;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use tracing::{debug, warn};

use super::places::{Admission, Places};
use crate::tls::Tls;

/// Time from the beginning of a connection to the end of its first request's header.
const FIRST_REQUEST: Duration = Duration::from_secs(30);
/// Time for each later header. Load balancers keep idle connections open for ten minutes.
const NEXT_REQUEST: Duration = Duration::from_secs(650);
/// Interval between pings on an HTTP/2 connection, and the time for their answers.
const PING: Duration = Duration::from_secs(30);
/// Time for an idle connection to close.
const CLOSE: Duration = Duration::from_secs(5);
/// After an error of the listener itself, such as no free descriptor.
const PAUSE: Duration = Duration::from_millis(100);
/// Most bytes of a request's header.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// Serves `routes` until `stop` ends, then until the requests under way have their responses.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    routes: Router,
    most: usize,
    stop: impl Future<Output = ()>,
) {
    let server = Arc::new(Server { tls, routes, table: Mutex::new(Table::new(most)) });
    let closing = CancellationToken::new();
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                if let Some(place) = server.admit(peer.ip(), &closing) {
                    connections.spawn(server.clone().serve_stream(stream, peer, place));
                }
            }
            Err(error) => {
                warn!(%error, "Connection could not be accepted");
                sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    closing.cancel();
    while connections.join_next().await.is_some() {}
}

struct Server {
    tls: Option<Tls>,
    routes: Router,
    table: Mutex<Table>,
}

/// The places, and how to close the connections on them.
struct Table {
    places: Places,
    closing: HashMap<u64, CancellationToken>,
}

/// The place of one connection, given back when it is dropped.
struct Place {
    server: Arc<Server>,
    number: u64,
    closing: CancellationToken,
    /// Cancelled by the first request.
    first_request: CancellationToken,
}

impl Table {
    fn new(most: usize) -> Self {
        Self { places: Places::new(most), closing: HashMap::new() }
    }
}

impl Server {
    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    fn admit(self: &Arc<Self>, peer: IpAddr, all: &CancellationToken) -> Option<Place> {
        let mut table = self.table();
        let Some(Admission { number, evicted }) = table.places.admit(peer) else {
            debug!(%peer, "Connection refused; all places are in use");
            return None;
        };
        if let Some(evicted) = evicted.and_then(|evicted| table.closing.remove(&evicted)) {
            evicted.cancel();
        }
        let closing = all.child_token();
        table.closing.insert(number, closing.clone());
        Some(Place { server: self.clone(), number, closing, first_request: CancellationToken::new() })
    }

    async fn serve_stream(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, place: Place) {
        let place = Arc::new(place);
        let served = self.converse(stream, &place);
        let first_request = async {
            tokio::select! {
                () = sleep(FIRST_REQUEST) => {}
                () = place.first_request.cancelled() => std::future::pending().await,
            }
        };
        tokio::select! {
            served = served => {
                if let Err(error) = served {
                    debug!(%peer, error, "Connection ended");
                }
            }
            () = first_request => debug!(%peer, "Connection closed; no request came in time"),
        }
    }

    async fn converse(&self, stream: TcpStream, place: &Arc<Place>) -> Result<(), String> {
        set_nodelay(&stream);
        let Some(tls) = &self.tls else { return self.serve_requests(stream, place).await };
        let stream = tokio::select! {
            stream = tls.accept(stream) => stream.map_err(|error| error.to_string())?,
            () = place.closing.cancelled() => return Ok(()),
        };
        self.serve_requests(stream, place).await
    }

    async fn serve_requests(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        place: &Arc<Place>,
    ) -> Result<(), String> {
        let builder = builder();
        let service = service_fn(|request: Request<Incoming>| {
            let (under_way, routes) = (UnderWay::begin(place), self.routes.clone());
            async move {
                let response = routes.oneshot(request).await?;
                Ok::<_, Infallible>(response.map(|body| CountedBody { body, _under_way: under_way }))
            }
        });
        let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
        tokio::select! {
            // A request that has come before the order to close is served.
            biased;
            served = connection.as_mut() => return served.map_err(|error| error.to_string()),
            () = place.closing.cancelled() => {}
        }
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            served = connection.as_mut() => return served.map_err(|error| error.to_string()),
            () = sleep(CLOSE) => {}
        }
        // The connection takes no further request. One without a request holds nobody up.
        if Arc::strong_count(place) == 1 {
            return Ok(());
        }
        connection.await.map_err(|error| error.to_string())
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let mut http1 = builder.http1();
    http1.timer(TokioTimer::new()).header_read_timeout(NEXT_REQUEST).max_buf_size(MAX_HEADER_BYTES);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PING);
    builder
}

/// Sets TCP_NODELAY. Otherwise the first event of a stream waits until the client has acknowledged the headers, which
/// takes 40 milliseconds.
fn set_nodelay(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        // Such a connection is slower, or already closed.
        debug!(%error, "Could not set TCP_NODELAY");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.server.table();
        table.places.leave(self.number);
        table.closing.remove(&self.number);
    }
}

/// A request from its header to the end of its response.
struct UnderWay(Arc<Place>);

impl UnderWay {
    fn begin(place: &Arc<Place>) -> Self {
        place.first_request.cancel();
        place.server.table().places.begin_request(place.number);
        Self(place.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.server.table().places.end_request(self.0.number);
    }
}

/// A response's body; its request is under way until it is dropped.
struct CountedBody {
    body: Body,
    _under_way: UnderWay,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
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
