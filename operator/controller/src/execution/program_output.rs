//! Output of a running program: it is kept, or read as the answers of an MCP server.

use std::future::pending;

use skillet_core::skill::Program;
use skillet_protocol::{MAX_OUTPUT_BYTES, OperatorMessage, Receipt, RunnerMessage};
use tokio::time::timeout;

use super::{
    attempt_outcome::{AttemptOutcome, Captured},
    drive::SEND_LIMIT,
    plan::Plan,
    session_driver::{SessionDriver, SessionEvent, SessionOrder},
};
use crate::{
    context::Context,
    sandbox::{RunnerStream, StreamEnd},
};

/// The output of a running program.
pub(super) struct ProgramOutput {
    captured: Captured,
    /// Only of an MCP server.
    session: Option<SessionDriver>,
}

impl ProgramOutput {
    /// For the program of a plan. An MCP server gets the calls of its session.
    pub(super) async fn open(ctx: &Context, plan: &Plan) -> Self {
        let program = &plan.program.program;
        let mut output = Self { captured: Captured::default(), session: None };
        if matches!(program, Program::McpServer { .. })
            && let Some(calls) = ctx.mcp_sessions.calls(&plan.reference).await
        {
            output.session =
                SessionDriver::new(program, (plan.version(), plan.admitted.digest.clone()), calls);
        }
        output
    }

    /// The program is about to start.
    pub(super) async fn begin(&mut self, stream: &mut RunnerStream) -> Result<(), StreamEnd> {
        let orders = self.session.as_mut().map(SessionDriver::start).unwrap_or_default();
        send_all(stream, orders).await
    }

    /// Takes a message of output.
    pub(super) async fn take(
        &mut self,
        message: RunnerMessage,
        stream: &mut RunnerStream,
    ) -> Result<(), StreamEnd> {
        match (&mut self.session, message) {
            (Some(session), RunnerMessage::Stdout(bytes)) => {
                send_all(stream, session.on_output(&bytes)).await
            }
            (Some(session), RunnerMessage::Stderr(bytes)) => {
                let (kept, orders) = session.on_stderr(bytes);
                self.captured.take(RunnerMessage::Stderr(kept))?;
                send_all(stream, orders).await
            }
            (Some(_) | None, message) => self.captured.take(message),
        }
    }

    /// Waits for the next event of a session; forever without one.
    pub(super) async fn next_event(&mut self) -> SessionEvent {
        match &mut self.session {
            Some(session) => session.next().await,
            None => pending().await,
        }
    }

    /// Handles an event of the session.
    pub(super) async fn handle(
        &mut self,
        event: SessionEvent,
        stream: &mut RunnerStream,
    ) -> Result<(), StreamEnd> {
        let orders = self.session.as_mut().map(|session| session.on_event(event)).unwrap_or_default();
        send_all(stream, orders).await
    }

    /// The outcome of the program that this receipt reports.
    pub(super) fn end(self, receipt: Box<Receipt>, is_cancelled: bool) -> AttemptOutcome {
        let Self { captured, session } = self;
        match session.filter(|session| session.is_closed() && !is_cancelled) {
            Some(SessionDriver { answered, .. }) => AttemptOutcome::Closed { receipt, captured, answered },
            None => AttemptOutcome::ran(receipt, captured, is_cancelled),
        }
    }
}

/// Carries out the orders of a session.
async fn send_all(stream: &mut RunnerStream, orders: Vec<SessionOrder>) -> Result<(), StreamEnd> {
    for order in orders {
        let frames: Vec<OperatorMessage> = match order {
            SessionOrder::Send(line) => {
                line.chunks(MAX_OUTPUT_BYTES).map(|part| OperatorMessage::Input(part.to_vec())).collect()
            }
            SessionOrder::Close => vec![OperatorMessage::Input(Vec::new())],
            SessionOrder::Stop => vec![OperatorMessage::Cancel],
        };
        for frame in frames {
            timeout(SEND_LIMIT, stream.send(&frame)).await.map_err(|_| StreamEnd::NoAnswer)??;
        }
    }
    Ok(())
}
