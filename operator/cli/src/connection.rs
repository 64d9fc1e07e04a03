//! Makes a client from kubeconfig, context and namespace flags, in kubectl's order.

use std::{path::PathBuf, time::Duration};

use kube::{
    Client, Config,
    config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use thiserror::Error;

use crate::arguments::ClusterArgs;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client and the namespace of a command.
#[derive(Clone)]
pub(crate) struct ClusterClient {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

#[derive(Debug, Error)]
pub(crate) enum ConnectError {
    #[error("could not read the kubeconfig {}: {message}", path.display())]
    File { path: PathBuf, message: String },
    #[error("the kubeconfig has no context {wanted:?}")]
    NoContext { wanted: String, known: Vec<String> },
    #[error("could not use the kubeconfig: {source}")]
    Kubeconfig { source: Box<KubeconfigError> },
    #[error("no cluster is configured: {kubeconfig}; and this is no pod of a cluster ({in_cluster})")]
    NoCluster { kubeconfig: Box<KubeconfigError>, in_cluster: Box<InClusterError> },
    #[error("could not make a client from the kubeconfig: {source}")]
    Client { source: Box<kube::Error> },
}

impl ConnectError {
    pub(crate) fn advice(&self) -> String {
        match self {
            ConnectError::NoContext { known, .. } if !known.is_empty() => {
                format!("it has: {}", known.join(", "))
            }
            ConnectError::NoContext { .. }
            | ConnectError::File { .. }
            | ConnectError::Kubeconfig { .. }
            | ConnectError::NoCluster { .. }
            | ConnectError::Client { .. } => {
                "kubectl config get-contexts shows what kubectl sees; name a file with --kubeconfig or $KUBECONFIG".into()
            }
        }
    }
}

/// Connects, and settles the namespace: the flag's, else the context's, else `default`.
pub(crate) async fn connect(args: &ClusterArgs) -> Result<ClusterClient, ConnectError> {
    let mut config = load(args).await?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // A waiting person should learn of an overloaded server, and a repeated create might run twice.
    config.default_retry = false;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client =
        Client::try_from(config).map_err(|source| ConnectError::Client { source: Box::new(source) })?;
    Ok(ClusterClient { client, namespace })
}

async fn load(args: &ClusterArgs) -> Result<Config, ConnectError> {
    let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    let read = match &args.kubeconfig {
        Some(path) => Kubeconfig::read_from(path)
            .map_err(|error| ConnectError::File { path: path.clone(), message: without_path(&error) })?,
        None => match Kubeconfig::read() {
            Ok(read) => read,
            Err(error) => return in_cluster(error),
        },
    };
    let known: Vec<String> = read.contexts.iter().map(|context| context.name.clone()).collect();
    match Config::from_custom_kubeconfig(read, &options).await {
        Ok(config) => Ok(config),
        Err(KubeconfigError::LoadContext(wanted)) => Err(ConnectError::NoContext { wanted, known }),
        Err(error @ KubeconfigError::CurrentContextNotSet) if known.is_empty() => in_cluster(error),
        Err(source) => Err(ConnectError::Kubeconfig { source: Box::new(source) }),
    }
}

/// The error without the path, which the message names already.
fn without_path(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(source, _) => source.to_string(),
        other => other.to_string(),
    }
}

/// Falls back to the pod's own service account.
fn in_cluster(kubeconfig: KubeconfigError) -> Result<Config, ConnectError> {
    Config::incluster().map_err(|in_cluster| ConnectError::NoCluster {
        kubeconfig: Box::new(kubeconfig),
        in_cluster: Box::new(in_cluster),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECONFIG: &str = "{clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}], users: [], \
         contexts: [{name: one, context: {cluster: c, namespace: team-a}}, {name: two, context: {cluster: c}}], \
         current-context: one}";

    async fn with(
        kubeconfig: &str,
        context: Option<&str>,
        namespace: Option<&str>,
    ) -> Result<String, ConnectError> {
        // Tests run beside each other: every case has a file of its own.
        let case = format!("kubectl-skill-{}-{context:?}-{namespace:?}", std::process::id());
        let path = std::env::temp_dir().join(case);
        std::fs::write(&path, kubeconfig).unwrap();
        let args = ClusterArgs {
            kubeconfig: Some(path.clone()),
            context: context.map(String::from),
            namespace: namespace.map(String::from),
        };
        let connected = connect(&args).await;
        std::fs::remove_file(path).unwrap();
        connected.map(|connection| connection.namespace)
    }

    #[tokio::test]
    async fn the_namespace_is_the_flag_s_then_the_context_s_then_default() {
        assert_eq!(with(KUBECONFIG, None, Some("mine")).await.unwrap(), "mine");
        assert_eq!(with(KUBECONFIG, None, None).await.unwrap(), "team-a");
        assert_eq!(with(KUBECONFIG, Some("two"), None).await.unwrap(), "default");
    }

    #[tokio::test]
    async fn a_context_that_is_not_there_is_named_with_those_that_are() {
        let error = with(KUBECONFIG, Some("three"), None).await.unwrap_err();
        assert_eq!(error.to_string(), "the kubeconfig has no context \"three\"");
        assert_eq!(error.advice(), "it has: one, two");
    }

    #[tokio::test]
    async fn a_file_that_is_not_there_is_named() {
        let args = ClusterArgs { kubeconfig: Some("/nowhere/config".into()), ..ClusterArgs::default() };
        let error = connect(&args).await.err().unwrap();
        assert_eq!(
            error.to_string(),
            "could not read the kubeconfig /nowhere/config: No such file or directory (os error 2)"
        );
    }
}
