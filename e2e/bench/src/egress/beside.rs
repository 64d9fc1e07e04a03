//! The client in a runner on this machine, whose stream leads straight to a broker of this process, on a runtime of its own: what
//! runner, operator's client and broker cost, without the kubelet and API server between them.

use std::{
    future::{pending, ready},
    iter::once,
    net::IpAddr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use prometheus_client::registry::Registry;
use serde_json::Value;
use skillet_egress::{
    BrokerClient, BrokerSettings, HostName, InternalHostRule, LimitSettings, Metrics, Resolve, ResolveError,
    RunPolicy, RunReceiver, RunSender, Server, ServerSettings, SystemConnect,
};
use skillet_protocol::{
    FileContent, Hello, HostRule, OperatorMessage, Program, Run, RunFile, RunLimits, RunNetwork, RunOutcome,
    RunnerMessage, StreamReader, host_address, named_hosts,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    process::{Child, ChildStdin, ChildStdout, Command},
};

use super::{CLIENT, Host, task};
use crate::{runner::outside_of_scratch, separate_runtime::SeparateRuntime};

/// The certificate of the cluster's broker.
const BROKER_TLS: &str = "skillet-broker-tls";
const OPERATOR_NAMESPACE: &str = "skillet-system";
const READ_BYTES: usize = 128 * 1024;
const MOUNT_AND_EXEC: &str = r#"mount --bind "$1" /etc/hosts && shift && exec "$@""#;

/// A broker of this process, and the runner of the images.
pub(super) struct Beside {
    broker: BrokerClient,
    runner: PathBuf,
    _server: SeparateRuntime,
    /// Removed with this value.
    _tls: TempDir,
}

/// The one host that the broker is to find.
struct HostAddress(IpAddr);

impl Resolve for HostAddress {
    fn resolve<'a>(&'a self, _host: &'a HostName) -> BoxFuture<'a, Result<Vec<IpAddr>, ResolveError>> {
        Box::pin(ready(Ok(vec![self.0])))
    }
}

impl Beside {
    pub(super) async fn start(client: &Client, runner: &Path, host: &Host) -> anyhow::Result<Self> {
        let tls = tempfile::tempdir()?;
        let secret = Api::<Secret>::namespaced(client.clone(), OPERATOR_NAMESPACE).get(BROKER_TLS).await?;
        for (file, content) in secret.data.unwrap_or_default() {
            std::fs::write(tls.path().join(file), content.0)?;
        }
        let (tls_folder, runner) = (tls.path().to_owned(), outside_of_scratch(runner)?);
        let resolver = Arc::new(HostAddress(host.address.ip()));
        let metrics = Metrics::register(&mut Registry::default());
        let server = Server::new(settings(tls_folder.clone()), resolver, Arc::new(SystemConnect), metrics)?;
        let runtime = SeparateRuntime::start()?;
        let serve = async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            tokio::spawn(server.serve(listener, pending()));
            Ok(address)
        };
        let address = runtime.spawn(serve).await??.to_string();
        let broker = BrokerClient::new(BrokerSettings { address, tls_folder });
        Ok(Self { broker, runner, _server: runtime, _tls: tls })
    }

    /// Runs the client in a runner, and returns its output.
    pub(super) async fn run(&self, host: &Host, what: &Value) -> anyhow::Result<Value> {
        let scratch = tempfile::tempdir_in("/dev/shm")?;
        let mut child = self.start_runner(host, &scratch)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (mut stdin, stdout) = stdin.zip(stdout).context("the runner has no pipes")?;
        send(&mut stdin, &OperatorMessage::Hello(Hello { epoch: 1 })).await?;
        send(&mut stdin, &OperatorMessage::Run(Box::new(run(host, what)))).await?;
        let (up, down) = self.broker.open_run(&policy(host)).await?.split();
        tokio::select! {
            output = from_runner(stdout, up) => output,
            sent = from_broker(down, stdin) => bail!("the link to the broker ended: {sent:?}"),
        }
    }

    /// Starts the runner, with `/etc/hosts` as the kubelet writes it in a pod.
    fn start_runner(&self, host: &Host, scratch: &TempDir) -> anyhow::Result<Child> {
        let log = scratch.path().join("termination-log");
        let (work, hosts) = (scratch.path().join("work"), scratch.path().join("hosts"));
        std::fs::create_dir(&work)?;
        let named = named_hosts([&*host.name]).into_iter().zip(0..);
        let aliases = named.map(|(name, index)| format!("{} {name}\n", host_address(index)));
        let lines: Vec<String> = once("127.0.0.1 localhost\n".to_owned()).chain(aliases).collect();
        std::fs::write(&hosts, lines.concat())?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", MOUNT_AND_EXEC, "sh"]).arg(hosts).arg(&self.runner);
        command.arg("--scratch").arg(work).arg("--termination-log").arg(log).arg("--network");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        command.spawn().context("the runner")
    }
}

/// Passes on the frames of connections, and returns what the program printed.
async fn from_runner(mut stdout: ChildStdout, broker: RunSender) -> anyhow::Result<Value> {
    let (mut reader, mut buffer, mut output) = (StreamReader::new(), vec![0; READ_BYTES], Vec::new());
    loop {
        while let Some(message) = reader.next_message()? {
            match message {
                RunnerMessage::Network(request) => broker.send(request).await?,
                RunnerMessage::Stdout(bytes) => output.extend(bytes),
                RunnerMessage::Stderr(bytes) => eprint!("{}", String::from_utf8_lossy(&bytes)),
                RunnerMessage::Exit(receipt) => {
                    ensure!(
                        receipt.outcome == RunOutcome::Exited { code: 0 },
                        "the client: {:?}",
                        receipt.outcome
                    );
                    return Ok(serde_json::from_slice(&output)?);
                }
                RunnerMessage::Refused(refused) => bail!("the runner refused the run: {}", refused.message),
                RunnerMessage::Ready(_)
                | RunnerMessage::Accepted(_)
                | RunnerMessage::StdoutTail(_)
                | RunnerMessage::StderrTail(_) => {}
            }
        }
        let read = stdout.read(&mut buffer).await?;
        ensure!(read > 0, "the runner ended without a receipt");
        reader.push(&buffer[..read]);
    }
}

async fn from_broker(mut broker: RunReceiver, mut stdin: ChildStdin) -> anyhow::Result<()> {
    while let Some(response) = broker.next().await {
        send(&mut stdin, &OperatorMessage::Network(response)).await?;
    }
    Ok(())
}

async fn send(stdin: &mut ChildStdin, message: &OperatorMessage) -> anyhow::Result<()> {
    stdin.write_all(&message.encode()?).await?;
    Ok(stdin.flush().await?)
}

/// The chart's own values, but for the rate: nobody shares this broker.
fn settings(tls_folder: PathBuf) -> ServerSettings {
    let limits = LimitSettings { connections: 8192, tenant_connections: 512, tenant_rate: 1000 };
    ServerSettings {
        tls_folder,
        ca_bundle: None,
        limits,
        body_memory: 256 << 20,
        idle_limit: Duration::from_secs(300),
        link_limit: Duration::from_secs(3600),
        drain: Duration::ZERO,
    }
}

fn rule(host: &Host) -> HostRule {
    HostRule { name: host.name.clone(), ports: vec![host.address.port()] }
}

fn policy(host: &Host) -> RunPolicy {
    let internal = InternalHostRule { host: rule(host), ranges: vec![host.address.ip().to_string()] };
    RunPolicy {
        run: "bench".to_owned(),
        tenant: "bench".to_owned(),
        hosts: vec![rule(host)],
        internal_hosts: vec![internal],
        denied_ranges: Vec::new(),
        connections: 256,
        transfer_bytes: 1 << 40,
        sent_bytes: 0,
        received_bytes: 0,
    }
}

fn run(host: &Host, what: &Value) -> Run {
    Run {
        execution_uid: "bench".to_owned(),
        attempt: 1,
        epoch: 1,
        program: Program::Command { argv: vec![super::python().to_owned(), "client.py".to_owned()] },
        files: vec![RunFile { path: "client.py".to_owned(), content: FileContent::from(CLIENT) }],
        input: task(host, what, true).to_string(),
        keeps_input_open: false,
        env: [].into(),
        secret_env: [].into(),
        network: Some(RunNetwork { hosts: vec![rule(host)], connections: 256 }),
        limits: RunLimits {
            timeout_ms: 300_000,
            grace_ms: 200,
            processes: 32,
            output_bytes: 1 << 20,
            file_bytes: 32 << 20,
            open_files: 256,
        },
    }
}
