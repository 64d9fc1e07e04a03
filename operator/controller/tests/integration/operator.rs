//! The operator in this process, on an API server of its own, with the rights that the chart gives it and no others.

use std::{
    io,
    sync::{Arc, Mutex, Once, OnceLock, PoisonError, mpsc},
    thread::{self, JoinHandle},
};

use k8s_openapi::api::{authentication::v1::TokenRequest, core::v1::ServiceAccount};
use kube::{Api, Client, api::PostParams};
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::json;
use skillet_controller::{
    egress::Egress,
    health::Health,
    metrics::Metrics,
    run,
    settings::{RunnerDelivery, SandboxPodSettings, SandboxSettings},
};
use skillet_egress::{BrokerClient, BrokerSettings};
use skillet_kube::LeaseRef;
use tokio::{runtime::Runtime, sync::oneshot};

use crate::{
    audit::{self, Request},
    chart, legacy_objects,
    server::{Server, apply_crds, is_wanted, namespace},
};

/// Templates of what the operator needs in a cluster.
const TEMPLATES: [&str; 5] = [
    "templates/sandbox-namespace.yaml",
    "templates/serviceaccount.yaml",
    "templates/rbac-operator.yaml",
    "templates/admission.yaml",
    "templates/admission-rights.yaml",
];
/// The tests plant objects that only the operator and the gateway may write.
const VALUES: [&str; 1] = ["admission.exemptUsers={admin}"];
const ACCOUNT: &str = "skillet";

/// A running operator, with its requests, metrics and log.
pub struct Operator {
    server: Server,
    registry: Arc<Registry>,
    // The operator runs until this sender is dropped.
    life: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// The operator of most tests, started with the first of them.
pub fn operator() -> Option<&'static Operator> {
    static OPERATOR: OnceLock<Operator> = OnceLock::new();
    is_wanted().then(|| OPERATOR.get_or_init(|| Operator::start(legacy_objects::objects)))
}

impl Operator {
    /// Starts an API server, lets `prepare` change it, and starts the operator on it.
    pub fn start<F: Future<Output = ()>>(prepare: impl FnOnce(Client) -> F + Send + 'static) -> Self {
        let server = Server::start();
        Self::start_on(server.clone(), async move |admin: Client| {
            apply_crds(&admin, skillet_api::custom_resource_definitions()).await;
            namespace(&admin, chart::NAMESPACE).await;
            for template in TEMPLATES {
                chart::apply(&admin, template, &VALUES).await;
            }
            prepare(admin).await;
        })
    }

    /// Stops the operator. Its API server keeps running.
    pub fn stop(self) -> Stopped {
        let Self { server, registry: _, life, thread } = self;
        drop(life);
        thread.join().unwrap();
        Stopped { server }
    }

    fn start_on<F: Future<Output = ()>>(
        server: Server,
        prepare: impl FnOnce(Client) -> F + Send + 'static,
    ) -> Self {
        capture_log();
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let (life, end_of_life) = oneshot::channel();
        let (started, has_started) = mpsc::channel();
        let on = server.clone();
        // In a runtime of its own: the runtimes of tests end with them.
        let thread = thread::spawn(move || {
            Runtime::new().unwrap().block_on(async {
                let admin = on.admin().await;
                prepare(admin.clone()).await;
                let client = with_the_charts_rights(&on, &admin, ACCOUNT).await;
                let health = Health::default();
                started.send(health.clone()).unwrap();
                let shutdown = async { drop(end_of_life.await) };
                run::run(client, lease(), (settings(), egress(), None), metrics, health, shutdown)
                    .await
                    .unwrap();
            });
        });
        // If the thread ends, its panic was printed.
        let health: Health = has_started.recv().expect("the operator could not be started");
        while !health.is_ready() {
            thread::yield_now();
        }
        Self { server, registry: Arc::new(registry), life, thread }
    }

    /// The API server that the operator works on.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// An administrator's client, for the runtime of the calling test.
    pub async fn admin(&self) -> Client {
        self.server.admin().await
    }

    /// The client of a user with the rights of the roles that are bound to it.
    pub async fn client_as(&self, user: &str) -> Client {
        self.server.client_as(user).await
    }

    /// A namespace of a test's own.
    pub async fn namespace(&self, name: &str) -> (Client, String) {
        let client = self.admin().await;
        let name = namespace(&client, name).await;
        (client, name)
    }

    /// The operator's requests until now.
    pub fn requests(&self) -> Vec<Request> {
        requests(&self.server)
    }

    /// The operator's requests that changed something.
    pub fn writes_that_counted(&self) -> Vec<Request> {
        writes_that_counted(&self.server)
    }

    /// The operator's requests that changed something in `namespace`.
    pub fn writes(&self, namespace: &str) -> Vec<Request> {
        let in_namespace = |request: &Request| request.is_write() && request.namespace == namespace;
        self.requests().into_iter().filter(in_namespace).collect()
    }

    /// `/metrics` as text.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        text
    }

    /// Fails where the chart's rules forbade something.
    pub fn assert_nothing_was_forbidden(&self) {
        let forbidden: Vec<Request> =
            self.requests().into_iter().filter(|request| request.code == 403).collect();
        assert!(forbidden.is_empty(), "the chart's rules forbid {forbidden:#?}");
    }
}

/// An operator that was stopped.
pub struct Stopped {
    server: Server,
}

impl Stopped {
    pub fn start_again(self) -> Operator {
        Operator::start_on(self.server, async |_| ())
    }

    /// The operator's requests that changed something, all of them.
    pub fn writes_that_counted(&self) -> Vec<Request> {
        writes_that_counted(&self.server)
    }
}

fn requests(server: &Server) -> Vec<Request> {
    let user = format!("system:serviceaccount:{}:{ACCOUNT}", chart::NAMESPACE);
    audit::requests(&server.audit_log(), &user)
}

fn writes_that_counted(server: &Server) -> Vec<Request> {
    // The Lease is renewed as long as an operator runs.
    let counted = |request: &Request| {
        request.is_write() && request.code < 300 && !request.resource.ends_with("/leases")
    };
    requests(server).into_iter().filter(counted).collect()
}

/// Lines of the operators' log that hold all of `parts`.
pub fn log_lines(parts: &[&str]) -> Vec<String> {
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = String::from_utf8_lossy(&log);
    lines.lines().filter(|line| parts.iter().all(|part| line.contains(part))).map(ToOwned::to_owned).collect()
}

/// Each operator of this program is alone on its API server.
fn lease() -> LeaseRef {
    LeaseRef {
        namespace: chart::NAMESPACE.into(),
        name: "skillet-operator".into(),
        identity: "operator-0".into(),
    }
}

/// A broker that nobody reaches: the operator then reads the cluster's addresses.
fn egress() -> Egress {
    let settings = BrokerSettings { address: "127.0.0.1:1".into(), tls_folder: "/nonexistent".into() };
    Egress::new(Some(BrokerClient::new(settings)))
}

fn settings() -> SandboxSettings {
    SandboxSettings {
        namespace: chart::SANDBOXES.into(),
        shell_image: "test/shell:1".into(),
        python_image: "test/python:1".into(),
        node_image: "test/node:1".into(),
        browser_image: "test/browser:1".into(),
        runner_image: "test/runner:1".into(),
        runner_delivery: RunnerDelivery::ImageVolume,
        image_pull_policy: None,
        runtime_class: None,
        pod: SandboxPodSettings::default(),
    }
}

/// A client with a token of one of the chart's ServiceAccounts.
pub async fn with_the_charts_rights(server: &Server, admin: &Client, account: &str) -> Client {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), chart::NAMESPACE);
    let request =
        json!({ "spec": { "audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 7200 } });
    let request: TokenRequest = serde_json::from_value(request).unwrap();
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await.unwrap();
    server.client(&answer.status.unwrap().token.unwrap()).await.unwrap()
}

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Everything the operators of this program log, without colors.
fn capture_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing_subscriber::fmt()
            .with_env_filter("skillet_controller=debug")
            .with_ansi(false)
            .with_writer(|| Log)
            .init();
    });
}

struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
