//! `kubectl skill key rotate`: makes a successor of a key, and lets the old key end after a time in which both work.

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use skillet_api::{ApiKey, ApiKeySpec};

use super::{
    KeyName, make, no_key,
    object::KeyLifetime,
    report::{NewKey, ended_at},
};
use crate::{
    arguments::KeyRotateArgs,
    console::{self, Console},
    error::CliError,
    exit::Exit,
};

pub(super) async fn run(
    client: Client,
    namespace: &str,
    args: &KeyRotateArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let now = Timestamp::now();
    let api: Api<ApiKey> = Api::namespaced(client.clone(), namespace);
    let action = format!("list the API keys of namespace {namespace}");
    let keys = api.list(&ListParams::default()).await.map_err(|error| CliError::from_api(action, &error))?;
    let name_of = |key: &ApiKey| key.metadata.name.clone().unwrap_or_default();
    let Some(old) = keys.items.iter().find(|key| name_of(key) == args.name.as_str()) else {
        return Err(no_key(client, namespace, &args.name).await);
    };
    let taken: Vec<String> = keys.items.iter().map(name_of).collect();
    let name = match &args.new_name {
        Some(name) => name.clone(),
        None => successor(&args.name, &taken),
    };
    let expires_at = args.expires.map_or_else(|| same_lifetime(old, now), |lifetime| Some(lifetime.end(now)));
    let account = &old.spec.service_account_name;
    let key = make(client, namespace, &name, account, expires_at).await?;
    let new = NewKey::new(namespace, &name, account, expires_at, &key);
    // The key is printed before anything can fail: it is shown only once.
    console.print(&args.output.render(&new, || format!("{}\n", key.text()))?)?;
    console::explain(&new.usage());
    let end = end_of_old(&old.spec, args.grace, now);
    let patch = Patch::Merge(json!({ "spec": { "expiresAt": end } }));
    let old_name = args.name.as_str();
    api.patch_metadata(old_name, &PatchParams::default(), &patch)
        .await
        .map_err(|error| CliError::from_api(format!("end API key {namespace}/{old_name}"), &error))?;
    console::explain(&ended_at(namespace, old_name, end));
    Ok(Exit::Done)
}

/// Returns the old name with the next free number.
fn successor(old: &KeyName, taken: &[String]) -> KeyName {
    let (stem, number) = match old.as_str().rsplit_once('-') {
        Some((stem, digits)) => match digits.parse::<u32>() {
            Ok(number) => (stem, number),
            Err(_) => (old.as_str(), 1),
        },
        None => (old.as_str(), 1),
    };
    let names = (number.saturating_add(1)..).filter_map(|number| format!("{stem}-{number}").parse().ok());
    let mut free = names.filter(|name: &KeyName| !taken.iter().any(|taken| taken == name.as_str()));
    free.next().unwrap_or_else(|| old.clone())
}

/// End of a key that lives as long as the old one was made for; none if that never ends.
fn same_lifetime(old: &ApiKey, now: Timestamp) -> Option<Timestamp> {
    let created = old.metadata.creation_timestamp.as_ref()?.0;
    let lifetime = old.spec.expires_at.as_ref()?.0.duration_since(created);
    now.checked_add(lifetime).ok().filter(|end| *end > now)
}

/// The old key ends after `grace`, and not later than it would have.
fn end_of_old(old: &ApiKeySpec, grace: KeyLifetime, now: Timestamp) -> Timestamp {
    let end = grace.end(now);
    old.expires_at.as_ref().map_or(end, |own| own.0.min(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(spec: &serde_json::Value) -> ApiKey {
        let mut object = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "ApiKey", "spec": spec,
            "metadata": { "name": "ci", "creationTimestamp": "2026-01-01T00:00:00Z" } });
        object["spec"]["hash"] = json!("0".repeat(64));
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_successor_has_the_next_free_number() {
        let next = |old: &str, taken: &[&str]| {
            let taken: Vec<String> = taken.iter().map(ToString::to_string).collect();
            successor(&old.parse().unwrap(), &taken).to_string()
        };
        assert_eq!(next("ci", &["ci"]), "ci-2");
        assert_eq!(next("ci", &["ci", "ci-2", "ci-3"]), "ci-4");
        assert_eq!(next("ci-2", &["ci-2"]), "ci-3");
        assert_eq!(next("ci-main", &[]), "ci-main-2");
    }

    #[test]
    fn the_new_key_lives_as_long_as_the_old_one_was_made_for() {
        let now = "2026-03-01T00:00:00Z".parse().unwrap();
        let end = same_lifetime(&key(&json!({ "expiresAt": "2026-01-31T00:00:00Z" })), now);
        assert_eq!(end.unwrap().to_string(), "2026-03-31T00:00:00Z");
        assert_eq!(same_lifetime(&key(&json!({})), now), None);
    }

    #[test]
    fn the_old_key_ends_after_the_grace_and_never_later_than_it_would_have() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let end = |spec| end_of_old(&key(&spec).spec, "24h".parse().unwrap(), now).to_string();
        assert_eq!(end(json!({})), "2026-01-02T00:00:00Z");
        assert_eq!(end(json!({ "expiresAt": "2026-01-01T01:00:00Z" })), "2026-01-01T01:00:00Z");
    }
}
