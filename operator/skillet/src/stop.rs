//! When a part is to stop: on a signal, and the operator after the gateway beside it.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context as _;
use tokio::{
    net::TcpStream,
    signal::unix::{SignalKind, signal},
    time::{sleep, timeout},
};

/// How often the neighbour is looked at, and how long it may take to answer.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// SIGTERM or SIGINT. Both are caught from the time of the call.
pub(crate) fn asked() -> anyhow::Result<impl Future<Output = ()> + Send + use<>> {
    let mut terminated = signal(SignalKind::terminate()).context("could not listen for SIGTERM")?;
    let mut interrupted = signal(SignalKind::interrupt()).context("could not listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}

/// Until nobody answers at `neighbour` any more.
pub(crate) async fn outlive(neighbour: SocketAddr) {
    while let Ok(Ok(_)) = timeout(ANSWER_LIMIT, TcpStream::connect(neighbour)).await {
        sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn who_outlives_another_ends_after_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut outlived = tokio::spawn(outlive(address));
        assert!(timeout(Duration::from_millis(50), &mut outlived).await.is_err(), "it is still there");
        drop(listener);
        timeout(Duration::from_secs(10), outlived).await.unwrap().unwrap();
    }
}
