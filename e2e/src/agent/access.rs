//! The way to the gateway's port, and requests to it as bytes on the wire, also such as no SDK would send.

use std::{env, process::Stdio, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};

use crate::wait::eventually;

/// Where the chart puts the gateway's Service.
pub const NAMESPACE: &str = "skillet-system";
pub const SERVICE: &str = "skillet-gateway";
/// Names the gateway, where it does not run as a pod.
const URL: &str = "SKILLET_GATEWAY_URL";
/// By its name: the number is the chart's to choose.
const PORT: &str = "http";
const OPEN_WITHIN: Duration = Duration::from_secs(20);
const REACHED_WITHIN: Duration = Duration::from_secs(2);
/// A conversation of ten rounds on a busy machine.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Rights that were refused are remembered for some seconds by the gateway, and new ones are not there at once.
const OFFERED_WITHIN: Duration = Duration::from_secs(40);

/// An open way to the gateway, closed when dropped.
pub struct Gateway {
    pub url: String,
    client: reqwest::Client,
    _forward: Option<Child>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

/// A request that is not yet sent.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: Method,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Value>,
}

impl Gateway {
    /// Whether there is one. The chart installs it unless it is told not to.
    pub async fn is_installed(client: &Client) -> Result<bool> {
        let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
        let found = services.get_opt(SERVICE).await.context("could not look for the gateway")?;
        Ok(found.is_some() || env::var_os(URL).is_some())
    }

    /// Straight to `SKILLET_GATEWAY_URL`, or to the Service where this machine reaches it, else through
    /// `kubectl port-forward`, which breaks off where a server answers before it has read the whole request.
    pub async fn open() -> Result<Self> {
        // A proxy of the environment's would be asked for 127.0.0.1.
        let client = reqwest::Client::builder().no_proxy().timeout(ANSWER_WITHIN).build()?;
        if let Ok(url) = env::var(URL) {
            return Ok(Self { url, client, _forward: None });
        }
        if let Some(address) = reachable().await? {
            return Ok(Self { url: format!("http://{address}"), client, _forward: None });
        }
        let mut forward = Command::new("kubectl")
            .args(["port-forward", "--namespace", NAMESPACE])
            .args([format!("service/{SERVICE}"), format!(":{PORT}")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("could not start kubectl port-forward")?;
        let mut lines = BufReader::new(forward.stdout.take().context("kubectl has no output")?).lines();
        let first = timeout(OPEN_WITHIN, lines.next_line()).await;
        let first = first.with_context(|| format!("no way to the gateway within {OPEN_WITHIN:?}"))??;
        let Some(port) = first.as_deref().and_then(chosen_port) else {
            bail!("kubectl found no way to {SERVICE} in namespace {NAMESPACE}: {first:?}")
        };
        // It tells of every connection, and would stop when nobody reads that.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { url: format!("http://127.0.0.1:{port}"), client, _forward: Some(forward) })
    }

    /// Waits until the model answers somebody through the gateway, offered all of these skills.
    pub async fn offers(&self, token: &str, skills: &[String]) -> Result<()> {
        let exactly = format!("exactly={}", skills.join(","));
        let ask = chat("setting", "say ready").with("x-skillet-skills", &exactly);
        eventually("the model answers through the gateway, offered every skill", OFFERED_WITHIN, async || {
            let answer = self.send(token, &ask).await?;
            ensure!(answer.status == 200, "{} {}", answer.status, answer.text);
            let offered = answer.names("x-skillet-offered");
            Ok(skills.iter().all(|name| offered.contains(name)).then_some(()))
        })
        .await
    }

    /// Sends a request as somebody, or as nobody where the token is empty.
    pub async fn send(&self, token: &str, ask: &Ask) -> Result<Answer> {
        let response = self.begin(token, ask).await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.with_context(|| format!("the answer to {} broke off", ask.path))?;
        Ok(Answer { status, headers, text })
    }

    /// The same, up to the answer's headers.
    pub async fn begin(&self, token: &str, ask: &Ask) -> Result<reqwest::Response> {
        let Ask { method, path, headers, body } = ask;
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

/// Address of the Service, where it answers: on a node of the cluster it does.
async fn reachable() -> Result<Option<String>> {
    let address = Command::new("kubectl")
        .args([
            "get",
            "--namespace",
            NAMESPACE,
            "service",
            SERVICE,
            "--output",
            "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}",
        ])
        .output()
        .await
        .context("could not start kubectl")?;
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
pub fn chat(model: &str, prompt: &str) -> Ask {
    let messages = json!([{ "role": "user", "content": prompt }]);
    Ask::post("/v1/chat/completions", json!({ "model": model, "messages": messages }))
}

impl Ask {
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

impl Answer {
    /// The body as JSON; null where it is none.
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
