//! Metrics of the store. Labels come from closed sets.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use crate::WorkspaceError;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    operation: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabels {
    direction: &'static str,
}

#[derive(Clone, Debug, Default)]
pub struct Metrics {
    operations: Family<OperationLabels, Counter>,
    bytes: Family<DirectionLabels, Counter>,
    workspaces: Gauge,
    expired: Counter,
}

impl Metrics {
    /// Registers every metric of the store.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("skillet_workspaces");
        registry.register("operations", "Operations on files by their outcome", metrics.operations.clone());
        registry.register_with_unit(
            "transferred",
            "Bytes of files that were read and written",
            Unit::Bytes,
            metrics.bytes.clone(),
        );
        registry.register("kept", "Workspaces at the last sweep", metrics.workspaces.clone());
        registry.register(
            "expired",
            "Workspaces that nobody used and that were removed",
            metrics.expired.clone(),
        );
        metrics
    }

    pub(crate) fn operation<T>(&self, operation: &'static str, result: &Result<T, WorkspaceError>) {
        let outcome = match result {
            Ok(_) => "Done",
            Err(error) => error.word(),
        };
        self.operations.get_or_create(&OperationLabels { operation, outcome }).inc();
    }

    pub(crate) fn read(&self, bytes: u64) {
        self.bytes.get_or_create(&DirectionLabels { direction: "read" }).inc_by(bytes);
    }

    pub(crate) fn written(&self, bytes: u64) {
        self.bytes.get_or_create(&DirectionLabels { direction: "written" }).inc_by(bytes);
    }

    pub(crate) fn workspaces(&self, number: usize) {
        self.workspaces.set(i64::try_from(number).unwrap_or(i64::MAX));
    }

    pub(crate) fn expired(&self) {
        self.expired.inc();
    }
}
