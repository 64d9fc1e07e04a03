//! Probes nodes: selects those that are due, and asks the runner of a sandbox on each of them.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::Time};
use kube::ResourceExt;
use skillet_api::{SkillPolicySpec, SkillPolicyStatus, names, policy::NodeStatus, skill::Runtime};
use tracing::info;

use crate::{
    context::Context,
    isolation,
    sandbox::{
        self, BindLimits,
        manifest::{self, Nodes, SandboxSpec},
    },
    settings::SandboxPodSettings,
};

/// The time for which the proof of a node counts.
const FRESH: SignedDuration = SignedDuration::from_hours(24);
/// The pause after which a node that could not be probed is probed again.
const AGAIN: SignedDuration = SignedDuration::from_mins(5);
const DEADLINE: Duration = Duration::from_secs(120);

/// Selects the nodes to probe: new and changed ones, and all of them if the policy was changed.
pub(crate) fn select_due(
    nodes: &[Node],
    settings: &SandboxPodSettings,
    known: &[NodeStatus],
    generation: Option<i64>,
    status: Option<&SkillPolicyStatus>,
    now: Timestamp,
) -> Vec<Node> {
    let is_policy_new = status.and_then(|status| status.observed_generation) != generation;
    let is_due = |node: &&Node| {
        let name = node.name_any();
        let Some(before) = known.iter().find(|known| known.name == name) else { return true };
        let age = now.duration_since(before.probed_at.0);
        let believed = if before.isolation.is_some() { FRESH } else { AGAIN };
        is_policy_new || age > believed || before.container_runtime != container_runtime(node)
    };
    nodes.iter().filter(|node| is_usable(node) && settings.fits(node)).filter(is_due).cloned().collect()
}

/// Returns the proofs of the nodes that still exist.
pub(crate) fn existing(known: &[NodeStatus], nodes: &[Node]) -> Vec<NodeStatus> {
    let exists = |known: &&NodeStatus| nodes.iter().any(|node| node.name_any() == known.name);
    known.iter().filter(exists).cloned().collect()
}

fn is_usable(node: &Node) -> bool {
    let is_closed = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    !is_closed && conditions.into_iter().any(|c| c.type_ == "Ready" && c.status == "True")
}

fn container_runtime(node: &Node) -> String {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    info.map(|info| info.container_runtime_version.clone()).unwrap_or_default()
}

/// Opens a sandbox on `node`, asks its runner, and removes the sandbox.
pub(crate) async fn probe(
    ctx: &Context,
    policy: &SkillPolicySpec,
    node: &Node,
    now: Timestamp,
) -> NodeStatus {
    let spec = sandbox_on(ctx, policy, node);
    let asked = ask(ctx, policy, &spec).await;
    ctx.remover.later(spec.job.clone());
    let mut proven = NodeStatus {
        name: node.name_any(),
        probed_at: Time(now),
        container_runtime: container_runtime(node),
        isolation: None,
        missing: Vec::new(),
    };
    match asked {
        Ok(proof) => {
            proven.missing = proof
                .missing(isolation::level(policy.isolation))
                .into_iter()
                .map(ToOwned::to_owned)
                .collect();
            proven.isolation = Some(proof);
        }
        Err(message) => proven.missing = vec![format!("could not be probed: {message}")],
    }
    info!(node = proven.name, missing = ?proven.missing, "Node probed");
    proven
}

/// Keeps the earlier proof of a node that could not be probed and has the same container runtime.
pub(crate) fn or_earlier(proven: NodeStatus, known: &[NodeStatus]) -> NodeStatus {
    let is_earlier = |known: &&NodeStatus| {
        known.name == proven.name && known.container_runtime == proven.container_runtime
    };
    let earlier = known.iter().find(is_earlier).and_then(|known| known.isolation.clone());
    NodeStatus { isolation: proven.isolation.clone().or(earlier), ..proven }
}

async fn ask(
    ctx: &Context,
    policy: &SkillPolicySpec,
    spec: &SandboxSpec,
) -> Result<skillet_protocol::Isolation, String> {
    let mut pod = ctx.pods.follow(&spec.job);
    let (job, limit) = (manifest::job(spec, &ctx.settings), policy.start_timeout.0);
    let attached = async {
        sandbox::create(&ctx.sandbox_jobs(), &job, limit).await.map_err(|error| error.to_string())?;
        let limits = BindLimits { undecided: limit, no_room: limit };
        sandbox::wait_until_bound(&mut pod, limits, || {}).await.map_err(|error| error.to_string())?;
        let attached = sandbox::attach(&ctx.sandbox_pods(), &mut pod, ctx.leadership.term(), limit).await;
        attached.map_err(|error| error.to_string())
    };
    let attached = attached.await;
    ctx.pods.forget(&spec.job);
    attached.map(|attached| attached.ready.isolation)
}

fn sandbox_on(ctx: &Context, policy: &SkillPolicySpec, node: &Node) -> SandboxSpec {
    let name = node.name_any();
    // The node's uid keeps the Job's name short, the time keeps it new.
    let uid = node.metadata.uid.as_deref().unwrap_or("node");
    let since = Timestamp::now().as_millisecond();
    SandboxSpec {
        job: format!("probe-{}-{since}", uid.split('-').next().unwrap_or(uid)),
        image: ctx.settings.runtime_image(Runtime::Shell).to_owned(),
        needs_runner: false,
        bundle_image: None,
        cpu_millis: 500,
        memory_bytes: 64 * 1024 * 1024,
        memory_request_percent: policy.memory_request_to_limit_percent,
        deadline: DEADLINE,
        isolation: policy.isolation,
        labels: BTreeMap::from([
            (names::LABEL_MANAGED_BY.to_owned(), names::MANAGED_BY.to_owned()),
            (names::LABEL_PURPOSE.to_owned(), names::PURPOSE_PROBE.to_owned()),
        ]),
        annotations: BTreeMap::new(),
        nodes: Nodes::Only(name),
        // The runner then tells if the kernel can do it.
        upload_mib: policy.network_enabled.then_some(0),
        named_hosts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, runtime: &str, ready: &str) -> Node {
        serde_saphyr::from_str(&format!(
            "metadata: {{name: {name}, labels: {{kubernetes.io/os: linux}}}}\nstatus: {{conditions: [{{type: Ready, status: '{ready}'}}], nodeInfo: {{architecture: a, bootID: b, containerRuntimeVersion: {runtime}, kernelVersion: k, kubeProxyVersion: '', kubeletVersion: v, machineID: m, operatingSystem: o, osImage: i, systemUUID: s}}}}"
        ))
        .unwrap()
    }

    fn known(name: &str, runtime: &str, hours_ago: i64, is_proven: bool) -> NodeStatus {
        NodeStatus {
            name: name.into(),
            probed_at: Time(now() - SignedDuration::from_hours(hours_ago)),
            container_runtime: runtime.into(),
            isolation: is_proven.then(Default::default),
            missing: Vec::new(),
        }
    }

    #[test]
    fn a_node_that_could_not_be_probed_keeps_the_proof_of_its_runtime() {
        let earlier =
            [known("a", "containerd://2.1.0", 24, true), known("b", "containerd://2.1.0", 24, true)];
        let proof = |node: NodeStatus| or_earlier(node, &earlier).isolation;
        assert_eq!(proof(known("a", "containerd://2.1.0", 0, false)), earlier[0].isolation);
        assert_eq!(proof(known("a", "containerd://2.2.0", 0, false)), None);
        assert_eq!(proof(known("c", "containerd://2.1.0", 0, false)), None);
        let mut renewed = known("b", "containerd://2.1.0", 0, true);
        renewed.isolation.as_mut().unwrap().named_egress = Some(true);
        assert_eq!(or_earlier(renewed.clone(), &earlier), renewed);
    }

    fn now() -> Timestamp {
        "2026-01-02T00:00:00Z".parse().unwrap()
    }

    fn due_names(nodes: &[Node], known: &[NodeStatus], observed: i64) -> Vec<String> {
        let status =
            SkillPolicyStatus { observed_generation: Some(observed), ..SkillPolicyStatus::default() };
        select_due(nodes, &SandboxPodSettings::default(), known, Some(1), Some(&status), now())
            .iter()
            .map(ResourceExt::name_any)
            .collect()
    }

    #[test]
    fn new_changed_and_stale_nodes_are_due() {
        let nodes = [
            node("new", "c2", "True"),
            node("same", "c2", "True"),
            node("upgraded", "c3", "True"),
            node("old", "c2", "True"),
            node("failed", "c2", "True"),
        ];
        let known = [
            known("same", "c2", 1, true),
            known("upgraded", "c2", 1, true),
            known("old", "c2", 25, true),
            known("failed", "c2", 1, false),
        ];
        assert_eq!(due_names(&nodes, &known, 1), ["new", "upgraded", "old", "failed"]);
    }

    #[test]
    fn a_changed_policy_makes_every_node_due() {
        assert_eq!(due_names(&[node("a", "c", "True")], &[known("a", "c", 1, true)], 0), ["a"]);
    }

    #[test]
    fn a_node_that_accepts_no_pods_is_not_probed() {
        let mut closed = node("closed", "c", "True");
        closed.spec.get_or_insert_default().unschedulable = Some(true);
        let mut tainted = node("tainted", "c", "True");
        let taint =
            serde_json::json!([{ "key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule" }]);
        tainted.spec.get_or_insert_default().taints = serde_json::from_value(taint).unwrap();
        let nodes = [closed, tainted, node("down", "c", "False")];
        assert_eq!(due_names(&nodes, &[], 1), Vec::<String>::new());
    }

    #[test]
    fn the_proofs_of_removed_nodes_are_dropped() {
        let kept = existing(&[known("a", "c", 1, true), known("b", "c", 1, true)], &[node("b", "c", "True")]);
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].name, "b");
    }
}
