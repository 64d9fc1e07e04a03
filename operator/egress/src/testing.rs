//! A broker with answers of a name server and loopback in the place of public addresses.
//!
//! The check of addresses is the real one: only the last step, the system call that connects, leads elsewhere.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use prometheus_client::registry::Registry;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use skillet_protocol::HostRule;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
    time::timeout,
};

use crate::{
    BROKER_NAME, BrokerClient, BrokerSettings, Connect, HostName, LimitSettings, Metrics, Resolve,
    ResolveError, RunPolicy, Server, ServerSettings, limits::lock,
};

/// A public address that the tests' names have.
pub(crate) const PUBLIC: &str = "93.184.216.34";

/// Answers of a name server, in their order; the last one stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers(Arc<Mutex<HashMap<String, Vec<Vec<IpAddr>>>>>);

impl Answers {
    pub(crate) fn set(&self, name: &str, answers: &[&[&str]]) {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        lock(&self.0).insert(name.to_owned(), answers.iter().map(parse).collect());
    }
}

impl Resolve for Answers {
    fn resolve<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, Result<Vec<IpAddr>, ResolveError>> {
        let mut names = lock(&self.0);
        let answer = match names.get_mut(host.as_str()) {
            None => Err(ResolveError::NotFound),
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers[0].clone()),
        };
        Box::pin(async move { answer })
    }
}

/// Connects to loopback instead of the addresses that are given, and notes them. An address without a place never answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loopback {
    places: Arc<Mutex<HashMap<SocketAddr, SocketAddr>>>,
    dialed: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Loopback {
    pub(crate) fn put(&self, address: &str, port: u16, place: SocketAddr) {
        lock(&self.places).insert(SocketAddr::new(address.parse().unwrap(), port), place);
    }

    pub(crate) fn dialed(&self) -> Vec<SocketAddr> {
        lock(&self.dialed).clone()
    }
}

impl Connect for Loopback {
    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        lock(&self.dialed).push(address);
        let place = lock(&self.places).get(&address).copied();
        Box::pin(async move {
            match place {
                Some(place) => TcpStream::connect(place).await,
                None => std::future::pending().await,
            }
        })
    }
}

static AUTHORITIES: AtomicU32 = AtomicU32::new(0);

/// An authority of certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Two authorities of one name would be taken for one with a wrong signature.
        let number = AUTHORITIES.fetch_add(1, Ordering::Relaxed);
        params.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Returns a certificate and its key in PEM.
    pub(crate) fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    /// Writes the files of an identity that trusts this authority.
    pub(crate) fn mount(&self, folder: &Path, name: &str) {
        let (certificate, key) = self.issue(name);
        std::fs::write(folder.join("tls.crt"), certificate).unwrap();
        std::fs::write(folder.join("tls.key"), key).unwrap();
        std::fs::write(folder.join("ca.crt"), self.pem()).unwrap();
    }
}

/// A broker that serves on loopback, and all that it needs.
pub(crate) struct TestBroker {
    pub(crate) answers: Answers,
    pub(crate) loopback: Loopback,
    pub(crate) address: SocketAddr,
    pub(crate) authority: Authority,
    /// Authority of the hosts' certificates.
    pub(crate) hosts: Authority,
    pub(crate) folder: TempDir,
    pub(crate) registry: Registry,
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) tasks: JoinSet<()>,
}

pub(crate) fn settings(folder: &Path) -> ServerSettings {
    ServerSettings {
        tls_folder: folder.join("broker"),
        ca_bundle: Some(folder.join("bundle.crt")),
        limits: LimitSettings { tenant_rate: 10_000, ..LimitSettings::default() },
        body_memory: 64 << 20,
        idle_limit: Duration::from_secs(60),
        link_limit: Duration::from_secs(600),
        drain: Duration::from_secs(5),
    }
}

impl TestBroker {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut ServerSettings)) -> Self {
        Self::start_settling(Duration::ZERO, change).await
    }

    /// Starts a broker that accepts connections for a while after the signal to stop.
    pub(crate) async fn start_settling(settle: Duration, change: impl FnOnce(&mut ServerSettings)) -> Self {
        let folder = TempDir::new().unwrap();
        let (authority, hosts) = (Authority::new(), Authority::new());
        for (name, host) in [("broker", BROKER_NAME), ("operator", "skillet-operator")] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            authority.mount(&folder.path().join(name), host);
        }
        std::fs::write(folder.path().join("bundle.crt"), hosts.pem()).unwrap();
        let mut settings = settings(folder.path());
        change(&mut settings);
        let (answers, loopback) = (Answers::default(), Loopback::default());
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let parts = (Arc::new(answers.clone()), Arc::new(loopback.clone()));
        let mut server = Server::renewed_every(Duration::ZERO, settings, parts.0, parts.1, metrics).unwrap();
        server.settle = settle;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, shutdown) = oneshot::channel::<()>();
        let mut tasks = JoinSet::new();
        tasks.spawn(server.serve(listener, async { drop(shutdown.await) }));
        let stop = Some(stop);
        Self { answers, loopback, address, authority, hosts, folder, registry, stop, tasks }
    }

    pub(crate) fn client(&self) -> BrokerClient {
        BrokerClient::renewed_every(
            Duration::ZERO,
            BrokerSettings {
                address: self.address.to_string(),
                tls_folder: self.folder.path().join("operator"),
            },
        )
    }

    /// Gives a name a public address, behind which is the listener.
    pub(crate) fn host(&self, name: &str, port: u16, listener: SocketAddr) {
        self.answers.set(name, &[&[PUBLIC]]);
        self.loopback.put(PUBLIC, port, listener);
    }

    pub(crate) fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }
}

pub(crate) fn rule(name: &str, ports: &[u16]) -> HostRule {
    HostRule { name: name.to_owned(), ports: ports.to_vec() }
}

/// A policy with generous limits.
pub(crate) fn policy(hosts: &[(&str, &[u16])]) -> RunPolicy {
    RunPolicy {
        run: "run".into(),
        tenant: "team".into(),
        hosts: hosts.iter().map(|(name, ports)| rule(name, ports)).collect(),
        connections: 64,
        transfer_bytes: 1 << 40,
        ..RunPolicy::default()
    }
}

/// An HTTP server that gives the same response to each connection, and the requests that it got.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    pub(crate) fn all(&self) -> Vec<String> {
        lock(&self.0).clone()
    }
}

/// Serves one response on each connection, and notes what came before it.
pub(crate) async fn http_host(response: impl Into<Vec<u8>>) -> (SocketAddr, Requests) {
    let (response, requests) = (response.into(), Requests::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let got = requests.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let request = read_request(&mut stream).await;
            lock(&got.0).push(request);
            stream.write_all(&response).await.ok();
            stream.shutdown().await.ok();
        }
    });
    (address, requests)
}

/// Reads a request with the body that its length announces.
pub(crate) async fn read_request(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut all = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&all).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        if stream.read_buf(&mut all).await.unwrap_or(0) == 0 {
            return text;
        }
    }
}

/// Waits for a state that comes without a sign.
pub(crate) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), wait).await.unwrap_or_else(|_| panic!("never came: {what}"));
}
