//! The part of SkillPolicy that decides which skills a request is offered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EmbeddingsPolicy;

/// Comparison of a skill's names, tags and words with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OfferMatching {
    #[default]
    Ranked,
    Words,
    Substring,
}

/// Form in which models are offered skills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OfferMode {
    #[default]
    Tools,
    Search,
}

/// Names of the tools of mode `Search`: letters, digits, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SearchTools {
    /// Tool that finds skills. Default `find_skills`.
    #[schemars(length(max = 64), regex(pattern = r"^[A-Za-z_][A-Za-z0-9_-]*$"))]
    pub find: String,
    /// Tool that runs a skill. Default `run_skill`.
    #[schemars(length(max = 64), regex(pattern = r"^[A-Za-z_][A-Za-z0-9_-]*$"))]
    pub run: String,
    /// Tool that runs a skill of invocation `hybrid` after a person has confirmed the call. Requests have it only if such skills exist. Default `run_skill_with_confirmation`.
    #[schemars(length(max = 64), regex(pattern = r"^[A-Za-z_][A-Za-z0-9_-]*$"))]
    pub run_with_confirmation: String,
}

impl Default for SearchTools {
    fn default() -> Self {
        Self {
            find: "find_skills".into(),
            run: "run_skill".into(),
            run_with_confirmation: "run_skill_with_confirmation".into(),
        }
    }
}

/// Selection of the skills that a request is offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OfferPolicy {
    /// Form of the offer: `Tools` adds a tool for each skill that fits. `Search` adds the same few tools to every request: one finds skills, one runs a skill. Default `Tools`.
    pub mode: OfferMode,
    /// Names of the tools of mode `Search`.
    pub search_tools: SearchTools,
    /// Comparison of text: `Ranked` ranks skills by the rare words of the user's turns, and a conversation keeps its skills. `Words` finds whole words in any script, and only in messages. `Substring` finds names and tags anywhere in the request, as OmniRoute does. Default `Ranked`.
    pub matching: OfferMatching,
    /// Most `auto` skills that one request is offered; with `Ranked`, that one turn of the user adds. Default 5.
    #[schemars(range(max = 128))]
    pub max_auto_skills: u32,
    /// Most `auto` skills that a conversation keeps, with `Ranked` only. A smaller number than `maxAutoSkills` counts as `maxAutoSkills`. Default 10.
    #[schemars(range(max = 128))]
    pub max_conversation_skills: u32,
    /// Fewest points with which an `auto` skill is offered. Default 100 with `Ranked`, else 3.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_auto_score: Option<u32>,
    /// Most tokens that all offered definitions may take, about four bytes each; the skills with the lowest score are left out first. Default 16000.
    #[schemars(range(max = 1_000_000))]
    pub token_budget: u32,
    /// Learning from the use of skills, with `Ranked` and `Tools` only.
    #[serde(skip_serializing_if = "LearningPolicy::is_off")]
    pub learning: LearningPolicy,
    /// Search for skills by their meaning, with `Ranked` only.
    #[serde(skip_serializing_if = "EmbeddingsPolicy::is_off")]
    pub embeddings: EmbeddingsPolicy,
}

/// Learning from the use of skills: terms of questions that led to calls strengthen a skill, offers without a call weaken it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LearningPolicy {
    /// Namespaces of callers that learn, each for itself. A namespace that is removed forgets. Default none.
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

impl LearningPolicy {
    /// Returns true if no namespace learns.
    pub fn is_off(&self) -> bool {
        self.namespaces.is_empty()
    }
}

impl Default for OfferPolicy {
    fn default() -> Self {
        Self {
            mode: OfferMode::Tools,
            search_tools: SearchTools::default(),
            matching: OfferMatching::Ranked,
            max_auto_skills: 5,
            max_conversation_skills: 10,
            min_auto_score: None,
            token_budget: 16_000,
            learning: LearningPolicy::default(),
            embeddings: EmbeddingsPolicy::default(),
        }
    }
}
