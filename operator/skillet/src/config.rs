//! Flags, each also an environment variable and a chart value of the same words. `--help` is their documentation.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use reqwest::Url;
use skillet_api::duration::SkillDuration;
use skillet_controller::settings::SandboxPodSettings;
use skillet_workspace::{WorkspaceClient, WorkspaceSettings};

use crate::policy::InstalledPolicy;

/// Skills for LLM agents on Kubernetes, each run in a locked-down Job pod.
#[derive(Debug, Parser)]
#[command(version, about)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs the operator: seals versions, runs executions, probes nodes.
    Operator {
        #[command(flatten)]
        config: Box<OperatorConfig>,
        #[command(flatten)]
        telemetry: TelemetryConfig,
    },
    /// Runs the gateway: model proxy, REST and MCP for agents.
    Gateway {
        #[command(flatten)]
        config: Box<GatewayConfig>,
        #[command(flatten)]
        telemetry: TelemetryConfig,
    },
    /// Keeps Skills in step with the repositories of SkillSources.
    Sources {
        #[command(flatten)]
        config: SourcesConfig,
        #[command(flatten)]
        telemetry: TelemetryConfig,
    },
    /// Dials for skills: the one way out, without credentials of the cluster.
    Broker {
        #[command(flatten)]
        config: BrokerConfig,
        #[command(flatten)]
        telemetry: TelemetryConfig,
    },
    /// Keeps the files of callers, in a folder or an S3 bucket, without credentials of the cluster.
    Workspaces {
        #[command(flatten)]
        config: WorkspacesConfig,
        #[command(flatten)]
        telemetry: TelemetryConfig,
    },
    /// Prints the custom resource definitions.
    Crds,
    /// Runs one small skill in the cluster and checks its result; the chart's test.
    Check(CheckConfig),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct OperatorConfig {
    /// Namespace of the operator, with the Lease that operators compete for.
    #[arg(long, env, default_value = "skillet-system")]
    pub(crate) namespace: String,
    /// Name of the Lease.
    #[arg(long, env, default_value = "skillet-operator")]
    pub(crate) lease_name: String,
    /// Name of this operator's pod, by which it holds the Lease. No two operators may have the same.
    #[arg(long, env)]
    pub(crate) pod_name: String,
    /// Namespace in which sandboxes are made.
    #[arg(long, env, default_value = "skillet-sandboxes")]
    pub(crate) sandbox_namespace: String,
    /// Image of the runtime `shell`.
    #[arg(long, env, default_value = concat!("skillet.dev/shell:", env!("CARGO_PKG_VERSION")))]
    pub(crate) shell_image: String,
    /// Image of the runtime `python`.
    #[arg(long, env, default_value = concat!("skillet.dev/python:", env!("CARGO_PKG_VERSION")))]
    pub(crate) python_image: String,
    /// Image of the runtime `node`.
    #[arg(long, env, default_value = concat!("skillet.dev/node:", env!("CARGO_PKG_VERSION")))]
    pub(crate) node_image: String,
    /// Image of the built-in `browser`.
    #[arg(long, env, default_value = concat!("skillet.dev/browser:", env!("CARGO_PKG_VERSION")))]
    pub(crate) browser_image: String,
    /// Image that holds the runner, for sandboxes with an image of the user's.
    #[arg(long, env, default_value = concat!("skillet.dev/runner:", env!("CARGO_PKG_VERSION")))]
    pub(crate) runner_image: String,
    /// Delivery of the runner into images of users; `auto` takes an image volume if the API server has them.
    #[arg(long, env, value_enum, default_value_t = Delivery::Auto)]
    pub(crate) runner_delivery: Delivery,
    /// `imagePullPolicy` of sandboxes; Kubernetes decides when unset.
    #[arg(long, env)]
    pub(crate) image_pull_policy: Option<String>,
    /// `runtimeClassName` of sandboxes, such as gvisor or kata.
    #[arg(long, env)]
    pub(crate) runtime_class: Option<String>,
    /// Scheduling of sandboxes, as JSON: `nodeSelector`, `tolerations`, `priorityClassName`, `imagePullSecrets`, `annotations`.
    #[arg(long, env, default_value = "{}")]
    pub(crate) sandbox_pod: SandboxPodSettings,
    /// Fields of the spec of SkillPolicy `default`, as JSON, which this operator applies when it starts.
    #[arg(long, env, default_value = "{}")]
    pub(crate) policy: InstalledPolicy,
    /// Address of `/healthz`, `/readyz` and `/metrics`.
    #[arg(long, env, default_value = "0.0.0.0:8080")]
    pub(crate) http_address: SocketAddr,
    /// Address of the gateway's probes in the same pod. On shutdown the operator waits until nothing listens there, so that
    /// open conversations can finish.
    #[arg(long, env)]
    pub(crate) shutdown_after: Option<SocketAddr>,
    /// Address of the broker of egress, such as `skillet-broker:8443`. Without it no skill reaches a host.
    #[arg(long, env, requires = "broker_tls_folder")]
    pub(crate) broker_address: Option<String>,
    /// Folder with `tls.crt`, `tls.key` and `ca.crt`, by which operator and broker know each other; reloaded when they change.
    #[arg(long, env)]
    pub(crate) broker_tls_folder: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) workspaces: WorkspacesClientConfig,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GatewayConfig {
    /// Namespace of the operator, with the platform's own keys for providers.
    #[arg(long, env, default_value = "skillet-system")]
    pub(crate) namespace: String,
    /// Address for agents.
    #[arg(long, env, default_value = "0.0.0.0:8090")]
    pub(crate) gateway_address: SocketAddr,
    /// Address of `/healthz`, `/readyz` and `/metrics`, never under TLS.
    #[arg(long, env, default_value = "0.0.0.0:8091")]
    pub(crate) gateway_probes_address: SocketAddr,
    /// PEM file of the certificate for agents, with its chain; reloaded when it changes.
    #[arg(long, env, requires = "tls_key_file")]
    pub(crate) tls_certificate_file: Option<PathBuf>,
    /// PEM file of the certificate's key.
    #[arg(long, env, requires = "tls_certificate_file")]
    pub(crate) tls_key_file: Option<PathBuf>,
    /// File with the key of confirmations and carried turns, the same for all gateways. Without it the gateway offers models no hybrid skill and carries no turns.
    #[arg(long, env)]
    pub(crate) confirmation_key_file: Option<PathBuf>,
    /// Folder with `model.safetensors` and `tokenizer.json` of a static embedding model. With it, skills are also found by the meaning of a request.
    #[arg(long, env)]
    pub(crate) embeddings_folder: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) workspaces: WorkspacesClientConfig,
}

/// The way to the store of workspaces, which operator and gateway have.
#[derive(Debug, ClapArgs)]
pub(crate) struct WorkspacesClientConfig {
    /// Address of the store of workspaces, such as `skillet-workspaces:8443`. Without it no caller has files.
    #[arg(long, env, requires = "workspaces_tls_folder")]
    workspaces_address: Option<String>,
    /// Folder with `tls.crt`, `tls.key` and `ca.crt`, by which the store knows its clients; reloaded when they change.
    #[arg(long, env)]
    workspaces_tls_folder: Option<PathBuf>,
}

impl WorkspacesClientConfig {
    pub(crate) fn client(self) -> Option<WorkspaceClient> {
        let (address, tls_folder) = self.workspaces_address.zip(self.workspaces_tls_folder)?;
        Some(WorkspaceClient::new(WorkspaceSettings { address, tls_folder }))
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SourcesConfig {
    /// Directory for the files of transfers, with room for the largest repositories.
    #[arg(long, env, default_value = "/tmp")]
    pub(crate) work_folder: PathBuf,
    /// Address of `/healthz`, `/readyz` and `/metrics`.
    #[arg(long, env, default_value = "0.0.0.0:8080")]
    pub(crate) http_address: SocketAddr,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BrokerConfig {
    /// Address for operators, under mutual TLS.
    #[arg(long, env, default_value = "0.0.0.0:8443")]
    pub(crate) listen_address: SocketAddr,
    /// Address of `/healthz`, `/readyz` and `/metrics`.
    #[arg(long, env, default_value = "0.0.0.0:8080")]
    pub(crate) http_address: SocketAddr,
    /// Folder with `tls.crt` and `tls.key` of the broker and `ca.crt` of the operators; reloaded when they change.
    #[arg(long, env)]
    pub(crate) tls_folder: PathBuf,
    /// PEM file of authorities that are trusted beside the public ones for the hosts of HTTP skills; reloaded when it changes.
    #[arg(long, env)]
    pub(crate) ca_bundle: Option<PathBuf>,
    /// Most connections to hosts at one time.
    #[arg(long, env, default_value_t = 8192)]
    pub(crate) max_connections: usize,
    /// Most connections of the skills of one namespace at one time.
    #[arg(long, env, default_value_t = 512)]
    pub(crate) tenant_connections: usize,
    /// New connections of the skills of one namespace in a second.
    #[arg(long, env, default_value_t = 100)]
    pub(crate) tenant_rate: u32,
    /// Most MiB of bodies of HTTP requests and responses at one time.
    #[arg(long, env, default_value_t = 256)]
    pub(crate) body_memory_mib: usize,
    /// Longest time without traffic on a program's connection, in seconds.
    #[arg(long, env, default_value_t = 600)]
    pub(crate) idle_seconds: u64,
    /// Longest time for which a run is linked, in seconds.
    #[arg(long, env, default_value_t = 86_400)]
    pub(crate) link_seconds: u64,
    /// Time that linked runs have to end on shutdown, in seconds.
    #[arg(long, env, default_value_t = 20)]
    pub(crate) drain_seconds: u64,
}

#[derive(Debug, ClapArgs)]
#[command(group = clap::ArgGroup::new("place").required(true))]
pub(crate) struct WorkspacesConfig {
    /// Address for operator and gateway, under mutual TLS.
    #[arg(long, env, default_value = "0.0.0.0:8443")]
    pub(crate) listen_address: SocketAddr,
    /// Address of `/healthz`, `/readyz` and `/metrics`.
    #[arg(long, env, default_value = "0.0.0.0:8080")]
    pub(crate) http_address: SocketAddr,
    /// Folder with `tls.crt` and `tls.key` of the store and `ca.crt` of its clients; reloaded when they change.
    #[arg(long, env)]
    pub(crate) tls_folder: PathBuf,
    /// Folder for the files, which no other process writes to.
    #[arg(long, env, group = "place")]
    pub(crate) folder: Option<PathBuf>,
    /// S3 bucket for the files, in the place of a folder. Credentials are those of `AWS_*` variables, of a web identity or of the machine.
    #[arg(long, env, group = "place")]
    pub(crate) s3_bucket: Option<String>,
    /// Start of every key in the bucket.
    #[arg(long, env, default_value = "workspaces")]
    pub(crate) s3_prefix: String,
    /// URL of a service other than that of AWS. Default: that of the region.
    #[arg(long, env)]
    pub(crate) s3_endpoint: Option<Url>,
    /// Region of the bucket. Default: `AWS_REGION`.
    #[arg(long, env)]
    pub(crate) s3_region: Option<String>,
    /// Names the bucket in the path of the URL and not in its host.
    #[arg(long, env)]
    pub(crate) s3_path_style: bool,
    /// PEM file of authorities that are trusted beside the public ones for the bucket; reloaded when it changes.
    #[arg(long, env)]
    pub(crate) ca_bundle: Option<PathBuf>,
    /// Most MiB of the files of a workspace.
    #[arg(long, env, default_value_t = 100)]
    pub(crate) quota_mib: u64,
    /// Most files of a workspace.
    #[arg(long, env, default_value_t = 1000)]
    pub(crate) quota_files: u64,
    /// Most KiB of one write.
    #[arg(long, env, default_value_t = 1024)]
    pub(crate) max_write_kib: u64,
    /// Most MiB of one file.
    #[arg(long, env, default_value_t = 16)]
    pub(crate) max_file_mib: u64,
    /// Most MiB of files and listings in memory at one time.
    #[arg(long, env, default_value_t = 64)]
    pub(crate) memory_mib: usize,
    /// Time without use after which a workspace is removed with its files, such as 720h; 0s keeps all.
    #[arg(long, env, default_value = "720h")]
    pub(crate) expire_after: SkillDuration,
    /// Time that open requests have to end on shutdown, in seconds.
    #[arg(long, env, default_value_t = 20)]
    pub(crate) drain_seconds: u64,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckConfig {
    /// Namespace in which the skill is made, run and deleted.
    #[arg(long, env, default_value = "default")]
    pub(crate) namespace: String,
    /// Longest time to wait, in seconds.
    #[arg(long, env, default_value_t = 120)]
    pub(crate) wait_seconds: u64,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TelemetryConfig {
    /// Format of log lines.
    #[arg(long, env, value_enum, default_value_t = LogFormat::Json)]
    pub(crate) log_format: LogFormat,
    /// Log lines that are written, in the form of `RUST_LOG`.
    #[arg(long, env, default_value = "info")]
    pub(crate) log_filter: String,
    /// URL of an OpenTelemetry collector that takes spans by OTLP over HTTP, such as `http://collector:4318`. Default: none.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub(crate) otlp_endpoint: Option<Url>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Delivery {
    Auto,
    ImageVolume,
    InitContainer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Json,
    Text,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_flag_is_an_environment_variable_of_the_same_words() {
        let command = Args::command();
        for part in ["operator", "gateway", "sources", "broker", "workspaces"] {
            let part = command.find_subcommand(part).unwrap();
            for arg in part.get_arguments().filter(|arg| arg.get_id() != "help") {
                let flag = match arg.get_long().unwrap_or_default() {
                    // Every OpenTelemetry exporter reads its endpoint from this variable.
                    "otlp-endpoint" => "OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(),
                    flag => flag.replace('-', "_").to_uppercase(),
                };
                assert_eq!(arg.get_env().and_then(|name| name.to_str()), Some(flag.as_str()));
            }
        }
    }
}
