//! A session with an MCP server in a sandbox: its calls, their time limits, and its end when nobody calls.

use std::{collections::BTreeMap, future::poll_fn, sync::atomic::Ordering, task::Poll, time::Duration};

use skillet_core::{
    mcp_client::{Effect, McpClient, McpFailure, Ticket},
    skill::Program,
};
use tokio::{
    sync::{OwnedMutexGuard, oneshot},
    time::{Instant, sleep_until},
};

use super::{
    build::frame::MAX_SESSION_BYTES,
    mcp_sessions::{CallReceiver, SessionCall},
};

/// Calls that a server has at one time. Others wait.
const MAX_CALLS: usize = 16;
/// A server whose input was closed ends in this time, or is ended.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);
/// Bytes of standard error that are kept.
const MAX_STDERR: usize = 64 << 10;

/// The end of one call.
#[derive(Debug)]
pub(crate) struct CallEnd {
    /// The result as JSON.
    pub(crate) result: Result<String, CallError>,
    pub(crate) version: String,
    pub(crate) digest: String,
    pub(crate) duration: Duration,
}

/// The reason why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    Failed(McpFailure),
    TimedOut { limit: Duration },
}

/// An order for the server.
#[derive(Debug, PartialEq)]
pub(crate) enum SessionOrder {
    /// Lines for the server's standard input.
    Send(Vec<u8>),
    /// The end of its standard input.
    Close,
    /// The server did not end after that.
    Stop,
}

/// An event of a session.
pub(crate) enum SessionEvent {
    Call(SessionCall),
    /// Nobody waits for this call any more.
    Dropped(Ticket),
    /// A time limit has passed.
    Time,
}

/// One session.
pub(crate) struct SessionDriver {
    client: McpClient,
    calls: OwnedMutexGuard<CallReceiver>,
    waiting: BTreeMap<Ticket, Waiting>,
    last_ticket: Ticket,
    /// Version and digest of the skill.
    content: (String, String),
    idle: Duration,
    call_timeout: Duration,
    idle_since: Instant,
    closed_at: Option<Instant>,
    is_stopped: bool,
    bytes: u64,
    stderr_bytes: usize,
    pub(crate) answered: u64,
}

struct Waiting {
    answer: oneshot::Sender<CallEnd>,
    since: Instant,
    limit: Duration,
}

impl SessionDriver {
    /// Returns the driver of a program that is an MCP server, and `None` for any other.
    pub(crate) fn new(
        program: &Program,
        content: (String, String),
        calls: OwnedMutexGuard<CallReceiver>,
    ) -> Option<Self> {
        let Program::McpServer { idle, call_timeout, .. } = program else { return None };
        Some(Self {
            client: McpClient::default(),
            calls,
            waiting: BTreeMap::new(),
            last_ticket: 0,
            content,
            idle: *idle,
            call_timeout: *call_timeout,
            idle_since: Instant::now(),
            closed_at: None,
            is_stopped: false,
            bytes: 0,
            stderr_bytes: 0,
            answered: 0,
        })
    }

    /// Begins the session.
    pub(crate) fn start(&mut self) -> Vec<SessionOrder> {
        self.idle_since = Instant::now();
        let effect = self.client.start();
        self.carry_out(vec![effect])
    }

    /// Returns true if the session ended because nobody called, or the server wrote too much.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed_at.is_some()
    }

    /// Takes bytes of the server's standard output.
    pub(crate) fn on_output(&mut self, bytes: &[u8]) -> Vec<SessionOrder> {
        let effects = self.client.receive(bytes);
        let mut orders = self.carry_out(effects);
        orders.extend(self.count(bytes));
        orders
    }

    /// Counts bytes of standard error, and returns the part that is kept.
    pub(crate) fn on_stderr(&mut self, mut bytes: Vec<u8>) -> (Vec<u8>, Vec<SessionOrder>) {
        let orders = self.count(&bytes);
        bytes.truncate(MAX_STDERR - self.stderr_bytes);
        self.stderr_bytes += bytes.len();
        (bytes, orders)
    }

    fn count(&mut self, bytes: &[u8]) -> Vec<SessionOrder> {
        self.bytes += bytes.len() as u64;
        // Then the runner sends no more.
        if self.bytes >= MAX_SESSION_BYTES { self.close() } else { Vec::new() }
    }

    /// Waits for the next event. Safe to drop and call again.
    pub(crate) async fn next(&mut self) -> SessionEvent {
        let time = self.next_time();
        let takes_calls = self.closed_at.is_none() && self.waiting.len() < MAX_CALLS;
        let (calls, waiting) = (&mut self.calls, &mut self.waiting);
        let dropped = poll_fn(|cx| {
            let mut each = waiting.iter_mut();
            let closed =
                each.find_map(|(ticket, call)| call.answer.poll_closed(cx).is_ready().then_some(*ticket));
            closed.map_or(Poll::Pending, Poll::Ready)
        });
        tokio::select! {
            Some(call) = calls.recv(), if takes_calls => SessionEvent::Call(call),
            ticket = dropped => SessionEvent::Dropped(ticket),
            () = sleep_until(time) => SessionEvent::Time,
        }
    }

    fn next_time(&self) -> Instant {
        let calls = self.waiting.values().map(|call| call.since + call.limit);
        let end = match self.closed_at {
            Some(at) => at + CLOSE_LIMIT,
            None => self.idle_since + self.idle,
        };
        let is_busy = !self.waiting.is_empty() && self.closed_at.is_none();
        calls.chain((!is_busy && !self.is_stopped).then_some(end)).min().unwrap_or_else(far)
    }

    /// Handles an event.
    pub(crate) fn on_event(&mut self, event: SessionEvent) -> Vec<SessionOrder> {
        match event {
            // Cancelled while it waited: the server must not get it.
            SessionEvent::Call(call) if call.answer.is_closed() => Vec::new(),
            SessionEvent::Call(SessionCall { request, timeout, answer, is_delivered }) => {
                is_delivered.store(true, Ordering::Relaxed);
                self.last_ticket += 1;
                let limit = timeout.unwrap_or(self.call_timeout).min(self.call_timeout);
                self.waiting.insert(self.last_ticket, Waiting { answer, since: Instant::now(), limit });
                let effects = self.client.ask(self.last_ticket, request);
                self.carry_out(effects)
            }
            SessionEvent::Dropped(ticket) => {
                self.waiting.remove(&ticket);
                self.idle_since = Instant::now();
                let effects = self.client.cancel(ticket).into_iter().collect();
                self.carry_out(effects)
            }
            SessionEvent::Time => self.on_time(),
        }
    }

    fn on_time(&mut self) -> Vec<SessionOrder> {
        let now = Instant::now();
        let over = self.waiting.iter().filter(|(_, call)| call.since + call.limit <= now);
        let over: Vec<(Ticket, Duration)> = over.map(|(ticket, call)| (*ticket, call.limit)).collect();
        let mut orders = Vec::new();
        for (ticket, limit) in over {
            let effects = self.client.cancel(ticket).into_iter().collect();
            self.answer(ticket, Err(CallError::TimedOut { limit }));
            orders.extend(self.carry_out(effects));
        }
        match self.closed_at {
            None if self.waiting.is_empty() && self.idle_since + self.idle <= now => {
                orders.extend(self.close());
            }
            Some(at) if at + CLOSE_LIMIT <= now && !self.is_stopped => {
                self.is_stopped = true;
                orders.push(SessionOrder::Stop);
            }
            Some(_) | None => {}
        }
        orders
    }

    fn close(&mut self) -> Vec<SessionOrder> {
        if self.closed_at.is_some() {
            return Vec::new();
        }
        self.closed_at = Some(Instant::now());
        // Calls from now on find no session.
        self.calls.close();
        vec![SessionOrder::Close]
    }

    fn carry_out(&mut self, effects: Vec<Effect>) -> Vec<SessionOrder> {
        let mut orders = Vec::new();
        for effect in effects {
            match effect {
                Effect::Send(line) => orders.push(SessionOrder::Send(line)),
                Effect::Answer(ticket, result) => self.answer(ticket, result.map_err(CallError::Failed)),
            }
        }
        orders
    }

    fn answer(&mut self, ticket: Ticket, result: Result<String, CallError>) {
        let Some(Waiting { answer, since, limit: _ }) = self.waiting.remove(&ticket) else { return };
        let (version, digest) = self.content.clone();
        self.answered += 1;
        self.idle_since = Instant::now();
        // Nobody may wait any more.
        answer.send(CallEnd { result, version, digest, duration: since.elapsed() }).ok();
    }
}

/// A time that does not come.
fn far() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}

#[cfg(test)]
mod tests;
