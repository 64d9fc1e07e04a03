//! Metrics of commands in bodies. Labels come from closed sets.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CommandLabels {
    outcome: &'static str,
}

/// Handles to the metrics of commands.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandMetrics {
    commands: Family<CommandLabels, Counter>,
}

impl CommandMetrics {
    /// Registers the metrics.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "body_commands",
            "Commands in instructions, by outcome: succeeded, failed, timed_out or cached; and bodies whose commands were not run",
            self.commands.clone(),
        );
    }

    /// Counts a command, or a body whose commands were not run.
    pub(super) fn count(&self, outcome: &'static str) {
        self.commands.get_or_create(&CommandLabels { outcome }).inc();
    }
}
