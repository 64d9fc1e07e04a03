//! Tasks that run as long as the process: watches and probes.
//!
//! If one ends, the process ends too and is restarted. Otherwise it would serve stale data and report ready.

use std::{collections::HashMap, future::Future};

use thiserror::Error;
use tokio::task::{Id, JoinError, JoinSet};

/// A part ended by itself.
#[derive(Debug, Error)]
#[error("{part} ended, without which the gateway must not go on")]
pub struct TaskEnded {
    part: &'static str,
    /// The panic of the task, if it had one.
    source: Option<JoinError>,
}

#[derive(Default)]
pub(super) struct TaskGroup {
    running: JoinSet<()>,
    names: HashMap<Id, &'static str>,
}

impl TaskGroup {
    pub(super) fn spawn(&mut self, name: &'static str, part: impl Future<Output = ()> + Send + 'static) {
        let id = self.running.spawn(part).id();
        self.names.insert(id, name);
    }

    /// Waits until one of them ends, which none should.
    pub(super) async fn first_exit(&mut self) -> TaskEnded {
        let (id, source) = match self.running.join_next_with_id().await {
            Some(Ok((id, ()))) => (Some(id), None),
            Some(Err(error)) => (Some(error.id()), Some(error)),
            None => (None, None),
        };
        let part = id.and_then(|id| self.names.get(&id).copied()).unwrap_or("the last part");
        TaskEnded { part, source }
    }

    pub(super) async fn stop(mut self) {
        self.running.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[tokio::test]
    async fn the_part_that_ends_or_panics_is_named() {
        let mut tasks = TaskGroup::default();
        tasks.spawn("the first watch", std::future::pending());
        assert!(futures::poll!(Box::pin(tasks.first_exit())).is_pending());
        tasks.spawn("the second watch", async { panic!("a bug") });
        let ended = tasks.first_exit().await;
        assert_eq!(ended.to_string(), "the second watch ended, without which the gateway must not go on");
        assert!(ended.source().is_some());
        tasks.spawn("the probes", async {});
        let ended = tasks.first_exit().await;
        assert!(ended.to_string().starts_with("the probes ended") && ended.source().is_none());
        tasks.stop().await;
    }
}
