//! The broker's side of a run's link.
use std::time::Duration;

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

use crate::{dialer::Dialer, metrics::Metrics};

#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkSettings {
    pub(crate) idle_limit: Duration,
    pub(crate) link_limit: Duration,
}

pub(crate) async fn serve(
    _stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    _dialer: Dialer,
    _settings: LinkSettings,
    _metrics: Metrics,
    _ended: watch::Receiver<bool>,
) {
}
