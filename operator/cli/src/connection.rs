//! Makes a client from kubeconfig and flags, in kubectl's order.

use std::{path::PathBuf, time::Duration};

use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{AuthInfo, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use thiserror::Error;
use tower::layer::layer_fn;

use crate::{
    arguments::ClusterArgs,
    request_limit::LimitRequests,
    request_log::{LogRequests, REQUESTS},
};

/// Field manager of everything that this plugin writes.
pub(crate) const FIELD_MANAGER: &str = "kubectl-skill";

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
    let mut config = overwrite(load(args).await?, args);
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // A waiting person should learn of an overloaded server, and a repeated create might run twice.
    config.default_retry = false;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = client(config, args).map_err(|source| ConnectError::Client { source: Box::new(source) })?;
    Ok(ClusterClient { client, namespace })
}

fn client(config: Config, args: &ClusterArgs) -> Result<Client, kube::Error> {
    let limit = args.request_timeout.map(|limit| limit.0);
    let builder = ClientBuilder::try_from(config)?;
    let builder = builder.with_layer(&layer_fn(move |inner| LimitRequests { inner, limit }));
    Ok(if args.verbosity >= REQUESTS {
        builder.with_layer(&layer_fn(LogRequests)).build()
    } else {
        builder.build()
    })
}

/// Applies the flags that overwrite the kubeconfig. A token replaces every other proof of the user.
fn overwrite(mut config: Config, args: &ClusterArgs) -> Config {
    let ClusterArgs { server, token, impersonate, as_group, .. } = args;
    if let Some(server) = server {
        config.cluster_url = server.clone();
    }
    if let Some(token) = token {
        let fields = serde_json::json!({ "token": token });
        // An object with this one field is an AuthInfo.
        config.auth_info = serde_json::from_value::<AuthInfo>(fields).unwrap_or_default();
    }
    if let Some(user) = impersonate {
        config.auth_info.impersonate = Some(user.clone());
        config.auth_info.impersonate_groups = (!as_group.is_empty()).then(|| as_group.clone());
    }
    config
}

async fn load(args: &ClusterArgs) -> Result<Config, ConnectError> {
    let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    let read = match &args.kubeconfig {
        Some(path) => Kubeconfig::read_from(path)
            .map_err(|error| ConnectError::File { path: path.clone(), message: without_path(&error) })?,
        None => match Kubeconfig::read() {
            Ok(read) => read,
            Err(error) => {
                return args.server.clone().map_or_else(|| in_cluster(error), |url| Ok(Config::new(url)));
            }
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
            ..ClusterArgs::default()
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

    #[test]
    fn flags_overwrite_server_and_user() {
        let args = ClusterArgs {
            server: Some("https://other:6443/".parse().unwrap()),
            token: Some("secret".into()),
            impersonate: Some("eve".into()),
            as_group: vec!["devs".into()],
            ..ClusterArgs::default()
        };
        let mut config = Config::new("https://127.0.0.1:1".parse().unwrap());
        config.auth_info.client_certificate = Some("/cert".into());
        let Config { cluster_url, auth_info, .. } = overwrite(config, &args);
        assert_eq!(cluster_url.to_string(), "https://other:6443/");
        assert!(auth_info.token.is_some() && auth_info.client_certificate.is_none());
        assert_eq!(auth_info.impersonate.as_deref(), Some("eve"));
        assert_eq!(auth_info.impersonate_groups, Some(vec!["devs".to_owned()]));
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
