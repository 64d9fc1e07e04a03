//! Metrics of embeddings. Labels come from closed sets.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    purpose: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SkillLabels {
    vector: &'static str,
}

/// Handles to the metrics of embeddings.
#[derive(Clone, Debug, Default)]
pub struct EmbeddingsMetrics {
    failed: Gauge,
    requests: Family<RequestLabels, Counter>,
    skills: Family<SkillLabels, Gauge>,
}

/// The text that a provider gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Question,
    Skill,
}

impl EmbeddingsMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "embeddings_failed",
            "1 if the embedding model could not be loaded, or its provider fails",
            self.failed.clone(),
        );
        registry.register(
            "embeddings_requests",
            "Requests to the provider of embeddings, by purpose and outcome",
            self.requests.clone(),
        );
        registry.register(
            "embeddings_skills",
            "Skills that a provider's vectors stand for, by vector: present or missing",
            self.skills.clone(),
        );
    }

    /// Sets if skills are ranked by words alone against the settings.
    pub fn set_failed(&self, is_failed: bool) {
        self.failed.set(i64::from(is_failed));
    }

    /// Counts a request to the provider, or one that was not made.
    pub fn requested(&self, purpose: Purpose, outcome: &'static str) {
        let purpose = match purpose {
            Purpose::Question => "question",
            Purpose::Skill => "skill",
        };
        self.requests.get_or_create(&RequestLabels { purpose, outcome }).inc();
    }

    /// Sets the number of skills with and without a vector.
    pub fn set_skills(&self, present: usize, missing: usize) {
        for (vector, number) in [("present", present), ("missing", missing)] {
            let gauge = self.skills.get_or_create(&SkillLabels { vector });
            gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
        }
    }
}
