//! The network between the cluster and this machine: this machine's address, and connections of the node that lose every
//! packet, as behind a dead switch: nothing refuses or closes them.

use std::{
    net::{IpAddr, UdpSocket},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, api::ListParams};

/// Returns the address under which pods reach this machine.
pub async fn own_address(client: &Client) -> Result<IpAddr> {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?.items;
    let addresses = nodes.into_iter().filter_map(|node| node.status?.addresses).flatten();
    let internal = addresses.into_iter().find(|address| address.type_ == "InternalIP");
    let node: IpAddr = internal.context("no node has an InternalIP")?.address.parse()?;
    // Nothing is sent: the route to the node has the address.
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((node, 9))?;
    Ok(socket.local_addr()?.ip())
}

/// A rule of iptables: chain, then the packets that it drops.
type Rule = Vec<String>;

/// Packets are lost until this is dropped.
pub struct BlackHole {
    /// A process in the network namespace of the rules.
    pid: u32,
    rules: Vec<Rule>,
}

impl BlackHole {
    /// Between the pod of a process and an address, such as the API server's Service.
    pub fn to_address(pid: u32, address: &str) -> Result<Self> {
        Self::new(pid, [["OUTPUT", "--destination", address], ["INPUT", "--source", address]].map(owned))
    }

    /// Between a port of the node and everything on the node. `pid` is any process of the node.
    pub fn to_port(pid: u32, port: u16) -> Result<Self> {
        let port = port.to_string();
        let to = ["INPUT", "--protocol", "tcp", "--dport", &port];
        let from = ["OUTPUT", "--protocol", "tcp", "--sport", &port];
        Self::new(pid, [owned(to), owned(from)])
    }

    fn new(pid: u32, rules: impl IntoIterator<Item = Rule>) -> Result<Self> {
        let mut hole = Self { pid, rules: Vec::new() };
        for rule in rules {
            iptables(pid, "--insert", &rule)?;
            hole.rules.push(rule);
        }
        Ok(hole)
    }
}

impl Drop for BlackHole {
    fn drop(&mut self) {
        for rule in &self.rules {
            // The namespace ends with its pod, and the rules with it.
            iptables(self.pid, "--delete", rule).ok();
        }
    }
}

fn owned<const N: usize>(rule: [&str; N]) -> Rule {
    rule.map(str::to_owned).to_vec()
}

fn iptables(pid: u32, change: &str, rule: &Rule) -> Result<()> {
    let mut command = Command::new("nsenter");
    command.args(["--target", &pid.to_string(), "--net", "iptables", "--wait", change]);
    let status = command.args(rule).args(["--jump", "DROP"]).status().context("nsenter")?;
    ensure!(status.success(), "iptables {change} {rule:?} failed in the network of process {pid}");
    Ok(())
}
