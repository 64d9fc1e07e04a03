//! The accept loop of servers of mutual TLS: the broker, and the store of workspaces.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig, server::TlsStream};
use tracing::{debug, warn};

use crate::{keepalive, mounted::Mounted};

/// Time after the signal in which connections are still accepted, until the Service knows that this server is not ready.
pub const SETTLE: Duration = Duration::from_secs(3);
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(50);

/// Accepts up to `most` connections at one time until `shutdown` ends and `settle` more, and serves each. Returns those that
/// are still open.
pub async fn accept<F>(
    listener: TcpListener,
    (tls, most): (&Mounted<ServerConfig>, usize),
    shutdown: impl Future<Output = ()>,
    settle: Duration,
    serve: impl Fn(TlsStream<TcpStream>) -> F + Clone + Send + 'static,
) -> JoinSet<()>
where
    F: Future<Output = ()> + Send,
{
    let places = Arc::new(Semaphore::new(most));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(async {
        shutdown.await;
        sleep(settle).await;
    });
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => return connections,
            _ = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "Connection could not be accepted");
                sleep(PAUSE_AFTER_ERROR).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            warn!(most, "Connection refused; the server has no more places for clients");
            continue;
        };
        let (acceptor, serve) = (TlsAcceptor::from(tls.current()), serve.clone());
        connections.spawn(async move {
            if let Some(stream) = handshake(stream, acceptor).await {
                serve(stream).await;
            }
            drop(place);
        });
    }
}

async fn handshake(stream: TcpStream, acceptor: TlsAcceptor) -> Option<TlsStream<TcpStream>> {
    stream.set_nodelay(true).ok();
    if let Err(error) = keepalive::set(&stream) {
        debug!(%error, "The probes of a connection could not be set");
    }
    match timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => debug!(%error, "TLS could not be agreed on with a client"),
        Err(_) => debug!("A client did not agree on TLS in time"),
    }
    None
}
