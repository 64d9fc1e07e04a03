//! Leader election by a Lease: one of several processes works, and the others wait.
//!
//! The holder renews the Lease every second. Another process takes it once it has seen no renewal for the Lease's duration,
//! by its own clock, or at once after a release. A holder that cannot reach the API server stays the leader until another
//! takes the Lease, but it may begin nothing meanwhile ([`Leadership::confirm`]).

mod claim;

use std::time::Duration;

use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
use kube::{Api, Client, api::PostParams};
use thiserror::Error;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tracing::{info, warn};

use self::claim::{Decision, Observation, claimed, holder, released, renewed, term};

/// Time after the last renewal at which another process may take the Lease.
const DURATION: Duration = Duration::from_secs(4);
/// Pause between two renewals.
const RENEW_INTERVAL: Duration = Duration::from_secs(1);
/// Pause between two looks of a process that waits.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Longest time for one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Age of a renewal up to which the Lease is certainly held: the rest of its duration is for what the leader then begins.
const CERTAIN: Duration = Duration::from_secs(2);

/// The Lease that processes compete for.
#[derive(Clone, Debug)]
pub struct LeaseRef {
    pub namespace: String,
    pub name: String,
    /// Name of this process, unique among the processes that compete.
    pub identity: String,
}

/// The right to work, from [`acquire`](Self::acquire) until another process holds the Lease.
#[derive(Debug)]
pub struct Leadership {
    term: u64,
    state: watch::Receiver<State>,
    /// Absent for the leadership of tests.
    renewal: Option<(Renewal, JoinHandle<()>)>,
}

#[derive(Clone, Debug)]
enum State {
    Held { renewed_at: Instant },
    Lost { holder: String },
}

#[derive(Debug, Error)]
enum RenewError {
    #[error("the API server did not respond within {} s", REQUEST_TIMEOUT.as_secs())]
    Timeout,
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

impl Leadership {
    /// Waits until this process holds the Lease, and keeps renewing it from then on.
    pub async fn acquire(client: Client, lease: &LeaseRef) -> Self {
        let renewal = Renewal {
            api: Api::namespaced(client, &lease.namespace),
            name: lease.name.clone(),
            identity: lease.identity.clone(),
        };
        let mut observation = Observation::default();
        let (held, renewed_at) = loop {
            let asked_at = Instant::now();
            match renewal.try_acquire(&mut observation).await {
                Ok(Some(held)) => break (held, asked_at),
                Ok(None) => {}
                Err(error) => warn!(%error, lease = lease.name, "The Lease was not acquired; trying again"),
            }
            sleep(POLL_INTERVAL).await;
        };
        let term = term(&held);
        info!(lease = lease.name, identity = lease.identity, term, "Lease acquired");
        let (sender, state) = watch::channel(State::Held { renewed_at });
        let task = tokio::spawn(renewal.clone().keep(held, sender));
        Self { term, state, renewal: Some((renewal, task)) }
    }

    /// Returns a leadership that is never lost, for tests of what a leader does.
    #[cfg(feature = "testing")]
    pub fn of_test(term: u64) -> Self {
        let far = Duration::from_secs(60 * 60 * 24);
        let (_, state) = watch::channel(State::Held { renewed_at: Instant::now() + far });
        Self { term, state, renewal: None }
    }

    /// Returns the fencing token: milliseconds since 1970 at which the Lease was acquired. It is greater than that of every
    /// earlier holder, also if this process's clock is behind.
    pub const fn term(&self) -> u64 {
        self.term
    }

    /// Waits until the Lease is certainly held. Never returns if it is lost.
    pub async fn confirm(&self) {
        let mut state = self.state.clone();
        let is_certain =
            |state: &State| matches!(state, State::Held { renewed_at } if renewed_at.elapsed() < CERTAIN);
        if state.wait_for(is_certain).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until another process holds the Lease; its identity.
    pub async fn lost(&self) -> String {
        let mut state = self.state.clone();
        let state = state.wait_for(|state| matches!(state, State::Lost { .. })).await;
        match state.as_deref() {
            Ok(State::Lost { holder }) => holder.clone(),
            _ => std::future::pending().await,
        }
    }

    /// Gives the Lease back, so that another process takes it at once. Whatever the leader does must have ended.
    pub async fn release(&self) {
        let Some((renewal, task)) = &self.renewal else { return };
        task.abort();
        if let Err(error) = renewal.release(self.term).await {
            warn!(%error, "The Lease was not released; another process takes it when it expires");
        }
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        if let Some((_, task)) = &self.renewal {
            task.abort();
        }
    }
}

/// The requests about one Lease.
#[derive(Clone, Debug)]
struct Renewal {
    api: Api<Lease>,
    name: String,
    identity: String,
}

impl Renewal {
    /// Takes the Lease if nobody holds it.
    async fn try_acquire(&self, observation: &mut Observation) -> Result<Option<Lease>, RenewError> {
        let found = self.get().await?;
        match observation.decide(found.as_ref(), &self.identity, Instant::now()) {
            Decision::Wait => Ok(None),
            Decision::Claim => {
                let lease = claimed(found, &self.name, &self.identity, DURATION, Timestamp::now());
                self.write(&lease).await
            }
        }
    }

    /// Renews the Lease until another process holds it.
    async fn keep(self, mut held: Lease, state: watch::Sender<State>) {
        loop {
            sleep(RENEW_INTERVAL).await;
            let asked_at = Instant::now();
            match self.renew(&held).await {
                Ok(Ok(lease)) => {
                    held = lease;
                    state.send_replace(State::Held { renewed_at: asked_at });
                }
                Ok(Err(holder)) => {
                    state.send_replace(State::Lost { holder });
                    return;
                }
                Err(error) => warn!(%error, lease = self.name, "The Lease was not renewed; trying again"),
            }
        }
    }

    /// Returns the renewed Lease, or the identity of its new holder.
    async fn renew(&self, held: &Lease) -> Result<Result<Lease, String>, RenewError> {
        if let Some(lease) = self.write(&renewed(held, Timestamp::now())).await? {
            return Ok(Ok(lease));
        }
        // The response to an earlier renewal may have been lost: then the Lease is still this process's.
        match self.get().await? {
            Some(found) if holder(&found) == self.identity && term(&found) == term(held) => Ok(Ok(found)),
            found => Ok(Err(found.map(|lease| holder(&lease).to_owned()).unwrap_or_default())),
        }
    }

    async fn release(&self, term_held: u64) -> Result<(), RenewError> {
        if let Some(found) = self.get().await?
            && holder(&found) == self.identity
            && term(&found) == term_held
        {
            self.write(&released(&found, Timestamp::now())).await?;
        }
        Ok(())
    }

    async fn get(&self) -> Result<Option<Lease>, RenewError> {
        let found = timeout(REQUEST_TIMEOUT, self.api.get_opt(&self.name)).await;
        Ok(found.map_err(|_| RenewError::Timeout)??)
    }

    /// Creates the Lease, or replaces the revision that was read. None if another process was faster.
    async fn write(&self, lease: &Lease) -> Result<Option<Lease>, RenewError> {
        let params = PostParams::default();
        let written = async {
            match lease.metadata.resource_version {
                None => self.api.create(&params, lease).await,
                Some(_) => self.api.replace(&self.name, &params, lease).await,
            }
        };
        match timeout(REQUEST_TIMEOUT, written).await.map_err(|_| RenewError::Timeout)? {
            Ok(written) => Ok(Some(written)),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
