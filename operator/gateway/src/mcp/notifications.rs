//! Notifies a client of a change of its tool list.
//!
//! Every session sees every change in the cluster. The numbers of its namespaces show whether the change was in one of
//! them; only then the list is looked at, once for all sessions that look into the same namespaces.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, OnceLock},
};

use skillet_kube::lock;
use tokio::{sync::watch, time::sleep};
use tracing::debug;

use super::{
    Timing,
    tools::{self, fingerprint},
};
use crate::{auth::AuthError, catalog::SkillCatalog, resolve::Lookup, service::SkillService};

/// Most combinations of namespaces whose fingerprint is kept.
const MAX_KEPT: usize = 1024;

/// Namespaces with the number of the last change in each.
type Numbered = Vec<(Arc<str>, u64)>;

/// Fingerprints of the tool lists that callers have seen.
#[derive(Default)]
pub(super) struct Fingerprints(Mutex<HashMap<Vec<Arc<str>>, Kept>>);

struct Kept {
    numbered: Numbered,
    fingerprint: Arc<OnceLock<u64>>,
}

impl Fingerprints {
    async fn of(&self, lookup: Lookup<'_>) -> Result<u64, AuthError> {
        let namespaces = tools::namespaces(lookup).await?;
        // Before they are read: what changes meanwhile has another number, and is looked at again.
        let numbered = numbered(lookup.catalog, namespaces.clone());
        let cell = self.cell(&namespaces, numbered);
        Ok(*cell.get_or_init(|| fingerprint(lookup.catalog, &namespaces)))
    }

    /// Returns the cell of the fingerprint, which may be empty.
    fn cell(&self, namespaces: &[Arc<str>], numbered: Numbered) -> Arc<OnceLock<u64>> {
        let mut kept = lock(&self.0);
        match kept.get(namespaces) {
            Some(known) if known.numbered == numbered => known.fingerprint.clone(),
            Some(_) | None => {
                // Those that are needed come again by themselves.
                if kept.len() >= MAX_KEPT {
                    kept.clear();
                }
                let fingerprint = Arc::<OnceLock<u64>>::default();
                kept.insert(namespaces.to_vec(), Kept { numbered, fingerprint: fingerprint.clone() });
                fingerprint
            }
        }
    }
}

fn numbered(catalog: &SkillCatalog, namespaces: Vec<Arc<str>>) -> Numbered {
    let number = |namespace: Arc<str>| {
        let number = catalog.last_change(&namespace);
        (namespace, number)
    };
    namespaces.into_iter().map(number).collect()
}

/// The list as it was at the client's last notification, or at its first request.
pub(super) struct ToolListState {
    changes: watch::Receiver<u64>,
    /// The caller's namespaces as they were then.
    numbered: Numbered,
    /// None where it could not be found out: then the next list that can be is another one.
    fingerprint: Option<u64>,
}

impl ToolListState {
    /// As the list is now.
    pub(super) async fn now(lookup: Lookup<'_>, fingerprints: &Fingerprints) -> Self {
        // Joined before the list is read, so that no change falls between.
        let changes = lookup.catalog.changes();
        let numbered = numbered(lookup.catalog, lookup.catalog.namespaces(lookup.caller));
        Self { changes, numbered, fingerprint: fingerprints.of(lookup).await.ok() }
    }

    /// A client that had its list from another replica.
    pub(super) fn unknown(service: &SkillService) -> Self {
        let mut changes = service.catalog.changes();
        changes.mark_changed();
        Self { changes, numbered: Vec::new(), fingerprint: None }
    }

    /// Calls `notify` whenever the caller's list has become another one, until it fails or the gateway stops watching.
    pub(super) async fn follow<E: std::fmt::Display, F: Future<Output = Result<(), E>>>(
        mut self,
        lookup: Lookup<'_>,
        fingerprints: &Fingerprints,
        timing: &Timing,
        notify: impl Fn() -> F,
    ) {
        while self.changes.changed().await.is_ok() {
            sleep(timing.settle).await;
            self.changes.mark_unchanged();
            let numbered = numbered(lookup.catalog, lookup.catalog.namespaces(lookup.caller));
            if self.fingerprint.is_some() && numbered == self.numbered {
                continue;
            }
            let now = fingerprints.of(lookup).await.ok();
            if now.is_some()
                && now != self.fingerprint
                && let Err(error) = notify().await
            {
                debug!(%error, "Client is gone");
                return;
            }
            (self.numbered, self.fingerprint) = (numbered, now);
        }
    }
}
