//! The vectors of a provider: those of the skills from the cluster's state, and those of questions from a small cache.
//!
//! A request asks for the vectors of its new questions once, within the policy's time limit. If there are none in time,
//! words alone decide. A breaker spares a dead provider, and requests the wait for it.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, RwLock},
};

use serde_json::{Value, json};
use skillet_kube::{lock, read, write};
use skillet_offer::{QuestionVectors, Vector, VectorSpace};
use tokio::{sync::Semaphore, time::Instant};
use tracing::warn;

use super::{
    breaker::Breaker, client::EmbeddingsClient, metrics::Purpose, question_cache::QuestionCache,
    skill_texts::beginning, text_digest::TextDigest, vector_maps::Vectors,
};
use crate::model::upstream::EmbeddingsFailure;

/// Most requests for questions at one time. Further ones are searched by words alone.
const MAX_REQUESTS: usize = 16;

/// Bytes of a refused question that are sent again.
const SHORT_BYTES: usize = 256;

/// A provider's vectors, of one model.
pub struct ProviderVectors {
    client: Arc<EmbeddingsClient>,
    space: VectorSpace,
    skills: RwLock<Vectors>,
    questions: Mutex<QuestionCache>,
    breaker: Mutex<Breaker>,
    places: Semaphore,
    /// The last failure, if no request has succeeded since.
    failure: Mutex<Option<Failure>>,
}

/// A failure, for people.
struct Failure {
    message: String,
    /// True if it is more than a late response.
    is_lasting: bool,
}

impl ProviderVectors {
    pub(super) fn new(client: Arc<EmbeddingsClient>, space: VectorSpace) -> Self {
        Self {
            client,
            space,
            skills: RwLock::default(),
            questions: Mutex::default(),
            breaker: Mutex::default(),
            places: Semaphore::new(MAX_REQUESTS),
            failure: Mutex::default(),
        }
    }

    /// Returns the vector of a skill's text, if it is known.
    pub(super) fn skill_vector(&self, text: &str) -> Option<Vector> {
        read(&self.skills).get(&TextDigest::of(text)).cloned().flatten()
    }

    /// Returns true if the vector of a skill's text is known, or known to be none.
    pub(super) fn knows(&self, skill: TextDigest) -> bool {
        read(&self.skills).contains_key(&skill)
    }

    pub(super) fn add_skills(&self, vectors: Vectors) {
        write(&self.skills).extend(vectors);
    }

    pub(super) fn keep_skills(&self, is_kept: impl Fn(TextDigest) -> bool) {
        write(&self.skills).retain(|digest, _| is_kept(*digest));
    }

    /// Asks for the vectors of the questions that are not known. Afterwards a search finds them without waiting.
    pub(crate) async fn ask(&self, questions: &[String]) {
        let texts = self.unknown(questions);
        if texts.is_empty() {
            return;
        }
        let metrics = self.client.metrics().embeddings();
        let Ok(_place) = self.places.try_acquire() else {
            metrics.requested(Purpose::Question, "busy");
            return;
        };
        if !lock(&self.breaker).allows(Instant::now()) {
            metrics.requested(Purpose::Question, "suspended");
            return;
        }
        match self.embed(&texts).await {
            Ok(vectors) => {
                self.keep(&texts, vectors.iter().map(|vector| self.space.vector(vector)));
                self.succeed();
            }
            Err(failure) => {
                // Words alone decide for these texts; the provider may accept others.
                if failure.is_of_texts {
                    self.keep(&texts, texts.iter().map(|_| None));
                }
                self.fail(failure);
            }
        }
    }

    /// Asks for the vectors of questions. If the provider refuses the texts, it gets their beginnings in what is left of
    /// the time, so that long questions of one caller do not open the breaker for all.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbeddingsFailure> {
        let (started, limit) = (Instant::now(), self.client.settings().timeout.0);
        let dimensions = Some(self.space.dimensions());
        let first = self.client.embed(Purpose::Question, texts, limit, dimensions).await;
        if !first.as_ref().is_err_and(|failure| failure.is_of_texts) {
            return first;
        }
        let short: Vec<&str> = texts.iter().map(|text| beginning(text, SHORT_BYTES)).collect();
        let left = limit.saturating_sub(started.elapsed());
        self.client.embed(Purpose::Question, &short, left, dimensions).await
    }

    fn keep(&self, texts: &[&str], vectors: impl Iterator<Item = Option<Vector>>) {
        let mut questions = lock(&self.questions);
        for (text, vector) in texts.iter().zip(vectors) {
            questions.insert(TextDigest::of(text), vector);
        }
    }

    fn unknown<'a>(&self, questions: &'a [String]) -> Vec<&'a str> {
        let (mut known, mut seen) = (lock(&self.questions), HashSet::new());
        let digests = questions.iter().map(|text| (text.as_str(), TextDigest::of(text)));
        let unknown = digests.filter(|(_, digest)| known.get(*digest).is_none() && seen.insert(*digest));
        unknown.map(|(text, _)| text).collect()
    }

    /// The provider has answered.
    pub(super) fn succeed(&self) {
        lock(&self.breaker).succeed();
        if lock(&self.failure).take().is_some() {
            self.client.metrics().embeddings().set_failed(false);
        }
    }

    /// A request for the vectors of questions has failed.
    fn fail(&self, failure: EmbeddingsFailure) {
        let is_open = {
            let mut breaker = lock(&self.breaker);
            breaker.fail(Instant::now());
            breaker.is_open()
        };
        self.set_failure(failure, is_open);
    }

    /// Keeps a failure for explanations.
    pub(super) fn set_failure(&self, failure: EmbeddingsFailure, is_lasting: bool) {
        let EmbeddingsFailure { outcome, message, is_of_texts: _ } = failure;
        warn!(outcome, message, "Provider of embeddings failed; skills are ranked by words alone");
        if is_lasting {
            self.client.metrics().embeddings().set_failed(true);
        }
        *lock(&self.failure) = Some(Failure { message, is_lasting });
    }

    /// Returns the message of a failure that is more than a late response.
    pub(super) fn lasting_failure(&self) -> Option<String> {
        lock(&self.failure)
            .as_ref()
            .filter(|failure| failure.is_lasting)
            .map(|failure| failure.message.clone())
    }

    /// Returns the state for an explanation.
    pub(super) fn to_json(&self) -> Value {
        let (model, dimensions) = (self.client.settings().model, self.space.dimensions());
        match &*lock(&self.failure) {
            None => json!({ "state": "Ready", "model": model, "dimensions": dimensions }),
            Some(Failure { message, is_lasting: _ }) => {
                json!({ "state": "Unavailable", "model": model, "dimensions": dimensions, "message": message })
            }
        }
    }
}

impl QuestionVectors for ProviderVectors {
    fn space(&self) -> &VectorSpace {
        &self.space
    }

    fn vector(&self, question: &str) -> Option<Vector> {
        lock(&self.questions).get(TextDigest::of(question))?.0
    }
}

impl fmt::Debug for ProviderVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderVectors").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
