//! Compares a pod's requests with what each node can give. Pure.
//!
//! A pod that fits an empty node only waits. A pod that fits no node would wait forever.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, Node, Pod},
    apimachinery::pkg::api::resource::Quantity,
};
use skillet_core::quantity::{cpu_millis, memory_bytes};

/// Reads a quantity as a number.
type Read = fn(&str) -> Option<u64>;

/// The resources that a sandbox requests, and how their quantities are read.
const RESOURCES: [(&str, Read); 3] =
    [("cpu", cpu_millis), ("memory", memory_bytes), ("ephemeral-storage", memory_bytes)];

/// Says why `pod` can never be scheduled; `None` if an empty node of the cluster could take it. A cluster without
/// nodes may get some. A quantity that cannot be read hinders nothing.
pub(crate) fn never_fits(pod: &Pod, nodes: &[Node]) -> Option<String> {
    if nodes.is_empty() {
        return None;
    }
    let is_larger = |node: &Node| {
        RESOURCES.into_iter().any(|(resource, read)| {
            let allocatable = allocatable(node, resource, read);
            allocatable.is_some_and(|allocatable| request(pod, resource, read) > allocatable)
        })
    };
    if !nodes.iter().all(is_larger) {
        return None;
    }
    let requests: Vec<String> = RESOURCES
        .into_iter()
        .map(|(resource, read)| (resource, request(pod, resource, read)))
        .filter(|(_, amount)| *amount > 0)
        .map(|(resource, amount)| {
            if resource == "cpu" { format!("{amount}m cpu") } else { format!("{amount} bytes of {resource}") }
        })
        .collect();
    Some(format!("the sandbox requests {}, which no node of the cluster can give", requests.join(", ")))
}

fn allocatable(node: &Node, resource: &str, read: Read) -> Option<u64> {
    read(&node.status.as_ref()?.allocatable.as_ref()?.get(resource)?.0)
}

/// The amount that the scheduler counts: all containers or the largest init container, and the runtime's overhead.
fn request(pod: &Pod, resource: &str, read: Read) -> u64 {
    let Some(spec) = &pod.spec else { return 0 };
    let amount = |quantities: Option<&BTreeMap<String, Quantity>>| {
        quantities.and_then(|quantities| read(&quantities.get(resource)?.0)).unwrap_or(0)
    };
    let of = |container: &Container| {
        amount(container.resources.as_ref().and_then(|resources| resources.requests.as_ref()))
    };
    let containers: u64 = spec.containers.iter().map(of).sum();
    let largest_init = spec.init_containers.iter().flatten().map(of).max().unwrap_or(0);
    containers.max(largest_init) + amount(spec.overhead.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(spec: &str) -> Pod {
        serde_saphyr::from_str(&format!("spec: {{{spec}}}")).unwrap()
    }

    fn node(allocatable: &str) -> Node {
        serde_saphyr::from_str(&format!("status: {{allocatable: {{{allocatable}}}}}")).unwrap()
    }

    fn check(requests: &str, nodes: &[&str], expected: Option<&str>) {
        let pod = pod(&format!("containers: [{{name: a, resources: {{requests: {{{requests}}}}}}}]"));
        let nodes: Vec<Node> = nodes.iter().map(|node_spec| node(node_spec)).collect();
        assert_eq!(never_fits(&pod, &nodes).as_deref(), expected, "{requests}");
    }

    #[test]
    fn a_pod_that_fits_one_empty_node_only_waits() {
        check("cpu: 2, memory: 1Gi", &["cpu: '1', memory: 8Gi", "cpu: '2', memory: 1Gi"], None);
        check("cpu: 20m", &["cpu: 1900m, memory: 16073740Ki"], None);
    }

    #[test]
    fn a_pod_that_is_larger_than_every_node_never_fits() {
        let message = "the sandbox requests 2000m cpu, 2147483648 bytes of memory, which no node of the cluster can give";
        check("cpu: 2, memory: 2Gi", &["cpu: '1', memory: 8Gi", "cpu: '8', memory: 1Gi"], Some(message));
        let message =
            "the sandbox requests 1048576 bytes of ephemeral-storage, which no node of the cluster can give";
        check("ephemeral-storage: 1Mi", &["ephemeral-storage: 1000k"], Some(message));
    }

    #[test]
    fn a_cluster_without_nodes_and_a_quantity_that_cannot_be_read_hinder_nothing() {
        check("cpu: 9", &[], None);
        check("cpu: 9", &["memory: 1Gi"], None);
        check("cpu: 9", &["cpu: much"], None);
    }

    #[test]
    fn init_containers_and_the_overhead_of_a_runtime_class_count() {
        let requests = "resources: {requests: {cpu: 100m}}";
        let large_init = pod(
            "containers: [{name: a, resources: {requests: {cpu: 10m}}}], initContainers: [{name: b, resources: {requests: {cpu: 200m}}}]",
        );
        assert!(never_fits(&large_init, &[node("cpu: 150m")]).is_some());
        let two = pod(&format!(
            "containers: [{{name: a, {requests}}}, {{name: b, {requests}}}], overhead: {{cpu: 1m}}"
        ));
        assert!(never_fits(&two, &[node("cpu: 200m")]).is_some());
        assert!(never_fits(&two, &[node("cpu: 201m")]).is_none());
    }
}
