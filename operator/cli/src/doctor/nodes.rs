//! Checks and table of the isolation that each node proved. Pure.

use serde::Serialize;
use skillet_api::{Isolation, policy::NodeStatus};

use super::{
    check::Check,
    findings::{ClusterNode, Findings, Lookup},
};
use crate::table::Table;

const CHECK: &str = "node";

/// One node as it is reported.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportedNode {
    name: String,
    container_runtime: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    isolation: Option<Isolation>,
    missing: Vec<String>,
}

/// The probed nodes of the policy's status.
pub(crate) fn probed_nodes(findings: &Findings) -> &[NodeStatus] {
    match &findings.policy {
        Lookup::Found(policy) => {
            policy.status.as_ref().map(|status| status.nodes.as_slice()).unwrap_or_default()
        }
        Lookup::NotFound | Lookup::Denied | Lookup::Failed(_) => &[],
    }
}

pub(crate) fn report(findings: &Findings) -> Vec<ReportedNode> {
    let row = |node: &NodeStatus| ReportedNode {
        name: node.name.clone(),
        container_runtime: node.container_runtime.clone(),
        isolation: node.isolation.clone(),
        missing: node.missing.clone(),
    };
    probed_nodes(findings).iter().map(row).collect()
}

/// Returns one check for all nodes that prove enough, and one for each other node.
pub(crate) fn judge(findings: &Findings) -> Vec<Check> {
    if !matches!(findings.policy, Lookup::Found(_)) {
        // The check of the policy reports the reason.
        return Vec::new();
    }
    let nodes = probed_nodes(findings);
    let proven = nodes.iter().filter(|node| is_proven(node)).count();
    let mut checks = Vec::new();
    if proven > 0 {
        let of = if proven == nodes.len() {
            "every probed node".to_owned()
        } else {
            format!("{proven} of {}", nodes.len())
        };
        checks.push(Check::ok(CHECK, format!("{of} proves what the policy requires")));
    }
    checks.extend(nodes.iter().filter(|node| !is_proven(node)).map(check_lacking));
    checks.extend(check_unprobed(findings, nodes));
    if checks.is_empty() {
        checks.push(Check::warn(
            CHECK,
            "no node was probed yet",
            "the operator probes nodes when it starts; see that it runs",
        ));
    }
    checks
}

fn is_proven(node: &NodeStatus) -> bool {
    node.missing.is_empty() && node.isolation.is_some()
}

fn check_lacking(node: &NodeStatus) -> Check {
    let NodeStatus { name, missing, isolation, probed_at: _, container_runtime: _ } = node;
    let message = format!("{name}: {}", missing.join(", "));
    match isolation {
        None => Check::warn(
            CHECK,
            message,
            "no sandbox could be started there; this is as it should be for a node that takes no ordinary pods",
        ),
        Some(isolation) => {
            let notes = if isolation.notes.is_empty() {
                String::new()
            } else {
                format!(" ({})", isolation.notes.join("; "))
            };
            Check::fail(
                CHECK,
                format!("{name} does not prove {}{notes}", missing.join(", ")),
                remedy(missing),
            )
        }
    }
}

/// Advice for the first property that a node lacks, by the runner's names.
fn remedy(missing: &[String]) -> &'static str {
    match missing.first().map(String::as_str) {
        Some("ownProcessLimit") => {
            "each sandbox needs a uid that no other process has, which user namespaces for pods give; or set spec.isolation of SkillPolicy default to Compatible"
        }
        Some("noexecScratch" | "userNamespace") => {
            "pods need user namespaces: kernel 6.3 or newer, containerd 2 or CRI-O, runc 1.2 or newer; or set spec.isolation of SkillPolicy default to Compatible"
        }
        Some("directExecRefused" | "terminationLogClosed" | "runnerProtected") => {
            "the kernel must have Landlock (5.13 or newer, with landlock in its list of security modules)"
        }
        Some("networkBlocked" | "seccomp" | "ptraceRefused" | "newNamespacesRefused") => {
            "the kernel must have seccomp filters, and the runtime must let a container add its own"
        }
        Some("processLimit") => {
            "the kernel must enforce RLIMIT_NPROC or the kubelet a limit of processes for a pod"
        }
        Some("readOnlyRoot") => {
            "the container runtime must honor readOnlyRootFilesystem, and the skill's image must declare no volume"
        }
        Some("noNewPrivileges") => "the container runtime must honor allowPrivilegeEscalation: false",
        Some(_) | None => "keep sandboxes off this node by a taint, or repair it",
    }
}

/// Warns of nodes that take pods and were not probed yet.
fn check_unprobed(findings: &Findings, known: &[NodeStatus]) -> Option<Check> {
    let Lookup::Found(nodes) = &findings.nodes else { return None };
    let is_unknown =
        |node: &&ClusterNode| node.is_usable && !known.iter().any(|known| known.name == node.name);
    let names: Vec<&str> = nodes.iter().filter(is_unknown).map(|node| node.name.as_str()).collect();
    let are = |names: &[&str]| if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| {
        Check::warn(
            CHECK,
            format!("{} {} not probed yet", names.join(", "), are(&names)),
            "the operator looks for new nodes every minute; see that it runs",
        )
    })
}

/// Renders a line with all proofs for each node; `None` without nodes.
pub(crate) fn table(nodes: &[NodeStatus]) -> Option<String> {
    let mut table = Table::new(&[
        "NODE",
        "KERNEL",
        "RUNTIME",
        "LANDLOCK",
        "NO-NETWORK",
        "NOEXEC",
        "NO-DIRECT-EXEC",
        "PROC-LIMIT",
        "OWN-LIMIT",
        "NO-NEW-PRIVS",
        "USERNS",
        "RO-ROOT",
        "MISSING",
    ]);
    for node in nodes {
        let NodeStatus { name, container_runtime, isolation, missing, probed_at: _ } = node;
        let mut row = vec![name.clone()];
        match isolation {
            Some(isolation) => row.extend(proofs(isolation, container_runtime)),
            None => row.extend(["", container_runtime, "", "", "", "", "", "", "", "", ""].map(String::from)),
        }
        let missing = if isolation.is_none() { "not probed".to_owned() } else { missing.join(",") };
        row.push(missing);
        table.push(row);
    }
    (!nodes.is_empty()).then(|| table.render())
}

fn proofs(isolation: &Isolation, container_runtime: &str) -> [String; 11] {
    let Isolation {
        network_blocked,
        noexec_scratch,
        direct_exec_refused,
        process_limit,
        own_process_limit,
        no_new_privileges,
        user_namespace,
        read_only_root,
        landlock_abi,
        kernel,
        ..
    } = isolation;
    let yes = |is_proven: &bool| if *is_proven { "yes" } else { "no" }.to_owned();
    [
        kernel.clone(),
        container_runtime.to_owned(),
        landlock_abi.to_string(),
        yes(network_blocked),
        yes(noexec_scratch),
        yes(direct_exec_refused),
        yes(process_limit),
        yes(own_process_limit),
        yes(no_new_privileges),
        yes(user_namespace),
        yes(read_only_root),
    ]
}
