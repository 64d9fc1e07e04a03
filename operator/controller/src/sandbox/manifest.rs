//! The sandbox's Job: the only manifest under which foreign code ever runs. Pure; golden tests hold every combination.

mod volumes;

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{
    api::{
        batch::v1::{Job, JobSpec},
        core::v1::{
            Affinity, Capabilities, Container, HostAlias, NodeAffinity, NodeSelector,
            NodeSelectorRequirement, NodeSelectorTerm, PodDNSConfig, PodSecurityContext, PodSpec,
            PodTemplateSpec, ResourceRequirements, SeccompProfile, SecurityContext,
        },
    },
    apimachinery::pkg::api::resource::Quantity,
};
use kube::api::ObjectMeta;
use skillet_api::IsolationLevel;
use skillet_protocol::host_address;

use self::volumes::{mounts, runner_mount, volumes};
use crate::settings::{RunnerDelivery, SandboxSettings};

/// Path of the runner in every sandbox.
pub(crate) const RUNNER_PATH: &str = "/skillet/skillet-runner";
const RUNNER_FOLDER: &str = "/skillet";
/// Folder of an image with files of the skill.
pub(crate) const BUNDLE_FOLDER: &str = "/bundle";
/// Name of the one container.
pub(crate) const CONTAINER: &str = "sandbox";
/// Under a user namespace every sandbox has this uid, which no other has on the node.
const OWN_UID: i64 = 65_532;
/// The kubelet may take this long to end a pod; the runner needs far less.
const TERMINATION_GRACE_SECONDS: i64 = 2;
/// A used sandbox that nobody removed goes by itself. Until then an operator that was away finds that its program
/// was run: a day is longer than a cluster should be without one.
const LEFTOVER_SECONDS: i32 = 86_400;
const MIB: u64 = 1024 * 1024;
/// Annotations of each pod: autoscalers do not end a run to save a node, and log shippers do not collect what programs of
/// all tenants print, which would come as binary frames.
const ANNOTATIONS: [(&str, &str); 5] = [
    ("ad.datadoghq.com/logs_exclude", "true"),
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
    ("co.elastic.logs/enabled", "false"),
    ("fluentbit.io/exclude", "true"),
    ("karpenter.sh/do-not-disrupt", "true"),
];

/// The differences between sandboxes.
#[derive(Clone, Debug)]
pub(crate) struct SandboxSpec {
    /// Name of the Job.
    pub(crate) job: String,
    pub(crate) image: String,
    /// The image does not hold the runner.
    pub(crate) needs_runner: bool,
    /// Image with files of the skill.
    pub(crate) bundle_image: Option<String>,
    pub(crate) cpu_millis: u64,
    pub(crate) memory_bytes: u64,
    /// Memory that the node reserves for it, in percent of the limit.
    pub(crate) memory_request_percent: u32,
    /// After this long the kubelet ends the pod, whatever else happened.
    pub(crate) deadline: Duration,
    pub(crate) isolation: IsolationLevel,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) nodes: Nodes,
    /// Most MiB that the program may send to the hosts that its skill names. `None`: it reaches no host.
    ///
    /// The pod has no network in either case. The runner sends the bytes up the stream of its output.
    pub(crate) upload_mib: Option<u32>,
    /// Names of hosts in the order of their [`host_address`]. The sandbox's `/etc/hosts` has them, so that a program needs no DNS.
    pub(crate) named_hosts: Vec<String>,
}

/// The nodes that may have the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Nodes {
    Only(String),
    /// All but these, which are none for most sandboxes.
    Except(Vec<String>),
}

/// The Job that makes the sandbox.
pub(crate) fn job(spec: &SandboxSpec, settings: &SandboxSettings) -> Job {
    let metadata = |name: Option<String>, annotations: BTreeMap<String, String>| ObjectMeta {
        name,
        labels: Some(spec.labels.clone()),
        annotations: Some(annotations),
        ..ObjectMeta::default()
    };
    Job {
        metadata: ObjectMeta {
            namespace: Some(settings.namespace.clone()),
            ..metadata(Some(spec.job.clone()), spec.annotations.clone())
        },
        spec: Some(JobSpec {
            backoff_limit: Some(0),
            completions: Some(1),
            parallelism: Some(1),
            ttl_seconds_after_finished: Some(LEFTOVER_SECONDS),
            template: PodTemplateSpec {
                metadata: Some(metadata(None, pod_annotations(spec, settings))),
                spec: Some(pod(spec, settings)),
            },
            ..JobSpec::default()
        }),
        ..Job::default()
    }
}

/// Returns Skillet's own annotations, then those of the settings, then the common ones.
fn pod_annotations(spec: &SandboxSpec, settings: &SandboxSettings) -> BTreeMap<String, String> {
    let mut annotations =
        BTreeMap::from(ANNOTATIONS.map(|(name, value)| (name.to_owned(), value.to_owned())));
    annotations.extend(settings.pod.annotations.clone());
    annotations.extend(spec.annotations.clone());
    annotations
}

fn pod(spec: &SandboxSpec, settings: &SandboxSettings) -> PodSpec {
    let runner = spec.needs_runner.then_some(settings.runner_delivery);
    PodSpec {
        restart_policy: Some("Never".into()),
        active_deadline_seconds: Some(whole_seconds(spec.deadline)),
        termination_grace_period_seconds: Some(TERMINATION_GRACE_SECONDS),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        dns_policy: Some("None".into()),
        // Kubernetes asks for a name server under this policy. There is nothing at this address. Search domains would put further
        // names into the record of each refused one.
        dns_config: Some(PodDNSConfig {
            nameservers: Some(vec!["127.0.0.1".into()]),
            ..PodDNSConfig::default()
        }),
        host_aliases: host_aliases(&spec.named_hosts),
        host_users: match spec.isolation {
            IsolationLevel::Strict => Some(false),
            IsolationLevel::Compatible => None,
        },
        runtime_class_name: settings.runtime_class.clone(),
        node_selector: Some(settings.pod.node_labels()),
        tolerations: some_unless_empty(&settings.pod.tolerations),
        priority_class_name: Some(settings.pod.priority_class_name.clone()).filter(|name| !name.is_empty()),
        image_pull_secrets: some_unless_empty(&settings.pod.image_pull_secrets),
        affinity: affinity(&spec.nodes),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(uid(spec)),
            run_as_group: Some(uid(spec)),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".into(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        init_containers: (runner == Some(RunnerDelivery::InitContainer)).then(|| vec![installer(settings)]),
        containers: vec![container(spec, settings)],
        volumes: volumes(spec, settings),
        ..PodSpec::default()
    }
}

fn some_unless_empty<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}

/// By the node's name through the scheduler, so that its room and taints still count.
fn affinity(nodes: &Nodes) -> Option<Affinity> {
    // The API server takes one name in each requirement. The requirements of one term hold together.
    let by_name = |operator: &str, node: &String| NodeSelectorRequirement {
        key: "metadata.name".into(),
        operator: operator.into(),
        values: Some(vec![node.clone()]),
    };
    let by_names: Vec<NodeSelectorRequirement> = match nodes {
        Nodes::Only(node) => vec![by_name("In", node)],
        Nodes::Except(nodes) if nodes.is_empty() => return None,
        Nodes::Except(nodes) => nodes.iter().map(|node| by_name("NotIn", node)).collect(),
    };
    let term = NodeSelectorTerm { match_fields: Some(by_names), ..NodeSelectorTerm::default() };
    Some(Affinity {
        node_affinity: Some(NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(NodeSelector {
                node_selector_terms: vec![term],
            }),
            ..NodeAffinity::default()
        }),
        ..Affinity::default()
    })
}

/// The kubelet writes them into the sandbox's `/etc/hosts`.
fn host_aliases(names: &[String]) -> Option<Vec<HostAlias>> {
    let alias = |(name, index): (&String, u32)| HostAlias {
        ip: host_address(index).to_string(),
        hostnames: Some(vec![name.clone()]),
    };
    some_unless_empty(&names.iter().zip(0..).map(alias).collect::<Vec<_>>())
}

fn container(spec: &SandboxSpec, settings: &SandboxSettings) -> Container {
    Container {
        name: CONTAINER.into(),
        image: Some(spec.image.clone()),
        image_pull_policy: settings.image_pull_policy.clone(),
        command: Some(vec![RUNNER_PATH.into()]),
        args: spec.upload_mib.map(|_mib| vec!["--network".into()]),
        stdin: Some(true),
        stdin_once: Some(true),
        security_context: Some(locked_down()),
        resources: Some(ResourceRequirements {
            limits: Some(BTreeMap::from([
                ("cpu".to_owned(), Quantity(format!("{}m", spec.cpu_millis))),
                ("memory".to_owned(), Quantity(spec.memory_bytes.to_string())),
                ("ephemeral-storage".to_owned(), Quantity(format!("{}Mi", storage_mib(spec)))),
            ])),
            // Processes share CPU, so a sandbox requests what it costs while it waits. Memory cannot be shared.
            requests: Some(BTreeMap::from([
                ("cpu".to_owned(), Quantity(format!("{}m", spec.cpu_millis.min(20)))),
                ("memory".to_owned(), Quantity(memory_request(spec).to_string())),
                ("ephemeral-storage".to_owned(), Quantity("1Mi".into())),
            ])),
            ..ResourceRequirements::default()
        }),
        volume_mounts: mounts(spec),
        ..Container::default()
    }
}

/// Returns the limit of disk. What the runner writes is in the container's log until the kubelet rotates it, with escapes.
fn storage_mib(spec: &SandboxSpec) -> u64 {
    128 + 2 * u64::from(spec.upload_mib.unwrap_or_default())
}

/// Returns the share of the limit that the policy sets, and at least what a sandbox costs while it waits.
fn memory_request(spec: &SandboxSpec) -> u64 {
    let share = spec.memory_bytes.saturating_mul(u64::from(spec.memory_request_percent)) / 100;
    share.max(spec.memory_bytes.min(32 * MIB))
}

fn installer(settings: &SandboxSettings) -> Container {
    let quantities = || {
        Some(BTreeMap::from([
            ("cpu".to_owned(), Quantity("20m".into())),
            ("memory".to_owned(), Quantity("32Mi".into())),
            ("ephemeral-storage".to_owned(), Quantity("16Mi".into())),
        ]))
    };
    Container {
        name: "runner".into(),
        image: Some(settings.runner_image.clone()),
        image_pull_policy: settings.image_pull_policy.clone(),
        command: Some(vec!["/skillet-runner".into(), "install".into(), RUNNER_PATH.into()]),
        security_context: Some(locked_down()),
        resources: Some(ResourceRequirements {
            limits: quantities(),
            requests: quantities(),
            ..ResourceRequirements::default()
        }),
        volume_mounts: Some(vec![runner_mount(false)]),
        ..Container::default()
    }
}

fn locked_down() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), add: None }),
        privileged: Some(false),
        read_only_root_filesystem: Some(true),
        ..SecurityContext::default()
    }
}

/// Without a user namespace uids are the node's, so each sandbox takes one of its own from a range of 2^30.
fn uid(spec: &SandboxSpec) -> i64 {
    match spec.isolation {
        IsolationLevel::Strict => OWN_UID,
        IsolationLevel::Compatible => {
            // FNV-1a: the same name gives the same uid after a restart.
            let hash = spec.job.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
            (1 << 30) + (hash & ((1 << 30) - 1)).cast_signed()
        }
    }
}

fn whole_seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX).max(1)
}

#[cfg(test)]
mod tests;
