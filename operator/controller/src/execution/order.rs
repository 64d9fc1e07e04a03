//! The engine's order to the task of an execution, which may change while the task works.

use std::future::pending;

use skillet_api::SkillExecution;
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Run,
    /// The program is to be ended, and the status to say so.
    Cancel,
    /// Another operator has ended the execution: nothing of it may run or be written here.
    Stop,
}

impl Order {
    /// Reads `spec.cancel`.
    pub(crate) fn of(is_cancelled: bool) -> Self {
        if is_cancelled { Self::Cancel } else { Self::Run }
    }

    pub(crate) fn is_cancel(self) -> bool {
        match self {
            Self::Cancel => true,
            Self::Run | Self::Stop => false,
        }
    }
}

/// Returns the generation of the spec that a run has seen at its end: nothing of a spec changes but `cancel`, and that once.
pub(crate) fn seen_generation(execution: &SkillExecution, order: Order) -> Option<i64> {
    let is_changed = order.is_cancel() && !execution.spec.cancel;
    execution.metadata.generation.map(|generation| generation + i64::from(is_changed))
}

/// Waits until the run is to be cancelled; forever if it never is.
pub(crate) async fn wait_for_cancel(order: &mut watch::Receiver<Order>) {
    wait_for(order, Order::Cancel).await;
}

/// Waits until the run is to be stopped; forever if it never is.
pub(crate) async fn wait_for_stop(mut order: watch::Receiver<Order>) {
    wait_for(&mut order, Order::Stop).await;
}

async fn wait_for(order: &mut watch::Receiver<Order>, wanted: Order) {
    if order.wait_for(|order| *order == wanted).await.is_err() {
        pending::<()>().await;
    }
}
