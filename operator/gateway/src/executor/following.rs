//! One execution followed from state to state: what the shared watch tells, and what one question after joining it
//! finds, so that an end that came before is not missed.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use kube::Api;
use tokio::sync::watch;
use tracing::warn;

use super::{
    error::ExecutorError,
    execution::{Execution, Found, Metadata},
    news::{News, Waiters},
};

/// How long after a question that was answered the next one is asked: only a watch that hangs unnoticed needs it.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// The same after a question that was not answered.
const TRY_AGAIN: Duration = Duration::from_secs(1);

type Answer = Result<Option<Execution>, kube::Error>;

/// Follows one execution. Dropped, it leaves the execution as it is.
pub struct Following {
    api: Api<Found>,
    namespace: String,
    name: String,
    uid: String,
    waiters: Arc<Waiters>,
    news: watch::Receiver<News>,
    question: BoxFuture<'static, Answer>,
    was_told: bool,
}

impl Following {
    pub(super) fn new(api: Api<Found>, waiters: Arc<Waiters>, execution: &Execution) -> Self {
        let Metadata { namespace, name, uid, .. } = execution.metadata.clone();
        let news = waiters.join(&uid);
        // Only now: an end that came before joining is there for the question to find.
        let question = ask(api.clone(), name.clone(), Duration::ZERO);
        Self { api, namespace, name, uid, waiters, news, question, was_told: false }
    }

    /// The next state that is seen; states in between may be left out, an end never is. Losing this future loses nothing.
    pub async fn next(&mut self) -> Result<Arc<Execution>, ExecutorError> {
        loop {
            let state = tokio::select! {
                biased;
                Ok(()) = self.news.changed() => {
                    let news = self.news.borrow_and_update().clone();
                    self.take_news(news)
                }
                answer = &mut self.question => self.take_answer(answer),
            };
            if let Some(state) = state {
                self.was_told = true;
                return state;
            }
        }
    }

    fn take_news(&mut self, news: News) -> Option<Result<Arc<Execution>, ExecutorError>> {
        match news {
            News::Nothing => None,
            News::Seen(execution) => Some(Ok(execution)),
            News::Deleted => Some(Err(self.gone())),
            News::Doubtful => {
                self.ask_in(Duration::ZERO);
                None
            }
        }
    }

    fn take_answer(&mut self, answer: Answer) -> Option<Result<Arc<Execution>, ExecutorError>> {
        match answer {
            Ok(Some(execution)) if execution.metadata.uid == self.uid => {
                self.ask_in(ASK_AGAIN);
                // The watch may have told of a newer state while the question was on its way; an end is an end.
                (execution.is_ended() || !self.was_told).then(|| Ok(Arc::new(execution)))
            }
            Ok(_) => Some(Err(self.gone())),
            Err(error) => {
                warn!(namespace = self.namespace, name = self.name, %error, "Execution could not be read");
                self.ask_in(TRY_AGAIN);
                None
            }
        }
    }

    fn ask_in(&mut self, wait: Duration) {
        self.question = ask(self.api.clone(), self.name.clone(), wait);
    }

    fn gone(&self) -> ExecutorError {
        ExecutorError::Gone { namespace: self.namespace.clone(), name: self.name.clone() }
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

impl Drop for Following {
    fn drop(&mut self) {
        let (_, nothing) = watch::channel(News::Nothing);
        self.waiters.leave(&self.uid, std::mem::replace(&mut self.news, nothing));
    }
}
