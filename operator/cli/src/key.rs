//! `kubectl skill key`: makes, lists and revokes API keys for the gateway.
//!
//! A key is printed once, when it is made: the cluster keeps its sha256 only.

mod report;
mod secret;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, PostParams, Preconditions},
};
use skillet_api::names;
use skillet_core::api_key::{ApiKey, RANDOM_BYTES};

pub(crate) use self::secret::{KeyLifetime, KeyName};
use self::{
    report::{ListedKey, NewKey},
    secret::key_secret,
};
use crate::{
    arguments::{ClusterArgs, KeyCommand, KeyCreateArgs, KeyListArgs, KeyRevokeArgs},
    connection::{ClusterClient, connect},
    console::{self, Console},
    error::CliError,
    exit::Exit,
    output_format::OutputFormat,
    suggest::suggest,
};

pub(crate) async fn run(
    cluster: &ClusterArgs,
    command: &KeyCommand,
    console: &Console,
) -> Result<Exit, CliError> {
    let ClusterClient { client, namespace } = connect(cluster).await?;
    match command {
        KeyCommand::Create(args) => create(client, &namespace, args, console).await,
        KeyCommand::List(args) => list(client, &namespace, args, console).await,
        KeyCommand::Revoke(args) => revoke(client, &namespace, args, console).await,
    }
}

async fn create(
    client: Client,
    namespace: &str,
    args: &KeyCreateArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let KeyCreateArgs { name, service_account, expires, output } = args;
    let expires_at = expires.map(|lifetime| lifetime.end(Timestamp::now()));
    let key = make(client, namespace, name, service_account, expires_at).await?;
    let new = NewKey::new(namespace, name, service_account, expires_at, &key);
    console.print(&output.render(&new, || format!("{}\n", key.text()))?)?;
    console::explain(&new.usage());
    Ok(Exit::Done)
}

async fn make(
    client: Client,
    namespace: &str,
    name: &KeyName,
    service_account: &str,
    expires_at: Option<Timestamp>,
) -> Result<ApiKey, CliError> {
    must_exist(&client, namespace, service_account).await?;
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|error| CliError::NoRandom { message: error.to_string() })?;
    let key = ApiKey::of_random(random);
    let api: Api<Secret> = Api::namespaced(client, namespace);
    let wanted = key_secret(name, service_account, expires_at, key.hash());
    api.create(&PostParams::default(), &wanted)
        .await
        .map_err(|error| CliError::from_api(format!("create API key {namespace}/{name}"), &error))?;
    Ok(key)
}

/// Requires the service account: a key of a missing one would be valid without any right, which is hard to diagnose.
async fn must_exist(client: &Client, namespace: &str, account: &str) -> Result<(), CliError> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    match accounts.get_metadata(account).await {
        Ok(_) => Ok(()),
        // A user may have the right to create Secrets and not to read service accounts.
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Err(CliError::NoServiceAccount { namespace: namespace.to_owned(), name: account.to_owned() })
        }
        Err(error) => Err(CliError::from_api(format!("read ServiceAccount {namespace}/{account}"), &error)),
    }
}

async fn list(
    client: Client,
    namespace: &str,
    args: &KeyListArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let now = Timestamp::now();
    let rows = keys(client, namespace).await?;
    if rows.is_empty() && args.output == OutputFormat::Text {
        console::explain(&format!("No API keys found in namespace {namespace}.\n"));
    } else {
        console.print(&args.output.render(&rows, || report::table(&rows, now))?)?;
    }
    Ok(Exit::Done)
}

/// Lists the keys by the metadata of their Secrets, without the data.
async fn keys(client: Client, namespace: &str) -> Result<Vec<ListedKey>, CliError> {
    let api: Api<Secret> = Api::namespaced(client, namespace);
    let labelled = ListParams::default().labels(&format!("{}=true", names::LABEL_API_KEY));
    let listed = api
        .list_metadata(&labelled)
        .await
        .map_err(|error| CliError::from_api(format!("list the API keys of namespace {namespace}"), &error))?;
    let mut rows: Vec<ListedKey> =
        listed.items.iter().filter_map(|secret| ListedKey::of(&secret.metadata)).collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(rows)
}

async fn revoke(
    client: Client,
    namespace: &str,
    args: &KeyRevokeArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let KeyRevokeArgs { name } = args;
    remove(client, namespace, name).await?;
    console.print(&format!("API key {namespace}/{name} is revoked\n"))?;
    Ok(Exit::Done)
}

/// Deletes the Secret if it is a key, by the uid that was read.
async fn remove(client: Client, namespace: &str, name: &KeyName) -> Result<(), CliError> {
    let action = format!("revoke API key {namespace}/{name}");
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let found = match api.get_metadata(&name.secret_name()).await {
        Ok(secret) if ListedKey::of(&secret.metadata).is_some() => Some(secret),
        Ok(_) => None,
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(error) => return Err(CliError::from_api(action, &error)),
    };
    let Some(secret) = found else { return Err(no_key(client, namespace, name).await) };
    let seen = Preconditions { uid: secret.uid(), resource_version: None };
    let params = DeleteParams { preconditions: Some(seen), ..DeleteParams::default() };
    match api.delete(&name.secret_name(), &params).await {
        Ok(_) => Ok(()),
        // Somebody else has revoked it meanwhile.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(CliError::from_api(action, &error)),
    }
}

async fn no_key(client: Client, namespace: &str, name: &KeyName) -> CliError {
    let known = keys(client, namespace).await.unwrap_or_default();
    let names: Vec<String> = known.into_iter().map(|key| key.name).collect();
    CliError::NoKey {
        namespace: namespace.to_owned(),
        name: name.to_string(),
        suggestions: suggest(&name.to_string(), &names),
    }
}

#[cfg(test)]
mod tests;
