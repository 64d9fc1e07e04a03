//! The client of a provider of embeddings: texts in, vectors out, and each request in the metric.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use skillet_api::gateway::EmbeddingsProvider;
use skillet_kube::lock;

use super::{
    metrics::Purpose,
    response::{max_bytes, read_vectors},
};
use crate::{
    metrics::Metrics,
    model::upstream::{EmbeddingsFailure, EmbeddingsLimits, ProviderClient},
};

/// Asks a provider for the vectors of texts.
pub(super) struct EmbeddingsClient {
    providers: Arc<ProviderClient>,
    metrics: Arc<Metrics>,
    /// The settings in force: key, time limit and address may change while the vectors stay.
    settings: Mutex<EmbeddingsProvider>,
}

impl EmbeddingsClient {
    pub(super) fn new(
        providers: Arc<ProviderClient>,
        metrics: Arc<Metrics>,
        settings: EmbeddingsProvider,
    ) -> Self {
        Self { providers, metrics, settings: Mutex::new(settings) }
    }

    pub(super) fn settings(&self) -> EmbeddingsProvider {
        lock(&self.settings).clone()
    }

    pub(super) fn set_settings(&self, settings: &EmbeddingsProvider) {
        lock(&self.settings).clone_from(settings);
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the vectors of texts, in their order. `dimensions` is the length that they must have, if it is known.
    pub(super) async fn embed(
        &self,
        purpose: Purpose,
        texts: &[&str],
        limit: Duration,
        dimensions: Option<usize>,
    ) -> Result<Vec<Vec<f32>>, EmbeddingsFailure> {
        let settings = self.settings();
        let mut body = json!({ "model": settings.model, "input": texts, "encoding_format": "float" });
        if let Some(dimensions) = settings.dimensions {
            body["dimensions"] = dimensions.into();
        }
        let dimensions = dimensions.or_else(|| usize::try_from(settings.dimensions?).ok());
        let limits = EmbeddingsLimits { timeout: limit, bytes: max_bytes(texts.len(), dimensions) };
        let response = self.providers.post_embeddings(&settings, body.to_string(), limits).await;
        let vectors = response.and_then(|body| {
            read_vectors(&body, texts.len(), dimensions)
                .map_err(|error| EmbeddingsFailure::new("invalid", error.to_string()))
        });
        let outcome = vectors.as_ref().err().map_or("success", |failure| failure.outcome);
        self.metrics.embeddings().requested(purpose, outcome);
        vectors
    }
}
