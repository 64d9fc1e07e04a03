//! Frames that the runner has sent on one channel and the channel's task has not taken yet. Never more than a window of bytes.

use std::sync::Mutex;

use bytes::BytesMut;
use skillet_protocol::INITIAL_WINDOW_BYTES;
use tokio::sync::Notify;

use crate::limits::lock;

#[derive(Debug)]
pub(super) struct Inbox {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    data: BytesMut,
    /// Bytes that the runner may still send.
    room: usize,
    /// Bytes that the runner still takes.
    credit: u32,
    has_ended: bool,
    end: Option<Abort>,
}

/// The end of a channel in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abort {
    /// The runner has reset the channel.
    ByRunner,
    /// The runner sent more than it may.
    WindowExceeded,
}

/// The frames that a channel's task takes at one time.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) data: BytesMut,
    pub(super) credit: u32,
    pub(super) has_ended: bool,
}

impl Default for Inbox {
    fn default() -> Self {
        let state = State {
            data: BytesMut::new(),
            room: INITIAL_WINDOW_BYTES as usize,
            credit: INITIAL_WINDOW_BYTES,
            has_ended: false,
            end: None,
        };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }
}

impl Inbox {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.state));
        self.changed.notify_one();
    }

    pub(super) fn push(&self, bytes: &[u8]) {
        self.change(|state| {
            if state.has_ended || state.end.is_some() {
                return;
            }
            if let Some(room) = state.room.checked_sub(bytes.len()) {
                state.room = room;
                state.data.extend_from_slice(bytes);
            } else {
                state.data = BytesMut::new();
                state.end = Some(Abort::WindowExceeded);
            }
        });
    }

    pub(super) fn add_credit(&self, bytes: u32) {
        self.change(|state| state.credit = state.credit.saturating_add(bytes));
    }

    pub(super) fn end(&self) {
        self.change(|state| state.has_ended = true);
    }

    pub(super) fn reset(&self) {
        self.change(|state| state.end = state.end.or(Some(Abort::ByRunner)));
    }

    /// Ends a channel whose link is gone. One that the program has ended continues, so that the host gets its bytes.
    pub(super) fn lose_link(&self) {
        self.change(|state| {
            if state.has_ended {
                // Nobody takes the host's bytes any more. Reading them keeps the connection from being reset.
                state.credit = u32::MAX;
            } else {
                state.end = state.end.or(Some(Abort::ByRunner));
            }
        });
    }

    /// Waits for a change since the last call of [`Inbox::take`], or returns at once when there was one.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits until the channel is over.
    pub(super) async fn aborted(&self) -> Abort {
        loop {
            if let Some(end) = lock(&self.state).end {
                return end;
            }
            self.changed().await;
        }
    }

    /// Takes what has come.
    pub(super) fn take(&self) -> Result<Taken, Abort> {
        let mut state = lock(&self.state);
        match state.end {
            Some(end) => Err(end),
            None => Ok(Taken {
                data: std::mem::take(&mut state.data),
                credit: state.credit,
                has_ended: state.has_ended,
            }),
        }
    }

    /// Uses credit for bytes that go to the runner.
    pub(super) fn use_credit(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.credit = state.credit.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Lets the runner send more.
    pub(super) fn add_room(&self, bytes: usize) {
        lock(&self.state).room += bytes;
    }
}
