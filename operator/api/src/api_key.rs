//! ApiKey: a key of the gateway, by its hash, for programs that have no service-account token.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::names;

/// Hash, service account and end of a key.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "skillet.dev",
    version = "v1alpha1",
    kind = "ApiKey",
    namespaced,
    shortname = "ska",
    category = "skillet",
    status = "ApiKeyStatus",
    derive = "PartialEq",
    doc = "An ApiKey lets whoever holds the key use the gateway as a service account of its namespace. It has the sha256 of the key, never the key itself; `kubectl skill key create` makes both.",
    printcolumn(
        name = "Account",
        type_ = "string",
        json_path = ".spec.serviceAccountName",
        description = "Service account that the key acts as"
    ),
    printcolumn(name = "Expires", type_ = "string", json_path = ".spec.expiresAt"),
    printcolumn(name = "Last-Used", type_ = "date", json_path = ".status.lastUsedAt"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeySpec {
    /// sha256 of the key's text, as 64 lower-case hexadecimal digits. Immutable.
    #[schemars(length(max = 64), regex(pattern = r"^[0-9a-f]{64}$"))]
    #[x_kube(validation = kube::core::Rule::new("self == oldSelf").message("hash is immutable; create another ApiKey"))]
    pub hash: String,
    /// Service account that the key acts as, in this namespace. Whoever names one needs the right to create tokens of it. Default `default`.
    #[schemars(length(max = 253), regex(pattern = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    #[serde(default = "default_service_account")]
    pub service_account_name: String,
    /// End of the key, as a time of RFC 3339. Default never.
    #[schemars(length(max = 40))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

fn default_service_account() -> String {
    names::DEFAULT_SERVICE_ACCOUNT.to_owned()
}

/// The last use of a key, and its problem if it has one.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyStatus {
    /// Time of the last request with the key, some minutes exact. Requests right before a stop of the gateway may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Time>,
    /// `Ready`: the gateway accepts the key.
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["type".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
