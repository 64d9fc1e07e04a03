//! Texts about API keys: the one that was just made, and the list. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ObjectMeta;
use serde::Serialize;
use skillet_api::names;
use skillet_core::api_key::ApiKey;

use super::secret::KeyName;
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
        key: &'a ApiKey,
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
Revoke it with: kubectl skill key revoke {name} -n {namespace}
"
        )
    }
}

/// A key, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedKey {
    pub(crate) name: String,
    service_account: String,
    /// The text of the Secret, which may be no valid time.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Time>,
}

impl ListedKey {
    /// Reads the metadata of a Secret; `None` if it is no API key.
    pub(crate) fn of(metadata: &ObjectMeta) -> Option<Self> {
        let label = metadata.labels.as_ref().and_then(|labels| labels.get(names::LABEL_API_KEY));
        let name = metadata.name.as_deref()?.strip_prefix(names::API_KEY_SECRET_PREFIX)?;
        let annotation = |name: &str| metadata.annotations.as_ref()?.get(name).cloned();
        (label? == "true").then(|| Self {
            name: name.to_owned(),
            service_account: annotation(names::ANNOTATION_SERVICE_ACCOUNT)
                .unwrap_or_else(|| names::DEFAULT_SERVICE_ACCOUNT.to_owned()),
            expires_at: annotation(names::ANNOTATION_EXPIRES_AT),
            created_at: metadata.creation_timestamp.clone(),
        })
    }

    fn expiry(&self, now: Timestamp) -> String {
        match self.expires_at.as_deref().map(str::parse::<Timestamp>) {
            None => "never".to_owned(),
            Some(Ok(end)) if end <= now => "expired".to_owned(),
            // The remaining time is the age that `now` will have at the end.
            Some(Ok(end)) => format!("in {}", humanize::age(Some(&Time(now)), end)),
            // The gateway refuses such a key.
            Some(Err(_)) => "invalid".to_owned(),
        }
    }
}

pub(crate) fn table(rows: &[ListedKey], now: Timestamp) -> String {
    let mut table = Table::new(&["NAME", "SERVICE-ACCOUNT", "EXPIRES", "AGE"]);
    for row in rows {
        let age = humanize::age(row.created_at.as_ref(), now);
        table.push([row.name.clone(), row.service_account.clone(), row.expiry(now), age]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn listed(name: &str, label: &str, annotations: &Value) -> Option<ListedKey> {
        let metadata = json!({ "name": name, "labels": { "skillet.dev/api-key": label }, "annotations": annotations,
            "creationTimestamp": "2026-01-01T00:00:00Z" });
        ListedKey::of(&serde_json::from_value(metadata).unwrap())
    }

    #[test]
    fn keys_are_listed_with_service_account_and_expiry() {
        let key =
            |name: &str, annotations| listed(&format!("skillet-key-{name}"), "true", &annotations).unwrap();
        let ends = |at: &str| json!({ "skillet.dev/expires-at": at });
        let rows = [
            key("ci", json!({ "skillet.dev/service-account": "agent" })),
            key("later", ends("2026-04-01T00:00:00Z")),
            key("over", ends("2026-01-02T00:00:00Z")),
            key("odd", ends("tomorrow")),
        ];
        assert_eq!(
            table(&rows, "2026-01-02T00:00:00Z".parse().unwrap()),
            "NAME    SERVICE-ACCOUNT   EXPIRES   AGE\n\
             ci      agent             never     24h\n\
             later   default           in 89d    24h\n\
             over    default           expired   24h\n\
             odd     default           invalid   24h\n"
        );
        assert_eq!(
            serde_json::to_value(&rows[1]).unwrap(),
            json!({ "name": "later", "serviceAccount": "default", "expiresAt": "2026-04-01T00:00:00Z", "createdAt": "2026-01-01T00:00:00Z" })
        );
    }

    #[test]
    fn a_secret_without_the_name_or_label_of_a_key_is_not_listed() {
        assert_eq!(listed("database", "true", &json!({})), None);
        assert_eq!(listed("skillet-key-ci", "false", &json!({})), None);
    }

    #[test]
    fn the_usage_text_does_not_contain_the_key() {
        let key = ApiKey::of_random([7; 32]);
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
        let key = ApiKey::of_random([7; 32]);
        let new = NewKey::new("team-a", &"ci".parse().unwrap(), "default", None, &key);
        assert_eq!(
            serde_json::to_value(&new).unwrap(),
            json!({ "namespace": "team-a", "name": "ci", "serviceAccount": "default", "key": key.text() })
        );
    }
}
