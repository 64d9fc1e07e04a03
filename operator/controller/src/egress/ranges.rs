//! The cluster's own ranges of addresses, learned from the API server: nodes, pods, services and the API server itself.
//!
//! Most are private, which no skill may reach anyway. A cluster with public addresses has them refused by this.

use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::{core::v1::Node, discovery::v1::EndpointSlice, networking::v1::ServiceCIDR};
use kube::{Api, Client, api::ListParams};
use skillet_kube::lock;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

/// Pause between two looks. Nodes come and go; the range of a new one is the cluster's already, or learned within this time.
const PAUSE: Duration = Duration::from_secs(30);
/// Label of the slices with the API server's own addresses.
const API_SERVER: &str = "kubernetes.io/service-name=kubernetes";

/// The ranges, shared. `None` until the first look has succeeded.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterRanges(Arc<Mutex<Option<Arc<[String]>>>>);

impl ClusterRanges {
    pub(crate) fn get(&self) -> Option<Arc<[String]>> {
        lock(&self.0).clone()
    }

    /// Learns the ranges again and again. What was learned counts while the API server does not answer.
    pub(crate) async fn learn(self, client: Client) {
        let mut looks = interval(PAUSE);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            match observe(&client).await {
                Ok(found) => self.set(found),
                Err(error) => warn!(%error, "The cluster's ranges of addresses could not be read"),
            }
        }
    }

    fn set(&self, found: Vec<String>) {
        let mut ranges = lock(&self.0);
        if ranges.as_deref() != Some(&found) {
            info!(ranges = found.len(), "The cluster's ranges of addresses are learned");
            *ranges = Some(found.into());
        }
    }
}

async fn observe(client: &Client) -> kube::Result<Vec<String>> {
    let all = ListParams::default().match_any();
    let nodes = Api::<Node>::all(client.clone()).list(&all).await?.items;
    let services = match Api::<ServiceCIDR>::all(client.clone()).list(&all).await {
        Ok(services) => services.items,
        // An API server that does not have the kind.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Err(error),
    };
    let slices = Api::<EndpointSlice>::namespaced(client.clone(), "default");
    let slices = slices.list(&all.labels(API_SERVER)).await?.items;
    Ok(ranges(&nodes, &services, &slices))
}

/// Returns the ranges in a fixed order, each once. Pure.
fn ranges(nodes: &[Node], services: &[ServiceCIDR], api_server: &[EndpointSlice]) -> Vec<String> {
    let pods = nodes
        .iter()
        .filter_map(|node| node.spec.as_ref())
        .flat_map(|spec| spec.pod_cidrs.iter().flatten().chain(&spec.pod_cidr).cloned().collect::<Vec<_>>());
    let addresses = nodes.iter().filter_map(|node| node.status.as_ref()?.addresses.as_ref()).flatten();
    let addresses = addresses.map(|address| &address.address);
    let endpoints = api_server.iter().flat_map(|slice| slice.endpoints.iter().flatten());
    let endpoints = endpoints.flat_map(|endpoint| &endpoint.addresses);
    let hosts = addresses.chain(endpoints).filter_map(|address| address.parse().ok()).map(one_address);
    let services = services.iter().filter_map(|service| service.spec.as_ref());
    let services = services.flat_map(|spec| spec.cidrs.iter().flatten().cloned());
    pods.chain(services).chain(hosts).collect::<BTreeSet<String>>().into_iter().collect()
}

fn one_address(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("{address}/32"),
        IpAddr::V6(address) => format!("{address}/128"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: serde::de::DeserializeOwned>(yaml: &str) -> Vec<T> {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn pods_services_nodes_and_the_api_server_are_ranges() {
        let nodes = read(
            "[{spec: {podCIDR: 10.1.0.0/24, podCIDRs: [10.1.0.0/24, 'fd01::/64']}, status: {addresses: [{type: InternalIP, address: 203.0.113.5}, {type: Hostname, address: n1}, {type: ExternalIP, address: '2001:db8::1'}]}}, {}]",
        );
        let services = read("[{spec: {cidrs: [10.96.0.0/12, 'fd02::/112']}}]");
        let slices = read(
            "[{addressType: IPv4, endpoints: [{addresses: [198.51.100.4]}, {addresses: [203.0.113.5]}]}]",
        );
        let found = ranges(&nodes, &services, &slices);
        let expected = [
            "10.1.0.0/24",
            "10.96.0.0/12",
            "198.51.100.4/32",
            "2001:db8::1/128",
            "203.0.113.5/32",
            "fd01::/64",
            "fd02::/112",
        ];
        assert_eq!(found, expected);
    }
}
