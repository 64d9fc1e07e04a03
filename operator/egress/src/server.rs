//! The broker: a server of mutual TLS that takes the links of runs and the HTTP requests of skills.

#[cfg(test)]
mod tests;

use std::{convert::Infallible, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use thiserror::Error;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};
use tokio_rustls::{rustls::ServerConfig, server::TlsStream};
use tracing::{debug, info};

use crate::{
    accept::{SETTLE, accept},
    dialer::{Connect, Dialer},
    http_request::{Memory, Requester},
    limits::LimitSettings,
    metrics::Metrics,
    mounted::{self, LOOK_EVERY, Mounted, TlsError},
    request::{EgressRequest, MAX_REQUEST_BYTES},
    resolver::Resolve,
    run_link::{self, LinkSettings},
    wire::{REQUESTS_PATH, RUNS_PATH, UPGRADE},
};

/// Most connections of operators at one time. Each run has one.
const MAX_OPERATOR_CONNECTIONS: usize = 8192;
/// Longer than clients keep a connection that they do not use.
const HEAD_LIMIT: Duration = Duration::from_secs(75);
/// Time for the links of runs to end after the shutdown began.
const AFTER_DRAIN: Duration = Duration::from_secs(2);

/// Settings of a broker.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Folder with `tls.crt`, `tls.key` and `ca.crt`.
    pub tls_folder: PathBuf,
    /// PEM file of authorities that are trusted beside the public ones for the hosts of skills.
    pub ca_bundle: Option<PathBuf>,
    pub limits: LimitSettings,
    /// Most bytes of bodies of HTTP requests and responses at one time.
    pub body_memory: usize,
    /// Longest time for which a channel may have no traffic.
    pub idle_limit: Duration,
    /// Longest time of a run's link.
    pub link_limit: Duration,
    /// Time that open runs and requests have to end on shutdown.
    pub drain: Duration,
}

#[derive(Debug, Error)]
pub enum ServerError {
    #[error("could not set up TLS for operators")]
    Operators(#[source] TlsError),
    #[error("could not set up TLS for the hosts of skills")]
    Hosts(#[source] TlsError),
}

/// A broker that does not serve yet.
pub struct Server {
    operators_tls: Mounted<ServerConfig>,
    drain: Duration,
    pub(crate) settle: Duration,
    state: Arc<State>,
}

struct State {
    requester: Requester,
    dialer: Dialer,
    link: LinkSettings,
    memory: Memory,
    metrics: Metrics,
    /// Becomes true when links of runs must end.
    ended: watch::Receiver<bool>,
    end: watch::Sender<bool>,
}

impl Server {
    pub fn new(
        settings: ServerSettings,
        resolver: Arc<dyn Resolve>,
        connect: Arc<dyn Connect>,
        metrics: Metrics,
    ) -> Result<Self, ServerError> {
        Self::renewed_every(LOOK_EVERY, settings, resolver, connect, metrics)
    }

    pub(crate) fn renewed_every(
        every: Duration,
        settings: ServerSettings,
        resolver: Arc<dyn Resolve>,
        connect: Arc<dyn Connect>,
        metrics: Metrics,
    ) -> Result<Self, ServerError> {
        let ServerSettings { tls_folder, ca_bundle, limits, body_memory, idle_limit, link_limit, drain } =
            settings;
        let operators_tls = mounted::server(&tls_folder, every).map_err(ServerError::Operators)?;
        let hosts_tls = mounted::hosts(ca_bundle.as_deref(), every).map_err(ServerError::Hosts)?;
        let dialer = Dialer::new(resolver, connect, limits, metrics.clone());
        let requester = Requester { dialer: dialer.clone(), hosts_tls, metrics: metrics.clone() };
        let (end, ended) = watch::channel(false);
        let link = LinkSettings { idle_limit, link_limit };
        Ok(Self {
            operators_tls,
            drain,
            settle: SETTLE,
            state: Arc::new(State {
                requester,
                dialer,
                link,
                memory: Memory::new(body_memory),
                metrics,
                ended,
                end,
            }),
        })
    }

    /// Serves until `shutdown` ends and 3 seconds more, and then until the open runs and requests have ended or their time
    /// is over. The caller makes the process not ready before `shutdown` ends.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let Self { operators_tls, drain, settle, state } = self;
        let (stop, stopped) = watch::channel(false);
        let serve = {
            let state = Arc::clone(&state);
            move |stream| connection(stream, Arc::clone(&state), stopped.clone())
        };
        let bounds = (&operators_tls, MAX_OPERATOR_CONNECTIONS);
        let mut connections = accept(listener, bounds, shutdown, settle, serve).await;
        stop.send_replace(true);
        info!("Broker drains");
        let all = async { while connections.join_next().await.is_some() {} };
        if timeout(drain, all).await.is_err() {
            state.end.send_replace(true);
            let all = async { while connections.join_next().await.is_some() {} };
            timeout(AFTER_DRAIN, all).await.ok();
        }
    }
}

/// Serves one connection of an operator, and the link that it may become.
async fn connection(stream: TlsStream<TcpStream>, state: Arc<State>, mut stopped: watch::Receiver<bool>) {
    state.metrics.operator_connected();
    // A link outlives the HTTP connection that it was.
    let (links, mut opened) = tokio::sync::mpsc::channel(1);
    let service = service_fn(move |request| {
        let (state, links) = (Arc::clone(&state), links.clone());
        async move { Ok::<_, Infallible>(respond(request, &state, &links).await) }
    });
    let http = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut http = pin!(http);
    let served = tokio::select! {
        served = &mut http => served,
        () = becomes_true(&mut stopped) => {
            http.as_mut().graceful_shutdown();
            http.await
        }
    };
    if let Err(error) = served {
        debug!(%error, "The connection of an operator ended");
    }
    if let Ok(link) = opened.try_recv() {
        let link: Link = link;
        link.await;
    }
}

/// Waits until the value is true, or nobody can set it.
pub(crate) async fn becomes_true(value: &mut watch::Receiver<bool>) {
    value.wait_for(|is_true| *is_true).await.ok();
}

type Link = futures::future::BoxFuture<'static, ()>;

async fn respond(
    mut request: Request<Incoming>,
    state: &Arc<State>,
    links: &tokio::sync::mpsc::Sender<Link>,
) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::POST, REQUESTS_PATH) => send_request(request, state).await,
        (&Method::POST, RUNS_PATH) if is_upgrade(&request) => {
            let upgrade = hyper::upgrade::on(&mut request);
            let state = Arc::clone(state);
            let link: Link = Box::pin(async move {
                match upgrade.await {
                    Ok(stream) => {
                        let State { dialer, link, metrics, ended, .. } = &*state;
                        let stream = TokioIo::new(stream);
                        run_link::serve(stream, dialer.clone(), *link, metrics.clone(), ended.clone()).await;
                    }
                    Err(error) => debug!(%error, "A run's link could not be opened"),
                }
            });
            if links.try_send(link).is_err() {
                return text(StatusCode::CONFLICT, "the connection is a link already");
            }
            let response = Response::builder()
                .status(StatusCode::SWITCHING_PROTOCOLS)
                .header(header::CONNECTION, "upgrade")
                .header(header::UPGRADE, UPGRADE);
            response.body(Full::default()).unwrap_or_default()
        }
        (_, REQUESTS_PATH | RUNS_PATH) => text(StatusCode::BAD_REQUEST, "the request is none of this path"),
        _ => text(StatusCode::NOT_FOUND, "the broker has no such path"),
    }
}

fn is_upgrade(request: &Request<Incoming>) -> bool {
    request
        .headers()
        .get(header::UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(UPGRADE.as_bytes()))
}

async fn send_request(request: Request<Incoming>, state: &State) -> Response<Full<Bytes>> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let Some(length) = length.filter(|length| *length <= MAX_REQUEST_BYTES) else {
        return text(StatusCode::PAYLOAD_TOO_LARGE, "the request has no length, or is too large");
    };
    // The request is held as JSON and as its parts.
    let Ok(mut memory) = state.memory.reserve(2 * length) else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "the broker has no memory for the request now");
    };
    let body = match Limited::new(request.into_body(), MAX_REQUEST_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            return text(StatusCode::PAYLOAD_TOO_LARGE, &format!("the request cannot be read: {error}"));
        }
    };
    let request = match serde_json::from_slice::<EgressRequest>(&body) {
        Ok(request) => request,
        // The message of serde may quote the request, which may have secrets.
        Err(error) => {
            let message = format!("the request is not of its form, in column {}", error.column());
            return text(StatusCode::BAD_REQUEST, &message);
        }
    };
    drop(body);
    let response = state.requester.send(request, &mut memory).await;
    match serde_json::to_vec(&response) {
        Ok(body) => {
            let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
            response.body(body.into()).unwrap_or_default()
        }
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn text(status: StatusCode, message: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(message.to_owned()));
    *response.status_mut() = status;
    response
}
