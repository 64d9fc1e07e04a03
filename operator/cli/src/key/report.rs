//! Texts about API keys: the one that was just made, and the list. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use serde::Serialize;
use skillet_api::ApiKey;
use skillet_core::api_key::KeyText;

use super::object::KeyName;
use crate::{humanize, table::Table};

/// A new key, as it is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewKey<'a> {
    namespace: &'a str,
    name: String,
    service_account: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    key: &'a str,
}

impl<'a> NewKey<'a> {
    pub(crate) fn new(
        namespace: &'a str,
        name: &KeyName,
        service_account: &'a str,
        expires_at: Option<Timestamp>,
        key: &'a KeyText,
    ) -> Self {
        Self { namespace, name: name.to_string(), service_account, expires_at, key: key.text() }
    }

    /// Describes the use of the key. The key itself is on standard output only.
    pub(crate) fn usage(&self) -> String {
        let Self { namespace, name, service_account, expires_at, key: _ } = self;
        let end = expires_at.map_or("does not expire".to_owned(), |end| format!("expires at {end}"));
        format!(
            "\
API key {namespace}/{name} acts as service account {service_account} and {end}.
It is shown only this once: the cluster keeps its sha256.

Give it to an LLM client as the API key, with the gateway as the base URL:
  export OPENAI_API_KEY=<key> OPENAI_BASE_URL=<gateway>/v1
  export ANTHROPIC_API_KEY=<key> ANTHROPIC_BASE_URL=<gateway>
It has the rights of the service account:
  kubectl auth can-i execute skills.skillet.dev -n {namespace} --as system:serviceaccount:{namespace}:{service_account}
Delete it with: kubectl skill key delete {name} -n {namespace}
"
        )
    }
}

/// Describes the end of a key that has a successor.
pub(super) fn ended_at(namespace: &str, name: &str, end: Timestamp) -> String {
    format!(
        "\
The old API key {namespace}/{name} works until {end}. Delete it sooner when nothing uses it:
  kubectl skill key delete {name} -n {namespace}
"
    )
}

/// A key, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedKey {
    pub(crate) name: String,
    service_account: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Time>,
}

impl From<ApiKey> for ListedKey {
    fn from(key: ApiKey) -> Self {
        Self {
            name: key.name_any(),
            service_account: key.spec.service_account_name,
            expires_at: key.spec.expires_at,
            last_used_at: key.status.and_then(|status| status.last_used_at),
            created_at: key.metadata.creation_timestamp,
        }
    }
}

impl ListedKey {
    fn expiry(&self, now: Timestamp) -> String {
        match &self.expires_at {
            None => "never".to_owned(),
            Some(end) if end.0 <= now => "expired".to_owned(),
            Some(end) => format!("in {}", humanize::remaining(end, now)),
        }
    }

    fn last_use(&self, now: Timestamp) -> String {
        match &self.last_used_at {
            None => "-".to_owned(),
            Some(used) => format!("{} ago", humanize::age(Some(used), now)),
        }
    }
}

pub(crate) fn table(rows: &[ListedKey], now: Timestamp) -> String {
    let mut table = Table::new(&["NAME", "SERVICE-ACCOUNT", "EXPIRES", "LAST-USED", "AGE"]);
    for row in rows {
        let age = humanize::age(row.created_at.as_ref(), now);
        table.push([row.name.clone(), row.service_account.clone(), row.expiry(now), row.last_use(now), age]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn listed(name: &str, spec: &Value, status: &Value) -> ListedKey {
        let mut object = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "ApiKey", "spec": spec, "status": status,
            "metadata": { "name": name, "creationTimestamp": "2026-01-01T00:00:00Z" } });
        object["spec"]["hash"] = json!("0".repeat(64));
        serde_json::from_value::<ApiKey>(object).unwrap().into()
    }

    #[test]
    fn keys_are_listed_with_service_account_expiry_and_last_use() {
        let ends = |at: &str| json!({ "expiresAt": at });
        let used = json!({ "lastUsedAt": "2026-01-01T23:56:00Z" });
        let rows = [
            listed("ci", &json!({ "serviceAccountName": "agent" }), &used),
            listed("later", &ends("2026-04-01T00:00:00Z"), &json!({})),
            listed("over", &ends("2026-01-02T00:00:00Z"), &json!({})),
        ];
        assert_eq!(
            table(&rows, "2026-01-02T00:00:00Z".parse().unwrap()),
            "NAME    SERVICE-ACCOUNT   EXPIRES   LAST-USED   AGE\n\
             ci      agent             never     4m ago      24h\n\
             later   default           in 89d    -           24h\n\
             over    default           expired   -           24h\n"
        );
        assert_eq!(
            serde_json::to_value(&rows[0]).unwrap(),
            json!({ "name": "ci", "serviceAccount": "agent", "lastUsedAt": "2026-01-01T23:56:00Z", "createdAt": "2026-01-01T00:00:00Z" })
        );
    }

    #[test]
    fn the_usage_text_does_not_contain_the_key() {
        let key = KeyText::of_random([7; 32]);
        let name = "ci".parse().unwrap();
        let usage = NewKey::new("team-a", &name, "agent", None, &key).usage();
        assert!(usage.starts_with("API key team-a/ci acts as service account agent and does not expire.\n"));
        assert!(usage.contains("-n team-a --as system:serviceaccount:team-a:agent\n"), "{usage}");
        assert!(!usage.contains(key.text()));
        let end = "2026-04-01T00:00:00Z".parse().unwrap();
        let usage = NewKey::new("team-a", &name, "agent", Some(end), &key).usage();
        assert!(usage.contains("and expires at 2026-04-01T00:00:00Z.\n"), "{usage}");
    }

    #[test]
    fn the_machine_form_of_a_new_key_has_the_key() {
        let key = KeyText::of_random([7; 32]);
        let new = NewKey::new("team-a", &"ci".parse().unwrap(), "default", None, &key);
        assert_eq!(
            serde_json::to_value(&new).unwrap(),
            json!({ "namespace": "team-a", "name": "ci", "serviceAccount": "default", "key": key.text() })
        );
    }
}
