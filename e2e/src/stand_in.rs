//! A host outside of the cluster, which pods know by a name: an HTTP server of this process, a Service, and its address.
//!
//! It answers each request with what it got, as JSON: method, path, headers and body. The path `/form` is a page, and
//! `/zeros/N` has N bytes.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::{Journey, eventually, network, policy};

/// Most bytes of a request.
const MAX_REQUEST: usize = 1 << 20;

/// The beginning of a Python program that asks the host `to` of its input: `ask` returns the status of an answer that came whole,
/// and `ask_again` that of the first one within a minute, or None.
pub const ASK: &str = r#"
import errno, http.client, json, socket, sys, time
task = json.load(sys.stdin)
host, port = task["to"]
LOST = (OSError, http.client.HTTPException)
def get(path="/", timeout=60):
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    connection.request("GET", path)
    return connection.getresponse()
def ask(path="/", timeout=60):
    with get(path, timeout) as response:
        response.read()
        return response.status
def ask_again():
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            return ask(timeout=5)
        except LOST:
            time.sleep(0.5)
def name_of(error):
    return errno.errorcode.get(getattr(error, "errno", None), type(error).__name__)
"#;

/// A form that asks for `/found`.
const FORM: &str = "<!doctype html><title>Form</title><form action=/found><input id=word name=word><button>Find</button></form>";

/// The server. It ends when this is dropped.
pub struct StandIn {
    /// Name for the pods of the cluster.
    pub host: String,
    pub port: u16,
    address: IpAddr,
    requests: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl StandIn {
    /// Starts the server and gives it the name `name` in the namespace of the journey.
    pub async fn start(j: &Journey, name: &str) -> Result<Self> {
        let address = network::own_address(&j.client).await?;
        let listener = TcpListener::bind(SocketAddr::new(address, 0)).await?;
        let port = listener.local_addr()?.port();
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
            "spec": { "clusterIP": "None", "ports": [{ "name": "http", "port": port }] },
        });
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": { "name": name, "labels": { "kubernetes.io/service-name": name } },
            "addressType": "IPv4", "ports": [{ "name": "http", "port": port }],
            "endpoints": [{ "addresses": [address.to_string()] }],
        });
        j.apply(&service).await?;
        j.apply(&slice).await?;
        let requests = Arc::<Mutex<Vec<Value>>>::default();
        let task = tokio::spawn(serve(listener, requests.clone()));
        let host = format!("{name}.{}.svc.cluster.local", j.namespace);
        Ok(Self { host, port, address, requests, task })
    }

    /// Starts the server under the name `standin`, and lets skills reach it.
    pub async fn allowed(j: &Journey) -> Result<Self> {
        let host = Self::start(j, "standin").await?;
        policy::change(&j.client, host.policy()).await?;
        Ok(host)
    }

    /// Gives it another name, which looks public: the cluster of the tests has a zone of such names.
    #[must_use]
    pub fn with_public_name(mut self, j: &Journey) -> Self {
        let name = self.host.split('.').next().unwrap_or_default();
        self.host = format!("{name}.{}.svc.public.example", j.namespace);
        self
    }

    /// The fields of a SkillPolicy under which skills may reach it, although its address is not public.
    pub fn policy(&self) -> Value {
        let host =
            json!({ "name": self.host, "ports": [self.port], "ranges": [format!("{}/32", self.address)] });
        json!({ "networkEnabled": true, "network": { "internalHosts": [host] } })
    }

    /// The `spec.network` of a skill that may reach it.
    pub fn network(&self) -> Value {
        json!({ "hosts": [{ "name": self.host, "ports": [self.port] }] })
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}:{}{path}", self.host, self.port)
    }

    /// Waits until it has got so many requests.
    pub async fn answered(&self, requests: usize, within: Duration) -> Result<()> {
        let what = format!("{} has got {requests} requests", self.host);
        eventually(&what, within, async || Ok((self.requests().len() >= requests).then_some(()))).await
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, requests: Arc<Mutex<Vec<Value>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let requests = requests.clone();
        tokio::spawn(async move {
            // A client that goes away is its own loss.
            answer(stream, &requests).await.ok();
        });
    }
}

async fn answer(mut stream: TcpStream, requests: &Mutex<Vec<Value>>) -> Result<()> {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await? {
        let zeros =
            request["path"].as_str().and_then(|path| path.strip_prefix("/zeros/")?.parse::<u64>().ok());
        let is_form = request["path"] == "/form";
        let (kind, body) =
            if is_form { ("text/html", FORM.to_owned()) } else { ("application/json", request.to_string()) };
        requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        if let Some(length) = zeros {
            stream
                .write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").as_bytes())
                .await?;
            tokio::io::copy(&mut tokio::io::repeat(0).take(length), &mut stream).await?;
            continue;
        }
        let length = body.len();
        let response =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(response.as_bytes()).await?;
    }
    Ok(())
}

/// Reads one request with a `Content-Length` or without a body.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Option<Value>> {
    let head_end = loop {
        if let Some(place) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break place + 4;
        }
        if buffer.len() > MAX_REQUEST || stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next().context("a request without a line")?.split(' ');
    let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let headers: Map<String, Value> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), json!(value)))
        .collect();
    let length = headers.get("content-length").and_then(Value::as_str).unwrap_or("0").parse::<usize>()?;
    while buffer.len() < head_end + length {
        if buffer.len() > MAX_REQUEST || stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = String::from_utf8_lossy(&buffer[head_end..head_end + length]).into_owned();
    buffer.drain(..head_end + length);
    Ok(Some(json!({ "method": method, "path": path, "headers": headers, "body": body })))
}
