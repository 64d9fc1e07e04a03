//! The scripted model server of `gateway/model` as a pod of the journey's namespace, and its log: what the gateway sent
//! to a provider.

use std::{collections::BTreeMap, env, fmt::Debug, fs, time::Duration};

use anyhow::{Context as _, Result};
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{ConfigMap, Pod, Service},
};
use kube::{
    Resource,
    api::{DeleteParams, ListParams},
    core::Request,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{Journey, eventually, operator};

/// Providers as SkillPolicy names them.
pub const PROVIDERS: [&str; 3] = ["openai", "anthropic", "gemini"];
/// Of all its objects.
const NAME: &str = "model";
const PORT: u16 = 8080;
/// Names a running `model/model.py` that the gateway and this machine reach.
const URL: &str = "SKILLET_MODEL_URL";
const UP_WITHIN: Duration = Duration::from_secs(60);
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// Base URL of the model.
pub struct Model {
    /// As the gateway reaches it.
    pub base_url: String,
}

/// A request as the model got it.
#[derive(Clone, Debug, Deserialize)]
pub struct Asked {
    pub headers: Value,
    /// Headers with keys that it came with.
    pub keys: Vec<String>,
    pub body: Value,
}

impl Model {
    /// Starts it, and waits until it answers.
    pub async fn start(j: &Journey) -> Result<Self> {
        if let Ok(base_url) = env::var(URL) {
            return Ok(Self { base_url });
        }
        for object in objects(&program()?) {
            j.apply(&object).await?;
        }
        let pods = j.api::<Pod>();
        eventually("the model is ready", UP_WITHIN, async || {
            Ok(operator::is_ready(&pods.get(NAME).await?).then_some(()))
        })
        .await?;
        Ok(Self { base_url: format!("http://{NAME}.{}.svc:{PORT}", j.namespace) })
    }

    /// Takes it away, and waits until it is gone; nothing where it is not there.
    pub async fn stop(j: &Journey) -> Result<()> {
        delete::<Service>(j).await?;
        delete::<ConfigMap>(j).await?;
        delete::<Pod>(j).await?;
        let pods = j.api::<Pod>();
        eventually("the model is gone", GONE_WITHIN, async || {
            Ok(pods.get_opt(NAME).await?.is_none().then_some(()))
        })
        .await
    }

    /// The policy that sends the requests of these providers here.
    pub fn policy(&self, providers: &[&str]) -> Value {
        let here = json!({ "baseUrl": self.base_url });
        let providers: BTreeMap<&str, &Value> = providers.iter().map(|name| (*name, &here)).collect();
        json!({ "gateway": { "providers": providers } })
    }

    /// The requests to the model of this name, in order.
    pub async fn asked(&self, j: &Journey, model: &str) -> Result<Vec<Asked>> {
        let query = format!("/log?model={model}");
        let text = if env::var(URL).is_ok() {
            let client = reqwest::Client::builder().no_proxy().build()?;
            client.get(format!("{}{query}", self.base_url)).send().await?.text().await?
        } else {
            let proxy = format!("/api/v1/namespaces/{}/pods/{NAME}:{PORT}/proxy{query}", j.namespace);
            let mut request = Request::new("/").list(&ListParams::default())?;
            *request.uri_mut() = proxy.parse()?;
            j.client.request_text(request).await?
        };
        serde_json::from_str(&text).with_context(|| format!("the model's log cannot be read: {text}"))
    }
}

impl Asked {
    /// Names of the tools that the model was offered, in whatever provider's form.
    pub fn tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        let named = tools.flat_map(|tool| match &tool["functionDeclarations"] {
            Value::Array(declared) => declared.clone(),
            _ if tool["function"].is_object() => vec![tool["function"].clone()],
            _ => vec![tool.clone()],
        });
        named.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
    }
}

async fn delete<K>(j: &Journey) -> Result<()>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    match j.api::<K>().delete(NAME, &DeleteParams::default()).await {
        Err(kube::Error::Api(refusal)) if refusal.code == 404 => Ok(()),
        answer => answer.map(drop).with_context(|| format!("could not delete the model's {}", K::kind(&()))),
    }
}

/// Its files, by name.
fn program() -> Result<BTreeMap<String, String>> {
    let folder = crate::package_folder().join("gateway/model");
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
    let labels = json!({ "app": NAME });
    let container = json!({
        "name": NAME,
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
    let volume = json!({ "name": "program", "configMap": { "name": NAME } });
    [
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": NAME }, "data": program }),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": NAME, "labels": labels },
            "spec": {
                "containers": [container], "volumes": [volume],
                "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0,
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": NAME },
            "spec": { "selector": labels, "ports": [{ "port": PORT }] },
        }),
    ]
}
