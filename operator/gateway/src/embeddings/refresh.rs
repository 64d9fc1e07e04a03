//! Keeps the vectors of all skills: it follows policy and skills, reads the cluster's state, and asks the provider for what is
//! missing. No request waits for it.
//!
//! The state is read only if a vector is missing, just before it would be made. What a replica makes it adds to the state,
//! and it uses what the state then has, so that all replicas use the same vectors.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::Arc,
    time::Duration,
};

use kube::Client;
use skillet_api::gateway::{EmbeddingsProvider, OfferMatching};
use skillet_kube::Backoff;
use skillet_offer::{QuestionVectors as _, VectorSpace, background_texts, skill_text};
use thiserror::Error;
use tokio::{
    select,
    time::{Instant, sleep},
};
use tracing::{info, warn};

use super::{
    EmbeddingsState,
    active_model::ActiveModel,
    client::EmbeddingsClient,
    condition::{EmbeddingsCondition, Verdict},
    metrics::Purpose,
    provider::ProviderVectors,
    skill_texts::{LIMIT, SkillText, embed_batch, take_batch},
    text_digest::TextDigest,
    vector_maps::{self, SHARDS, Shard, ShardChange, Vectors, map_name, model_key, shard_of},
};
use crate::{
    catalog::SkillCatalog,
    compute::compute,
    metrics::Metrics,
    model::upstream::{EmbeddingsFailure, ProviderClient},
    state_maps::{StateError, StateMaps},
};

/// Longest pause between two looks at the skills, and the pause after a change, in which others may follow.
const INTERVAL: Duration = Duration::from_secs(60);
const SETTLE: Duration = Duration::from_millis(500);

/// Pauses after failures.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(60));

/// Most vectors that one write adds to a ConfigMap.
const MAX_WRITE: usize = 256;

#[derive(Debug, Error)]
enum RefreshError {
    #[error("{}", .0.message)]
    Provider(EmbeddingsFailure),
    #[error("the provider of embeddings gives texts no direction; use another model")]
    Meaningless,
    #[error(transparent)]
    State(#[from] StateError),
}

/// The task that keeps the vectors of a provider.
pub struct EmbeddingsRefresh {
    pub(super) catalog: Arc<SkillCatalog>,
    pub(super) maps: StateMaps,
    pub(super) providers: Arc<ProviderClient>,
    pub(super) metrics: Arc<Metrics>,
    condition: EmbeddingsCondition,
    /// The state without a provider.
    own: EmbeddingsState,
    active: Option<ActiveModel>,
}

impl EmbeddingsRefresh {
    pub fn new(
        catalog: Arc<SkillCatalog>,
        (client, maps): (Client, StateMaps),
        providers: Arc<ProviderClient>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let condition = EmbeddingsCondition::new(client);
        let own = EmbeddingsState::clone(&catalog.embeddings());
        Self { catalog, maps, providers, metrics, condition, own, active: None }
    }

    /// Follows policy and skills as long as it is polled.
    pub async fn run(mut self) {
        let mut changes = self.catalog.changes();
        let mut backoff = BACKOFF;
        loop {
            if !self.catalog.is_synced() {
                sleep(SETTLE).await;
                continue;
            }
            if !self.step(Instant::now()).await {
                backoff.pause().await;
                continue;
            }
            backoff = BACKOFF;
            select! {
                _ = changes.changed() => {}
                () = sleep(INTERVAL) => {}
            }
            sleep(SETTLE).await;
            changes.mark_unchanged();
        }
    }

    /// Does what policy and skills need now, and says in the policy's status how it went. Returns false if something failed
    /// and must be tried again.
    pub(super) async fn step(&mut self, now: Instant) -> bool {
        let is_done = self.refresh(now).await;
        let verdict = match &*self.catalog.embeddings() {
            EmbeddingsState::Starting => return is_done,
            EmbeddingsState::Failed { message } if self.active.is_some() => {
                Verdict::Unavailable(message.clone())
            }
            EmbeddingsState::Off | EmbeddingsState::Ready(_) | EmbeddingsState::Failed { .. } => Verdict::Off,
            EmbeddingsState::Provider(vectors) => match vectors.lasting_failure() {
                Some(message) => Verdict::Unavailable(message),
                None => Verdict::Ready,
            },
        };
        self.condition.write(verdict).await;
        is_done
    }

    async fn refresh(&mut self, now: Instant) -> bool {
        let policy = self.catalog.policy();
        let offer = &policy.gateway.offer;
        let provider = match offer.matching {
            OfferMatching::Ranked => offer.embeddings.provider.as_ref(),
            OfferMatching::Words | OfferMatching::Substring => None,
        };
        let Some(settings) = provider else {
            if self.active.take().is_some() {
                self.catalog.set_embeddings(self.own.clone());
                self.metrics.embeddings().set_skills(0, 0);
                self.metrics.embeddings().set_failed(self.own.is_failed());
            }
            return true;
        };
        let mut active = self.take_active(settings);
        let result = self.fill(&mut active, now).await;
        if let Err(error) = &result {
            self.show_failure(&active, error);
        }
        self.active = Some(active);
        result.is_ok()
    }

    /// Returns the provider's model that the settings name, new if they name another one than before.
    fn take_active(&mut self, settings: &EmbeddingsProvider) -> ActiveModel {
        let model = model_key(settings);
        if let Some(active) = self.active.take().filter(|active| active.model == model) {
            active.client.set_settings(settings);
            return active;
        }
        self.catalog.set_embeddings(EmbeddingsState::Starting);
        let client = EmbeddingsClient::new(self.providers.clone(), self.metrics.clone(), settings.clone());
        ActiveModel::new(model, client)
    }

    fn show_failure(&self, active: &ActiveModel, error: &RefreshError) {
        match (&active.vectors, error) {
            (Some(_), RefreshError::State(error)) => {
                warn!(error = ?error, "Vectors of skills could not be exchanged");
            }
            (Some(vectors), RefreshError::Provider(failure)) => vectors.set_failure(failure.clone(), true),
            (None, _) | (Some(_), RefreshError::Meaningless) => {
                warn!(error = ?error, "Provider of embeddings cannot be used; skills are ranked by words alone");
                self.metrics.embeddings().set_failed(true);
                self.catalog.set_embeddings(EmbeddingsState::Failed { message: error.to_string() });
            }
        }
    }

    /// Reads or makes the vectors that are missing.
    async fn fill(&self, active: &mut ActiveModel, now: Instant) -> Result<(), RefreshError> {
        let vectors = match &active.vectors {
            Some(vectors) => vectors.clone(),
            None => self.start(active).await?,
        };
        let wanted = compute(usize::MAX, || self.wanted(&vectors));
        let gone = active.find_gone(&wanted, now);
        vectors.keep_skills(|digest| wanted.contains_key(&digest));
        active.without_room.retain(|digest| wanted.contains_key(digest));
        let mut missing: BTreeMap<u8, Vec<SkillText>> = BTreeMap::new();
        for (digest, text) in wanted.iter().filter(|(digest, _)| !active.without_room.contains(*digest)) {
            if let Some(text) = text {
                missing.entry(shard_of(*digest)).or_default().push((*digest, text.clone()));
            }
        }
        let mut result = Ok(());
        for shard in in_turn() {
            let (missing, gone) = (missing.remove(&shard), gone.get(&shard));
            let has_work = missing.is_some() || gone.is_some() || active.has_unwritten(shard);
            if result.is_ok() && has_work {
                let gone = gone.cloned().unwrap_or_default();
                result = self.fill_shard(active, shard, missing.unwrap_or_default(), gone).await;
            }
        }
        self.catalog.add_vectors();
        let present = wanted.keys().filter(|digest| vectors.knows(**digest)).count();
        self.metrics.embeddings().set_skills(present, wanted.len() - present);
        result
    }

    /// Returns the digests of the texts of all skills, with the text if its vector is missing.
    fn wanted(&self, vectors: &ProviderVectors) -> HashMap<TextDigest, Option<String>> {
        let texts = self.catalog.searched_skills().into_iter().map(|skill| skill_text(&skill));
        let digests = texts.map(|text| (TextDigest::of(&text), text));
        digests.map(|(digest, text)| (digest, (!vectors.knows(digest)).then_some(text))).collect()
    }

    /// Reads the state, and measures the model unless a replica has done so.
    async fn start(&self, active: &mut ActiveModel) -> Result<Arc<ProviderVectors>, RefreshError> {
        let none = Vectors::new();
        let mut space = self.exchange(active, 0, &ShardChange::of(&none)).await?.space;
        if space.is_none() {
            let measured = measure(&active.client).await?;
            let change = ShardChange { space: Some(&measured), ..ShardChange::of(&none) };
            space = self.exchange(active, 0, &change).await?.space.or(Some(measured));
        }
        let space = space.ok_or(RefreshError::Meaningless)?;
        let dimensions = space.dimensions();
        active.dimensions = Some(dimensions);
        let vectors = Arc::new(ProviderVectors::new(active.client.clone(), space));
        for shard in 0..SHARDS {
            vectors.add_skills(self.exchange(active, shard, &ShardChange::of(&none)).await?.vectors);
        }
        info!(dimensions, "Provider of embeddings in use");
        self.metrics.embeddings().set_failed(false);
        self.catalog.set_embeddings(EmbeddingsState::Provider(vectors.clone()));
        active.vectors = Some(vectors.clone());
        Ok(vectors)
    }

    /// Reads the vectors of one ConfigMap, and makes and writes what is still missing.
    async fn fill_shard(
        &self,
        active: &mut ActiveModel,
        shard: u8,
        mut missing: Vec<SkillText>,
        gone: BTreeSet<TextDigest>,
    ) -> Result<(), RefreshError> {
        let Some(vectors) = active.vectors.clone() else { return Ok(()) };
        let mut new = active.take_unwritten(shard);
        let mut gone = Some(gone);
        loop {
            let gone = gone.take().unwrap_or_default();
            let known = self.add(active, &vectors, shard, new, gone).await?;
            missing.retain(|(digest, _)| !known.contains(digest));
            if missing.is_empty() {
                return Ok(());
            }
            new = Vectors::new();
            while !missing.is_empty() && new.len() < MAX_WRITE {
                let batch = take_batch(&mut missing);
                match embed_batch(&active.client, vectors.space(), &batch).await {
                    Ok(made) => new.extend(made),
                    Err(failure) => {
                        self.add(active, &vectors, shard, new, BTreeSet::new()).await?;
                        return Err(RefreshError::Provider(failure));
                    }
                }
            }
            vectors.succeed();
        }
    }

    /// Adds new vectors to a ConfigMap, uses those that it then has, and returns their digests. If the state cannot be
    /// written, the new ones serve this replica until it can.
    async fn add(
        &self,
        active: &mut ActiveModel,
        vectors: &ProviderVectors,
        shard: u8,
        new: Vectors,
        gone: BTreeSet<TextDigest>,
    ) -> Result<HashSet<TextDigest>, RefreshError> {
        let found = self.exchange(active, shard, &ShardChange { gone, ..ShardChange::of(&new) }).await;
        match found {
            Ok(found) => {
                active.refuse_unkept(&new, &found.vectors);
                let known = found.vectors.keys().copied().collect();
                vectors.add_skills(found.vectors);
                Ok(known)
            }
            Err(error) => {
                vectors.add_skills(new.clone());
                active.unwritten.extend(new);
                Err(error)
            }
        }
    }

    /// Changes a ConfigMap, and returns what it then has.
    async fn exchange(
        &self,
        active: &mut ActiveModel,
        shard: u8,
        change: &ShardChange<'_>,
    ) -> Result<Shard, RefreshError> {
        let content =
            self.maps.change_content(&map_name(shard), |content| change.apply(content, &active.model)).await;
        self.metrics.state_exchanged("vectors", content.is_ok());
        let found = vector_maps::read(&content?, &active.model, active.dimensions);
        active.set_stored(shard, &found.vectors);
        Ok(found)
    }
}

/// Measures the provider's model with the built-in texts.
async fn measure(client: &EmbeddingsClient) -> Result<VectorSpace, RefreshError> {
    let (texts, mut vectors) = (background_texts(), HashMap::new());
    for batch in texts.chunks(32) {
        let dimensions = vectors.values().next().map(Vec::len);
        let made = client.embed(Purpose::Skill, batch, LIMIT, dimensions).await;
        vectors.extend(batch.iter().copied().zip(made.map_err(RefreshError::Provider)?));
    }
    VectorSpace::measure(|text| vectors.get(text).cloned()).ok_or(RefreshError::Meaningless)
}

/// Returns the numbers of the ConfigMaps from a random one on, so that replicas seldom make the same vectors.
fn in_turn() -> impl Iterator<Item = u8> {
    let random = RandomState::new().build_hasher().finish().to_le_bytes();
    let [first, ..] = random;
    (0..SHARDS).map(move |at| (first % SHARDS + at) % SHARDS)
}
