//! Notifies a client of changes of its lists: that of the tools, and those of prompts and resources.
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

use super::{Timing, instruction_tools, prompts, tools};
use crate::{auth::AuthError, catalog::SkillCatalog, resolve::Lookup, service::SkillService};

/// Most combinations of namespaces whose fingerprint is kept.
const MAX_KEPT: usize = 1024;

/// Namespaces with the number of the last change in each.
type Numbered = Vec<(Arc<str>, u64)>;

/// The fingerprints of a caller's lists.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ListFingerprints {
    /// Of skills with a program, and of the tools for instructions.
    tools: (u64, u64),
    /// Of prompts and resources, which are both made of instructions.
    instructions: u64,
}

/// The lists that have become others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListChanges {
    pub(super) tools: bool,
    /// Those of prompts and resources.
    pub(super) instructions: bool,
}

impl ListFingerprints {
    fn of(catalog: &SkillCatalog, namespaces: &[Arc<str>]) -> Self {
        let skills = tools::callable(catalog, namespaces);
        let instructions = prompts::fingerprint(&skills);
        let for_instructions = instruction_tools::fingerprint(catalog, namespaces);
        Self { instructions, tools: (tools::fingerprint(skills), for_instructions) }
    }

    /// Compares with what the client has seen. Of `None` nothing is known.
    fn changes_since(self, before: Option<Self>) -> ListChanges {
        ListChanges {
            tools: before.is_none_or(|before| before.tools != self.tools),
            instructions: before.is_none_or(|before| before.instructions != self.instructions),
        }
    }
}

/// Fingerprints of the lists that callers have seen.
#[derive(Default)]
pub(super) struct Fingerprints(Mutex<HashMap<Vec<Arc<str>>, Kept>>);

struct Kept {
    numbered: Numbered,
    fingerprint: Arc<OnceLock<ListFingerprints>>,
}

impl Fingerprints {
    async fn of(&self, lookup: Lookup<'_>) -> Result<ListFingerprints, AuthError> {
        let namespaces = tools::namespaces(lookup).await?;
        // Before they are read: what changes meanwhile has another number, and is looked at again.
        let numbered = numbered(lookup.catalog, namespaces.clone());
        let cell = self.cell(&namespaces, numbered);
        Ok(*cell.get_or_init(|| ListFingerprints::of(lookup.catalog, &namespaces)))
    }

    /// Returns the cell of the fingerprint, which may be empty.
    fn cell(&self, namespaces: &[Arc<str>], numbered: Numbered) -> Arc<OnceLock<ListFingerprints>> {
        let mut kept = lock(&self.0);
        match kept.get(namespaces) {
            Some(known) if known.numbered == numbered => known.fingerprint.clone(),
            Some(_) | None => {
                // Those that are needed come again by themselves.
                if kept.len() >= MAX_KEPT {
                    kept.clear();
                }
                let fingerprint = Arc::<OnceLock<ListFingerprints>>::default();
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

/// The lists as they were at the client's last notification, or at its first request.
pub(super) struct ListState {
    changes: watch::Receiver<u64>,
    /// The caller's namespaces as they were then.
    numbered: Numbered,
    /// None where it could not be found out: then the next lists that can be are others.
    fingerprint: Option<ListFingerprints>,
}

impl ListState {
    /// As the lists are now.
    pub(super) async fn now(lookup: Lookup<'_>, fingerprints: &Fingerprints) -> Self {
        // Joined before the lists are read, so that no change falls between.
        let changes = lookup.catalog.changes();
        let numbered = numbered(lookup.catalog, lookup.catalog.namespaces(lookup.caller));
        Self { changes, numbered, fingerprint: fingerprints.of(lookup).await.ok() }
    }

    /// A client that had its lists from another replica.
    pub(super) fn unknown(service: &SkillService) -> Self {
        let mut changes = service.catalog.changes();
        changes.mark_changed();
        Self { changes, numbered: Vec::new(), fingerprint: None }
    }

    /// Calls `notify` whenever one of the caller's lists has become another one, until it fails or the gateway stops watching.
    pub(super) async fn follow<E: std::fmt::Display, F: Future<Output = Result<(), E>>>(
        mut self,
        lookup: Lookup<'_>,
        fingerprints: &Fingerprints,
        timing: &Timing,
        notify: impl Fn(ListChanges) -> F,
    ) {
        while self.changes.changed().await.is_ok() {
            sleep(timing.settle).await;
            self.changes.mark_unchanged();
            let numbered = numbered(lookup.catalog, lookup.catalog.namespaces(lookup.caller));
            if self.fingerprint.is_some() && numbered == self.numbered {
                continue;
            }
            let now = fingerprints.of(lookup).await.ok();
            if let Some(lists) = now
                && now != self.fingerprint
                && let Err(error) = notify(lists.changes_since(self.fingerprint)).await
            {
                debug!(%error, "Client is gone");
                return;
            }
            (self.numbered, self.fingerprint) = (numbered, now);
        }
    }
}
