//! Signals that end the demo. The cluster is put back first.

use anyhow::{Result, bail};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM. They are caught from now on, so that they stop the conversation and not the cleanup.
pub(crate) struct Interruption([Signal; 3]);

impl Interruption {
    pub(crate) fn new() -> Result<Self> {
        let [interrupt, terminate, hangup] =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        Ok(Self([interrupt?, terminate?, hangup?]))
    }

    /// Awaits the future, unless a signal comes before its end.
    pub(crate) async fn ends<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let Self([interrupt, terminate, hangup]) = self;
        tokio::select! {
            biased;
            _ = interrupt.recv() => bail!("interrupted"),
            _ = terminate.recv() => bail!("stopped by SIGTERM"),
            _ = hangup.recv() => bail!("the terminal is gone"),
            ended = work => ended,
        }
    }
}
