//! Connections of a client to a server of Skillet: TCP and mutual TLS, to one address whatever the URL says.

use std::{
    io,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::ClientConfig};
use tower::Service;

use super::CONNECT_LIMIT;
use crate::{
    keepalive,
    limits::lock,
    mounted::{self, LOOK_EVERY, Mounted, TlsError},
};

/// Certificate of a client, from a folder with `tls.crt`, `tls.key` and `ca.crt`. Clones share it.
#[derive(Clone)]
pub struct ClientIdentity {
    folder: Arc<PathBuf>,
    every: Duration,
    tls: Arc<Mutex<Option<Arc<Mounted<ClientConfig>>>>>,
}

impl ClientIdentity {
    pub fn new(folder: PathBuf) -> Self {
        Self::renewed_every(LOOK_EVERY, folder)
    }

    pub(crate) fn renewed_every(every: Duration, folder: PathBuf) -> Self {
        Self { folder: Arc::new(folder), every, tls: Arc::default() }
    }

    /// Reads the certificates once; [`Mounted`] takes them again when they change.
    pub fn load(&self) -> Result<(), TlsError> {
        let mut tls = lock(&self.tls);
        if tls.is_none() {
            *tls = Some(Arc::new(mounted::client(&self.folder, self.every)?));
        }
        Ok(())
    }
}

/// Connects to one server, which proves the name of its certificate. The identity is loaded before.
#[derive(Clone)]
pub struct Connector {
    address: Arc<str>,
    name: &'static str,
    identity: ClientIdentity,
}

impl Connector {
    pub fn new(address: &str, name: &'static str, identity: ClientIdentity) -> Self {
        Self { address: address.into(), name, identity }
    }
}

impl Service<Uri> for Connector {
    type Response = PeerStream<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let address = Arc::clone(&self.address);
        let tls = lock(&self.identity.tls).clone();
        let name = self.name;
        Box::pin(async move {
            let tls = tls.ok_or_else(|| io::Error::other("the certificates are not read yet"))?;
            let name = ServerName::try_from(name).map_err(io::Error::other)?;
            let connect = async {
                let stream = TcpStream::connect(&*address).await?;
                stream.set_nodelay(true)?;
                keepalive::set(&stream)?;
                TlsConnector::from(tls.current()).connect(name, stream).await
            };
            match timeout(CONNECT_LIMIT, connect).await {
                Ok(stream) => Ok(PeerStream::new(stream?)),
                Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no connection in time")),
            }
        })
    }
}

/// A connection of a hyper client over any stream.
pub struct PeerStream<S>(TokioIo<S>);

impl<S> PeerStream<S> {
    pub fn new(stream: S) -> Self {
        Self(TokioIo::new(stream))
    }
}

impl<S> Connection for PeerStream<S> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl<S: AsyncRead + Unpin> Read for PeerStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> Write for PeerStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
