//! One watch over all sandbox pods, shared by every run: who follows a Job hears of its pod as it changes.

use std::{
    collections::{HashMap, HashSet},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
};

use futures::{Stream, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use skillet_api::names;
use tokio::sync::watch;
use tracing::warn;

/// Label that the Job controller puts on its pods.
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// The newest that is known of a pod.
#[derive(Clone, Debug)]
pub struct PodView {
    pub pod: Arc<Pod>,
    /// The object is gone from the API server; `pod` is its last state.
    pub is_deleted: bool,
}

/// Receives a view for each change of one Job's pod. Holds the newest.
pub type PodReceiver = watch::Receiver<Option<PodView>>;

/// Where views of pods come in and followers are served, by Job name.
#[derive(Default)]
pub struct PodWatch {
    jobs: Mutex<HashMap<String, watch::Sender<Option<PodView>>>>,
}

impl PodWatch {
    /// Follows the pod of `job`, which need not exist yet.
    pub fn follow(&self, job: &str) -> PodReceiver {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.entry(job.to_owned()).or_insert_with(|| watch::channel(None).0).subscribe()
    }

    /// Forgets `job` once nobody follows it any more and it has no pod.
    pub fn forget(&self, job: &str) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.get(job).is_some_and(|sender| sender.borrow().as_ref().is_none_or(|view| view.is_deleted)) {
            jobs.remove(job);
        }
    }

    /// Feeds the hub from the API server until the stream ends, which it does only with the process.
    pub async fn watch(&self, pods: Api<Pod>) {
        let config = watcher::Config::default().labels(names::LABEL_PURPOSE);
        self.feed(watcher(pods, config).default_backoff()).await;
    }

    async fn feed(&self, events: impl Stream<Item = watcher::Result<watcher::Event<Pod>>>) {
        let mut events = pin!(events);
        let mut listed = HashSet::new();
        loop {
            match events.try_next().await {
                Ok(Some(event)) => self.take(event, &mut listed),
                Ok(None) => return,
                Err(error) => warn!(%error, "Pod watch was interrupted"),
            }
        }
    }

    fn take(&self, event: watcher::Event<Pod>, listed: &mut HashSet<String>) {
        match event {
            watcher::Event::Init => listed.clear(),
            watcher::Event::InitApply(pod) => {
                if let Some(job) = job_name(&pod) {
                    listed.insert(job.to_owned());
                }
                self.show(pod, false);
            }
            watcher::Event::InitDone => self.mark_missing_deleted(listed),
            watcher::Event::Apply(pod) => self.show(pod, false),
            watcher::Event::Delete(pod) => self.show(pod, true),
        }
    }

    pub(crate) fn show(&self, pod: Pod, is_deleted: bool) {
        let Some(job) = job_name(&pod).map(ToOwned::to_owned) else { return };
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = jobs.entry(job.clone()).or_insert_with(|| watch::channel(None).0);
        sender.send_replace(Some(PodView { pod: Arc::new(pod), is_deleted }));
        // Followers keep the last view; the map keeps only what may still change.
        if is_deleted {
            jobs.remove(&job);
        }
    }

    fn mark_missing_deleted(&self, listed: &HashSet<String>) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.retain(|job, sender| {
            let Some(view) = sender.borrow().clone() else { return true };
            if listed.contains(job) {
                return true;
            }
            sender.send_replace(Some(PodView { is_deleted: true, ..view }));
            false
        });
    }
}

fn job_name(pod: &Pod) -> Option<&str> {
    pod.labels().get(JOB_NAME).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    fn pod(job: &str, node: &str) -> Pod {
        serde_saphyr::from_str(&format!(
            "metadata: {{name: {job}-x, labels: {{{JOB_NAME}: {job}}}}}\nspec: {{containers: [], nodeName: {node}}}"
        ))
        .unwrap()
    }

    async fn feed(hub: &PodWatch, events: Vec<watcher::Event<Pod>>) {
        hub.feed(stream::iter(events.into_iter().map(Ok))).await;
    }

    fn seen(follower: &PodReceiver) -> Option<(String, bool)> {
        let view = follower.borrow().clone()?;
        Some((view.pod.spec.as_ref()?.node_name.clone()?, view.is_deleted))
    }

    #[tokio::test]
    async fn who_follows_first_hears_of_the_pod() {
        let hub = PodWatch::default();
        let follower = hub.follow("a");
        assert_eq!(seen(&follower), None);
        feed(&hub, vec![watcher::Event::Apply(pod("a", "n1")), watcher::Event::Apply(pod("b", "n2"))]).await;
        assert_eq!(seen(&follower), Some(("n1".into(), false)));
    }

    #[tokio::test]
    async fn who_follows_late_hears_of_the_pod_too() {
        let hub = PodWatch::default();
        feed(&hub, vec![watcher::Event::Apply(pod("a", "n1"))]).await;
        assert_eq!(seen(&hub.follow("a")), Some(("n1".into(), false)));
    }

    #[tokio::test]
    async fn a_deleted_pod_is_told_once_and_forgotten() {
        let hub = PodWatch::default();
        let follower = hub.follow("a");
        feed(&hub, vec![watcher::Event::Apply(pod("a", "n")), watcher::Event::Delete(pod("a", "n"))]).await;
        assert_eq!(seen(&follower), Some(("n".into(), true)));
        assert_eq!(seen(&hub.follow("a")), None);
    }

    #[tokio::test]
    async fn a_pod_that_a_relist_misses_was_deleted() {
        let hub = PodWatch::default();
        let (a, b) = (hub.follow("a"), hub.follow("b"));
        let nobody = hub.follow("c");
        feed(
            &hub,
            vec![
                watcher::Event::Apply(pod("a", "n")),
                watcher::Event::Apply(pod("b", "n")),
                watcher::Event::Init,
                watcher::Event::InitApply(pod("b", "n")),
                watcher::Event::InitDone,
            ],
        )
        .await;
        assert_eq!(seen(&a), Some(("n".into(), true)));
        assert_eq!(seen(&b), Some(("n".into(), false)));
        // A Job whose pod has not come yet is not a deleted pod.
        assert_eq!(seen(&nobody), None);
    }

    #[tokio::test]
    async fn a_job_without_a_pod_can_be_forgotten() {
        let hub = PodWatch::default();
        let follower = hub.follow("a");
        hub.forget("a");
        feed(&hub, vec![watcher::Event::Apply(pod("a", "n"))]).await;
        assert_eq!(seen(&follower), None);
        hub.forget("a");
        assert_eq!(seen(&hub.follow("a")), Some(("n".into(), false)));
    }
}
