//! A client of the API server that survives refused upgrades, limits its requests, and lists small objects in large pages.
//!
//! The API server refuses an attach to a container that does not run yet, and closes that connection without saying so in
//! its response. Reused from the pool, the connection would fail the next request.

mod connector;
mod limits;
mod metrics;
mod page_size;

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header::UPGRADE};
use hyper_util::client::legacy::connect::capture_connection;
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
};
use tower::{BoxError, Service, layer::layer_fn};

pub use self::metrics::ApiMetrics;
use self::{limits::LimitRequests, page_size::AdaptPageSize};

/// Returns a client for the cluster that `config` names, whose requests `metrics` counts.
pub fn connect(config: Config, metrics: &ApiMetrics) -> Result<Client, kube::Error> {
    match connector::builder(&config)? {
        Some(builder) => Ok(build(builder, metrics)),
        None => Ok(build(ClientBuilder::try_from(config)?, metrics)),
    }
}

fn build<S, B>(builder: ClientBuilder<S>, metrics: &ApiMetrics) -> Client
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let drop_refused = layer_fn(|service| DropRefusedUpgrades { service });
    let limit = layer_fn(|service| LimitRequests::new(service, metrics.clone()));
    let adapt_pages = layer_fn(AdaptPageSize::new);
    builder.with_layer(&drop_refused).with_layer(&adapt_pages).with_layer(&limit).build()
}

/// Keeps the connection of a refused upgrade out of the pool.
struct DropRefusedUpgrades<S> {
    service: S,
}

impl<S, B> Service<Request<Body>> for DropRefusedUpgrades<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(task)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if !request.headers().contains_key(UPGRADE) {
            return Box::pin(self.service.call(request));
        }
        let connection = capture_connection(&mut request);
        let response = self.service.call(request);
        Box::pin(async move {
            let response = response.await?;
            if response.status() != StatusCode::SWITCHING_PROTOCOLS
                && let Some(used) = &*connection.connection_metadata()
            {
                used.poison();
            }
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use k8s_openapi::api::core::v1::Pod;
    use kube::{Api, api::AttachParams};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
    };

    use super::*;

    /// Starts a server that answers every request with 404, without `connection: close`, and counts the connections.
    async fn serve() -> (Client, Arc<AtomicU32>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicU32::new(0));
        let counted = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(refuse(stream));
            }
        });
        (connect(Config::new(url.parse().unwrap()), &ApiMetrics::default()).unwrap(), connections)
    }

    async fn refuse(mut stream: TcpStream) {
        let mut head = Vec::new();
        while let Ok(byte) = stream.read_u8().await {
            head.push(byte);
            if head.ends_with(b"\r\n\r\n") {
                head.clear();
                stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno").await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn a_connection_is_reused_unless_an_upgrade_was_refused_on_it() {
        let (client, connections) = serve().await;
        let pods: Api<Pod> = Api::namespaced(client, "default");
        pods.get("a").await.unwrap_err();
        pods.get("a").await.unwrap_err();
        assert_eq!(connections.load(Ordering::Relaxed), 1, "both requests used one connection");
        for used in 1..4 {
            assert!(pods.attach("a", &AttachParams::default().stdin(true).stderr(false)).await.is_err());
            assert_eq!(connections.load(Ordering::Relaxed), used, "the attach reuses a connection");
            pods.get("a").await.unwrap_err();
            assert_eq!(
                connections.load(Ordering::Relaxed),
                used + 1,
                "no request reuses the connection of the attach"
            );
        }
    }
}
