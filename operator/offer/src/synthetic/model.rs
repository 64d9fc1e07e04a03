//! A small embedding model: each word has a random vector of its own, and words of one group have the same.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use safetensors::{Dtype, tensor::TensorView};
use serde_json::json;
use skillet_core::test_rng::TestRng;

use crate::{Candidate, QuestionVectors, StaticEmbeddings, Vector, VectorSpace};

/// The words of the built-in texts that measure a model.
const BACKGROUND: &str = include_str!("../vectors/data/background.txt");

/// Returns the sum of a random vector for each word.
pub fn embed(text: &str, dimensions: usize) -> Vec<f32> {
    let mut sum = vec![0.0; dimensions];
    for word in words(text) {
        sum.iter_mut().zip(word_vector(&word, dimensions)).for_each(|(sum, value)| *sum += value);
    }
    sum
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

fn word_vector(word: &str, dimensions: usize) -> Vec<f32> {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    let mut rng = TestRng::new(hasher.finish());
    let mut value = || f32::from(u16::try_from(rng.below(2001)).unwrap_or_default()) / 1000.0 - 1.0;
    (0..dimensions).map(|_| value()).collect()
}

/// The files of a static model, and its vectors.
#[derive(Debug)]
pub struct ToyModel {
    /// `model.safetensors` and `tokenizer.json`.
    pub files: (Vec<u8>, Vec<u8>),
    embeddings: StaticEmbeddings,
}

impl ToyModel {
    /// Makes a model that knows the words of the built-in texts, of the generated skills, and of these groups. Words of a
    /// group, with blanks between them, mean the same.
    ///
    /// # Panics
    ///
    /// If the model cannot be read, which only a defect does.
    pub fn new(groups: &[&str], dimensions: usize) -> Self {
        let mut vocabulary: BTreeMap<String, Vec<f32>> = BTreeMap::new();
        for word in words(BACKGROUND).chain(words(super::WORDS)) {
            vocabulary.insert(word.clone(), word_vector(&word, dimensions));
        }
        for group in groups {
            for word in words(group) {
                vocabulary.insert(word, word_vector(group, dimensions));
            }
        }
        let files = (matrix(&vocabulary, dimensions), tokenizer(&vocabulary));
        let embeddings = StaticEmbeddings::read(&files.0, &files.1).expect("the files are those of a model");
        Self { files, embeddings }
    }

    /// Returns a skill with its vector.
    #[must_use]
    pub fn add_to(&self, skill: &Candidate) -> Arc<Candidate> {
        Arc::new(Candidate { vector: self.embeddings.skill_vector(skill), ..skill.clone() })
    }
}

impl QuestionVectors for ToyModel {
    fn space(&self) -> &VectorSpace {
        self.embeddings.space()
    }

    fn vector(&self, question: &str) -> Option<Vector> {
        self.embeddings.vector(question)
    }
}

fn matrix(vocabulary: &BTreeMap<String, Vec<f32>>, dimensions: usize) -> Vec<u8> {
    let unknown = vec![0.0; dimensions];
    let numbers = std::iter::once(&unknown).chain(vocabulary.values()).flatten();
    let bytes: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
    let shape = vec![vocabulary.len() + 1, dimensions];
    let tensor = TensorView::new(Dtype::F32, shape, &bytes).expect("the shape is that of the numbers");
    safetensors::serialize([("embeddings", tensor)], None).expect("one matrix can be written")
}

fn tokenizer(vocabulary: &BTreeMap<String, Vec<f32>>) -> Vec<u8> {
    let ids: BTreeMap<&str, usize> =
        std::iter::once("[UNK]").chain(vocabulary.keys().map(String::as_str)).zip(0..).collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "post_processor": null, "decoder": null,
        "normalizer": { "type": "Lowercase" },
        "pre_tokenizer": { "type": "Whitespace" },
        "model": { "type": "WordLevel", "vocab": ids, "unk_token": "[UNK]" },
    });
    tokenizer.to_string().into_bytes()
}
