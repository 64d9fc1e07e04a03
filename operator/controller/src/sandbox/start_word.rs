//! The last word of scheduler and kubelet about a sandbox that has not started. Pure.

use k8s_openapi::api::core::v1::Pod;

use super::{pod_state::PodState, pod_watch::PodView};

/// Describes what the start of a sandbox waits for. `None` if it has ended.
pub(crate) fn describe_start(view: Option<&PodView>, image: &str) -> Option<String> {
    let pod = view.map(|view| &*view.pod);
    let node = pod.and_then(|pod| pod.spec.as_ref()?.node_name.as_deref()).unwrap_or("the node");
    Some(match PodState::of(view) {
        PodState::NoPod => "the Job has no pod yet".to_owned(),
        PodState::Unscheduled => "the scheduler has not placed the pod yet".to_owned(),
        PodState::Unschedulable { message } => format!("no node has room: {message}"),
        PodState::ImageProblem { message, is_final: _ } => {
            format!("{node} cannot start the image {image}: {message}")
        }
        PodState::Bound => match pod.map(progress).unwrap_or_default() {
            Progress::Pod => format!("{node} prepares the pod"),
            Progress::Image => format!("{node} pulls or starts the image {image}"),
            Progress::Runner => format!("{node} has started the runner, which proves its isolation"),
        },
        PodState::Ended(_) | PodState::Gone(_) => return None,
    })
}

/// The step of the kubelet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    #[default]
    Pod,
    Image,
    Runner,
}

fn progress(pod: &Pod) -> Progress {
    let Some(status) = &pod.status else { return Progress::Pod };
    let is_running = status
        .container_statuses
        .iter()
        .flatten()
        .any(|container| container.state.as_ref().is_some_and(|state| state.running.is_some()));
    let conditions = status.conditions.iter().flatten();
    let is_prepared =
        conditions.into_iter().any(|c| c.type_ == "PodReadyToStartContainers" && c.status == "True");
    match (is_running, is_prepared) {
        (true, _) => Progress::Runner,
        (false, true) => Progress::Image,
        (false, false) => Progress::Pod,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn check(pod: &str, expected: Option<&str>) {
        let pod: Pod = serde_saphyr::from_str(pod).unwrap();
        let view = PodView { pod: Arc::new(pod), is_deleted: false };
        assert_eq!(describe_start(Some(&view), "i:1").as_deref(), expected);
    }

    #[test]
    fn scheduler_and_kubelet_have_the_last_word() {
        assert_eq!(describe_start(None, "i:1").as_deref(), Some("the Job has no pod yet"));
        check("spec: {containers: []}", Some("the scheduler has not placed the pod yet"));
        check(
            "{spec: {containers: []}, status: {conditions: [{type: PodScheduled, status: 'False', message: 0/1 nodes are available}]}}",
            Some("no node has room: 0/1 nodes are available"),
        );
        let on_node =
            |status: &str| format!("{{spec: {{containers: [], nodeName: n1}}, status: {{{status}}}}}");
        check(&on_node(""), Some("n1 prepares the pod"));
        let prepared = "conditions: [{type: PodReadyToStartContainers, status: 'True'}]";
        check(&on_node(prepared), Some("n1 pulls or starts the image i:1"));
        let state = |state: &str| {
            on_node(&format!(
                "containerStatuses: [{{name: skill, image: i, imageID: '', ready: false, restartCount: 0, state: {{{state}}}}}]"
            ))
        };
        check(
            &state("waiting: {reason: ErrImagePull, message: no such host}"),
            Some("n1 cannot start the image i:1: ErrImagePull: no such host"),
        );
        check(&state("running: {}"), Some("n1 has started the runner, which proves its isolation"));
        check(&state("terminated: {exitCode: 1}"), None);
    }
}
