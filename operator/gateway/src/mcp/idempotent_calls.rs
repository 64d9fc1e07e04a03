//! Calls with an idempotency key: their clients may come back for the result, so only a client's word cancels them.
//!
//! rmcp ends a request alike when the client says so and when the client is gone. That it said so comes a moment before
//! or after, in a task of its own; here the two meet.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};

use rmcp::model::RequestId;
use skillet_kube::lock;

use crate::executions::Metadata;

/// The calls with a key of one session.
#[derive(Default)]
pub(super) struct IdempotentCalls(Mutex<HashMap<RequestId, Call>>);

enum Call {
    UnderWay {
        is_cancelled: bool,
    },
    /// Its request has ended before its run, and why is not known yet. It stays until the client says that it has
    /// cancelled it, or the session ends.
    Left(Box<Metadata>),
}

impl IdempotentCalls {
    /// A call begins. Whether its request has ended already must be asked after this.
    pub(super) fn begin(&self, id: &RequestId) {
        self.calls().insert(id.clone(), Call::UnderWay { is_cancelled: false });
    }

    /// A call is answered.
    pub(super) fn end(&self, id: &RequestId) {
        self.calls().remove(id);
    }

    /// The request of a call has ended, and nobody waits for its run on its behalf. Whether the client cancelled it.
    pub(super) fn leave(&self, id: &RequestId, execution: &Metadata) -> bool {
        let mut calls = self.calls();
        match calls.remove(id) {
            Some(Call::UnderWay { is_cancelled: true }) => true,
            Some(Call::UnderWay { is_cancelled: false } | Call::Left(_)) | None => {
                calls.insert(id.clone(), Call::Left(Box::new(execution.clone())));
                false
            }
        }
    }

    /// The client cancels a request. Its run, where nothing but this was waited for to cancel it.
    pub(super) fn cancel(&self, id: &RequestId) -> Option<Metadata> {
        let mut calls = self.calls();
        match calls.remove(id)? {
            Call::Left(execution) => Some(*execution),
            Call::UnderWay { .. } => {
                calls.insert(id.clone(), Call::UnderWay { is_cancelled: true });
                None
            }
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<RequestId, Call>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> (IdempotentCalls, RequestId, Metadata) {
        let (calls, id) = (IdempotentCalls::default(), RequestId::Number(1));
        calls.begin(&id);
        (calls, id, Metadata::default())
    }

    #[test]
    fn a_cancellation_is_acted_on_once_whichever_of_the_two_comes_first() {
        let (calls, id, execution) = begun();
        assert!(calls.cancel(&id).is_none(), "the call itself does it");
        assert!(calls.leave(&id, &execution));
        assert!(calls.cancel(&id).is_none());
        let (calls, id, execution) = begun();
        assert!(!calls.leave(&id, &execution));
        assert!(calls.cancel(&id).is_some() && calls.cancel(&id).is_none());
    }

    #[test]
    fn what_is_answered_or_unknown_is_not_cancelled() {
        let (calls, id, _) = begun();
        calls.end(&id);
        assert!(calls.cancel(&id).is_none() && calls.cancel(&RequestId::Number(2)).is_none());
        assert!(calls.calls().is_empty(), "nothing is kept");
    }
}
