//! Tells a client that its list of tools is another one.

use std::future::Future;

use tokio::time::sleep;
use tracing::debug;

use super::{Pace, backend::Backend, catalogue::Catalogue};
use crate::identity::Caller;

/// The list as it was when the client was last told, or first asked.
pub(super) struct Told {
    changes: tokio::sync::watch::Receiver<u64>,
    /// None where it could not be found out: then the next list that can be is another one.
    fingerprint: Option<u64>,
}

impl Told {
    /// As the list is now.
    pub(super) async fn now<B: Backend>(backend: &B, caller: &Caller) -> Self {
        // Joined before the list is read, so that no change falls between.
        let changes = backend.changes();
        Self { changes, fingerprint: fingerprint(backend, caller).await }
    }

    /// A client that had its list from another replica.
    pub(super) fn unknown<B: Backend>(backend: &B) -> Self {
        let mut changes = backend.changes();
        changes.mark_changed();
        Self { changes, fingerprint: None }
    }

    /// Calls `tell` whenever the caller's list has become another one, until it fails or the gateway stops watching.
    pub(super) async fn follow<B: Backend, E: std::fmt::Display, F: Future<Output = Result<(), E>>>(
        mut self,
        backend: &B,
        caller: &Caller,
        pace: &Pace,
        tell: impl Fn() -> F,
    ) {
        while self.changes.changed().await.is_ok() {
            sleep(pace.settle).await;
            self.changes.mark_unchanged();
            let now = fingerprint(backend, caller).await;
            if now.is_some()
                && now != self.fingerprint
                && let Err(error) = tell().await
            {
                debug!(%error, "Client is gone");
                return;
            }
            self.fingerprint = now;
        }
    }
}

async fn fingerprint<B: Backend>(backend: &B, caller: &Caller) -> Option<u64> {
    Some(Catalogue::of(backend, caller).await.ok()?.fingerprint())
}
