//! Named egress: the hosts that a skill may reach, and what the cluster allows.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillet_protocol::Verdict;

use crate::schema;

/// Hosts that the skill may reach. The pod itself has no network: a broker outside of it dials, by name.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// Hosts by name. SkillPolicy must allow them too. At most 32.
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    pub hosts: Vec<Host>,
}

/// A host and its ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Host {
    /// Name such as `api.example.com`, or `*.example.com` for every name below it.
    #[schemars(schema_with = "schema::host_pattern")]
    pub name: String,
    /// TCP ports. Default 443. At most 16.
    #[schemars(length(max = 16), inner(range(min = 1)))]
    #[serde(default = "https", skip_serializing_if = "is_https")]
    pub ports: Vec<u16>,
}

fn https() -> Vec<u16> {
    vec![443]
}

fn is_https(ports: &[u16]) -> bool {
    ports == [443]
}

/// Hosts that skills of the cluster may reach, if `networkEnabled` is true.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicy {
    /// Hosts for the skills of every namespace: names such as `api.example.com`, `*.example.com` for the names below one, or `*` for every public host. Default none.
    #[schemars(schema_with = "schema::host_patterns")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<String>,
    /// Further hosts for the skills of some namespaces. At most 32.
    #[schemars(length(max = 32))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<NamespaceHosts>,
    /// Hosts inside of the cluster or of a private network that skills may reach although their addresses are private. Default none. At most 64.
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub internal_hosts: Vec<InternalHost>,
    /// Ranges of addresses that no skill may reach, beside all that are not public and those of the cluster, such as `198.51.100.0/24`. At most 64.
    #[schemars(schema_with = "schema::address_ranges")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied_ranges: Vec<String>,
    /// Most connections of a run at one time. Default 64.
    #[schemars(range(min = 1, max = 256))]
    pub connections: u32,
    /// Most bytes that a run may send, and that it may receive, in MiB. Default 1024.
    #[schemars(range(min = 1, max = 1_048_576))]
    #[serde(rename = "transferMiB")]
    pub transfer_mib: u32,
}

impl Default for NetworkPolicy {
    fn default() -> Self {
        Self {
            allowed_hosts: Vec::new(),
            namespaces: Vec::new(),
            internal_hosts: Vec::new(),
            denied_ranges: Vec::new(),
            connections: 64,
            transfer_mib: 1024,
        }
    }
}

/// Hosts for the skills of some namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceHosts {
    /// Namespaces of the skills. At most 32.
    #[schemars(schema_with = "schema::namespace_names")]
    pub namespaces: Vec<String>,
    /// Hosts, as in `allowedHosts`. At most 64.
    #[schemars(schema_with = "schema::namespace_host_patterns")]
    pub hosts: Vec<String>,
}

/// A host whose addresses need not be public.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InternalHost {
    /// Name such as `search.tools.svc.cluster.local`.
    #[schemars(schema_with = "schema::host_pattern")]
    pub name: String,
    /// TCP ports. Default 443. At most 16.
    #[schemars(length(max = 16), inner(range(min = 1)))]
    #[serde(default = "https", skip_serializing_if = "is_https")]
    pub ports: Vec<u16>,
    /// Ranges in which its addresses are, such as `10.96.0.0/12`.
    #[schemars(schema_with = "schema::address_ranges")]
    pub ranges: Vec<String>,
}

/// A connection that a run asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// Host that the program named.
    pub host: String,
    /// Port; 0 for a lookup of a name that was refused.
    #[serde(default)]
    pub port: u16,
    /// Address that was dialed or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// `Allowed`, or the reason for which there was no connection; see docs/reference/reasons.md.
    pub verdict: Verdict,
    /// Bytes that the run sent.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Bytes that the run received.
    #[serde(default)]
    pub received_bytes: u64,
    /// Time of the request for the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<MicroTime>,
    /// Time until its end in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Number of refused requests of the same kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
}

/// The connections of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connections {
    /// Number of connections that were made.
    #[serde(default)]
    pub allowed: u32,
    /// Number of connections and lookups that were refused or failed.
    #[serde(default)]
    pub refused: u32,
    /// Bytes that the run sent.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Bytes that the run received.
    #[serde(default)]
    pub received_bytes: u64,
    /// The first 50 connections, refused ones included.
    #[schemars(length(max = 50))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<Connection>,
}
