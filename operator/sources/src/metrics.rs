//! Metrics of sources. Labels come from closed sets.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use skillet_api::Reason;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    reason: &'static str,
}

#[derive(Clone, Debug)]
pub struct Metrics {
    looks: Family<OutcomeLabels, Counter>,
    seconds: Histogram,
    applied: Counter,
    pruned: Counter,
    refused: Counter,
}

impl Metrics {
    /// Registers every metric of sources.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            looks: Family::default(),
            seconds: Histogram::new(exponential_buckets(0.05, 2.0, 12)),
            applied: Counter::default(),
            pruned: Counter::default(),
            refused: Counter::default(),
        };
        let registry = registry.sub_registry_with_prefix("skillet_source");
        registry.register("looks", "Looks at repositories by their end", metrics.looks.clone());
        registry.register_with_unit(
            "look_duration",
            "Time of one look at a repository, with the changes that followed",
            Unit::Seconds,
            metrics.seconds.clone(),
        );
        registry.register("skills_changed", "Skills written with new content", metrics.applied.clone());
        registry.register("skills_pruned", "Skills removed since their file is gone", metrics.pruned.clone());
        registry.register("files_refused", "Files that were no Skill", metrics.refused.clone());
        metrics
    }

    /// Counts a look by its end.
    pub fn look(&self, reason: Reason, took: Duration) {
        self.looks.get_or_create(&OutcomeLabels { reason: reason.as_str() }).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn changed(&self, applied: usize, pruned: usize, refused: usize) {
        self.applied.inc_by(applied as u64);
        self.pruned.inc_by(pruned as u64);
        self.refused.inc_by(refused as u64);
    }
}
