//! Answers of the API server, kept for some seconds, and asked for once however many wait for one.
//!
//! It knows nothing of its keys and reads no clock. Every waiting request gets an error, and the cache does not keep it.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared, WeakShared},
};
use skillet_kube::lock;

use super::AuthError;

/// An answer, and when it is one no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer<V> {
    pub(super) value: V,
    pub(super) until: Instant,
}

type Asking<V> = BoxFuture<'static, Result<Answer<V>, AuthError>>;

/// Interval between removals of expired entries.
const SWEEP: Duration = Duration::from_secs(10);

/// At most so many answers, and so many questions under way.
pub(super) struct TtlCache<K, V> {
    most: usize,
    held: Mutex<Held<K, V>>,
}

struct Held<K, V> {
    answers: HashMap<K, Answer<V>>,
    /// Held by those who wait: when the last one leaves, nobody asks any more.
    asking: HashMap<K, WeakShared<Asking<V>>>,
    swept: Option<Instant>,
}

impl<K, V> TtlCache<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(super) fn at_most(most: usize) -> Arc<Self> {
        let held = Held { answers: HashMap::new(), asking: HashMap::new(), swept: None };
        Arc::new(Self { most, held: Mutex::new(held) })
    }

    /// The answer that is kept, or else the one that `ask` gets.
    pub(super) async fn get<F>(
        self: &Arc<Self>,
        key: &K,
        now: Instant,
        ask: impl FnOnce() -> F,
    ) -> Result<V, AuthError>
    where
        F: Future<Output = Result<Answer<V>, AuthError>> + Send + 'static,
    {
        let asking = {
            let mut held = self.held();
            if let Some(value) = held.answer(key, now) {
                return Ok(value);
            }
            if let Some(asking) = held.asking.get(key).and_then(WeakShared::upgrade) {
                asking
            } else {
                let asking = Arc::clone(self).ask(key.clone(), now, ask()).boxed().shared();
                held.note(key, &asking, self.most)?;
                asking
            }
        };
        asking.await.map(|answer| answer.value)
    }

    async fn ask(
        self: Arc<Self>,
        key: K,
        now: Instant,
        question: impl Future<Output = Result<Answer<V>, AuthError>> + Send,
    ) -> Result<Answer<V>, AuthError> {
        let answer = question.await;
        let mut held = self.held();
        held.asking.remove(&key);
        if let Ok(answer) = &answer {
            held.keep(key, answer.clone(), now, self.most);
        }
        answer
    }

    fn held(&self) -> MutexGuard<'_, Held<K, V>> {
        lock(&self.held)
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Held<K, V> {
    fn answer(&self, key: &K, now: Instant) -> Option<V> {
        self.answers.get(key).filter(|answer| now < answer.until).map(|answer| answer.value.clone())
    }

    /// Drops what has ended, and what nobody waits for.
    fn sweep(&mut self, now: Instant) {
        self.swept = Some(now);
        self.answers.retain(|_, answer| now < answer.until);
        self.asking.retain(|_, asking| asking.upgrade().is_some());
        // After a flood the tables themselves are given back.
        self.answers.shrink_to(self.answers.len() * 2);
        self.asking.shrink_to(self.asking.len() * 2);
    }

    fn keep(&mut self, key: K, answer: Answer<V>, now: Instant, most: usize) {
        if self.swept.is_none_or(|swept| now.saturating_duration_since(swept) >= SWEEP) {
            self.sweep(now);
        }
        if answer.until <= now {
            self.answers.remove(&key);
            return;
        }
        if self.answers.len() >= most {
            self.sweep(now);
        }
        if self.answers.len() >= most {
            // The one that would go next: with a flood of unknown tokens these are its own, not those of callers.
            let next = self.answers.iter().min_by_key(|(_, answer)| answer.until).map(|(key, _)| key.clone());
            next.map(|key| self.answers.remove(&key));
        }
        self.answers.insert(key, answer);
    }

    fn note(&mut self, key: &K, asking: &Shared<Asking<V>>, most: usize) -> Result<(), AuthError> {
        if self.asking.len() >= most {
            self.asking.retain(|_, asking| asking.upgrade().is_some());
        }
        if self.asking.len() >= most {
            return Err(AuthError::Unreachable("too many questions are waiting for it".into()));
        }
        if let Some(asking) = asking.downgrade() {
            self.asking.insert(key.clone(), asking);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
