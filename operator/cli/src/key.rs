//! `kubectl skill key`: makes, lists, replaces and deletes API keys for the gateway.
//!
//! A key is printed once, when it is made: the cluster keeps its sha256 only.

mod object;
mod report;
mod rotate;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use skillet_api::ApiKey;
use skillet_core::api_key::{KeyText, RANDOM_BYTES};

pub(crate) use self::object::{KeyLifetime, KeyName};
use self::{
    object::api_key,
    report::{ListedKey, NewKey},
};
use crate::{
    arguments::{ClusterArgs, KeyCommand, KeyCreateArgs, KeyDeleteArgs, KeyListArgs},
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
        KeyCommand::Rotate(args) => rotate::run(client, &namespace, args, console).await,
        KeyCommand::Delete(args) => delete(client, &namespace, args, console).await,
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
) -> Result<KeyText, CliError> {
    must_exist(&client, namespace, service_account).await?;
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|error| CliError::NoRandom { message: error.to_string() })?;
    let key = KeyText::of_random(random);
    let api: Api<ApiKey> = Api::namespaced(client, namespace);
    let wanted = api_key(name, service_account, expires_at, key.hash());
    api.create(&PostParams::default(), &wanted)
        .await
        .map_err(|error| creation_error(namespace, name, &error))?;
    Ok(key)
}

fn creation_error(namespace: &str, name: &KeyName, error: &kube::Error) -> CliError {
    match error {
        kube::Error::Api(status) if status.code == 409 => {
            CliError::KeyExists { namespace: namespace.to_owned(), name: name.to_string() }
        }
        error => CliError::from_api(format!("create API key {namespace}/{name}"), error),
    }
}

/// Requires the service account: a key of a missing one would be valid without any right, which is hard to diagnose.
async fn must_exist(client: &Client, namespace: &str, account: &str) -> Result<(), CliError> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    match accounts.get_metadata(account).await {
        Ok(_) => Ok(()),
        // A user may have the right to create ApiKeys and not to read service accounts.
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

async fn keys(client: Client, namespace: &str) -> Result<Vec<ListedKey>, CliError> {
    let api: Api<ApiKey> = Api::namespaced(client, namespace);
    let listed = api
        .list(&ListParams::default())
        .await
        .map_err(|error| CliError::from_api(format!("list the API keys of namespace {namespace}"), &error))?;
    let mut rows: Vec<ListedKey> = listed.items.into_iter().map(ListedKey::from).collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(rows)
}

async fn delete(
    client: Client,
    namespace: &str,
    args: &KeyDeleteArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let KeyDeleteArgs { name } = args;
    remove(client, namespace, name).await?;
    console.print(&format!("API key {namespace}/{name} is deleted\n"))?;
    Ok(Exit::Done)
}

async fn remove(client: Client, namespace: &str, name: &KeyName) -> Result<(), CliError> {
    let api: Api<ApiKey> = Api::namespaced(client.clone(), namespace);
    match api.delete(name.as_str(), &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Err(no_key(client, namespace, name).await),
        Err(error) => Err(CliError::from_api(format!("delete API key {namespace}/{name}"), &error)),
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
