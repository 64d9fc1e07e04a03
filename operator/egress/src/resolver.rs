//! Names to addresses. The addresses of an answer are checked and dialed by others, without a second look-up.

#[cfg(test)]
mod tests;

use std::{net::IpAddr, time::Duration};

use futures::future::BoxFuture;
use hickory_resolver::{
    TokioResolver,
    config::{LookupIpStrategy, ResolveHosts, ResolverOpts},
    net::NetError,
    proto::rr::Name,
};
use thiserror::Error;

use crate::policy::HostName;

/// Names whose answers are kept.
const CACHED_NAMES: u64 = 4096;
/// Longest time for which an answer is kept, whatever its own says.
const LONGEST_TTL: Duration = Duration::from_secs(300);
const LONGEST_NEGATIVE_TTL: Duration = Duration::from_secs(10);
/// Time for one question to one name server.
const QUESTION_LIMIT: Duration = Duration::from_secs(3);
/// Addresses of one answer that are looked at.
const MAX_ADDRESSES: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResolveError {
    #[error("the name has no address")]
    NotFound,
    #[error("no name server answered in time")]
    TimedOut,
    #[error("the name servers could not answer: {0}")]
    Failed(String),
}

/// A source of addresses. Tests give answers of their own.
pub trait Resolve: Send + Sync + 'static {
    /// Returns every address of a name, at least one.
    fn resolve<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, Result<Vec<IpAddr>, ResolveError>>;
}

/// The name servers of the system, without its search list and without its hosts file.
#[derive(Clone, Debug)]
pub struct SystemResolver(TokioResolver);

impl SystemResolver {
    /// Reads `/etc/resolv.conf`.
    pub fn new() -> Result<Self, ResolveError> {
        let mut builder = TokioResolver::builder_tokio().map_err(|error| failed(&error))?;
        bound(builder.options_mut());
        builder.build().map(Self).map_err(|error| failed(&error))
    }
}

fn bound(options: &mut ResolverOpts) {
    options.use_hosts_file = ResolveHosts::Never;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.cache_size = CACHED_NAMES;
    options.positive_max_ttl = Some(LONGEST_TTL);
    options.negative_max_ttl = Some(LONGEST_NEGATIVE_TTL);
    options.timeout = QUESTION_LIMIT;
    options.attempts = 2;
    // Some name servers answer large questions only without the extension; TCP is asked when UDP is cut.
    options.try_tcp_on_error = true;
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, Result<Vec<IpAddr>, ResolveError>> {
        Box::pin(async move {
            let mut name = Name::from_ascii(host.as_str()).map_err(|_| ResolveError::NotFound)?;
            // An absolute name is not tried with the suffixes of a search list.
            name.set_fqdn(true);
            let answer = self.0.lookup_ip(name).await.map_err(|error| failed(&error))?;
            let addresses: Vec<IpAddr> = answer.iter().take(MAX_ADDRESSES).collect();
            if addresses.is_empty() { Err(ResolveError::NotFound) } else { Ok(addresses) }
        })
    }
}

fn failed(error: &NetError) -> ResolveError {
    match error {
        error if error.is_nx_domain() || error.is_no_records_found() => ResolveError::NotFound,
        NetError::Timeout => ResolveError::TimedOut,
        error => ResolveError::Failed(error.to_string()),
    }
}
