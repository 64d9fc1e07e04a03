//! One watch over all sandbox pods, shared by every run: a receiver gets each change of its Job's pod.
//!
//! Kubernetes reserves the right to give a Job two pods. Only the first counts, as long as it exists: the end of the other
//! says nothing about the run.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt, runtime::watcher};
use skillet_api::names;
use skillet_kube::{Mirror, lock, mirror};
use tokio::sync::watch;

/// Label that the Job controller puts on its pods.
pub(crate) const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// The newest known state of a pod.
#[derive(Clone, Debug)]
pub(crate) struct PodView {
    pub(crate) pod: Arc<Pod>,
    /// The object is gone from the API server; `pod` is its last state.
    pub(crate) is_deleted: bool,
}

/// Receives a view for each change of one Job's pod. Holds the newest.
pub(crate) type PodReceiver = watch::Receiver<Option<PodView>>;

/// Passes the views of pods on to the receivers of their Jobs.
#[derive(Default)]
pub(crate) struct PodWatch {
    jobs: Mutex<HashMap<String, watch::Sender<Option<PodView>>>>,
}

impl PodWatch {
    /// Follows the pod of `job`, which need not exist yet.
    pub(crate) fn follow(&self, job: &str) -> PodReceiver {
        let mut jobs = lock(&self.jobs);
        jobs.entry(job.to_owned()).or_insert_with(|| watch::channel(None).0).subscribe()
    }

    /// Drops `job` if it has no pod.
    pub(crate) fn forget(&self, job: &str) {
        let mut jobs = lock(&self.jobs);
        if jobs.get(job).is_some_and(|sender| sender.borrow().as_ref().is_none_or(|view| view.is_deleted)) {
            jobs.remove(job);
        }
    }

    /// Reads from the API server until the stream ends, which it does only with the process.
    pub(crate) async fn watch(&self, pods: Api<Pod>) {
        let config = watcher::Config::default().labels(names::LABEL_PURPOSE);
        mirror(skillet_kube::watch(pods, config), &mut &*self).await;
    }

    pub(crate) fn show(&self, pod: Pod, is_deleted: bool) {
        let Some(job) = job_name(&pod).map(ToOwned::to_owned) else { return };
        let mut jobs = lock(&self.jobs);
        let sender = jobs.entry(job.clone()).or_insert_with(|| watch::channel(None).0);
        if sender.borrow().as_ref().is_some_and(|view| !view.is_deleted && view.pod.uid() != pod.uid()) {
            return;
        }
        sender.send_replace(Some(PodView { pod: Arc::new(pod), is_deleted }));
        // Receivers keep the last view; the map keeps only pods that may still change.
        if is_deleted {
            jobs.remove(&job);
        }
    }
}

impl Mirror for &PodWatch {
    type Object = Pod;
    type Key = String;

    fn key(&self, pod: &Pod) -> Option<String> {
        job_name(pod).map(ToOwned::to_owned)
    }

    /// Leaves out the Jobs whose pod has not come yet.
    fn keys(&self) -> impl IntoIterator<Item = String> {
        let jobs = lock(&self.jobs);
        let with_pod = jobs.iter().filter(|(_, sender)| sender.borrow().is_some());
        with_pod.map(|(job, _)| job.clone()).collect::<Vec<_>>()
    }

    fn apply(&mut self, pod: Pod) {
        self.show(pod, false);
    }

    fn delete(&mut self, pod: Pod) {
        self.show(pod, true);
    }

    fn remove(&mut self, job: String) {
        let Some(sender) = lock(&self.jobs).remove(&job) else { return };
        sender.send_modify(|view| {
            if let Some(view) = view {
                view.is_deleted = true;
            }
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

    async fn feed(pods: &PodWatch, events: Vec<watcher::Event<Pod>>) {
        mirror(stream::iter(events), &mut &*pods).await;
    }

    fn seen(receiver: &PodReceiver) -> Option<(String, bool)> {
        let view = receiver.borrow().clone()?;
        Some((view.pod.spec.as_ref()?.node_name.clone()?, view.is_deleted))
    }

    #[tokio::test]
    async fn a_receiver_from_before_the_pod_gets_the_pod() {
        let pods = PodWatch::default();
        let receiver = pods.follow("a");
        assert_eq!(seen(&receiver), None);
        feed(&pods, vec![watcher::Event::Apply(pod("a", "n1")), watcher::Event::Apply(pod("b", "n2"))]).await;
        assert_eq!(seen(&receiver), Some(("n1".into(), false)));
    }

    #[tokio::test]
    async fn a_receiver_from_after_the_pod_gets_the_pod() {
        let pods = PodWatch::default();
        feed(&pods, vec![watcher::Event::Apply(pod("a", "n1"))]).await;
        assert_eq!(seen(&pods.follow("a")), Some(("n1".into(), false)));
    }

    #[tokio::test]
    async fn a_deleted_pod_is_shown_once_and_dropped() {
        let pods = PodWatch::default();
        let receiver = pods.follow("a");
        feed(&pods, vec![watcher::Event::Apply(pod("a", "n")), watcher::Event::Delete(pod("a", "n"))]).await;
        assert_eq!(seen(&receiver), Some(("n".into(), true)));
        assert_eq!(seen(&pods.follow("a")), None);
    }

    #[tokio::test]
    async fn a_second_pod_of_a_job_is_not_shown_while_the_first_exists() {
        let with_uid = |uid: &str, node: &str| {
            let mut pod = pod("a", node);
            pod.metadata.uid = Some(uid.to_owned());
            pod
        };
        let pods = PodWatch::default();
        let receiver = pods.follow("a");
        let (first, second) = (with_uid("1", "n1"), with_uid("2", "n2"));
        feed(&pods, vec![watcher::Event::Apply(first.clone()), watcher::Event::Apply(second.clone())]).await;
        assert_eq!(seen(&receiver), Some(("n1".into(), false)));
        feed(&pods, vec![watcher::Event::Delete(second)]).await;
        assert_eq!(seen(&receiver), Some(("n1".into(), false)));
        feed(&pods, vec![watcher::Event::Delete(first)]).await;
        assert_eq!(seen(&receiver), Some(("n1".into(), true)));
    }

    #[tokio::test]
    async fn a_pod_that_a_relist_misses_was_deleted() {
        let pods = PodWatch::default();
        let (a, b) = (pods.follow("a"), pods.follow("b"));
        let nobody = pods.follow("c");
        feed(
            &pods,
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
    async fn a_job_without_a_pod_can_be_dropped() {
        let pods = PodWatch::default();
        let receiver = pods.follow("a");
        pods.forget("a");
        feed(&pods, vec![watcher::Event::Apply(pod("a", "n"))]).await;
        assert_eq!(seen(&receiver), None);
        pods.forget("a");
        assert_eq!(seen(&pods.follow("a")), Some(("n".into(), false)));
    }
}
