//! A static model with its space: vectors of skills and of questions, in process.

use super::{ModelError, QuestionVectors, Vector, VectorSpace, skill_text, static_model::StaticModel};
use crate::Candidate;

/// A static embedding model, ready for searches.
#[derive(Debug)]
pub struct StaticEmbeddings {
    model: StaticModel,
    space: VectorSpace,
}

impl StaticEmbeddings {
    /// Reads a model from the bytes of `model.safetensors` and `tokenizer.json`.
    pub fn read(model: &[u8], tokenizer: &[u8]) -> Result<Self, ModelError> {
        let model = StaticModel::read(model, tokenizer)?;
        let space = VectorSpace::measure(|text| model.embed(text)).ok_or(ModelError::Meaningless)?;
        Ok(Self { model, space })
    }

    /// Returns the vector of a skill.
    pub fn skill_vector(&self, skill: &Candidate) -> Option<Vector> {
        self.vector(&skill_text(skill))
    }
}

impl QuestionVectors for StaticEmbeddings {
    fn space(&self) -> &VectorSpace {
        &self.space
    }

    fn vector(&self, question: &str) -> Option<Vector> {
        self.space.vector(&self.model.embed(question)?)
    }
}
