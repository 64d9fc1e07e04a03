//! Leader election by a Lease: one of several processes works, and the others wait.
//!
//! The holder renews the Lease every second. Another process takes it once it has seen no renewal for the Lease's duration,
//! by its own clock, or at once after a release. The holder writes a longer duration while the API server is slow. A holder
//! that cannot reach the API server stays the leader until another takes the Lease, but it may begin nothing meanwhile
//! ([`Leadership::confirm`]).

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

use self::claim::{Decision, Observation, Slowness, claimed, duration, holder, released, renewed, term};

/// Pause between two renewals.
const RENEW_INTERVAL: Duration = Duration::from_secs(1);
/// Pause between two looks of a process that waits.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Longest time for one request of a process that does not hold the Lease.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

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
    /// The Lease is certainly held until `certain_until`. The rest of its duration is for what the leader then begins.
    Held {
        renewed_at: Instant,
        certain_until: Instant,
    },
    Lost {
        holder: String,
    },
}

impl State {
    fn held(renewed_at: Instant, duration: Duration) -> Self {
        Self::Held { renewed_at, certain_until: renewed_at + duration / 2 }
    }

    /// Takes into account that the Lease may have this duration.
    fn shorten(&mut self, duration: Duration) {
        if let Self::Held { renewed_at, certain_until } = self {
            *certain_until = (*certain_until).min(*renewed_at + duration / 2);
        }
    }
}

/// The result of one try to renew the Lease.
#[derive(Debug)]
enum Renewed {
    Written(Lease),
    /// An earlier renewal was written although its response was lost. The time of the renewal is not known.
    Kept(Lease),
    Lost {
        holder: String,
    },
}

#[derive(Debug, Error)]
enum RenewError {
    #[error("the API server did not respond within {0:?}")]
    Timeout(Duration),
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
            timeout: REQUEST_TIMEOUT,
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
        let (sender, state) = watch::channel(State::held(renewed_at, duration(&held)));
        let task = tokio::spawn(renewal.clone().keep(held, sender));
        Self { term, state, renewal: Some((renewal, task)) }
    }

    /// Returns a leadership that is never lost, for tests of what a leader does.
    #[cfg(feature = "testing")]
    pub fn of_test(term: u64) -> Self {
        let far = Duration::from_secs(60 * 60 * 24);
        let (_, state) = watch::channel(State::held(Instant::now(), far));
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
        let is_certain = |state: &State| matches!(state, State::Held { certain_until, .. } if Instant::now() < *certain_until);
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
    /// Longest time for one request.
    timeout: Duration,
}

impl Renewal {
    /// Takes the Lease if nobody holds it.
    async fn try_acquire(&self, observation: &mut Observation) -> Result<Option<Lease>, RenewError> {
        let found = self.get().await?;
        match observation.decide(found.as_ref(), &self.identity, Instant::now()) {
            Decision::Wait => Ok(None),
            Decision::Claim => {
                let lease = claimed(
                    found,
                    &self.name,
                    &self.identity,
                    Slowness::default().duration(),
                    Timestamp::now(),
                );
                self.write(&lease).await
            }
        }
    }

    /// Renews the Lease until another process holds it.
    async fn keep(mut self, mut held: Lease, state: watch::Sender<State>) {
        let mut slowness = Slowness::default();
        let mut pause = RENEW_INTERVAL;
        loop {
            sleep(pause).await;
            pause = RENEW_INTERVAL;
            let asked_at = Instant::now();
            let next = renewed(&held, slowness.duration(), Timestamp::now());
            self.timeout = slowness.duration() / 2;
            // If the response is lost, the next duration may be in force.
            state.send_modify(|state| state.shorten(duration(&next)));
            let result = self.renew(&next).await;
            slowness.observe(asked_at.elapsed());
            match result {
                Ok(Renewed::Written(lease)) => {
                    held = lease;
                    state.send_replace(State::held(asked_at, duration(&held)));
                }
                Ok(Renewed::Kept(lease)) => {
                    held = lease;
                    pause = Duration::ZERO;
                }
                Ok(Renewed::Lost { holder }) => {
                    state.send_replace(State::Lost { holder });
                    return;
                }
                Err(error) => warn!(%error, lease = self.name, "The Lease was not renewed; trying again"),
            }
        }
    }

    /// Writes `next`, the held Lease with a later time of renewal.
    async fn renew(&self, next: &Lease) -> Result<Renewed, RenewError> {
        if let Some(lease) = self.write(next).await? {
            return Ok(Renewed::Written(lease));
        }
        Ok(match self.get().await? {
            Some(found) if holder(&found) == self.identity && term(&found) == term(next) => {
                Renewed::Kept(found)
            }
            found => {
                Renewed::Lost { holder: found.map(|lease| holder(&lease).to_owned()).unwrap_or_default() }
            }
        })
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
        let found = timeout(self.timeout, self.api.get_opt(&self.name)).await;
        Ok(found.map_err(|_| RenewError::Timeout(self.timeout))??)
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
        match timeout(self.timeout, written).await.map_err(|_| RenewError::Timeout(self.timeout))? {
            Ok(written) => Ok(Some(written)),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
