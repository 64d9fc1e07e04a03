//! The answers that a link waits for from its broker, and until when: a process that is stopped keeps its connections, and its kernel
//! answers for it.
//!
//! Time in which the runner takes no frames does not count: an answer may be among them.

use std::{collections::HashMap, time::Duration};

use skillet_egress::DIAL_LIMIT;
use skillet_kube::lock;
use skillet_protocol::{Channel, CloseKind, NetworkRequest, NetworkResponse};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::Mutex;

/// Time for the broker's answer: a host that does not answer is the broker's matter, which says so by itself.
pub(super) const ANSWER_LIMIT: Duration = DIAL_LIMIT.saturating_add(Duration::from_secs(3));

/// Something that the broker has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wait {
    /// Takes a frame.
    Room,
    /// Decides about a connection.
    Decision(Channel),
}

/// Waits on one link.
#[derive(Debug, Default)]
pub(super) struct Waits {
    state: Mutex<State>,
    changed: Notify,
}

/// A program opens no more channels than its run may have, so that there is a bound to this.
#[derive(Debug, Default)]
struct State {
    deadlines: HashMap<Wait, Instant>,
    /// The runner takes no frame since then.
    held_since: Option<Instant>,
}

impl Waits {
    pub(super) fn begin(&self, wait: Wait) {
        lock(&self.state).deadlines.insert(wait, Instant::now() + ANSWER_LIMIT);
        self.changed.notify_one();
    }

    pub(super) fn end(&self, wait: Wait) {
        lock(&self.state).deadlines.remove(&wait);
    }

    /// Notes a frame for the broker. It does not answer for a channel that the program has closed.
    pub(super) fn on_request(&self, request: &NetworkRequest) {
        match request {
            NetworkRequest::Open(open) => self.begin(Wait::Decision(open.channel)),
            NetworkRequest::Close(channel, CloseKind::Reset) => self.end(Wait::Decision(*channel)),
            NetworkRequest::Close(_, CloseKind::End)
            | NetworkRequest::Data(..)
            | NetworkRequest::Window(..)
            | NetworkRequest::Refused(_) => {}
        }
    }

    /// Notes a frame of the broker.
    pub(super) fn on_response(&self, response: &NetworkResponse) {
        match response {
            NetworkResponse::Opened(opened) => self.end(Wait::Decision(opened.channel)),
            NetworkResponse::Close(channel, _) => self.end(Wait::Decision(*channel)),
            NetworkResponse::Data(..) | NetworkResponse::Window(..) => {}
        }
    }

    /// Notes that a frame goes to the runner now.
    pub(super) fn hold(&self) {
        lock(&self.state).held_since = Some(Instant::now());
    }

    /// Notes that the runner has taken the frame, and moves each deadline by the time that it took.
    pub(super) fn release(&self) {
        let mut state = lock(&self.state);
        let held = state.held_since.take().map(|since| since.elapsed()).unwrap_or_default();
        if !state.deadlines.is_empty() {
            state.deadlines.values_mut().for_each(|deadline| *deadline += held);
            self.changed.notify_one();
        }
    }

    /// Ends when the broker has left something undone beyond its time.
    pub(super) async fn overdue(&self) {
        loop {
            let next = {
                let state = lock(&self.state);
                let first = state.deadlines.values().min().copied();
                if state.held_since.is_none() { first } else { None }
            };
            match next {
                None => self.changed.notified().await,
                Some(deadline) if deadline <= Instant::now() => return,
                Some(deadline) => sleep_until(deadline).await,
            }
        }
    }
}
