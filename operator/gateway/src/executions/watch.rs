//! A watch of one execution: updates from the shared watch, and a read after the subscription.
//!
//! The read finds an end that came before the subscription.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use kube::Api;
use tokio::sync::watch;
use tracing::{Span, warn};

use super::{
    error::ExecutionError,
    execution::{Execution, Found, Metadata},
    subscriptions::{Subscriptions, Update},
};

/// Interval between reads of an execution beside the watch, for a watch that hangs unnoticed.
const REREAD_INTERVAL: Duration = Duration::from_secs(30);
/// The same after a question that was not answered.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

type Answer = Result<Option<Execution>, kube::Error>;

/// Follows one execution. Dropped, it leaves the execution as it is.
pub struct ExecutionWatch {
    api: Api<Found>,
    metadata: Metadata,
    subscriptions: Arc<Subscriptions>,
    updates: watch::Receiver<Update>,
    question: BoxFuture<'static, Answer>,
    has_reported: bool,
    /// Of the request that waits.
    span: Span,
}

impl ExecutionWatch {
    pub(super) fn new(api: Api<Found>, subscriptions: Arc<Subscriptions>, execution: &Execution) -> Self {
        let metadata = execution.metadata.clone();
        let updates = subscriptions.subscribe(&metadata.uid);
        // Only now: an end that came before joining is there for the question to find.
        let question = ask(api.clone(), metadata.name.clone(), Duration::ZERO);
        let span = Span::current();
        Self { api, metadata, subscriptions, updates, question, has_reported: false, span }
    }

    /// The next state that is seen; states in between may be left out, an end never is. Losing this future loses nothing.
    pub async fn next(&mut self) -> Result<Arc<Execution>, ExecutionError> {
        loop {
            let state = tokio::select! {
                biased;
                Ok(()) = self.updates.changed() => {
                    let updates = self.updates.borrow_and_update().clone();
                    self.on_update(updates)
                }
                answer = &mut self.question => self.on_read(answer),
            };
            if let Some(state) = state {
                self.has_reported = true;
                return state;
            }
        }
    }

    fn on_update(&mut self, updates: Update) -> Option<Result<Arc<Execution>, ExecutionError>> {
        match updates {
            Update::None => None,
            Update::Seen(execution) => Some(Ok(execution)),
            Update::Deleted => Some(Err(self.gone())),
            Update::Unknown => {
                self.read_in(Duration::ZERO);
                None
            }
        }
    }

    fn on_read(&mut self, answer: Answer) -> Option<Result<Arc<Execution>, ExecutionError>> {
        match answer {
            Ok(Some(execution)) if execution.metadata.uid == self.metadata.uid => {
                self.read_in(REREAD_INTERVAL);
                // The watch may have reported a newer state during the read; an end is final.
                (execution.is_ended() || !self.has_reported).then(|| Ok(Arc::new(execution)))
            }
            Ok(_) => Some(Err(self.gone())),
            Err(error) => {
                let Metadata { namespace, name, .. } = &self.metadata;
                warn!(parent: &self.span, namespace, name, %error, "Execution could not be read");
                self.read_in(RETRY_INTERVAL);
                None
            }
        }
    }

    fn read_in(&mut self, wait: Duration) {
        self.question = ask(self.api.clone(), self.metadata.name.clone(), wait);
    }

    fn gone(&self) -> ExecutionError {
        let Metadata { namespace, name, .. } = self.metadata.clone();
        ExecutionError::Gone { namespace, name }
    }
}

fn ask(api: Api<Found>, name: String, wait: Duration) -> BoxFuture<'static, Answer> {
    async move {
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        api.get_opt(&name).await?.as_ref().map(Execution::read).transpose()
    }
    .boxed()
}

impl Drop for ExecutionWatch {
    fn drop(&mut self) {
        let (_, nothing) = watch::channel(Update::None);
        self.subscriptions.unsubscribe(&self.metadata.uid, std::mem::replace(&mut self.updates, nothing));
    }
}
