//! The operator's metrics. Labels come from closed sets; no name of an object but a namespace is a label.

use std::time::Duration;

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use skillet_api::{Phase, Reason};
use skillet_core::busiest::Load;

/// A reason as a label value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReasonLabel(pub Reason);

impl EncodeLabelValue for ReasonLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&self.0.as_str(), encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ExecutionLabels {
    phase: &'static str,
    reason: ReasonLabel,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NamespaceLabels {
    namespace: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct KindLabels {
    kind: &'static str,
    reason: ReasonLabel,
}

/// Handles to every metric; cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    executions: Family<ExecutionLabels, Counter>,
    duration: Histogram,
    queue_time: Histogram,
    namespaces: Family<NamespaceLabels, Gauge>,
    sandbox_start: Histogram,
    problems: Family<KindLabels, Counter>,
    /// Executions that wait for a free slot.
    pub queued: Gauge,
    /// Executions that have a sandbox, or are about to.
    pub running: Gauge,
    /// Sandboxes that were abandoned before their program started.
    pub discarded: Counter,
    /// 1 while this operator holds the Lease.
    pub is_leader: Gauge,
}

impl Metrics {
    /// Registers every metric under the prefix `skillet_`.
    pub fn register(registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix("skillet");
        let seconds = || Histogram::new(exponential_buckets(0.005, 2.0, 16));
        let metrics = Self {
            executions: Family::default(),
            duration: seconds(),
            queue_time: seconds(),
            namespaces: Family::default(),
            sandbox_start: seconds(),
            problems: Family::default(),
            queued: Gauge::default(),
            running: Gauge::default(),
            discarded: Counter::default(),
            is_leader: Gauge::default(),
        };
        registry.register(
            "executions",
            "Executions that ended, by phase and reason",
            metrics.executions.clone(),
        );
        registry.register_with_unit(
            "execution_duration",
            "Run time of programs",
            Unit::Seconds,
            metrics.duration.clone(),
        );
        registry.register_with_unit(
            "execution_queue",
            "Time from an execution's arrival to the start of its run",
            Unit::Seconds,
            metrics.queue_time.clone(),
        );
        registry.register(
            "namespace_executions",
            "Unfinished executions of the namespaces whose callers have most of them",
            metrics.namespaces.clone(),
        );
        registry.register_with_unit(
            "sandbox_start",
            "Time from asking for a sandbox to its runner's answer",
            Unit::Seconds,
            metrics.sandbox_start.clone(),
        );
        registry.register("problems", "Objects found unusable, by kind and reason", metrics.problems.clone());
        registry.register("executions_queued", "Executions that wait for a place", metrics.queued.clone());
        registry.register("executions_running", "Executions that have a place", metrics.running.clone());
        registry.register("leader", "1 for the operator that holds the Lease", metrics.is_leader.clone());
        registry.register("sandboxes_discarded", "Sandboxes abandoned before use", metrics.discarded.clone());
        metrics
    }

    /// Counts an execution that ended.
    pub fn execution_ended(&self, phase: Phase, reason: Reason, duration: Option<Duration>) {
        let phase = match phase {
            Phase::Pending => "Pending",
            Phase::Running => "Running",
            Phase::Succeeded => "Succeeded",
            Phase::Failed => "Failed",
            Phase::TimedOut => "TimedOut",
            Phase::Cancelled => "Cancelled",
        };
        self.executions.get_or_create(&ExecutionLabels { phase, reason: ReasonLabel(reason) }).inc();
        if let Some(duration) = duration {
            self.duration.observe(duration.as_secs_f64());
        }
    }

    /// Counts the time for which an execution waited.
    pub fn queue_left(&self, after: Duration) {
        self.queue_time.observe(after.as_secs_f64());
    }

    /// Shows these namespaces, and no others.
    pub fn show_namespaces(&self, busiest: &[(&str, Load)]) {
        self.namespaces.clear();
        for (namespace, Load { waiting, running }) in busiest {
            for (state, count) in [("waiting", waiting), ("running", running)] {
                let labels = NamespaceLabels { namespace: (*namespace).to_owned(), state };
                self.namespaces.get_or_create(&labels).set(i64::from(*count));
            }
        }
    }

    /// Counts the time a sandbox took to answer.
    pub fn sandbox_started(&self, after: Duration) {
        self.sandbox_start.observe(after.as_secs_f64());
    }

    /// Counts an object that could not be used or processed.
    pub fn problem(&self, kind: &'static str, reason: Reason) {
        self.problems.get_or_create(&KindLabels { kind, reason: ReasonLabel(reason) }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_execution_is_counted_under_its_phase_and_reason() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.execution_ended(Phase::Failed, Reason::ExitCode, Some(Duration::from_millis(20)));
        metrics.problem("Skill", Reason::VersionConflict);
        let load = Load { waiting: 7, running: 2 };
        metrics.show_namespaces(&[("gone", load)]);
        metrics.show_namespaces(&[("team", load)]);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        assert!(text.contains("skillet_executions_total{phase=\"Failed\",reason=\"ExitCode\"} 1"), "{text}");
        assert!(text.contains("skillet_execution_duration_seconds_count 1"), "{text}");
        let waiting = "skillet_namespace_executions{namespace=\"team\",state=\"waiting\"} 7";
        assert!(text.contains(waiting) && !text.contains("gone"), "{text}");
        assert!(
            text.contains("skillet_problems_total{kind=\"Skill\",reason=\"VersionConflict\"} 1"),
            "{text}"
        );
    }
}
