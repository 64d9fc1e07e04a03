//! The scripted model server as a pod of the journey's namespace, and its log: what the gateway sent to a provider.

use std::{collections::BTreeMap, env, fs, path::Path, time::Duration};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::{api::ListParams, core::Request};
use serde::Deserialize;
use serde_json::{Value, json};
use skillet_e2e::{Journey, eventually};

const PORT: u16 = 8080;
const UP_WITHIN: Duration = Duration::from_secs(60);

/// Where the model answers.
pub(crate) struct Model {
    /// As the gateway reaches it.
    pub(crate) base_url: String,
}

/// A request as the model got it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Asked {
    pub(crate) headers: Value,
    /// Headers with keys that it came with.
    pub(crate) keys: Vec<String>,
    pub(crate) body: Value,
}

impl Model {
    /// Starts it, and waits until it answers.
    pub(crate) async fn start(j: &Journey) -> Result<Self> {
        if let Ok(base_url) = env::var("SKILLET_MODEL_URL") {
            return Ok(Self { base_url });
        }
        for object in objects(&program()?) {
            j.apply(&object).await?;
        }
        let pods = j.api::<Pod>();
        eventually("the model is ready", UP_WITHIN, async || {
            let status = pods.get("model").await?.status.unwrap_or_default();
            let mut conditions = status.conditions.into_iter().flatten();
            Ok(conditions.any(|c| c.type_ == "Ready" && c.status == "True").then_some(()))
        })
        .await?;
        Ok(Self { base_url: format!("http://model.{}.svc:{PORT}", j.namespace) })
    }

    /// What a policy says to send all providers' requests here.
    pub(crate) fn policy(&self) -> Value {
        let provider = json!({ "baseUrl": self.base_url });
        json!({ "gateway": { "providers": { "openai": provider, "anthropic": provider, "gemini": provider } } })
    }

    /// What was asked of the model of this name, in order.
    pub(crate) async fn asked(&self, j: &Journey, model: &str) -> Result<Vec<Asked>> {
        let query = format!("/log?model={model}");
        let text = if env::var("SKILLET_MODEL_URL").is_ok() {
            let client = reqwest::Client::builder().no_proxy().build()?;
            client.get(format!("{}{query}", self.base_url)).send().await?.text().await?
        } else {
            let proxy = format!("/api/v1/namespaces/{}/pods/model:{PORT}/proxy{query}", j.namespace);
            let mut request = Request::new("/").list(&ListParams::default())?;
            *request.uri_mut() = proxy.parse()?;
            j.client.request_text(request).await?
        };
        serde_json::from_str(&text).with_context(|| format!("the model's log cannot be read: {text}"))
    }
}

impl Asked {
    /// Names of the tools that the model was offered, in whatever provider's form.
    pub(crate) fn tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        let named = tools.flat_map(|tool| match &tool["functionDeclarations"] {
            Value::Array(declared) => declared.clone(),
            _ if tool["function"].is_object() => vec![tool["function"].clone()],
            _ => vec![tool.clone()],
        });
        named.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
    }
}

/// Its files, by name.
fn program() -> Result<BTreeMap<String, String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("gateway/model");
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("could not read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "py") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.insert(name, fs::read_to_string(&path)?);
        }
    }
    Ok(files)
}

fn objects(program: &BTreeMap<String, String>) -> [Value; 3] {
    // The runtime's image is in every cluster with Skillet.
    let image = format!("skillet.dev/python:{}", env!("CARGO_PKG_VERSION"));
    let labels = json!({ "app": "model" });
    let container = json!({
        "name": "model",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-u", "/srv/model.py"],
        "ports": [{ "containerPort": PORT }],
        "readinessProbe": { "httpGet": { "path": "/healthz", "port": PORT }, "periodSeconds": 1 },
        "volumeMounts": [{ "name": "program", "mountPath": "/srv" }],
        "resources": { "requests": { "cpu": "50m", "memory": "48Mi" }, "limits": { "memory": "128Mi" } },
        "securityContext": {
            "runAsNonRoot": true, "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
        },
    });
    let volume = json!({ "name": "program", "configMap": { "name": "model" } });
    [
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "model" }, "data": program }),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "model", "labels": labels },
            "spec": {
                "containers": [container], "volumes": [volume],
                "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0,
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "model" },
            "spec": { "selector": labels, "ports": [{ "port": PORT }] },
        }),
    ]
}
