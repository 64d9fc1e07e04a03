//! The form in which vectors are kept in ConfigMaps: a byte for each dimension, by the digest of the text.
//!
//! A ConfigMap has the vectors of one model. Those of another model are as good as none, and the next write removes them.

use std::collections::{BTreeSet, HashMap};

use k8s_openapi::ByteString;
use serde_json::json;
use skillet_api::gateway::EmbeddingsProvider;
use skillet_offer::{Vector, VectorSpace};

use super::text_digest::TextDigest;
use crate::state_maps::MapContent;

/// ConfigMaps over which the vectors are spread. The chart's role names each.
pub(super) const SHARDS: u8 = 16;

/// Most vectors of one ConfigMap, and most bytes of its entries: a ConfigMap may have 1 MiB.
const MAX_VECTORS: usize = 4096;
const MAX_BYTES: usize = 900 << 10;

/// The key of the model's name, and that of its space.
const MODEL: &str = "model";
const SPACE: &str = "space";

/// Vectors by the digests of their texts; `None` for a text without a direction.
pub(super) type Vectors = HashMap<TextDigest, Option<Vector>>;

/// The content of a ConfigMap for a model.
#[derive(Debug, Default)]
pub(super) struct Shard {
    pub(super) space: Option<VectorSpace>,
    pub(super) vectors: Vectors,
}

/// A change to a ConfigMap.
#[derive(Debug)]
pub(super) struct ShardChange<'a> {
    pub(super) space: Option<&'a VectorSpace>,
    pub(super) new: &'a Vectors,
    /// Digests of texts that no skill has any more.
    pub(super) gone: BTreeSet<TextDigest>,
}

/// Returns the name of the ConfigMap with this number.
pub(super) fn map_name(shard: u8) -> String {
    format!("skillet-vectors-{shard}")
}

/// Returns the number of the ConfigMap with the vector of a text.
pub(super) fn shard_of(digest: TextDigest) -> u8 {
    digest.first_byte() % SHARDS
}

/// Returns the name of a model in the state: other settings that lead to other vectors have another name.
pub(super) fn model_key(provider: &EmbeddingsProvider) -> String {
    let EmbeddingsProvider { base_url, azure, model, dimensions, key_secret: _, timeout: _ } = provider;
    TextDigest::of(&json!([base_url, azure.is_some(), model, dimensions]).to_string()).to_string()
}

/// Reads a ConfigMap. Entries of another model, or of another length than the space's, are left out.
pub(super) fn read(content: &MapContent, model: &str, dimensions: Option<usize>) -> Shard {
    if content.texts.get(MODEL).is_none_or(|known| known != model) {
        return Shard::default();
    }
    let space = content.bytes.get(SPACE).and_then(|bytes| VectorSpace::from_bytes(&bytes.0));
    let dimensions = dimensions.or_else(|| Some(space.as_ref()?.dimensions()));
    let vector = |(key, bytes): (&String, &ByteString)| {
        let vector = Vector::from_bytes(&bytes.0);
        let is_sound = bytes.0.is_empty() || vector.as_ref().map(Vector::dimensions) == dimensions;
        if is_sound { Some((TextDigest::parse(key)?, vector)) } else { None }
    };
    Shard { vectors: content.bytes.iter().filter_map(vector).collect(), space }
}

impl<'a> ShardChange<'a> {
    /// Returns a change that adds these vectors.
    pub(super) fn of(new: &'a Vectors) -> Self {
        Self { space: None, new, gone: BTreeSet::new() }
    }

    /// Makes the change, and returns true if there is something to write. What is there stays as it is, so that all
    /// replicas use the vectors of the first one that wrote them.
    pub(super) fn apply(&self, content: &mut MapContent, model: &str) -> bool {
        let Self { space, new, gone } = self;
        let before = content.clone();
        if content.texts.get(MODEL).is_none_or(|known| known != model) {
            if new.is_empty() && space.is_none() {
                return false;
            }
            *content = MapContent::default();
            content.texts.insert(MODEL.to_owned(), model.to_owned());
        }
        gone.iter().for_each(|digest| drop(content.bytes.remove(&digest.to_string())));
        if let Some(space) = space {
            content.bytes.entry(SPACE.to_owned()).or_insert_with(|| ByteString(space.to_bytes()));
        }
        let size = |(key, bytes): (&String, &ByteString)| key.len() + bytes.0.len();
        let mut bytes: usize = content.bytes.iter().map(size).sum();
        // In an order of their own, so that a full ConfigMap does not depend on the order of the skills.
        let mut new: Vec<(&TextDigest, &Option<Vector>)> = new.iter().collect();
        new.sort_by_key(|(digest, _)| **digest);
        for (digest, vector) in new {
            let (key, value) =
                (digest.to_string(), vector.as_ref().map(Vector::to_bytes).unwrap_or_default());
            let has_room = content.bytes.len() < MAX_VECTORS && bytes + key.len() + value.len() <= MAX_BYTES;
            if has_room && !content.bytes.contains_key(&key) {
                bytes += key.len() + value.len();
                content.bytes.insert(key, ByteString(value));
            }
        }
        *content != before
    }
}

#[cfg(test)]
mod tests {
    use skillet_offer::synthetic::embed;

    use super::*;

    fn vectors(texts: &[&str]) -> Vectors {
        let vector =
            |text: &&str| (TextDigest::of(text), Vector::from_bytes(&[1, u8::try_from(text.len()).unwrap()]));
        texts.iter().map(vector).collect()
    }

    fn add(content: &mut MapContent, model: &str, new: &Vectors) -> bool {
        ShardChange::of(new).apply(content, model)
    }

    fn known(content: &MapContent, model: &str) -> usize {
        read(content, model, Some(2)).vectors.len()
    }

    #[test]
    fn the_first_vector_of_a_text_stays_and_what_is_gone_is_removed() {
        let mut content = MapContent::default();
        assert!(!add(&mut content, "m", &Vectors::new()), "nothing is nothing to write");
        assert!(add(&mut content, "m", &vectors(&["a", "bb"])));
        let mut second = vectors(&["a", "ccc"]);
        second.insert(TextDigest::of("a"), None);
        assert!(add(&mut content, "m", &second) && !add(&mut content, "m", &second));
        let read = read(&content, "m", Some(2)).vectors;
        assert_eq!((read.len(), read[&TextDigest::of("a")].clone()), (3, Vector::from_bytes(&[1, 1])));
        let none = Vectors::new();
        let change = ShardChange { gone: [TextDigest::of("a")].into(), ..ShardChange::of(&none) };
        assert!(change.apply(&mut content, "m") && !change.apply(&mut content, "m"));
        assert_eq!(known(&content, "m"), 2);
    }

    #[test]
    fn another_model_takes_the_place_of_all_vectors() {
        let mut content = MapContent::default();
        add(&mut content, "m", &vectors(&["a", "b"]));
        assert_eq!((known(&content, "m"), known(&content, "n")), (2, 0));
        assert!(
            !add(&mut content, "n", &Vectors::new()),
            "vectors of another model stay until there are new ones"
        );
        assert!(add(&mut content, "n", &vectors(&["c"])));
        assert_eq!((known(&content, "m"), known(&content, "n")), (0, 1));
    }

    #[test]
    fn the_space_is_kept_beside_and_damaged_entries_are_left_out() {
        let space = VectorSpace::measure(|text| Some(embed(text, 64))).unwrap();
        let other = VectorSpace::measure(|text| Some(embed(text, 32))).unwrap();
        let (mut content, none) = (MapContent::default(), Vectors::new());
        for space in [&space, &other] {
            ShardChange { space: Some(space), ..ShardChange::of(&none) }.apply(&mut content, "m");
        }
        let key = |text| TextDigest::of(text).to_string();
        let vector = space.vector(&embed("a map", 64)).unwrap();
        for (key, bytes) in [
            (key("a"), vector.to_bytes()),
            (key("no direction"), vec![]),
            (key("short"), vec![1, 2]),
            ("x".to_owned(), vector.to_bytes()),
        ] {
            content.bytes.insert(key, ByteString(bytes));
        }
        let shard = read(&content, "m", None);
        assert_eq!((shard.space, shard.vectors.len()), (Some(space), 2));
        assert_eq!(shard.vectors[&TextDigest::of("a")], Some(vector));
    }

    #[test]
    fn a_full_map_takes_no_more() {
        let large = |number: usize| -> Vectors {
            (0..number).map(|at| (TextDigest::of(&at.to_string()), Vector::from_bytes(&[1; 4096]))).collect()
        };
        let mut content = MapContent::default();
        assert!(add(&mut content, "m", &large(300)));
        let kept = read(&content, "m", Some(4096)).vectors.len();
        assert_eq!(kept, MAX_BYTES / (4096 + 32));
        assert!(!add(&mut content, "m", &large(300)));
        let small: Vectors = (0..5000).map(|at| (TextDigest::of(&at.to_string()), None)).collect();
        let mut content = MapContent::default();
        assert!(add(&mut content, "m", &small));
        assert_eq!(content.bytes.len(), MAX_VECTORS);
    }

    #[test]
    fn a_model_is_its_name_its_server_and_its_dimensions() {
        let provider = |fields: &str| -> EmbeddingsProvider { serde_saphyr::from_str(fields).unwrap() };
        let key = |fields: &str| model_key(&provider(fields));
        let one = key("{model: m, timeout: 1s, keySecret: {name: s}}");
        assert_eq!(one, key("{model: m}"));
        for other in [
            "{model: n}",
            "{model: m, dimensions: 8}",
            "{model: m, baseUrl: 'http://x'}",
            "{model: m, azure: {}}",
        ] {
            assert_ne!(one, key(other), "{other}");
        }
    }

    #[test]
    fn the_charts_role_names_each_config_map() {
        let role = include_str!("../../../../charts/skillet/templates/rbac-gateway.yaml");
        assert!(role.contains(&format!("range until {SHARDS}")) && role.contains("skillet-vectors-{{ . }}"));
        assert!((0..100).all(|number| shard_of(TextDigest::of(&number.to_string())) < SHARDS));
        assert_eq!(map_name(3), "skillet-vectors-3");
    }
}
