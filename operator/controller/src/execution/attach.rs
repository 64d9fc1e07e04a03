//! Attaching of an attempt to its sandbox: the limits of each wait, refusals by a quota, and the status meanwhile.

use std::{future::pending, time::Duration};

use kube::Api;

use super::{attempt::Attempt, build::sandbox as build, settle, starting_status::StartingStatusWriter};
use crate::sandbox::{self, AttachError, BindLimits, PodReceiver, QuotaRefusal, attach::Attached, quota};

/// A pod without room is left to the scheduler for this long: used sandboxes may be about to go.
const ROOM_PATIENCE: Duration = Duration::from_secs(5);
const ADOPTED_ROOM_PATIENCE: Duration = Duration::from_secs(60);
impl Attempt<'_> {
    /// Starts to report what the first attempt's sandbox waits for. After an attempt that counted, the status has the end of
    /// that one; the status of an adopted sandbox may say that its program runs.
    pub(super) fn report_start(&self, pod: &PodReceiver) -> Option<StartingStatusWriter> {
        let is_first = !self.is_adopted() && self.point.attempt == 1;
        is_first
            .then(|| StartingStatusWriter::start(self.ctx, self.plan, self.point, pod.clone(), self.image()))
    }

    /// Waits for a node and attaches to the runner.
    pub(super) async fn attach(&self, pod: &mut PodReceiver) -> Result<Attached, AttachError> {
        let limit = self.plan.policy.start_timeout.0;
        // Another operator that still lives may be about to use an adopted sandbox.
        let no_room = if self.is_adopted() { ADOPTED_ROOM_PATIENCE } else { ROOM_PATIENCE };
        let limits = BindLimits { undecided: limit, no_room };
        let mut unseen = pod.clone();
        tokio::select! {
            bound = sandbox::wait_until_bound(pod, limits, || self.room.report_missing()) => bound?,
            refusal = self.wait_for_quota(&mut unseen) => return Err(AttachError::Quota(refusal)),
        }
        self.room.report_found();
        sandbox::attach(&self.ctx.sandbox_pods(), pod, self.ctx.leadership.term(), limit).await
    }

    /// Waits until a quota refuses the sandbox. A pod of an adopted sandbox may have come and gone after a refusal.
    async fn wait_for_quota(&self, pod: &mut PodReceiver) -> QuotaRefusal {
        let job = build::job_name(&self.plan.reference.uid, self.point.ordinal);
        let events = Api::namespaced(self.ctx.client.clone(), &self.ctx.settings.namespace);
        let refusal = quota::wait_for_refusal(&events, &job, pod).await;
        if self.is_adopted() && !settle::never_had_pod(self.ctx, &job).await {
            return pending().await;
        }
        refusal
    }
}
