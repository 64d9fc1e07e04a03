//! The host that programs and HTTP skills ask: a server of this process at an address that pods reach, and its name in the
//! cluster. Requests to `/begin` and `/hold` wait for the bench.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use skillet_e2e::{Journey, eventually, network};
use tokio::sync::watch;

use crate::{
    http::{self, Connection, Head},
    separate_runtime::SeparateRuntime,
};

const NAME: &str = "host";
/// Written at once.
const PIECE: usize = 256 * 1024;

/// The server, its name, and the gates of its waiting requests.
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    begin: Gate,
    hold: Gate,
    _server: SeparateRuntime,
}

/// Requests wait at it until it is open.
#[derive(Clone)]
struct Gate {
    waiting: Arc<AtomicUsize>,
    open: watch::Sender<bool>,
}

impl Host {
    /// Starts the server and gives it a name in the namespace of the journey.
    pub(crate) async fn start(j: &Journey) -> anyhow::Result<Self> {
        let (begin, hold) = (Gate::new(), Gate::new());
        let gates = (begin.clone(), hold.clone());
        let serve = move |connection| serve(connection, gates.clone());
        let (runtime, own_address) = (SeparateRuntime::start()?, network::own_address(&j.client).await?);
        let address = runtime.spawn(http::listen_on(own_address, serve)).await??;
        let ports = json!([{ "name": "http", "port": address.port() }]);
        j.apply(&json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": NAME },
            "spec": { "clusterIP": "None", "ports": ports },
        }))
        .await?;
        j.apply(&json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": { "name": NAME, "labels": { "kubernetes.io/service-name": NAME } },
            "addressType": "IPv4", "ports": ports, "endpoints": [{ "addresses": [address.ip().to_string()] }],
        }))
        .await?;
        Ok(Self { name: name(&j.namespace), address, begin, hold, _server: runtime })
    }

    /// The `spec.network` of a skill that may reach it.
    pub(crate) fn network(&self) -> Value {
        json!({ "hosts": [{ "name": self.name, "ports": [self.address.port()] }] })
    }

    /// The fields of a SkillPolicy under which skills may reach it.
    pub(crate) fn policy(&self) -> Value {
        let ranges = [format!("{}/32", self.address.ip())];
        let host = json!({ "name": self.name, "ports": [self.address.port()], "ranges": ranges });
        json!({ "networkEnabled": true, "network": { "internalHosts": [host], "connections": 256 } })
    }

    pub(crate) async fn until_begun(&self, requests: usize) -> anyhow::Result<()> {
        self.begin.until("begun", requests).await
    }

    pub(crate) async fn until_held(&self, requests: usize) -> anyhow::Result<()> {
        self.hold.until("held", requests).await
    }

    /// Answers the requests for `/begin`.
    pub(crate) fn begin(&self) {
        self.begin.open.send_replace(true);
    }

    /// Closes the connections of `/hold`.
    pub(crate) fn release(&self) {
        self.hold.open.send_replace(true);
    }
}

impl Gate {
    fn new() -> Self {
        Self { waiting: Arc::default(), open: watch::Sender::new(false) }
    }

    async fn wait(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // The sender lives in this value.
        self.open.subscribe().wait_for(|is_open| *is_open).await.ok();
    }

    async fn until(&self, what: &str, requests: usize) -> anyhow::Result<()> {
        eventually(&format!("{requests} requests have {what}"), Duration::from_secs(60), async || {
            Ok((self.waiting.load(Ordering::Relaxed) >= requests).then_some(()))
        })
        .await
    }
}

fn name(namespace: &str) -> String {
    format!("{NAME}.{namespace}.svc.cluster.local")
}

async fn serve(mut connection: Connection, (begin, hold): (Gate, Gate)) -> io::Result<()> {
    let small = http::answer("200 OK", r#"{"temperature":21.5,"unit":"celsius","place":"S\u00e3o Paulo"}"#);
    while let Some(head) = connection.head().await? {
        connection.discard(head.body_length()).await?;
        match head.target() {
            "/bytes" => send_zeros(&mut connection, &head).await?,
            "/begin" => {
                begin.wait().await;
                connection.write(&small).await?;
            }
            "/hold" => {
                connection.write(&small).await?;
                hold.wait().await;
                return Ok(());
            }
            _ => connection.write(&small).await?,
        }
    }
    Ok(())
}

async fn send_zeros(connection: &mut Connection, head: &Head) -> io::Result<()> {
    let mut left: usize = head.header("x-length").and_then(|text| text.parse().ok()).unwrap_or_default();
    let piece = vec![0; PIECE];
    connection.write(format!("HTTP/1.1 200 OK\r\ncontent-length: {left}\r\n\r\n").as_bytes()).await?;
    while left > 0 {
        let next = left.min(PIECE);
        connection.write(&piece[..next]).await?;
        left -= next;
    }
    Ok(())
}
