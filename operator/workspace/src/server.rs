//! The server of the store: HTTP/1.1 under mutual TLS. Clients of its authority may use every workspace.

mod routes;
#[cfg(test)]
mod tests;

use std::{convert::Infallible, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use skillet_egress::{
    TlsError,
    accept::{SETTLE, accept},
    mounted::{self, LOOK_EVERY, Mounted},
};
use thiserror::Error;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};
use tokio_rustls::{rustls::ServerConfig, server::TlsStream};
use tracing::{debug, info};

use crate::{Bucket, Folder, Limits, Metrics, backend::Backend, store::Store};

const MAX_CONNECTIONS: usize = 512;
/// Longer than clients keep a connection that they do not use.
const HEAD_LIMIT: Duration = Duration::from_secs(75);
/// Memory of a connection for what has arrived and is not read yet.
const MAX_BUFFER: usize = 64 << 10;

/// Place of the files.
pub enum Place {
    Folder(Folder),
    Bucket(Bucket),
}

/// Settings of a store.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Folder with `tls.crt`, `tls.key` and `ca.crt`.
    pub tls_folder: PathBuf,
    pub limits: Limits,
    /// Time that open requests have to end on shutdown.
    pub drain: Duration,
}

#[derive(Debug, Error)]
pub enum ServerError {
    #[error("could not set up TLS for clients")]
    Clients(#[source] TlsError),
}

/// A store that does not serve yet.
pub struct Server {
    clients_tls: Mounted<ServerConfig>,
    drain: Duration,
    pub(crate) settle: Duration,
    store: Arc<Store>,
}

impl Server {
    pub fn new(settings: ServerSettings, place: Place, metrics: Metrics) -> Result<Self, ServerError> {
        let backend: Arc<dyn Backend> = match place {
            Place::Folder(folder) => Arc::new(folder),
            Place::Bucket(bucket) => Arc::new(bucket),
        };
        let ServerSettings { tls_folder, limits, drain } = settings;
        let clients_tls = mounted::server(&tls_folder, LOOK_EVERY).map_err(ServerError::Clients)?;
        let store = Arc::new(Store::new(backend, limits, metrics));
        Ok(Self { clients_tls, drain, settle: SETTLE, store })
    }

    /// Serves and expires workspaces until `shutdown` ends and 3 seconds more, and then until the open requests have ended or their time is over.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let Self { clients_tls, drain, settle, store } = self;
        let (stop, stopped) = watch::channel(false);
        let serve = {
            let store = Arc::clone(&store);
            move |stream| connection(stream, Arc::clone(&store), stopped.clone())
        };
        let bounds = (&clients_tls, MAX_CONNECTIONS);
        let mut connections = tokio::select! {
            connections = accept(listener, bounds, shutdown, settle, serve) => connections,
            never = store.sweep() => match never {},
        };
        stop.send_replace(true);
        info!("Store drains");
        let all = async { while connections.join_next().await.is_some() {} };
        timeout(drain, all).await.ok();
    }
}

async fn connection(stream: TlsStream<TcpStream>, store: Arc<Store>, mut stopped: watch::Receiver<bool>) {
    let service = service_fn(move |request| {
        let store = Arc::clone(&store);
        async move { Ok::<_, Infallible>(routes::respond(request, store).await) }
    });
    let http = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(MAX_BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let mut http = pin!(http);
    let served = tokio::select! {
        served = &mut http => served,
        () = async { stopped.wait_for(|is_stopped| *is_stopped).await.ok(); } => {
            http.as_mut().graceful_shutdown();
            http.await
        }
    };
    if let Err(error) = served {
        debug!(%error, "The connection of a client ended");
    }
}
