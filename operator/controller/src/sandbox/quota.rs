//! Refusals by a ResourceQuota of the sandbox namespace: such a sandbox waits, unless the whole quota is too small for it.
//!
//! The Job controller creates pods, so only its events tell why a Job has none.

use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::{Api, api::ListParams};
use skillet_core::quantity::{cpu_millis, memory_bytes};
use skillet_kube::Backoff;
use tracing::debug;

use super::pod_watch::PodReceiver;

/// Beginnings of the API server's refusals that end when other sandboxes are gone, or when the quota is counted.
const REFUSALS: [&str; 3] =
    ["exceeded quota: ", "status unknown for quota: ", "resource quota evaluation timed out"];
/// Pauses before a look for the reason why a Job has no pod. Nearly every Job has one after the first.
const LOOKS: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(10));

/// The refusal of a sandbox by a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuotaRefusal {
    pub(crate) message: String,
    /// The sandbox is larger than the whole quota.
    pub(crate) is_final: bool,
}

impl QuotaRefusal {
    /// Reads a message of the API server. `None` if it tells of no quota.
    pub(crate) fn read(message: &str) -> Option<Self> {
        let at = REFUSALS.iter().find_map(|words| message.find(words))?;
        let message = message[at..].trim().to_owned();
        let is_final = exceeds_whole_quota(&message).unwrap_or(false);
        Some(Self { message, is_final })
    }
}

/// Compares the amounts in `exceeded quota: NAME, requested: A=1,B=2, used: ..., limited: A=3,B=4`. An amount that cannot be
/// read, or is zero, may become smaller than the quota.
fn exceeds_whole_quota(message: &str) -> Option<bool> {
    let (_, amounts) = message.split_once(", requested: ")?;
    let (requested, rest) = amounts.split_once(", used: ")?;
    let (_, limited) = rest.split_once(", limited: ")?;
    let limits: Vec<(&str, &str)> = limited.split(',').filter_map(|limit| limit.split_once('=')).collect();
    let is_larger = |requested: &str| {
        let (resource, amount) = requested.split_once('=')?;
        let (_, limit) = limits.iter().find(|(name, _)| *name == resource)?;
        let read = if resource.ends_with("cpu") { cpu_millis } else { memory_bytes };
        Some(read(amount)? > read(limit)?)
    };
    Some(requested.split(',').any(|amount| is_larger(amount).unwrap_or(false)))
}

/// Waits until events show that a quota refuses the pod of `job`. Never returns once there is a pod.
pub(crate) async fn wait_for_refusal(events: &Api<Event>, job: &str, pod: &mut PodReceiver) -> QuotaRefusal {
    let mut looks = LOOKS;
    loop {
        looks.pause().await;
        if pod.borrow_and_update().is_some() {
            std::future::pending::<()>().await;
        }
        if let Some(refusal) = find_refusal(events, job).await {
            return refusal;
        }
    }
}

/// The refusal in the newest event about a pod of `job` that could not be created.
async fn find_refusal(events: &Api<Event>, job: &str) -> Option<QuotaRefusal> {
    let of_job = ListParams::default().fields(&format!("involvedObject.name={job},reason=FailedCreate"));
    match events.list(&of_job).await {
        Ok(found) => {
            let newest =
                found.items.into_iter().max_by_key(|event| event.last_timestamp.as_ref().map(|at| at.0));
            QuotaRefusal::read(&newest?.message?)
        }
        Err(error) => {
            debug!(job, %error, "Events could not be listed");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = "Error creating: pods \"run-u-1-x7k2p\" is forbidden: ";

    fn check(message: &str, expected: Option<(&str, bool)>) {
        let refusal = QuotaRefusal::read(&format!("{POD}{message}"));
        let expected = expected.map(|(message, is_final)| QuotaRefusal { message: message.into(), is_final });
        assert_eq!(refusal, expected);
    }

    #[test]
    fn a_quota_that_is_used_up_is_a_refusal_for_now() {
        let full = "exceeded quota: sandboxes, requested: limits.cpu=4,limits.memory=2Gi, used: limits.cpu=62,limits.memory=31Gi, limited: limits.cpu=64,limits.memory=32Gi";
        check(full, Some((full, false)));
        let pods = "exceeded quota: sandboxes, requested: pods=1, used: pods=64, limited: pods=64";
        check(pods, Some((pods, false)));
        let uncounted = "status unknown for quota: sandboxes, resources: limits.cpu";
        check(uncounted, Some((uncounted, false)));
    }

    #[test]
    fn a_sandbox_larger_than_the_whole_quota_is_refused_for_good() {
        let memory = "exceeded quota: sandboxes, requested: limits.memory=2199023255552, used: limits.memory=0, limited: limits.memory=32Gi";
        check(memory, Some((memory, true)));
        let cpu = "exceeded quota: q, requested: limits.cpu=1500m,pods=1, used: limits.cpu=0,pods=0, limited: limits.cpu=1,pods=9";
        check(cpu, Some((cpu, true)));
        let unreadable = "exceeded quota: q, requested: limits.memory=2Xi, used: limits.memory=0, limited: limits.memory=1Gi";
        check(unreadable, Some((unreadable, false)));
        let paused = "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0";
        check(paused, Some((paused, false)));
    }

    #[test]
    fn other_refusals_are_not_of_a_quota() {
        check("violates PodSecurity \"restricted:latest\"", None);
        check("failed quota: sandboxes: must specify requests.storage", None);
    }
}
