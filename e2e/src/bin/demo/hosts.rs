//! An HTTP skill and an unmodified Python program reach a host that they name, and the record of their connections.
//!
//! The host is a pod that stands in for an API outside of the cluster. For that time the cluster's SkillPolicy allows it, and is put
//! back whatever happens.

use std::{fmt::Write as _, time::Duration};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use skillet_api::{Phase, SkillExecutionStatus, network::Connections};
use skillet_e2e::{Journey, SkillDraft, eventually, operator, policy};

use crate::{
    interruption::Interruption,
    page::{INDENT, Paint, lines},
};

const NAME: &str = "weather-api";
const PORT: u16 = 8080;
const UP_WITHIN: Duration = Duration::from_secs(60);

/// The API: the weather of a place, which it makes up.
const API: &str = r#"
import http.server, json, urllib.parse
class Api(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        place = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("place", ["nowhere"])[0]
        body = json.dumps({"place": place, "celsius": 10 + len(place)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(("", 8080), Api).serve_forever()
"#;

/// A program as anybody would write it. It also tries a host that its skill does not name.
const PROGRAM: &str = r#"
import json, sys, urllib.request
asked = json.load(sys.stdin)
def get(url):
    with urllib.request.urlopen(url, timeout=5) as response:
        return json.load(response)
found = [get(f"{asked['api']}/?place={place}") for place in asked["places"]]
try:
    get("http://elsewhere.example/")
except OSError as error:
    print(f"elsewhere.example: {error}", file=sys.stderr)
print(json.dumps({"warmest": max(found, key=lambda one: one["celsius"])["place"]}))
"#;

/// One skill of the demo and what should come of it.
struct Task {
    title: &'static str,
    skill: &'static str,
    input: Value,
    output: Value,
    /// Connections that are made, and at least refused.
    connections: (u32, u32),
}

/// Runs both skills and prints them with their connections; whether each is as it should be.
pub(crate) async fn show(journey: &Journey, paint: &Paint) -> Result<Vec<bool>> {
    let _held = policy::alone().await?;
    let mut interruption = Interruption::new()?;
    // What a demo left that was killed.
    policy::restore(&journey.client).await?;
    stop(journey).await?;
    let shown = interruption.ends(Box::pin(run_all(journey, paint))).await;
    policy::restore(&journey.client).await?;
    stop(journey).await?;
    shown
}

async fn run_all(journey: &Journey, paint: &Paint) -> Result<Vec<bool>> {
    let address = start(journey).await?;
    let host = format!("{NAME}.{}.svc.cluster.local", journey.namespace);
    let internal = json!({ "name": host, "ports": [PORT], "ranges": [format!("{address}/32")] });
    let change = json!({ "networkEnabled": true, "network": { "internalHosts": [internal] } });
    policy::under(&journey.client, change, async || {
        apply_skills(journey, &host).await?;
        let mut shown = Vec::new();
        for task in tasks(&host) {
            journey.ready(task.skill).await?;
            let status = journey.run(task.skill, task.input.clone()).await?.status;
            shown.push(print(&task, &status, paint));
        }
        Ok(shown)
    })
    .await
}

fn tasks(host: &str) -> [Task; 2] {
    [
        Task {
            title: "An HTTP skill asks a host, without a pod",
            skill: "weather",
            input: json!({ "place": "S\u{e3}o Paulo" }),
            output: json!({ "celsius": 19 }),
            connections: (1, 0),
        },
        Task {
            title: "An unmodified Python program asks it from a sandbox without a network",
            skill: "warmest-place",
            input: json!({ "api": format!("http://{host}:{PORT}"), "places": ["Oslo", "Nairobi"] }),
            output: json!({ "warmest": "Nairobi" }),
            connections: (2, 1),
        },
    ]
}

async fn apply_skills(journey: &Journey, host: &str) -> Result<()> {
    let network = json!({ "hosts": [{ "name": host, "ports": [PORT] }] });
    let http = json!({
        "method": "GET", "url": format!("http://{host}:{PORT}/"), "query": { "place": "{{place}}" },
        "responseMapping": { "celsius": "$.celsius" },
    });
    let weather = json!({
        "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": { "name": "weather" },
        "spec": { "version": "1.0.0", "description": "The temperature of a place.", "run": { "http": http }, "network": network },
    });
    journey.apply(&weather).await?;
    let program = SkillDraft::python("warmest-place", PROGRAM).spec("network", network);
    journey.apply(&program.object()).await.map(drop)
}

fn print(task: &Task, status: &SkillExecutionStatus, paint: &Paint) -> bool {
    let connections = status.connections.clone().unwrap_or_default();
    let wrong = differences(task, status, &connections);
    let end = format!("{:?} in {} ms", status.phase, status.duration_ms.unwrap_or_default());
    println!("\n{}", paint.heading(wrong.is_empty(), task.title, (status.phase == Phase::Succeeded, &end)));
    println!("{}", lines("input", &task.input.to_string(), INDENT));
    println!(
        "{}",
        lines("output", &status.output.as_ref().map(Value::to_string).unwrap_or_default(), INDENT)
    );
    println!("{}", lines("record", &record(&connections), INDENT));
    println!("{}", paint.dim(&lines("sandbox", &crate::example::place(status), INDENT)));
    for difference in &wrong {
        println!("{}", paint.red(&lines("wrong", difference, INDENT)));
    }
    wrong.is_empty()
}

/// One line for each connection.
fn record(connections: &Connections) -> String {
    connections.list.iter().fold(String::new(), |mut text, connection| {
        let (host, verdict) = (&connection.host, connection.verdict.as_str());
        let port = if connection.port == 0 { String::new() } else { format!(":{}", connection.port) };
        let address =
            connection.address.as_deref().map(|address| format!(" ({address})")).unwrap_or_default();
        let (sent, received) = (connection.sent_bytes, connection.received_bytes);
        // Writing to a String does not fail.
        let _ = writeln!(text, "{host}{port}{address} {verdict}, {sent} bytes up, {received} down");
        text
    })
}

fn differences(task: &Task, status: &SkillExecutionStatus, connections: &Connections) -> Vec<String> {
    let mut found = Vec::new();
    if status.output.as_ref() != Some(&task.output) {
        let message = status.message.as_deref().unwrap_or_default();
        found.push(format!("the output should be {}, and the run says {message:?}", task.output));
    }
    let (allowed, refused) = task.connections;
    if connections.allowed != allowed || connections.refused < refused {
        found.push(format!("{allowed} connections should be made and {refused} refused"));
    }
    found
}

/// Starts the API and returns its address.
async fn start(journey: &Journey) -> Result<String> {
    // The runtime's image is in every cluster with Skillet.
    let image = format!("skillet.dev/python:{}", env!("CARGO_PKG_VERSION"));
    let labels = json!({ "app": NAME });
    let container = json!({
        "name": NAME, "image": image, "imagePullPolicy": "IfNotPresent", "command": ["python3", "-u", "-c", API],
        "readinessProbe": { "tcpSocket": { "port": PORT }, "periodSeconds": 1 },
        "resources": { "requests": { "cpu": "20m", "memory": "32Mi" }, "limits": { "memory": "96Mi" } },
        "securityContext": { "runAsNonRoot": true, "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": NAME, "labels": labels },
        "spec": { "containers": [container], "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0 },
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": NAME },
        "spec": { "clusterIP": "None", "selector": labels, "ports": [{ "port": PORT }] },
    });
    journey.apply(&pod).await?;
    journey.apply(&service).await?;
    let pods = journey.api::<Pod>();
    let ready = eventually("the API of the demo is ready", UP_WITHIN, async || {
        Ok(Some(pods.get(NAME).await?).filter(operator::is_ready))
    });
    ready.await?.status.and_then(|status| status.pod_ip).context("the API's pod has no address")
}

/// Takes the API away; nothing where it is not there.
async fn stop(journey: &Journey) -> Result<()> {
    let now = DeleteParams::default().grace_period(0);
    let is_gone = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 404);
    let deleted = journey.api::<Service>().delete(NAME, &now).await.map(drop);
    deleted.or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) })?;
    let deleted = journey.api::<Pod>().delete(NAME, &now).await.map(drop);
    deleted.or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) })?;
    let pods = journey.api::<Pod>();
    eventually("the API of the demo is gone", UP_WITHIN, async || {
        Ok(pods.get_opt(NAME).await?.is_none().then_some(()))
    })
    .await
}
