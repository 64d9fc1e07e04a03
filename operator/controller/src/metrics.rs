//! The operator's metrics. Labels come from closed sets. Namespaces and skills are labels of the ten that have most executions.

use std::{sync::atomic::AtomicU64, time::Duration};

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

use crate::egress::EgressMetrics;

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
struct SkillLabels {
    namespace: String,
    skill: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    limit: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct KindLabels {
    kind: &'static str,
    reason: ReasonLabel,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RetryLabels {
    reason: ReasonLabel,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseLabels {
    cause: &'static str,
}

/// Handles to every metric; cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    executions: Family<ExecutionLabels, Counter>,
    duration: Histogram,
    queue_time: Histogram,
    namespaces: Family<NamespaceLabels, Gauge>,
    skills: Family<SkillLabels, Gauge>,
    limits: Family<LimitLabels, Gauge>,
    sandbox_start: Histogram,
    start_failures: Family<CauseLabels, Counter>,
    retries: Family<RetryLabels, Counter>,
    oldest_queued: Gauge<f64, AtomicU64>,
    problems: Family<KindLabels, Counter>,
    /// Executions that wait for a free slot.
    pub queued: Gauge,
    /// Executions whose output was cut.
    pub truncated: Counter,
    /// Executions that have a sandbox, or are about to.
    pub running: Gauge,
    /// Sandboxes that were abandoned before their program started.
    pub discarded: Counter,
    /// 1 while this operator holds the Lease.
    pub is_leader: Gauge,
    /// Nodes whose sandboxes do not prove what the SkillPolicy requires.
    pub unproven_nodes: Gauge,
    pub(crate) egress: EgressMetrics,
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
            skills: Family::default(),
            limits: Family::default(),
            sandbox_start: seconds(),
            start_failures: Family::default(),
            retries: Family::default(),
            oldest_queued: Gauge::default(),
            truncated: Counter::default(),
            problems: Family::default(),
            queued: Gauge::default(),
            running: Gauge::default(),
            discarded: Counter::default(),
            is_leader: Gauge::default(),
            unproven_nodes: Gauge::default(),
            egress: EgressMetrics::default(),
        };
        metrics.register_executions(registry);
        metrics.register_sandboxes(registry);
        metrics.egress.register(registry);
        registry.register("problems", "Objects found unusable, by kind and reason", metrics.problems.clone());
        registry.register("leader", "1 for the operator that holds the Lease", metrics.is_leader.clone());
        metrics
    }

    fn register_executions(&self, registry: &mut Registry) {
        let metrics = self;
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
        registry.register(
            "skill_executions",
            "Unfinished executions of the skills that have most of them",
            metrics.skills.clone(),
        );
        registry.register("concurrency_limit", "Limits of SkillPolicy in force", metrics.limits.clone());
        registry.register("executions_queued", "Executions that wait for a place", metrics.queued.clone());
        registry.register_with_unit(
            "executions_oldest_queued",
            "Age of the execution that waits longest",
            Unit::Seconds,
            metrics.oldest_queued.clone(),
        );
        registry.register("executions_running", "Executions that have a place", metrics.running.clone());
        registry.register(
            "executions_truncated",
            "Executions whose output was cut",
            metrics.truncated.clone(),
        );
        registry.register("execution_retries", "Attempts that were retried", metrics.retries.clone());
    }

    fn register_sandboxes(&self, registry: &mut Registry) {
        let metrics = self;
        registry.register_with_unit(
            "sandbox_start",
            "Time from asking for a sandbox to its runner's answer",
            Unit::Seconds,
            metrics.sandbox_start.clone(),
        );
        registry.register(
            "sandbox_start_failures",
            "Sandboxes that ran no program, by cause",
            metrics.start_failures.clone(),
        );
        registry.register(
            "nodes_unproven",
            "Nodes whose sandboxes do not prove what SkillPolicy requires",
            metrics.unproven_nodes.clone(),
        );
        registry.register("sandboxes_discarded", "Sandboxes abandoned before use", metrics.discarded.clone());
    }

    /// Counts an execution that ended.
    pub fn execution_ended(&self, phase: Phase, reason: Reason, duration: Option<Duration>) {
        self.executions
            .get_or_create(&ExecutionLabels { phase: phase.as_str(), reason: ReasonLabel(reason) })
            .inc();
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
        for (namespace, load) in busiest {
            for (state, count) in by_state(*load) {
                let labels = NamespaceLabels { namespace: (*namespace).to_owned(), state };
                self.namespaces.get_or_create(&labels).set(count);
            }
        }
    }

    /// Shows these skills, given as namespace and name, and no others.
    pub fn show_skills(&self, busiest: &[((&str, &str), Load)]) {
        self.skills.clear();
        for ((namespace, skill), load) in busiest {
            for (state, count) in by_state(*load) {
                let (namespace, skill) = ((*namespace).to_owned(), (*skill).to_owned());
                self.skills.get_or_create(&SkillLabels { namespace, skill, state }).set(count);
            }
        }
    }

    /// Shows the policy's most runs at one time, in all and of a namespace.
    pub fn show_limits(&self, total: u32, per_namespace: u32) {
        for (limit, value) in [("total", total), ("per_namespace", per_namespace)] {
            self.limits.get_or_create(&LimitLabels { limit }).set(value.into());
        }
    }

    /// Counts a retried attempt under the reason of its failure.
    pub fn retried(&self, reason: Reason) {
        self.retries.get_or_create(&RetryLabels { reason: ReasonLabel(reason) }).inc();
    }

    /// Counts a sandbox that ran no program.
    pub fn start_failed(&self, cause: &'static str) {
        self.start_failures.get_or_create(&CauseLabels { cause }).inc();
    }

    /// Shows the age of the execution that waits longest; zero if none waits.
    pub fn show_oldest_queued(&self, age: Duration) {
        self.oldest_queued.set(age.as_secs_f64());
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

fn by_state(Load { waiting, running }: Load) -> [(&'static str, i64); 2] {
    [("waiting", waiting.into()), ("running", running.into())]
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
        metrics.retried(Reason::SandboxLost);
        metrics.start_failed("ImageUnavailable");
        metrics.show_oldest_queued(Duration::from_millis(1500));
        metrics.truncated.inc();
        let load = Load { waiting: 7, running: 2 };
        metrics.show_namespaces(&[("gone", load)]);
        metrics.show_namespaces(&[("team", load)]);
        metrics.show_skills(&[(("team", "left"), load)]);
        metrics.show_skills(&[(("team", "count"), load)]);
        metrics.show_limits(64, 16);
        metrics.unproven_nodes.set(2);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        assert!(text.contains("skillet_executions_total{phase=\"Failed\",reason=\"ExitCode\"} 1"), "{text}");
        assert!(text.contains("skillet_execution_duration_seconds_count 1"), "{text}");
        for line in [
            "skillet_execution_retries_total{reason=\"SandboxLost\"} 1",
            "skillet_sandbox_start_failures_total{cause=\"ImageUnavailable\"} 1",
            "skillet_executions_oldest_queued_seconds 1.5",
            "skillet_executions_truncated_total 1",
            "skillet_skill_executions{namespace=\"team\",skill=\"count\",state=\"running\"} 2",
            "skillet_concurrency_limit{limit=\"total\"} 64",
            "skillet_concurrency_limit{limit=\"per_namespace\"} 16",
            "skillet_nodes_unproven 2",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        let waiting = "skillet_namespace_executions{namespace=\"team\",state=\"waiting\"} 7";
        assert!(text.contains(waiting) && !text.contains("gone") && !text.contains("left"), "{text}");
        assert!(
            text.contains("skillet_problems_total{kind=\"Skill\",reason=\"VersionConflict\"} 1"),
            "{text}"
        );
    }
}
