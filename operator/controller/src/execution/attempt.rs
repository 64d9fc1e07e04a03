//! One attempt of an execution in one sandbox: create or adopt it, attach, run, and settle how it ended.
//!
//! A lost stream is not a lost run. The program keeps running in its sandbox and the runner's frames are in the
//! container log, so the end is read from there. Only a run of which neither stream nor log has the end is lost.
//! The status says Running only after the runner's `Accepted`, from the stream or from the log.

use std::{convert::Infallible, future::pending, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{batch::v1::Job, core::v1::Node};
use kube::{Api, ResourceExt as _, api::ListParams};
use skillet_api::Reason;
use skillet_kube::{Backoff, lock};
use tokio::{sync::watch, time::Instant};
use tracing::warn;

use super::{
    adopt::{self, ResumePoint, SandboxState},
    attempt_outcome::{AttemptOutcome, DriveError, Interrupted, SandboxRef, TakenOver},
    build::sandbox as build,
    deadlines::OPERATOR_SLACK,
    entry::RoomReporter,
    gather::{self, ReadError},
    order::{Order, wait_for_cancel, wait_for_stop},
    plan::Plan,
    running_status::RunningStatusWriter,
    settle::{self, Settled},
};
use crate::{
    context::Context,
    egress::Relay,
    isolation,
    sandbox::{
        self, AttachError, CreateError, PodReceiver, QuotaRefusal, capacity, image_id, logs, manifest,
    },
};

/// Pauses between two looks for the acceptance of a run in its log.
const LOOKS: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5));

/// One attempt and its sandbox.
pub(crate) struct Attempt<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) plan: &'a Plan,
    pub(crate) point: &'a ResumePoint,
    pub(crate) order: watch::Receiver<Order>,
    pub(crate) status: &'a RunningStatusWriter,
    pub(crate) room: &'a RoomReporter,
    /// The program's connections, while it runs.
    pub(crate) relay: Option<Relay>,
}

impl Attempt<'_> {
    /// Runs to an end. The caller removes the sandbox.
    pub(crate) async fn run(mut self) -> Result<(AttemptOutcome, SandboxRef), TakenOver> {
        let job = build::job_name(&self.plan.reference.uid, self.point.ordinal);
        let mut sandbox = SandboxRef { job, ..SandboxRef::default() };
        let mut pod = self.ctx.pods.follow(&sandbox.job);
        let order = self.order.clone();
        let ended = tokio::select! {
            ended = self.run_in(&mut sandbox, &mut pod) => ended,
            () = wait_for_stop(order) => Err(Interrupted::TakenOver(TakenOver::Finished)),
        };
        // A short run may end before the watch shows what its node reports.
        if let Some(view) = &*pod.borrow() {
            sandbox.image_id = image_id(&view.pod).map(str::to_owned);
        }
        self.ctx.pods.forget(&sandbox.job);
        match ended {
            Ok(outcome) | Err(Interrupted::Outcome(outcome)) => {
                if let Some(cause) = outcome.start_failure() {
                    self.ctx.metrics.start_failed(cause);
                }
                Ok((outcome, sandbox))
            }
            Err(Interrupted::TakenOver(taken_over)) => {
                if taken_over == TakenOver::Finished {
                    self.ctx.remover.later(sandbox.job);
                }
                Err(taken_over)
            }
        }
    }

    async fn run_in(
        &mut self,
        sandbox: &mut SandboxRef,
        pod: &mut PodReceiver,
    ) -> Result<AttemptOutcome, Interrupted> {
        let began = Instant::now();
        self.create_sandbox().await?;
        // An operator removes a sandbox only after it wrote how its run ended. As the sandbox exists now, this read shows
        // every end that was written before it, however long this operator was cut off. The pod starts meanwhile.
        if gather::is_over(self.ctx, &self.plan.reference).await? {
            return Err(Interrupted::TakenOver(TakenOver::Finished));
        }
        if self.is_adopted() {
            if let Some(lost) = settle::find_lost(self.ctx, pod, sandbox).await {
                return Ok(self.outcome(lost, sandbox));
            }
            if settle::is_used(self.ctx, pod).await {
                return Ok(self.settle(sandbox, pod).await);
            }
        }
        let mut order = self.order.clone();
        let starting = self.report_start(pod);
        let attached = tokio::select! {
            attached = self.attach(pod) => Some(attached),
            () = wait_for_cancel(&mut order) => None,
        };
        if let Some(starting) = starting {
            starting.finish().await;
        }
        let attached = match attached {
            None => return Ok(AttemptOutcome::Cancelled),
            Some(Ok(attached)) => attached,
            Some(Err(error)) => return Ok(self.handle_attach_error(error, sandbox, pod).await),
        };
        self.ctx.metrics.sandbox_started(began.elapsed());
        sandbox.pod = Some(attached.pod.clone());
        sandbox.node = Some(attached.node.clone());
        sandbox.isolation = Some(attached.ready.isolation.clone());
        let missing = attached.ready.isolation.missing(isolation::level(self.plan.policy.isolation));
        if !missing.is_empty() {
            return Ok(AttemptOutcome::unproven(&attached, &missing, self.plan.policy.isolation));
        }
        if self.plan.admitted.content.network.is_some() && attached.ready.isolation.named_egress != Some(true)
        {
            return Ok(AttemptOutcome::without_egress(&attached));
        }
        let driven = self.drive(attached.stream, sandbox, pod).await;
        if let Some(relay) = self.relay.take() {
            sandbox.connections = Some(relay.finish(&self.ctx.metrics.egress).await);
        }
        match driven {
            Ok(outcome) => Ok(outcome),
            Err(DriveError::TakenOver) => Err(Interrupted::TakenOver(TakenOver::ByNewer)),
            Err(DriveError::Stream(error)) => {
                warn!(job = sandbox.job, %error, "Stream was lost; the run is settled from its log");
                Ok(self.settle(sandbox, pod).await)
            }
        }
    }

    /// Returns true if an operator before this attempt created the sandbox, and may have used it.
    pub(super) fn is_adopted(&self) -> bool {
        self.point.sandbox == SandboxState::Exists
    }

    /// Sees to it that the sandbox's Job exists.
    async fn create_sandbox(&mut self) -> Result<(), Interrupted> {
        match self.point.sandbox {
            SandboxState::NotCreated => {}
            SandboxState::Exists => return Ok(()),
            SandboxState::Gone => {
                let message = "the sandbox was deleted while no operator was there to see how it ended";
                return Err(AttemptOutcome::lost(message.into()).into());
            }
        }
        let spec = build::spec(self.plan, self.point, &self.ctx.settings, &lock(&self.ctx.probed));
        let job: Job = manifest::job(&spec, &self.ctx.settings);
        let jobs = self.ctx.sandbox_jobs();
        let created = tokio::select! {
            created = sandbox::create(&jobs, &job, self.plan.policy.start_timeout.0) => created,
            () = wait_for_cancel(&mut self.order) => return Err(AttemptOutcome::Cancelled.into()),
        };
        match created {
            Ok(()) => Ok(()),
            // An operator before this one sent the request, perhaps for another version, and it arrived late.
            Err(CreateError::AlreadyExists) => {
                Err(Interrupted::TakenOver(TakenOver::Resume(self.find_newest_sandbox().await?)))
            }
            Err(error @ (CreateError::Refused(_) | CreateError::Timeout { .. })) => {
                let (reason, message) = (Reason::SandboxUnavailable, error.to_string());
                // A quota may count Jobs, too.
                let refusal = QuotaRefusal::read(&message).map(AttemptOutcome::refused_by_quota);
                Err(refusal.unwrap_or(AttemptOutcome::Unusable { reason, message }).into())
            }
        }
    }

    /// The newest sandbox of an execution of which another operator has created this attempt's sandbox.
    async fn find_newest_sandbox(&self) -> Result<ResumePoint, ReadError> {
        let (jobs, uid) = (self.ctx.sandbox_jobs(), &self.plan.reference.uid);
        let newest = gather::until_read("Job", Duration::MAX, || adopt::newest_of(&jobs, uid)).await?;
        Ok(newest.unwrap_or_else(|| ResumePoint {
            version: Some(self.plan.admitted.version.to_string()),
            // Removed since: its run has ended, and the status says how unless it was lost.
            sandbox: SandboxState::Gone,
            ..self.point.clone()
        }))
    }

    async fn handle_attach_error(
        &mut self,
        error: AttachError,
        sandbox: &mut SandboxRef,
        pod: &mut PodReceiver,
    ) -> AttemptOutcome {
        match error {
            AttachError::NoRoom(message) => self.no_room(message, pod).await,
            AttachError::Quota(refusal) => AttemptOutcome::refused_by_quota(refusal),
            AttachError::Ended(ended) if ended.had_no_room() => self.no_room(ended.message, pod).await,
            // Another operator, which is being replaced, uses the sandbox: its end is this execution's end. A runner
            // that said nothing, or something else, may have got a Run from it; if not, its end says so.
            AttachError::InUse(_) => self.settle(sandbox, pod).await,
            AttachError::Ended(ended) | AttachError::Gone(Some(ended)) if ended.was_used() => {
                self.settle(sandbox, pod).await
            }
            AttachError::Image(message) => AttemptOutcome::never_began(message),
            // The Job controller pauses longer after each refusal, such as of an admission rule.
            AttachError::Timeout { limit, message }
                if pod.borrow().is_none()
                    && (!self.is_adopted() || settle::never_had_pod(self.ctx, &sandbox.job).await) =>
            {
                AttemptOutcome::Unused { message: format!("no sandbox within {limit:?}: {message}") }
            }
            // It may have run under the operator that created it.
            AttachError::Timeout { .. } if self.is_adopted() => self.settle(sandbox, pod).await,
            AttachError::Timeout { limit, .. } if self.is_pulling(pod).await => AttemptOutcome::Unusable {
                reason: Reason::ImageUnavailable,
                message: format!("the image {} was not pulled within {limit:?}", self.image()),
            },
            AttachError::Timeout { limit, message } => AttemptOutcome::Unusable {
                reason: Reason::SandboxUnavailable,
                message: format!("no sandbox within {limit:?}: {message}"),
            },
            // An adopted sandbox can have run something under another operator.
            AttachError::Ended(_) | AttachError::Gone(_) if self.is_adopted() => {
                self.settle(sandbox, pod).await
            }
            AttachError::Ended(ended) if ended.is_container && ended.receipt.is_none() => {
                AttemptOutcome::never_began(format!("the image cannot be started: {}", ended.message))
            }
            error @ (AttachError::Ended(_) | AttachError::Gone(_)) => {
                AttemptOutcome::Unused { message: error.to_string() }
            }
        }
    }

    /// Nothing ran. A sandbox that fits no node fails; any other waits for room.
    async fn no_room(&self, message: String, pod: &PodReceiver) -> AttemptOutcome {
        let pod = pod.borrow().as_ref().map(|view| view.pod.clone());
        let nodes: Api<Node> = Api::all(self.ctx.client.clone());
        // Any version of the nodes will do: the API server need not read them from etcd.
        let never = match nodes.list(&ListParams::default().match_any()).await {
            Ok(nodes) => {
                let mut nodes = nodes.items;
                let avoided = build::avoided_nodes(self.plan, &lock(&self.ctx.probed));
                nodes.retain(|node| !avoided.contains(&node.name_any()));
                pod.and_then(|pod| capacity::never_fits(&pod, &nodes))
            }
            Err(error) => {
                warn!(%error, "Nodes could not be listed");
                None
            }
        };
        match never {
            Some(message) => AttemptOutcome::Unusable { reason: Reason::Unschedulable, message },
            None => AttemptOutcome::NoRoom { message },
        }
    }

    pub(super) fn image(&self) -> &str {
        self.ctx.settings.image(&self.plan.program.image)
    }

    async fn is_pulling(&self, pod: &PodReceiver) -> bool {
        let Some(pod) = pod.borrow().as_ref().map(|view| view.pod.clone()) else { return false };
        let events = Api::namespaced(self.ctx.client.clone(), &self.ctx.settings.namespace);
        sandbox::attach::is_pulling(&events, &pod, self.image()).await
    }

    /// Waits for the sandbox's end and reads what it left.
    async fn settle(&self, sandbox: &mut SandboxRef, pod: &mut PodReceiver) -> AttemptOutcome {
        let limit = self.plan.policy.start_timeout.0 + self.plan.admitted.timeout + OPERATOR_SLACK;
        let mut order = self.order.clone();
        let report = self.report_acceptance(sandbox.clone(), pod.clone());
        let settled = tokio::select! {
            settled = settle::settle(self.ctx, pod, sandbox, limit) => settled,
            () = wait_for_cancel(&mut order) => return AttemptOutcome::Cancelled,
            never = report => match never {},
        };
        self.outcome(settled, sandbox)
    }

    fn outcome(&self, settled: Settled, sandbox: &SandboxRef) -> AttemptOutcome {
        match settled {
            Settled::Ran { receipt, captured } => {
                AttemptOutcome::ran(receipt, captured, self.order.borrow().is_cancel())
            }
            Settled::Unused => AttemptOutcome::Unused { message: "the sandbox ended without a run".into() },
            Settled::OutOfMemory => AttemptOutcome::OutOfMemory,
            Settled::Lost { reason, message, receipt } => AttemptOutcome::Lost { reason, message, receipt },
            Settled::NeverBegan if sandbox.isolation.is_none() => {
                AttemptOutcome::Unused { message: "the runner never answered".into() }
            }
            Settled::NeverBegan | Settled::Hangs => AttemptOutcome::TimedOut,
        }
    }

    /// Reports the run as Running once the log holds the runner's `Accepted`.
    async fn report_acceptance(&self, mut sandbox: SandboxRef, pod: PodReceiver) -> Infallible {
        let mut backoff = LOOKS;
        while !self.status.is_accepted() && !settle::has_ended(&pod) {
            let view = pod.borrow().clone();
            if let Some(view) = view {
                sandbox.locate(&view);
                // Without a log yet, the next look finds out.
                let pods = self.ctx.sandbox_pods();
                if logs::is_accepted(&pods, &view.pod.name_any()).await.unwrap_or(false) {
                    self.status.accept(Timestamp::now());
                    break;
                }
            }
            backoff.pause().await;
        }
        self.status.start(&sandbox);
        pending().await
    }

    /// The runner ends its program in time. If it did not, it hangs, never began, or its node is gone.
    pub(super) async fn over_time(&self, sandbox: &SandboxRef, pod: &PodReceiver) -> AttemptOutcome {
        let mut order = self.order.clone();
        let settled = tokio::select! {
            settled = settle::settle_overdue(self.ctx, pod, sandbox) => settled,
            () = wait_for_cancel(&mut order) => return AttemptOutcome::Cancelled,
        };
        self.outcome(settled, sandbox)
    }
}
