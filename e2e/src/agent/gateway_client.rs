//! A connection to the gateway's port, and requests as bytes on the wire, also such as no SDK would send.

use std::{
    env,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::oneshot, task::spawn_blocking, time::timeout};

use crate::wait::eventually;

/// Namespace and name of the gateway's Service in the chart.
pub const NAMESPACE: &str = "skillet-system";
pub const SERVICE: &str = "skillet-gateway";
/// Variable with the gateway's URL, if it does not run as a pod.
const URL: &str = "SKILLET_GATEWAY_URL";
/// By its name: the number is the chart's to choose.
const PORT: &str = "http";
const OPEN_WITHIN: Duration = Duration::from_secs(20);
const REACHED_WITHIN: Duration = Duration::from_secs(2);
/// A conversation of ten rounds on a busy machine.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Rights that were refused are remembered for some seconds by the gateway, and new ones are not there at once.
const OFFERED_WITHIN: Duration = Duration::from_secs(40);

/// An open connection to the gateway, closed when dropped.
pub struct GatewayClient {
    pub url: String,
    client: reqwest::Client,
    _forward: Option<PortForward>,
}

/// A `kubectl port-forward`, killed when dropped.
struct PortForward(Child);

impl Drop for PortForward {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A response, read to its end.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

/// A request that is not yet sent.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Value>,
}

impl GatewayClient {
    /// True if the cluster has a gateway; a chart value can leave it out.
    pub async fn is_installed(client: &Client) -> Result<bool> {
        let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
        let found = services.get_opt(SERVICE).await.context("could not look for the gateway")?;
        Ok(found.is_some() || env::var_os(URL).is_some())
    }

    /// Straight to `SKILLET_GATEWAY_URL`, or to the Service where this machine reaches it, else through
    /// `kubectl port-forward`, which breaks off where a server answers before it has read the whole request.
    pub async fn open() -> Result<Self> {
        // The environment's proxy would get the requests to 127.0.0.1.
        let client = reqwest::Client::builder().no_proxy().timeout(ANSWER_WITHIN).build()?;
        if let Ok(url) = env::var(URL) {
            return Ok(Self { url, client, _forward: None });
        }
        if let Some(address) = reachable().await? {
            return Ok(Self { url: format!("http://{address}"), client, _forward: None });
        }
        let forward = Command::new("kubectl")
            .args(["port-forward", "--namespace", NAMESPACE])
            .args([format!("service/{SERVICE}"), format!(":{PORT}")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let mut forward = PortForward(forward.context("could not start kubectl port-forward")?);
        let output = forward.0.stdout.take().context("kubectl has no output")?;
        let (sender, first) = oneshot::channel();
        // kubectl prints a line for every connection, and would stop if nobody read it.
        thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(std::io::Result::ok);
            sender.send(lines.next()).ok();
            lines.for_each(drop);
        });
        let first = timeout(OPEN_WITHIN, first).await;
        let first = first.with_context(|| format!("no way to the gateway within {OPEN_WITHIN:?}"))??;
        let Some(port) = first.as_deref().and_then(chosen_port) else {
            bail!("kubectl found no way to {SERVICE} in namespace {NAMESPACE}: {first:?}")
        };
        Ok(Self { url: format!("http://127.0.0.1:{port}"), client, _forward: Some(forward) })
    }

    /// Waits until the model answers somebody through the gateway, offered all of these skills.
    pub async fn offers(&self, token: &str, skills: &[String]) -> Result<()> {
        let exactly = format!("exactly={}", skills.join(","));
        let request = chat("setting", "say ready").with("x-skillet-skills", &exactly);
        eventually("the model answers through the gateway, offered every skill", OFFERED_WITHIN, async || {
            let response = self.send(token, &request).await?;
            ensure!(response.status == 200, "{} {}", response.status, response.text);
            let offered = response.names("x-skillet-offered");
            Ok(skills.iter().all(|name| offered.contains(name)).then_some(()))
        })
        .await
    }

    /// Sends a request as somebody, or as nobody if the token is empty.
    pub async fn send(&self, token: &str, request: &Request) -> Result<Response> {
        let response = self.begin(token, request).await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text =
            response.text().await.with_context(|| format!("the response to {} broke off", request.path))?;
        Ok(Response { status, headers, text })
    }

    /// Sends a request and returns at the response's headers.
    pub async fn begin(&self, token: &str, request: &Request) -> Result<reqwest::Response> {
        let Request { method, path, headers, body } = request;
        let mut request = self.client.request(method.clone(), format!("{}{path}", self.url));
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        request.send().await.with_context(|| format!("{method} {path} was not answered"))
    }
}

/// Address of the Service, if it answers: on a node of the cluster it does.
async fn reachable() -> Result<Option<String>> {
    let mut kubectl = Command::new("kubectl");
    kubectl.args(["get", "--namespace", NAMESPACE, "service", SERVICE, "--output"]);
    kubectl.arg("jsonpath={.spec.clusterIP}:{.spec.ports[0].port}");
    let address = spawn_blocking(move || kubectl.output()).await?.context("could not start kubectl")?;
    let address = String::from_utf8_lossy(&address.stdout).into_owned();
    let connected = timeout(REACHED_WITHIN, TcpStream::connect(&address)).await;
    Ok(matches!(connected, Ok(Ok(_))).then_some(address))
}

/// From `Forwarding from 127.0.0.1:41234 -> 8090`.
fn chosen_port(line: &str) -> Option<u16> {
    let (address, _) = line.strip_prefix("Forwarding from ")?.split_once(" -> ")?;
    address.rsplit_once(':')?.1.parse().ok()
}

/// A chat request with a script or a question for the scripted model.
pub fn chat(model: &str, prompt: &str) -> Request {
    let messages = json!([{ "role": "user", "content": prompt }]);
    Request::post("/v1/chat/completions", json!({ "model": model, "messages": messages }))
}

impl Request {
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, None)
    }

    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self::new(Method::POST, path, Some(body))
    }

    pub fn new(method: Method, path: impl Into<String>, body: Option<Value>) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body }
    }

    /// The same with a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

impl Response {
    /// The body as JSON; null if it is not.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// A header that lists names.
    pub fn names(&self, header: &str) -> Vec<String> {
        let text = self.headers.get(header).and_then(|value| value.to_str().ok()).unwrap_or_default();
        text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_that_kubectl_chose_is_read() {
        assert_eq!(chosen_port("Forwarding from 127.0.0.1:41234 -> 8090"), Some(41_234));
        assert_eq!(chosen_port("Forwarding from [::1]:41234 -> 8090"), Some(41_234));
        assert_eq!(chosen_port("error: unable to forward"), None);
    }
}
