//! The cluster's own ranges of addresses, learned from the API server: nodes, pods, services and the API server itself.
//!
//! Only those with public addresses are kept: no skill reaches the others anyway. So the list is short also in a large cluster.

use std::{net::IpAddr, sync::Arc, time::Duration};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use k8s_openapi::api::{core::v1::Node, discovery::v1::EndpointSlice, networking::v1::ServiceCIDR};
use kube::{Api, Client, api::ListParams};
use skillet_core::builtin::is_public_address;
use skillet_kube::Backoff;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tracing::{info, warn};

/// Pause between two looks. A new node has addresses of the same ranges, or is learned within this time.
const PAUSE: Duration = Duration::from_secs(60);
/// Pauses after looks that failed.
const RETRIES: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));
/// Longest wait of a run for the first look.
const WAIT: Duration = Duration::from_secs(10);
/// Nodes of one page.
const NODES: u32 = 100;
/// Label of the slices with the API server's own addresses.
const API_SERVER: &str = "kubernetes.io/service-name=kubernetes";

type Ranges = Option<Arc<[String]>>;

/// The ranges, shared. `None` until the first look has succeeded.
#[derive(Clone, Debug)]
pub(crate) struct ClusterRanges(Arc<watch::Sender<Ranges>>);

impl Default for ClusterRanges {
    fn default() -> Self {
        Self(Arc::new(watch::channel(None).0))
    }
}

impl ClusterRanges {
    /// Returns the ranges, and waits a while for the first look.
    pub(crate) async fn wait(&self) -> Ranges {
        let mut ranges = self.0.subscribe();
        let known = timeout(WAIT, ranges.wait_for(Option::is_some)).await.ok()?;
        known.ok()?.clone()
    }

    /// Learns the ranges again and again. What was learned counts while the API server does not answer.
    pub(crate) async fn learn(self, client: Client) {
        let mut backoff = RETRIES;
        loop {
            match observe(&client).await {
                Ok(found) => {
                    self.set(found);
                    backoff = RETRIES;
                    sleep(PAUSE).await;
                }
                Err(error) => {
                    warn!(%error, "The cluster's ranges of addresses could not be read");
                    backoff.pause().await;
                }
            }
        }
    }

    fn set(&self, found: Vec<String>) {
        self.0.send_if_modified(|ranges| {
            let is_new = ranges.as_deref() != Some(&found);
            if is_new {
                info!(ranges = found.len(), "The cluster's public ranges of addresses are learned");
                *ranges = Some(found.into());
            }
            is_new
        });
    }
}

async fn observe(client: &Client) -> kube::Result<Vec<String>> {
    let all = ListParams::default().match_any();
    let nodes = nodes(client).await?;
    let services = match Api::<ServiceCIDR>::all(client.clone()).list(&all).await {
        Ok(services) => services.items,
        // An API server that does not have the kind.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Err(error),
    };
    let slices = Api::<EndpointSlice>::namespaced(client.clone(), "default");
    let slices = slices.list(&all.labels(API_SERVER)).await?.items;
    Ok(public_ranges(&nodes, &services, &slices))
}

/// Ranges and addresses of all nodes, page by page: whole nodes are large.
async fn nodes(client: &Client) -> kube::Result<Vec<String>> {
    let (api, mut page) = (Api::<Node>::all(client.clone()), ListParams::default().limit(NODES));
    let mut found = Vec::new();
    loop {
        let list = api.list(&page).await?;
        found.extend(list.items.iter().flat_map(of_node));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}

fn of_node(node: &Node) -> Vec<String> {
    let spec = node.spec.iter();
    let pods = spec.flat_map(|spec| spec.pod_cidrs.iter().flatten().chain(&spec.pod_cidr).cloned());
    let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    pods.chain(addresses.map(|address| address.address.clone())).collect()
}

/// Returns the ranges with public addresses, joined where they touch. A node's host name is no range. Pure.
fn public_ranges(nodes: &[String], services: &[ServiceCIDR], api_server: &[EndpointSlice]) -> Vec<String> {
    let endpoints = api_server.iter().flat_map(|slice| slice.endpoints.iter().flatten());
    let endpoints = endpoints.flat_map(|endpoint| &endpoint.addresses);
    let services = services.iter().filter_map(|service| service.spec.as_ref());
    let services = services.flat_map(|spec| spec.cidrs.iter().flatten());
    let all = nodes.iter().chain(endpoints).chain(services).filter_map(|text| range(text));
    let public: Vec<IpNet> = all.filter(has_public_address).collect();
    IpNet::aggregate(&public).into_iter().map(|range| range.to_string()).collect()
}

fn range(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// True unless both ends are of ranges that are not public. A range over more than one of these is kept.
fn has_public_address(range: &IpNet) -> bool {
    let is_wide = match range {
        IpNet::V4(range) => range.prefix_len() < Ipv4Net::default().max_prefix_len() / 4,
        IpNet::V6(range) => range.prefix_len() < Ipv6Net::default().max_prefix_len() / 16,
    };
    is_wide || is_public_address(range.network()) || is_public_address(range.broadcast())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: serde::de::DeserializeOwned>(yaml: &str) -> Vec<T> {
        serde_saphyr::from_str(yaml).unwrap()
    }

    fn check(nodes: &str, services: &str, slices: &str, expected: &[&str]) {
        let nodes: Vec<String> = read::<Node>(nodes).iter().flat_map(of_node).collect();
        assert_eq!(public_ranges(&nodes, &read(services), &read(slices)), expected, "{nodes:?}");
    }

    #[test]
    fn public_addresses_of_pods_services_nodes_and_the_api_server_are_kept() {
        let nodes = "[{spec: {podCIDR: 8.1.0.0/24, podCIDRs: [8.1.0.0/24, '2a00:1::/64']}, status: {addresses: [{type: InternalIP, address: 9.9.9.5}, {type: Hostname, address: n1}, {type: ExternalIP, address: '2a00:2::1'}]}}, {}]";
        let services = "[{spec: {cidrs: [11.96.0.0/12]}}]";
        let slices = "[{addressType: IPv4, endpoints: [{addresses: [9.8.7.6]}, {addresses: [9.9.9.5]}]}]";
        let expected =
            ["8.1.0.0/24", "9.8.7.6/32", "9.9.9.5/32", "11.96.0.0/12", "2a00:1::/64", "2a00:2::1/128"];
        check(nodes, services, slices, &expected);
    }

    #[test]
    fn private_ranges_are_left_out_and_neighbors_are_joined() {
        let private = "[{spec: {podCIDRs: [10.244.0.0/24, 'fd01::/64']}, status: {addresses: [{type: InternalIP, address: 192.168.1.4}]}}]";
        check(private, "[{spec: {cidrs: [10.96.0.0/12, 'fd02::/112']}}]", "[]", &[]);
        let neighbors = "[{spec: {podCIDR: 8.1.0.0/24}}, {spec: {podCIDR: 8.1.1.0/24}}]";
        check(neighbors, "[]", "[]", &["8.1.0.0/23"]);
        check("[{spec: {podCIDR: 0.0.0.0/0}}]", "[]", "[]", &["0.0.0.0/0"]);
    }
}
