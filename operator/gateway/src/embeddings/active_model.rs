//! The model of a provider that is in use, and what this replica knows of its vectors in the state.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use tracing::warn;

use super::{
    client::EmbeddingsClient,
    provider::ProviderVectors,
    text_digest::TextDigest,
    vector_maps::{Vectors, shard_of},
};

/// Vectors of texts that no skill has are kept so long: another replica may have seen a skill that this one has not.
const KEEP_GONE: Duration = Duration::from_secs(600);

/// A provider's model, and what is known of its vectors in the state.
pub(super) struct ActiveModel {
    pub(super) model: String,
    pub(super) client: Arc<EmbeddingsClient>,
    /// The length of the vectors, once the model is measured.
    pub(super) dimensions: Option<usize>,
    pub(super) vectors: Option<Arc<ProviderVectors>>,
    /// Vectors that the state has, by ConfigMap, and the time since when no skill has their texts.
    pub(super) stored: BTreeMap<u8, HashMap<TextDigest, Option<Instant>>>,
    /// Vectors that could not be written yet.
    pub(super) unwritten: Vectors,
    /// Texts for which the state has no room.
    pub(super) without_room: HashSet<TextDigest>,
}

impl ActiveModel {
    pub(super) fn new(model: String, client: EmbeddingsClient) -> Self {
        Self {
            model,
            client: Arc::new(client),
            dimensions: None,
            vectors: None,
            stored: BTreeMap::new(),
            unwritten: Vectors::new(),
            without_room: HashSet::new(),
        }
    }

    /// Keeps the digests that a ConfigMap has. Those that it had before keep their time.
    pub(super) fn set_stored(&mut self, shard: u8, found: &Vectors) {
        let before = self.stored.remove(&shard).unwrap_or_default();
        let since = |digest: &TextDigest| (*digest, before.get(digest).copied().flatten());
        self.stored.insert(shard, found.keys().map(since).collect());
    }

    /// Returns the vectors of the state, by ConfigMap, whose texts no skill has had for a while.
    pub(super) fn find_gone(
        &mut self,
        wanted: &HashMap<TextDigest, Option<String>>,
        now: Instant,
    ) -> BTreeMap<u8, BTreeSet<TextDigest>> {
        let mut gone: BTreeMap<u8, BTreeSet<TextDigest>> = BTreeMap::new();
        for (shard, stored) in &mut self.stored {
            for (digest, since) in stored {
                if wanted.contains_key(digest) {
                    *since = None;
                } else if now.duration_since(*since.get_or_insert(now)) >= KEEP_GONE {
                    gone.entry(*shard).or_default().insert(*digest);
                }
            }
        }
        gone
    }

    pub(super) fn has_unwritten(&self, shard: u8) -> bool {
        self.unwritten.keys().any(|digest| shard_of(*digest) == shard)
    }

    pub(super) fn take_unwritten(&mut self, shard: u8) -> Vectors {
        let (taken, left) = std::mem::take(&mut self.unwritten)
            .into_iter()
            .partition(|(digest, _)| shard_of(*digest) == shard);
        self.unwritten = left;
        taken
    }

    /// Remembers the texts whose vectors the state has not taken.
    pub(super) fn refuse_unkept(&mut self, new: &Vectors, kept: &Vectors) {
        let unkept: Vec<TextDigest> =
            new.keys().filter(|digest| !kept.contains_key(digest)).copied().collect();
        if !unkept.is_empty() {
            warn!(skills = unkept.len(), "ConfigMaps have no room for further vectors of skills");
            self.without_room.extend(unkept);
        }
    }
}
