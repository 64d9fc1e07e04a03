//! A running program: the Run frame down, the runner's messages up, cancellation, and the deadlines.

use std::time::Duration;

use jiff::Timestamp;
use skillet_api::Reason;
use skillet_protocol::{OperatorMessage, RefusalReason, Refused, RunnerMessage};
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    attempt::Attempt,
    attempt_outcome::{AttemptOutcome, DriveError, SandboxRef},
    build::{egress, frame},
    deadlines::{CANCEL_SLACK, Deadlines, Due, OPERATOR_SLACK},
    order::wait_for_cancel,
    program_output::ProgramOutput,
    settle,
};
use crate::{
    egress::Relay,
    sandbox::{PodReceiver, RunnerStream, StreamEnd},
};

/// A stream that takes a frame no faster than this is dead.
pub(super) const SEND_LIMIT: Duration = Duration::from_secs(10);

impl Attempt<'_> {
    /// From the Run frame to the end of the stream.
    pub(super) async fn drive(
        &mut self,
        mut stream: RunnerStream,
        sandbox: &SandboxRef,
        pod: &mut PodReceiver,
    ) -> Result<AttemptOutcome, DriveError> {
        self.relay = self.start_relay(&stream);
        let sent_at = self.send_run(&mut stream).await?;
        let mut deadlines = Deadlines::new(Instant::now(), self.plan.admitted.timeout);
        let mut is_cancelling = false;
        let mut program = ProgramOutput::open(self.ctx, self.plan).await;
        loop {
            let (deadline, due) = deadlines.next();
            tokio::select! {
                message = stream.next() => match message? {
                    RunnerMessage::Exit(receipt) => return Ok(program.end(receipt, is_cancelling)),
                    // Every attached operator receives every frame, so refusals of another epoch are ignored.
                    RunnerMessage::Refused(refused)
                        if refused.epoch.is_some_and(|epoch| epoch != self.ctx.leadership.term()) => {}
                    RunnerMessage::Refused(Refused { reason: RefusalReason::StaleEpoch, .. }) => {
                        // If this stream ended now, the newer operator's stream would lose its input.
                        timeout(self.plan.admitted.timeout + OPERATOR_SLACK, stream.wait_for_end()).await.ok();
                        return Err(DriveError::TakenOver);
                    }
                    RunnerMessage::Refused(refused) => return read_refusal(refused),
                    RunnerMessage::Accepted(_) => {
                        self.status.accept(sent_at);
                        deadlines.accept(Instant::now());
                        program.begin(&mut stream).await?;
                    }
                    RunnerMessage::Network(request) => match &self.relay {
                        Some(relay) => relay.take(request)?,
                        None => return Err(StreamEnd::NotReady.into()),
                    },
                    message => program.take(message, &mut stream).await?,
                },
                event = program.next_event() => program.handle(event, &mut stream).await?,
                () = wait_for_cancel(&mut self.order), if !is_cancelling => {
                    is_cancelling = true;
                    deadlines.cancel(Instant::now());
                    let sent = timeout(CANCEL_SLACK, stream.send(&OperatorMessage::Cancel)).await;
                    sent.map_err(|_| StreamEnd::NoAnswer)??;
                }
                changed = pod.changed(), if !deadlines.is_draining() => {
                    if changed.is_err() || settle::has_ended(pod) {
                        deadlines.drain(Instant::now());
                    }
                }
                () = sleep_until(deadline) => match due {
                    Due::Report => {
                        deadlines.clear_report();
                        self.status.start(sandbox);
                    }
                    Due::Drained => return Err(StreamEnd::Closed.into()),
                    Due::GiveUp if is_cancelling => return Ok(AttemptOutcome::Cancelled),
                    Due::GiveUp => return Ok(self.over_time(sandbox, pod).await),
                },
            }
        }
    }
}

impl Attempt<'_> {
    /// Sends the Run frame, and returns a time before the program starts.
    async fn send_run(&mut self, stream: &mut RunnerStream) -> Result<Timestamp, StreamEnd> {
        let id = frame::RunId {
            execution_uid: &self.plan.reference.uid,
            attempt: self.point.attempt,
            epoch: self.ctx.leadership.term(),
        };
        let program = (&*self.plan.program, &*self.plan.policy);
        let frame = frame::run(&id, &self.plan.admitted, program, self.plan.secret_env.clone());
        let frame = OperatorMessage::Run(Box::new(frame));
        // Another operator may lead already, if this one was stopped or cut off meanwhile.
        self.ctx.leadership.confirm().await;
        // The program starts after this, however late this operator reads that it did.
        let sent_at = Timestamp::now();
        timeout(SEND_LIMIT, stream.send(&frame)).await.map_err(|_| StreamEnd::NoAnswer)??;
        Ok(sent_at)
    }

    /// Starts to pass on the connections of a program whose skill names hosts.
    fn start_relay(&self, stream: &RunnerStream) -> Option<Relay> {
        let access = egress::access(self.ctx, &self.plan.reference, &self.plan.admitted)?;
        Some(Relay::start(access, self.plan.policy.network.connections, stream.sender()))
    }
}

fn read_refusal(refused: Refused) -> Result<AttemptOutcome, DriveError> {
    match refused.reason {
        // The frame is at fault; another sandbox would refuse it too.
        RefusalReason::InvalidRun => {
            Ok(AttemptOutcome::Unusable { reason: Reason::StartFailed, message: refused.message })
        }
        // Another operator's run is in it: its end is this execution's end.
        RefusalReason::AlreadyAccepted | RefusalReason::StaleEpoch | RefusalReason::NoHello => {
            Err(StreamEnd::NotReady.into())
        }
    }
}
