//! Decisions about a Lease, without a cluster: who may take it, and how it is written.

use std::{borrow::ToOwned, time::Duration};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::{SignedDuration, Timestamp},
};
use tokio::time::Instant;

/// The least time between the terms of two holders.
const TICK: SignedDuration = SignedDuration::from_millis(1);

/// Time after a renewal at which another process may take the Lease, if the API server is fast.
const LEAST_DURATION: Duration = Duration::from_secs(4);
const LONGEST_DURATION: Duration = Duration::from_secs(30);

/// The slowest renewal of the last some seconds, from which the duration of the Lease follows. A duration that is shorter
/// than a few renewals would let the leader change again and again while the API server is slow.
#[derive(Debug, Default)]
pub(super) struct Slowness(Duration);

impl Slowness {
    /// Takes the time of one more renewal into account. An old one counts a fifth less with each new one.
    pub(super) fn observe(&mut self, took: Duration) {
        self.0 = took.max(self.0 * 4 / 5);
    }

    /// Returns two seconds and room for four such renewals, in whole seconds, within bounds.
    pub(super) fn duration(&self) -> Duration {
        let wanted = Duration::from_secs(2) + self.0 * 4;
        let whole = Duration::from_secs(wanted.as_secs() + u64::from(wanted.subsec_nanos() > 0));
        whole.clamp(LEAST_DURATION, LONGEST_DURATION)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Nobody holds the Lease.
    Claim,
    /// Another process holds it.
    Wait,
}

/// The last change of the Lease that a waiting process has seen.
#[derive(Debug, Default)]
pub(super) struct Observation {
    seen: Option<(LeaseSpec, Instant)>,
}

impl Observation {
    /// Decides whether a process may take the Lease that it found at the instant `now`.
    ///
    /// The clocks of two machines may differ, so that the times in the Lease tell nothing. What counts is how long the
    /// Lease has not changed.
    pub(super) fn decide(&mut self, found: Option<&Lease>, identity: &str, now: Instant) -> Decision {
        let Some(lease) = found else { return Decision::Claim };
        if [identity, ""].contains(&holder(lease)) {
            return Decision::Claim;
        }
        let spec = lease.spec.clone().unwrap_or_default();
        match &self.seen {
            Some((seen, since)) if *seen == spec => {
                if now.duration_since(*since) >= duration(lease) {
                    return Decision::Claim;
                }
            }
            _ => self.seen = Some((spec, now)),
        }
        Decision::Wait
    }
}

/// Returns the identity of the holder; empty if the Lease was released.
pub(super) fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

/// Returns the time without a renewal after which another process may take the Lease.
pub(super) fn duration(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    Duration::from_secs(seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or_default())
}

/// Returns the milliseconds since 1970 at which the holder acquired the Lease.
pub(super) fn term(lease: &Lease) -> u64 {
    let acquired = lease.spec.as_ref().and_then(|spec| spec.acquire_time.as_ref());
    acquired.and_then(|time| u64::try_from(time.0.as_millisecond()).ok()).unwrap_or_default()
}

/// Returns the Lease with a new holder, whose term is greater than the last one's.
pub(super) fn claimed(
    found: Option<Lease>,
    name: &str,
    identity: &str,
    duration: Duration,
    now: Timestamp,
) -> Lease {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let mut lease = found.unwrap_or_else(|| Lease { metadata, ..Lease::default() });
    let last = lease.spec.take();
    let transitions = last.as_ref().map(|spec| spec.lease_transitions.unwrap_or_default().saturating_add(1));
    let earliest = last.and_then(|spec| spec.acquire_time).and_then(|time| time.0.checked_add(TICK).ok());
    let acquired = earliest.map_or(now, |earliest| earliest.max(now));
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: i32::try_from(duration.as_secs()).ok(),
        acquire_time: Some(MicroTime(acquired)),
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(transitions.unwrap_or_default()),
        ..LeaseSpec::default()
    });
    lease
}

/// Returns the Lease with a later time of renewal, and with the duration that counts from it.
pub(super) fn renewed(lease: &Lease, duration: Duration, now: Timestamp) -> Lease {
    let mut lease = lease.clone();
    let spec = lease.spec.get_or_insert_default();
    spec.renew_time = Some(MicroTime(now));
    spec.lease_duration_seconds = i32::try_from(duration.as_secs()).ok();
    lease
}

/// Returns the Lease without a holder.
pub(super) fn released(lease: &Lease, now: Timestamp) -> Lease {
    let mut lease = renewed(lease, duration(lease), now);
    if let Some(spec) = &mut lease.spec {
        spec.holder_identity = Some(String::new());
    }
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_secs(4);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    fn held(identity: &str, millis: i64) -> Lease {
        claimed(None, "operator", identity, DURATION, at(millis))
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_free_if_it_is_missing_released_or_ones_own() {
        let now = Instant::now();
        let lease = held("a", 5);
        let free = released(&lease, at(6));
        let decide = |found, identity| Observation::default().decide(found, identity, now);
        assert_eq!(decide(None, "a"), Decision::Claim);
        assert_eq!(decide(Some(&free), "b"), Decision::Claim);
        assert_eq!(decide(Some(&lease), "a"), Decision::Claim, "the process was restarted");
        assert_eq!(decide(Some(&lease), "b"), Decision::Wait);
        assert_eq!(decide(Some(&Lease::default()), "b"), Decision::Claim);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_taken_after_its_duration_without_a_change() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let (first, second) = (held("a", 5), renewed(&held("a", 5), DURATION, at(6)));
        let mut observation = Observation::default();
        assert_eq!(observation.decide(Some(&first), "b", start), Decision::Wait);
        assert_eq!(observation.decide(Some(&first), "b", after(3_999)), Decision::Wait);
        assert_eq!(observation.decide(Some(&second), "b", after(4_000)), Decision::Wait, "it was renewed");
        assert_eq!(observation.decide(Some(&second), "b", after(7_999)), Decision::Wait);
        assert_eq!(observation.decide(Some(&second), "b", after(8_000)), Decision::Claim);
    }

    #[test]
    fn each_term_is_greater_than_the_last_also_if_the_clock_is_behind() {
        let first = held("a", 5_000);
        assert_eq!((term(&first), holder(&first)), (5_000, "a"));
        let ahead = claimed(Some(first.clone()), "operator", "b", DURATION, at(9_000));
        assert_eq!((term(&ahead), holder(&ahead)), (9_000, "b"));
        let behind = claimed(Some(first), "operator", "b", DURATION, at(1_000));
        assert_eq!(term(&behind), 5_001);
    }

    #[test]
    fn a_renewal_keeps_the_term_and_a_claim_counts_a_transition() {
        let first = held("a", 5_000);
        let again = renewed(&first, DURATION, at(6_000));
        assert_eq!(term(&again), 5_000);
        let spec = again.spec.clone().unwrap();
        assert_eq!((spec.lease_transitions, spec.renew_time), (Some(0), Some(MicroTime(at(6_000)))));
        let free = released(&again, at(7_000));
        assert_eq!((term(&free), holder(&free)), (5_000, ""));
        let next = claimed(Some(free), "operator", "b", DURATION, at(8_000));
        assert_eq!(next.spec.unwrap().lease_transitions, Some(1));
    }

    #[test]
    fn the_duration_grows_with_the_slowest_renewal_and_shrinks_slowly() {
        let mut slowness = Slowness::default();
        let after = |slowness: &mut Slowness, millis| {
            slowness.observe(Duration::from_millis(millis));
            slowness.duration().as_secs()
        };
        assert_eq!(slowness.duration(), DURATION);
        assert_eq!([10, 500, 501, 2_000].map(|millis| after(&mut slowness, millis)), [4, 4, 5, 10]);
        assert_eq!([10, 10, 10].map(|millis| after(&mut slowness, millis)), [9, 8, 7]);
        let fast = std::iter::repeat_with(|| after(&mut slowness, 10)).take(10).last();
        assert_eq!(fast, Some(4));
        assert_eq!(after(&mut slowness, 60_000), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_process_gives_the_holder_the_duration_of_its_last_renewal() {
        let start = Instant::now();
        let slow = renewed(&held("a", 5), Duration::from_secs(10), at(6));
        assert_eq!((duration(&slow), term(&slow)), (Duration::from_secs(10), 5));
        let mut observation = Observation::default();
        assert_eq!(observation.decide(Some(&slow), "b", start), Decision::Wait);
        let after = |millis| start + Duration::from_millis(millis);
        assert_eq!(observation.decide(Some(&slow), "b", after(9_999)), Decision::Wait);
        assert_eq!(observation.decide(Some(&slow), "b", after(10_000)), Decision::Claim);
    }
}
