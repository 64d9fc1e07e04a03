//! Vectors of skills and of questions: of a static model in process, or of a provider.
//!
//! The static model is two files of a folder that a volume mounts. It is read once, when the gateway starts. A provider of
//! SkillPolicy takes its place. Without a model, or with one that fails, the words of a request alone decide.
//!
//! | module | content |
//! |---|---|
//! | `refresh`, `active_model` | the task that keeps a provider's vectors of all skills |
//! | `provider` | these vectors, and those of the last questions |
//! | `client`, `response` | requests for vectors |
//! | `condition` | the condition of SkillPolicy |
//! | `skill_texts` | batches of texts |
//! | `vector_maps` | vectors in ConfigMaps |
//! | `breaker`, `question_cache`, `text_digest` | parts of them |

mod active_model;
mod breaker;
mod client;
mod condition;
mod metrics;
mod provider;
mod question_cache;
mod refresh;
mod response;
mod skill_texts;
mod text_digest;
mod vector_maps;

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use skillet_kube::lock;
use skillet_offer::{
    Candidate, ModelError, QuestionVectors, StaticEmbeddings, Vector, VectorSpace, skill_text,
};
use thiserror::Error;
use tracing::{error, info};

pub use self::{
    metrics::{EmbeddingsMetrics, Purpose},
    provider::ProviderVectors,
    refresh::EmbeddingsRefresh,
};

/// Files of a model.
const MODEL_FILE: &str = "model.safetensors";
const TOKENIZER_FILE: &str = "tokenizer.json";

/// Most bytes of one file.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Memory of a tokenizer for each byte of its file: tables of its words, and of its merges.
const TOKENIZER_GROWTH: usize = 25;

/// Most questions whose vectors are kept. A conversation asks its first questions again with each request.
const MAX_QUESTIONS: usize = 1024;

/// The reason why a model cannot be used.
#[derive(Debug, Error)]
pub enum EmbeddingsError {
    #[error("could not read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} has more than 1 GiB; use a smaller model")]
    TooLarge { path: PathBuf },
    #[error("the embedding model in {folder} cannot be used")]
    Model { folder: PathBuf, source: ModelError },
}

/// A model and the vectors of the last questions.
#[derive(Debug)]
pub struct Embeddings {
    model: StaticEmbeddings,
    /// Estimated memory of the model and its tokenizer.
    bytes: usize,
    questions: Mutex<HashMap<Box<str>, Option<Vector>>>,
}

/// The embedding model of a gateway, for people who look why a skill is offered.
#[derive(Clone, Debug, Default)]
pub enum EmbeddingsState {
    #[default]
    Off,
    Ready(Arc<Embeddings>),
    Failed {
        message: String,
    },
    /// A provider is set, and its model is not measured yet.
    Starting,
    Provider(Arc<ProviderVectors>),
}

impl EmbeddingsState {
    /// Reads the model of a folder, if one is set.
    pub fn load(folder: Option<&Path>) -> Self {
        let Some(folder) = folder else { return Self::Off };
        match Embeddings::read(folder) {
            Ok(embeddings) => {
                let dimensions = embeddings.space().dimensions();
                info!(folder = %folder.display(), dimensions, "Embedding model loaded");
                Self::Ready(Arc::new(embeddings))
            }
            Err(failed) => {
                error!(error = ?failed, "Embedding model could not be loaded; skills are ranked by words alone");
                let cause = std::error::Error::source(&failed).map(|cause| format!(": {cause}"));
                Self::Failed { message: format!("{failed}{}", cause.unwrap_or_default()) }
            }
        }
    }

    /// Returns true if the static model could not be loaded, or the provider's not be measured.
    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }

    /// Returns the estimated memory of the static model.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Ready(embeddings) => embeddings.bytes,
            Self::Off | Self::Failed { .. } | Self::Starting | Self::Provider(_) => 0,
        }
    }

    /// Returns the state for an explanation.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Off => json!({ "state": "Off" }),
            Self::Ready(embeddings) => {
                json!({ "state": "Ready", "dimensions": embeddings.space().dimensions() })
            }
            Self::Failed { message } => json!({ "state": "Failed", "message": message }),
            Self::Starting => json!({ "state": "Starting" }),
            Self::Provider(vectors) => vectors.to_json(),
        }
    }

    /// Returns the model that searches use.
    pub(crate) fn model(&self) -> Option<Arc<dyn QuestionVectors>> {
        match self {
            Self::Ready(embeddings) => Some(embeddings.clone()),
            Self::Provider(vectors) => Some(vectors.clone()),
            Self::Off | Self::Failed { .. } | Self::Starting => None,
        }
    }

    /// Returns the provider whose vectors of questions must be there before a search.
    pub(crate) fn provider(&self) -> Option<&Arc<ProviderVectors>> {
        match self {
            Self::Provider(vectors) => Some(vectors),
            Self::Off | Self::Ready(_) | Self::Failed { .. } | Self::Starting => None,
        }
    }

    /// Returns the vector of a skill. `before` is the skill before a change.
    pub(crate) fn skill_vector(&self, skill: &Candidate, before: Option<&Candidate>) -> Option<Vector> {
        match self {
            Self::Off | Self::Failed { .. } | Self::Starting => None,
            Self::Provider(vectors) => vectors.skill_vector(&skill_text(skill)),
            Self::Ready(embeddings) => {
                let text = skill_text(skill);
                match before.filter(|before| before.vector.is_some() && skill_text(before) == text) {
                    Some(before) => before.vector.clone(),
                    None => embeddings.model.vector(&text),
                }
            }
        }
    }
}

impl Embeddings {
    /// Reads the model of a folder.
    pub fn read(folder: &Path) -> Result<Self, EmbeddingsError> {
        let (model, tokenizer) = (file(folder, MODEL_FILE)?, file(folder, TOKENIZER_FILE)?);
        let bytes = model.len() + TOKENIZER_GROWTH * tokenizer.len();
        let model = StaticEmbeddings::read(&model, &tokenizer)
            .map_err(|source| EmbeddingsError::Model { folder: folder.to_owned(), source })?;
        Ok(Self { model, bytes, questions: Mutex::default() })
    }
}

impl QuestionVectors for Embeddings {
    fn space(&self) -> &VectorSpace {
        self.model.space()
    }

    fn vector(&self, question: &str) -> Option<Vector> {
        if let Some(known) = lock(&self.questions).get(question) {
            return known.clone();
        }
        let vector = self.model.vector(question);
        let mut questions = lock(&self.questions);
        if questions.len() >= MAX_QUESTIONS {
            questions.clear();
        }
        questions.insert(question.into(), vector.clone());
        vector
    }
}

fn file(folder: &Path, name: &str) -> Result<Vec<u8>, EmbeddingsError> {
    let path = folder.join(name);
    let unreadable = |source| EmbeddingsError::Read { path: path.clone(), source };
    if fs::metadata(&path).map_err(unreadable)?.len() > MAX_FILE_BYTES {
        return Err(EmbeddingsError::TooLarge { path });
    }
    fs::read(&path).map_err(unreadable)
}

#[cfg(test)]
mod tests;
