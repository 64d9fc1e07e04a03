//! One attempt of an execution in one sandbox: make or adopt it, open it, run, and settle what became of it.
//!
//! A lost stream is not a lost run. The program goes on in its sandbox and the runner's frames are in the
//! container log, so the end is read from there; only what neither stream nor log tells is lost.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, ResourceExt};
use skillet_api::{Reason, SkillExecution, SkillPolicySpec};
use skillet_core::{admission::Admitted, skill::ImageChoice};
use skillet_protocol::{OperatorMessage, Refusal, Refused, RunnerMessage};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tracing::warn;

use super::{
    adopt::{self, ResumePoint, SandboxState},
    attempt_outcome::{AttemptOutcome, Captured, Interrupted, SandboxRef, TakenOver},
    build::{frame, sandbox as build},
    gather,
    settle::{self, Settled},
};
use crate::{
    context::Context,
    policy::probe,
    sandbox::{
        self, AttachError, CreateError, PodReceiver, RunnerStream, StreamEnd, attach::Attached, manifest,
    },
};

/// After the program's own limit: SIGTERM's grace and the runner's last words, then the operator ends it.
const OPERATOR_SLACK: Duration = Duration::from_millis(1_850);
/// A cancelled program gets this long to be ended by its runner.
const CANCEL_SLACK: Duration = Duration::from_millis(1_300);
/// What is still on its way when the pod is known to have ended.
const DRAIN: Duration = Duration::from_millis(1_500);
/// A stream that takes an order no faster than this is dead.
const SEND_LIMIT: Duration = Duration::from_secs(10);
/// A run longer than this is reported as Running.
const REPORT_AFTER: Duration = Duration::from_millis(500);

/// Everything about a run that does not change between its attempts.
pub struct Plan {
    pub execution: Arc<SkillExecution>,
    pub admitted: Admitted,
    pub policy: Arc<SkillPolicySpec>,
    pub secret_env: BTreeMap<String, String>,
}

/// One attempt: which sandbox it uses, and what is known of that sandbox.
pub struct Attempt<'a> {
    pub ctx: &'a Context,
    pub plan: &'a Plan,
    pub ordinal: u32,
    pub number: u32,
    pub sandbox: SandboxState,
    /// Becomes true when the run is to be cancelled.
    pub cancel: watch::Receiver<bool>,
    /// Set when the runner has accepted the run.
    pub started: &'a OnceLock<Timestamp>,
    /// Called once when the run has gone on for half a second.
    pub on_running: &'a (dyn Fn(&SandboxRef) + Send + Sync),
}

impl Attempt<'_> {
    /// Runs to an end. The sandbox is left to the caller to remove.
    pub async fn run(mut self) -> Result<(AttemptOutcome, SandboxRef), TakenOver> {
        let uid = self.plan.execution.uid().unwrap_or_default();
        let mut place = SandboxRef { job: build::job_name(&uid, self.ordinal), ..SandboxRef::default() };
        let mut follower = self.ctx.pods.follow(&place.job);
        let ended = self.attempt(&mut follower, &mut place).await;
        self.ctx.pods.forget(&place.job);
        match ended {
            Ok(end) | Err(Interrupted::End(end)) => Ok((end, place)),
            Err(Interrupted::TakenOver(TakenOver::Over)) => {
                self.ctx.remover.later(place.job);
                Err(TakenOver::Over)
            }
            Err(Interrupted::TakenOver(elsewhere @ (TakenOver::Begun(_) | TakenOver::Newer))) => {
                Err(elsewhere)
            }
        }
    }

    async fn attempt(
        &mut self,
        follower: &mut PodReceiver,
        place: &mut SandboxRef,
    ) -> Result<AttemptOutcome, Interrupted> {
        let asked = Instant::now();
        self.make_sandbox().await?;
        if self.is_adopted() && settle::is_used(self.ctx, follower).await {
            return Ok(self.settle(follower, place).await);
        }
        let opened = match self.open(follower).await? {
            Ok(opened) => opened,
            Err(error) => return Ok(self.not_opened(error, follower, place).await),
        };
        self.ctx.metrics.sandbox_started(asked.elapsed());
        place.pod = Some(opened.pod.clone());
        place.node = Some(opened.node.clone());
        place.isolation = Some(opened.ready.isolation.clone());
        let missing = opened.ready.isolation.missing(probe::level(&self.plan.policy));
        if !missing.is_empty() {
            return Ok(AttemptOutcome::unproven(&opened, &missing, self.plan.policy.isolation));
        }
        // What is made under this Job's name came after whatever another operator ended under it.
        if self.ctx.is_young() && gather::is_over(self.ctx, &self.plan.execution).await {
            return Err(Interrupted::TakenOver(TakenOver::Over));
        }
        let secrets = self.plan.secret_env.clone();
        let id = frame::RunId {
            execution_uid: &self.plan.execution.uid().unwrap_or_default(),
            attempt: self.number,
            epoch: self.ctx.epoch,
        };
        let order = OperatorMessage::Run(Box::new(frame::run(&id, &self.plan.admitted, secrets)));
        match self.drive(opened.stream, &order, follower, place).await {
            Ok(Some(end)) => Ok(end),
            Ok(None) => Err(Interrupted::TakenOver(TakenOver::Newer)),
            Err(stream_end) => {
                warn!(job = place.job, error = %stream_end, "Stream was lost; the run is settled from its log");
                Ok(self.settle(follower, place).await)
            }
        }
    }

    /// Whether somebody before this attempt made the sandbox, and may have used it.
    fn is_adopted(&self) -> bool {
        self.sandbox == SandboxState::There
    }

    /// Sees to it that the sandbox's Job is there.
    async fn make_sandbox(&mut self) -> Result<(), Interrupted> {
        match self.sandbox {
            SandboxState::NotMade => {}
            SandboxState::There => return Ok(()),
            SandboxState::Gone => {
                let message =
                    "the sandbox was deleted while no operator was there to see how it ended".into();
                let lost = AttemptOutcome::Lost { reason: Reason::SandboxLost, message, receipt: None };
                return Err(lost.into());
            }
        }
        let spec = build::spec(
            &self.plan.execution,
            &self.plan.admitted,
            &self.plan.policy,
            &self.ctx.settings,
            (self.ordinal, self.number),
        );
        let job: Job = manifest::job(&spec, &self.ctx.settings);
        let jobs = self.ctx.sandbox_jobs();
        let made = tokio::select! {
            made = sandbox::create(&jobs, &job, self.plan.policy.start_timeout.0) => made,
            () = cancelled(&mut self.cancel) => return Err(AttemptOutcome::Cancelled.into()),
        };
        match made {
            Ok(()) => Ok(()),
            // An operator before this one asked for it, perhaps for another version, and its request arrived late.
            Err(CreateError::AlreadyExists) => {
                Err(Interrupted::TakenOver(TakenOver::Begun(self.begun().await)))
            }
            Err(error @ (CreateError::Refused(_) | CreateError::Timeout { .. })) => {
                let (reason, message) = (Reason::SandboxUnavailable, error.to_string());
                Err(AttemptOutcome::Unusable { reason, message }.into())
            }
        }
    }

    /// How far another operator came that has made this attempt's sandbox.
    async fn begun(&self) -> ResumePoint {
        let (jobs, uid) = (self.ctx.sandbox_jobs(), self.plan.execution.uid().unwrap_or_default());
        let newest = gather::until_read("Job", || adopt::newest_of(&jobs, &uid)).await;
        newest.unwrap_or_else(|| ResumePoint {
            ordinal: self.ordinal,
            attempt: self.number,
            version: Some(self.plan.admitted.version.to_string()),
            // Removed since: its run is over, and the status tells how unless it was lost.
            sandbox: SandboxState::Gone,
        })
    }

    async fn open(
        &mut self,
        follower: &mut PodReceiver,
    ) -> Result<Result<Attached, AttachError>, AttemptOutcome> {
        let pods = self.ctx.sandbox_pods();
        let limit = self.plan.policy.start_timeout.0;
        tokio::select! {
            opened = sandbox::attach(&pods, follower, self.ctx.epoch, limit) => Ok(opened),
            () = cancelled(&mut self.cancel) => Err(AttemptOutcome::Cancelled),
        }
    }

    async fn not_opened(
        &mut self,
        error: AttachError,
        follower: &mut PodReceiver,
        place: &mut SandboxRef,
    ) -> AttemptOutcome {
        match error {
            // By another operator, which is being replaced: its end is this execution's end. A runner that said nothing, or
            // something else, may have been told to run by one; if not, its end says so.
            AttachError::InUse(_) => self.settle(follower, place).await,
            AttachError::Ended(ended) | AttachError::Gone(Some(ended)) if ended.was_used() => {
                self.settle(follower, place).await
            }
            AttachError::Image(message) => {
                AttemptOutcome::Unusable { reason: Reason::ImageUnavailable, message }
            }
            // It may have run under the operator that made it, and nothing of it is left to tell.
            AttachError::TooLate { message, .. } if self.is_adopted() => {
                AttemptOutcome::Lost { reason: Reason::SandboxLost, message, receipt: None }
            }
            AttachError::TooLate { limit, .. } if self.is_pulling(follower).await => {
                AttemptOutcome::Unusable {
                    reason: Reason::ImageUnavailable,
                    message: format!("the image {} was not pulled within {limit:?}", self.image()),
                }
            }
            AttachError::TooLate { limit, message } => AttemptOutcome::Unusable {
                reason: Reason::SandboxUnavailable,
                message: format!("no sandbox within {limit:?}: {message}"),
            },
            // One that somebody else may have used can have run something.
            AttachError::Ended(_) | AttachError::Gone(_) if self.is_adopted() => {
                self.settle(follower, place).await
            }
            AttachError::Ended(ended) if ended.is_container && ended.receipt.is_none() => {
                AttemptOutcome::Unusable {
                    reason: Reason::ImageUnavailable,
                    message: format!("the image cannot be started: {}", ended.message),
                }
            }
            error @ (AttachError::Ended(_) | AttachError::Gone(_)) => {
                AttemptOutcome::Unused { message: error.to_string() }
            }
        }
    }

    fn image(&self) -> &str {
        match &self.plan.admitted.content.image {
            ImageChoice::Runtime(runtime) => self.ctx.settings.runtime_image(*runtime),
            ImageChoice::Image(image) => image,
        }
    }

    async fn is_pulling(&self, follower: &PodReceiver) -> bool {
        let Some(pod) = follower.borrow().as_ref().map(|view| view.pod.clone()) else { return false };
        let events = Api::namespaced(self.ctx.client.clone(), &self.ctx.settings.namespace);
        sandbox::attach::is_pulling(&events, &pod, self.image()).await
    }

    /// From the Run frame to the end of the stream; nothing where a newer operator has the sandbox.
    async fn drive(
        &mut self,
        mut stream: RunnerStream,
        order: &OperatorMessage,
        follower: &mut PodReceiver,
        place: &SandboxRef,
    ) -> Result<Option<AttemptOutcome>, StreamEnd> {
        timeout(SEND_LIMIT, stream.send(order)).await.map_err(|_| StreamEnd::NoAnswer)??;
        let sent = Instant::now();
        let mut report = Some(sent + REPORT_AFTER);
        let mut give_up = (sent + self.plan.admitted.timeout + OPERATOR_SLACK, AttemptOutcome::TimedOut);
        let mut is_cancelling = false;
        let mut drained_at = None;
        let mut captured = Captured::default();
        loop {
            tokio::select! {
                message = stream.next() => match message? {
                    RunnerMessage::Exit(receipt) => return Ok(Some(AttemptOutcome::ran(receipt, captured, is_cancelling))),
                    // What was said to another operator is heard by all that listen.
                    RunnerMessage::Refused(refused) if refused.epoch.is_some_and(|epoch| epoch != self.ctx.epoch) => {}
                    RunnerMessage::Refused(Refused { reason: Refusal::StaleEpoch, .. }) => {
                        // Were it let go now, the newer operator's stream would lose its input.
                        timeout(self.plan.admitted.timeout + OPERATOR_SLACK, stream.end()).await.ok();
                        return Ok(None);
                    }
                    RunnerMessage::Refused(refused) => return refused_by_runner(refused).map(Some),
                    RunnerMessage::Accepted(_) => {
                        self.started.get_or_init(Timestamp::now);
                    }
                    message => captured.take(message),
                },
                () = cancelled(&mut self.cancel), if !is_cancelling => {
                    is_cancelling = true;
                    give_up = (Instant::now() + CANCEL_SLACK, AttemptOutcome::Cancelled);
                    stream.send(&OperatorMessage::Cancel).await?;
                }
                () = sleep_until(report.unwrap_or(sent)), if report.is_some() => {
                    report = None;
                    (self.on_running)(place);
                }
                () = sleep_until(give_up.0) => {
                    return Ok(Some(if is_cancelling { give_up.1 } else { self.over_time(follower, place).await }));
                }
                () = sleep_until(drained_at.unwrap_or(sent)), if drained_at.is_some() => {
                    return Err(StreamEnd::Closed);
                }
                changed = follower.changed(), if drained_at.is_none() => {
                    if changed.is_err() || settle::has_ended(follower) {
                        drained_at = Some(Instant::now() + DRAIN);
                    }
                }
            }
        }
    }

    /// Waits for the sandbox's end and reads what it left.
    async fn settle(&mut self, follower: &mut PodReceiver, place: &mut SandboxRef) -> AttemptOutcome {
        let limit = self.plan.policy.start_timeout.0 + self.plan.admitted.timeout + OPERATOR_SLACK;
        (self.on_running)(place);
        let settled = tokio::select! {
            settled = settle::settle(self.ctx, follower, place, limit) => settled,
            () = cancelled(&mut self.cancel) => return AttemptOutcome::Cancelled,
        };
        match settled {
            Settled::Ran { receipt, captured } => {
                AttemptOutcome::ran(receipt, captured, *self.cancel.borrow())
            }
            Settled::Unused => AttemptOutcome::Unused { message: "the sandbox ended without a run".into() },
            Settled::OutOfMemory => AttemptOutcome::OutOfMemory,
            Settled::Lost { reason, message, receipt } => AttemptOutcome::Lost { reason, message, receipt },
            Settled::OverTime => self.over_time(follower, place).await,
        }
    }

    /// The runner ends its program in time. Where it did not, either it hangs or its node is gone.
    async fn over_time(&self, follower: &PodReceiver, place: &SandboxRef) -> AttemptOutcome {
        if !settle::is_node_lost(self.ctx, follower).await {
            return AttemptOutcome::TimedOut;
        }
        let node = place.node.as_deref().unwrap_or("unknown");
        let message = format!("node {node} does not answer any more, and the sandbox on it neither");
        AttemptOutcome::Lost { reason: Reason::SandboxLost, message, receipt: None }
    }
}

fn refused_by_runner(refused: Refused) -> Result<AttemptOutcome, StreamEnd> {
    match refused.reason {
        // The order is at fault; another sandbox would refuse it too.
        Refusal::InvalidRun => {
            Ok(AttemptOutcome::Unusable { reason: Reason::StartFailed, message: refused.message })
        }
        // Another operator's run is in it: its end is this execution's end.
        Refusal::AlreadyAccepted | Refusal::StaleEpoch | Refusal::NoHello => Err(StreamEnd::NotReady),
    }
}

/// Waits until the run is to be cancelled; forever when it never is.
pub(super) async fn cancelled(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|is_cancelled| *is_cancelled).await.is_err() {
        std::future::pending::<()>().await;
    }
}
