//! The stack of kube's own client over sockets that send at once.
//!
//! kube's connector leaves Nagle's algorithm on: the second of two small frames of an attach stream waits until the server
//! has acknowledged the first, which Linux delays by 40 ms.

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Config, Error,
    client::{Body, ClientBuilder, ConfigExt as _, retry::RetryPolicy},
};
use tower::{BoxError, ServiceBuilder, ServiceExt as _, retry::RetryLayer, util::BoxService};

type Stack = BoxService<Request<Body>, Response<Incoming>, BoxError>;

/// Returns a builder of a client for `config`. `None` where only kube itself knows how to connect: through a proxy, or
/// with a certificate that a program hands out.
pub(super) fn builder(config: &Config) -> Result<Option<ClientBuilder<Stack>>, Error> {
    if config.proxy_url.is_some() || config.auth_info.exec.is_some() {
        return Ok(None);
    }
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(sockets())?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let client: Client<_, Body> = Client::builder(TokioExecutor::new()).build(connector);
    let retry = config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry()));
    let stack = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(retry)
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(Some(ClientBuilder::new(stack.boxed(), config.default_namespace.clone())))
}

fn sockets() -> HttpConnector {
    let mut sockets = HttpConnector::new();
    // The connector around it speaks TLS.
    sockets.enforce_http(false);
    sockets.set_nodelay(true);
    sockets
}

#[cfg(test)]
mod tests {
    use kube::config::ExecConfig;
    use tokio::net::TcpListener;
    use tower::Service as _;

    use super::*;

    #[tokio::test]
    async fn a_socket_sends_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("https://{}", listener.local_addr().unwrap()).parse().unwrap();
        let socket = sockets().call(uri).await.unwrap();
        assert!(socket.inner().nodelay().unwrap());
    }

    #[test]
    fn kube_itself_connects_through_a_proxy_and_with_certificates_of_a_program() {
        let plain = Config::new("http://127.0.0.1:1".parse().unwrap());
        let mut proxied = plain.clone();
        proxied.proxy_url = Some("http://127.0.0.1:2".parse().unwrap());
        let mut with_program = plain.clone();
        with_program.auth_info.exec = Some(ExecConfig::default());
        assert!(builder(&proxied).unwrap().is_none() && builder(&with_program).unwrap().is_none());
    }
}
