//! Shutdown: the signals that begin it, and the wait of the operator for the gateway beside it.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context as _;
use tokio::{
    net::TcpStream,
    signal::unix::{self, SignalKind},
    time::{sleep, timeout},
};

const POLL_INTERVAL: Duration = Duration::from_millis(250);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Catches SIGTERM and SIGINT from now on; the future ends with the first of them.
pub(crate) fn signal() -> anyhow::Result<impl Future<Output = ()> + Send + use<>> {
    let mut terminated = unix::signal(SignalKind::terminate()).context("could not listen for SIGTERM")?;
    let mut interrupted = unix::signal(SignalKind::interrupt()).context("could not listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}

/// Waits until `address` accepts no connection.
pub(crate) async fn wait_until_closed(address: SocketAddr) {
    while let Ok(Ok(_)) = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
        sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn wait_until_closed_ends_after_the_listener_is_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut closed = tokio::spawn(wait_until_closed(address));
        assert!(
            timeout(Duration::from_millis(50), &mut closed).await.is_err(),
            "the listener is still there"
        );
        drop(listener);
        timeout(Duration::from_secs(10), closed).await.unwrap().unwrap();
    }
}
