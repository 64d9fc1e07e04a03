//! Connections of the client to the broker: TCP and mutual TLS, to one address whatever the URL says.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use rustls_pki_types::ServerName;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::ClientConfig};
use tower::Service;

use super::CONNECT_LIMIT;
use crate::{keepalive, limits::lock, mounted::Mounted, wire::BROKER_NAME};

type Certificates = Arc<Mutex<Option<Arc<Mounted<ClientConfig>>>>>;

#[derive(Clone)]
pub(super) struct Connector {
    address: Arc<str>,
    tls: Certificates,
}

impl Connector {
    pub(super) fn new(address: String, tls: Certificates) -> Self {
        Self { address: address.into(), tls }
    }
}

impl Service<Uri> for Connector {
    type Response = BrokerStream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<BrokerStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let address = Arc::clone(&self.address);
        let tls = lock(&self.tls).clone();
        Box::pin(async move {
            let tls = tls.ok_or_else(|| io::Error::other("the certificates are not read yet"))?;
            let name = ServerName::try_from(BROKER_NAME).map_err(io::Error::other)?;
            let connect = async {
                let stream = TcpStream::connect(&*address).await?;
                stream.set_nodelay(true)?;
                keepalive::set(&stream)?;
                TlsConnector::from(tls.current()).connect(name, stream).await
            };
            match timeout(CONNECT_LIMIT, connect).await {
                Ok(stream) => Ok(BrokerStream(TokioIo::new(stream?))),
                Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no connection in time")),
            }
        })
    }
}

/// A connection to the broker.
pub(super) struct BrokerStream(TokioIo<TlsStream<TcpStream>>);

impl Connection for BrokerStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for BrokerStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Write for BrokerStream {
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
