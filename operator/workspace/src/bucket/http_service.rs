//! HTTP of the bucket's client, over the TLS that the broker has for the hosts of skills: no second TLS stack is compiled in.

use std::{
    io,
    path::Path,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use futures::future::BoxFuture;
use http::Uri;
use http_body_util::BodyExt as _;
use hyper_util::{
    client::legacy::{Client, Error as ClientError},
    rt::{TokioExecutor, TokioTimer},
};
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
        HttpResponseBody, HttpService,
    },
};
use rustls_pki_types::ServerName;
use skillet_egress::{
    PeerStream, TlsError,
    mounted::{self, LOOK_EVERY, Mounted},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, rustls::ClientConfig};
use tower::Service;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Time until the head of a response.
const RESPONSE_LIMIT: Duration = Duration::from_secs(20);
/// Shorter than services keep a connection that is not used.
const IDLE_LIMIT: Duration = Duration::from_secs(15);
const IDLE_CONNECTIONS: usize = 16;

/// Makes connections to the service of the bucket.
#[derive(Clone)]
pub(super) struct Connector {
    tls: Arc<Mounted<ClientConfig>>,
}

impl Connector {
    pub(super) fn new(ca_bundle: Option<&Path>) -> Result<Self, TlsError> {
        Ok(Self { tls: Arc::new(mounted::hosts(ca_bundle, LOOK_EVERY)?) })
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_LIMIT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_timer(TokioTimer::new())
            .build(self.clone());
        Ok(HttpClient::new(BucketHttp(client)))
    }
}

#[derive(Debug)]
struct BucketHttp(Client<Connector, HttpRequestBody>);

#[async_trait]
impl HttpService for BucketHttp {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = match timeout(RESPONSE_LIMIT, self.0.request(request)).await {
            Ok(response) => response.map_err(|error| HttpError::new(kind(&error), error))?,
            Err(elapsed) => return Err(HttpError::new(HttpErrorKind::Timeout, elapsed)),
        };
        let interrupted = |error| HttpError::new(HttpErrorKind::Interrupted, error);
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(interrupted))))
    }
}

fn kind(error: &ClientError) -> HttpErrorKind {
    if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Interrupted }
}

impl Service<Uri> for Connector {
    type Response = BucketStream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<BucketStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let tls = self.tls.current();
        let connect = async move {
            let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
            let is_tls = uri.scheme_str() == Some("https");
            let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
            let stream = TcpStream::connect((host.as_str(), port)).await?;
            stream.set_nodelay(true)?;
            let stream: Box<dyn ByteStream> = if is_tls {
                let name = ServerName::try_from(host).map_err(io::Error::other)?;
                Box::new(TlsConnector::from(tls).connect(name, stream).await?)
            } else {
                Box::new(stream)
            };
            Ok(PeerStream::new(stream))
        };
        Box::pin(async move {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no connection in time");
            timeout(CONNECT_LIMIT, connect).await.map_err(late)?
        })
    }
}

pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A connection to the service of the bucket, with or without TLS.
pub(super) type BucketStream = PeerStream<Box<dyn ByteStream>>;
