//! Removing used sandboxes: paced and off the hot path, because tearing a pod down takes CPU from the next start.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{StreamExt as _, stream};
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api,
    api::{DeleteParams, PropagationPolicy},
};
use skillet_kube::lock;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};
use tracing::{Span, debug, warn};

/// A used sandbox's runner ends by itself; after this long its pod is only an object to delete.
const REST: Duration = Duration::from_secs(2);
/// Removals at a time.
const SIDE_BY_SIDE: usize = 8;
/// Pause after each removal of the same eighth.
const PACE: Duration = Duration::from_millis(100);

/// A sandbox to remove.
struct Used {
    due: Instant,
    job: String,
    /// The span of the run that used it.
    span: Span,
}

/// Takes the names of used sandboxes and deletes their Jobs, some at a time.
#[derive(Clone)]
pub(crate) struct Remover {
    used: mpsc::UnboundedSender<Used>,
    /// Names of the sandboxes that wait to be removed. The sweep names them again and again.
    waiting: Arc<Mutex<HashSet<String>>>,
    jobs: Api<Job>,
}

impl Remover {
    /// The remover and the task that does its work; the task ends when every handle is dropped.
    pub(crate) fn new(jobs: Api<Job>) -> (Self, impl Future<Output = ()>) {
        let (used, removals) = mpsc::unbounded_channel();
        let waiting: Arc<Mutex<HashSet<String>>> = Arc::default();
        let task = work(jobs.clone(), waiting.clone(), removals);
        (Self { used, waiting, jobs }, task)
    }

    /// Removes a used sandbox, some time soon.
    pub(crate) fn later(&self, job: String) {
        if lock(&self.waiting).insert(job.clone()) {
            // The receiver lives as long as the process; at shutdown the sweep of the next operator does it.
            self.used.send(Used { due: Instant::now() + REST, job, span: Span::current() }).ok();
        }
    }

    /// Removes a sandbox now, with whatever runs in it.
    pub(crate) async fn now(&self, job: &str) -> Result<(), kube::Error> {
        let params = DeleteParams { grace_period_seconds: Some(0), ..background() };
        ignore_missing(self.jobs.delete(job, &params).await)
    }
}

async fn work(jobs: Api<Job>, waiting: Arc<Mutex<HashSet<String>>>, mut used: mpsc::UnboundedReceiver<Used>) {
    let all = stream::poll_fn(move |context| used.poll_recv(context));
    let (jobs, waiting) = (&jobs, &waiting);
    all.for_each_concurrent(SIDE_BY_SIDE, |Used { due, job, span }| async move {
        sleep_until(due).await;
        let removed = ignore_missing(jobs.delete(&job, &background()).await);
        lock(waiting).remove(&job);
        span.in_scope(|| match removed {
            Ok(()) => debug!(job, "Sandbox removed"),
            Err(error) => warn!(job, %error, "Sandbox could not be removed; the next sweep tries again"),
        });
        sleep(PACE).await;
    })
    .await;
}

fn background() -> DeleteParams {
    DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() }
}

fn ignore_missing<T>(result: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match result {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}
