//! The sandbox of one execution: names, labels, image and limits for the manifest.

use std::{collections::BTreeMap, time::Duration};

use skillet_api::{names, network::Host, policy::NodeStatus};
use skillet_core::skill::ImageChoice;
use skillet_protocol::named_hosts;

use crate::{
    execution::{adopt::ResumePoint, plan::Plan},
    isolation,
    sandbox::manifest::{Nodes, SandboxSpec},
    settings::SandboxSettings,
};

/// On top of start, run and grace: the pod's own deadline is the last resort, not the time limit.
const SLACK: Duration = Duration::from_secs(30);

/// Name of the `ordinal`th sandbox of an execution: the same after a restart, so that none is created twice.
pub(crate) fn job_name(execution_uid: &str, ordinal: u32) -> String {
    format!("run-{execution_uid}-{ordinal}")
}

/// Returns the nodes on which the plan's program could not reach its hosts.
pub(crate) fn avoided_nodes(plan: &Plan, probed: &[NodeStatus]) -> Vec<String> {
    match &plan.admitted.content.network {
        Some(_) => isolation::nodes_without_egress(probed),
        None => Vec::new(),
    }
}

/// The manifest's input for one attempt.
pub(crate) fn spec(
    plan: &Plan,
    point: &ResumePoint,
    settings: &SandboxSettings,
    probed: &[NodeStatus],
) -> SandboxSpec {
    let Plan { reference, admitted, program, policy, .. } = plan;
    let network = admitted.content.network.as_ref();
    let hosts: &[Host] = network.map_or(&[], |network| &network.hosts);
    SandboxSpec {
        job: job_name(&reference.uid, point.ordinal),
        image: settings.image(&program.image).to_owned(),
        // Skillet's own images have it.
        needs_runner: matches!(program.image, ImageChoice::Image(_)),
        bundle_image: program.bundle_image.as_ref().map(|image| image.reference.clone()),
        cpu_millis: admitted.content.limits.cpu_millis,
        memory_bytes: admitted.content.limits.memory_bytes,
        memory_request_percent: policy.memory_request_to_limit_percent,
        deadline: policy.start_timeout.0 + admitted.timeout + SLACK,
        isolation: policy.isolation,
        labels: BTreeMap::from([
            (names::LABEL_MANAGED_BY.to_owned(), names::MANAGED_BY.to_owned()),
            (names::LABEL_PURPOSE.to_owned(), names::PURPOSE_RUN.to_owned()),
            (names::LABEL_EXECUTION_UID.to_owned(), reference.uid.clone()),
            (names::LABEL_EXECUTION_NAMESPACE.to_owned(), reference.lane.namespace.clone()),
            (names::LABEL_SKILL.to_owned(), admitted.skill.clone()),
            (names::LABEL_SANDBOX.to_owned(), point.ordinal.to_string()),
            (names::LABEL_ATTEMPT.to_owned(), point.attempt.to_string()),
            (names::LABEL_VERSION.to_owned(), plan.version()),
        ]),
        annotations: BTreeMap::from([(names::ANNOTATION_EXECUTION.to_owned(), reference.name.clone())]),
        nodes: Nodes::Except(avoided_nodes(plan, probed)),
        upload_mib: network.map(|_network| policy.network.transfer_mib),
        // The runner is sent the same hosts.
        named_hosts: named_hosts(hosts.iter().map(|host| &*host.name)),
    }
}
