//! The guarded dialer: everything that leaves Skillet for a host goes through [`Dialer`].
//!
//! The host is checked, then looked up, and the addresses that were checked are dialed exactly.

#[cfg(test)]
mod tests;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use skillet_protocol::Verdict;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};

use crate::{
    limits::{LimitSettings, Limits, RunPlace, RunScope, TenantPlace},
    metrics::Metrics,
    policy::HostName,
    resolver::{Resolve, ResolveError},
};

/// Time for look-up and connection together. A broker that works answers each connection of a link within it, and a little.
pub const DIAL_LIMIT: Duration = Duration::from_secs(10);
/// Most of it that one address gets when others are left.
const ADDRESS_LIMIT: Duration = Duration::from_secs(3);

/// The system call that connects. Tests put loopback in the place of public addresses, which were checked before.
pub trait Connect: Send + Sync + 'static {
    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>>;
}

/// Connections of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemConnect;

impl Connect for SystemConnect {
    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(address))
    }
}

/// Opens connections under the rules of a run.
#[derive(Clone)]
pub(crate) struct Dialer {
    resolver: Arc<dyn Resolve>,
    connect: Arc<dyn Connect>,
    limits: Limits,
    connect_limit: Duration,
    metrics: Metrics,
}

/// An open connection with its places among those of run and tenant.
#[derive(Debug)]
pub(crate) struct Dialed {
    pub(crate) stream: TcpStream,
    pub(crate) host: HostName,
    pub(crate) address: IpAddr,
    pub(crate) places: Places,
}

/// Places of a connection, free again when dropped.
#[derive(Debug)]
pub(crate) struct Places {
    _run: RunPlace,
    _tenant: TenantPlace,
}

/// A connection that there will not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) verdict: Verdict,
    pub(crate) address: Option<IpAddr>,
    pub(crate) message: String,
}

impl Dialer {
    pub(crate) fn new(
        resolver: Arc<dyn Resolve>,
        connect: Arc<dyn Connect>,
        limits: LimitSettings,
        metrics: Metrics,
    ) -> Self {
        Self { resolver, connect, limits: Limits::new(limits), connect_limit: DIAL_LIMIT, metrics }
    }

    /// Opens a connection to a host within [`DIAL_LIMIT`], or says why not.
    pub(crate) async fn dial(&self, scope: &Arc<RunScope>, host: &str, port: u16) -> Result<Dialed, Refusal> {
        self.dial_for(self.connect_limit, scope, host, port).await
    }

    /// The same for a caller that waits for `patience` and then drops the dial, which bounds the wait for the tenant's turn.
    pub(crate) async fn dial_for(
        &self,
        patience: Duration,
        scope: &Arc<RunScope>,
        host: &str,
        port: u16,
    ) -> Result<Dialed, Refusal> {
        let began = Instant::now();
        // The rest of the time is for the host.
        let turn_by = began + patience.min(self.connect_limit) / 2;
        let dialed = self.attempt(scope, host, port, (turn_by, began + self.connect_limit)).await;
        self.metrics.dialed(dialed.as_ref().map_or_else(|refusal| refusal.verdict, |_| Verdict::Allowed));
        self.metrics.dial_seconds(began.elapsed());
        dialed
    }

    async fn attempt(
        &self,
        scope: &Arc<RunScope>,
        host: &str,
        port: u16,
        (turn_by, deadline): (Instant, Instant),
    ) -> Result<Dialed, Refusal> {
        let host = scope.policy.check_host(host, port).map_err(|verdict| match verdict {
            Verdict::PortNotAllowed => refusal(verdict, format!("port {port} of the host is not allowed")),
            verdict => refusal(verdict, "the host is not allowed"),
        })?;
        let full = |message: &str| refusal(Verdict::EgressLimitReached, message);
        let run = scope.enter().await.ok_or_else(|| full("the run has no more connections"))?;
        let tenant = self.limits.enter(&scope.tenant, turn_by).await.map_err(full)?;
        let places = Places { _run: run, _tenant: tenant };
        let addresses = match timeout_at(deadline, self.resolver.resolve(&host)).await {
            Ok(Ok(addresses)) => addresses,
            Ok(Err(error)) => return Err(unresolved(&error)),
            Err(_) => return Err(unresolved(&ResolveError::TimedOut)),
        };
        let addresses = scope.policy.check_addresses(&host, port, &addresses).map_err(|address| {
            let message = "the host has an address that may not be reached";
            Refusal { address, ..refusal(Verdict::AddressNotAllowed, message) }
        })?;
        let (stream, address) = self.connect(&addresses, port, deadline).await?;
        Ok(Dialed { stream, host, address, places })
    }

    /// Tries addresses in turn.
    async fn connect(
        &self,
        addresses: &[IpAddr],
        port: u16,
        deadline: Instant,
    ) -> Result<(TcpStream, IpAddr), Refusal> {
        let mut last = refusal(Verdict::ConnectTimedOut, "the host did not accept the connection in time");
        for (index, address) in addresses.iter().enumerate() {
            let is_last = index + 1 == addresses.len();
            let until = if is_last { deadline } else { deadline.min(Instant::now() + ADDRESS_LIMIT) };
            match timeout_at(until, self.connect.connect(SocketAddr::new(*address, port))).await {
                Ok(Ok(stream)) => {
                    // Small writes of programs go out at once, as they would without a broker between.
                    stream.set_nodelay(true).ok();
                    return Ok((stream, *address));
                }
                Ok(Err(error)) => {
                    let message = format!("could not connect: {error}");
                    last = Refusal { address: Some(*address), ..refusal(Verdict::ConnectFailed, message) };
                }
                Err(_) => {
                    let message = "the host did not accept the connection in time";
                    last = Refusal { address: Some(*address), ..refusal(Verdict::ConnectTimedOut, message) };
                }
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        Err(last)
    }
}

fn refusal(verdict: Verdict, message: impl Into<String>) -> Refusal {
    Refusal { verdict, address: None, message: message.into() }
}

fn unresolved(error: &ResolveError) -> Refusal {
    let verdict = match error {
        ResolveError::NotFound => Verdict::NameNotFound,
        ResolveError::TimedOut => Verdict::ConnectTimedOut,
        ResolveError::Failed(_) => Verdict::ConnectFailed,
    };
    refusal(verdict, error.to_string())
}
