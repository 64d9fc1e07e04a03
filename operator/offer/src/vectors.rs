//! Vectors of texts: points for skills that mean what a question means, in other words.
//!
//! An embedding model gives each text a vector. The cosine of two vectors says how near two texts are, and each model has
//! its own usual cosines. [`VectorSpace`] measures them on built-in texts, so that the points of all models mean the same.
//!
//! | module | content |
//! |---|---|
//! | `vector` | a vector with eight bits for each dimension |
//! | `space` | the usual cosines of a model |
//! | `table` | the vectors of an index |
//! | `nearest` | the points of the skills that are nearest to a question |
//! | `static_model` | a model that is a table: a vector for each token |
//! | `embeddings` | such a model with its space |

mod embeddings;
mod nearest;
mod space;
mod static_model;
mod table;
mod vector;

use std::fmt::Debug;

pub(crate) use self::table::VectorTable;
pub use self::{
    embeddings::StaticEmbeddings,
    space::{VectorSpace, background_texts},
    static_model::ModelError,
    vector::Vector,
};
use super::{Candidate, unicode_words::split_name};

/// Most bytes of a skill's text that get into its vector.
const MAX_SKILL_BYTES: usize = 8192;

/// A model that gives questions their vectors.
pub trait QuestionVectors: Debug + Send + Sync {
    /// Returns the model's space. Vectors of skills and of questions are of the same space.
    fn space(&self) -> &VectorSpace;

    /// Returns the vector of a question. If there is none, words alone decide. It is asked by many searches, so it does
    /// not wait: a model that asks a provider has the vectors from before the search.
    fn vector(&self, question: &str) -> Option<Vector>;
}

/// Returns the text of a skill that its vector stands for: name, description, tags and examples.
pub fn skill_text(candidate: &Candidate) -> String {
    let Candidate { name, description, tags, examples, .. } = candidate;
    let mut text = format!("{}. {description}", split_name(name).replace(['-', '_'], " "));
    for part in tags.iter().chain(examples.iter()) {
        text.push('\n');
        text.push_str(part);
    }
    let end = (0..=MAX_SKILL_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::candidate;

    #[test]
    fn the_text_of_a_skill_has_its_words_and_is_bounded() {
        let mut skill = candidate("webSearch-v2", "Finds pages.", &["web"]);
        skill.examples = ["who won?".to_owned()].into();
        assert_eq!(skill_text(&skill), "web Search v2. Finds pages.\nweb\nwho won?");
        skill.description = "ü".repeat(MAX_SKILL_BYTES).into();
        assert!((MAX_SKILL_BYTES - 1..=MAX_SKILL_BYTES).contains(&skill_text(&skill).len()));
    }
}
