//! The server over HTTP, before a whole gateway; the clients are rmcp's own and requests written by hand.

mod calls;
mod idempotent_calls;
mod instruction_tools;
mod lists;
mod management;
mod names;
mod prompts;
mod requests;
mod resources;
mod watching;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::Router;
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient,
    model::{
        CallToolRequestParams, CallToolResult, ClientConfig, ProgressNotificationParam, ProtocolVersion, Tool,
    },
    service::{NotificationContext, RunningService},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};
use skillet_kube::testing::path;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

use super::Timing;
use crate::{auth::Verb, testing::TestGateway};

/// Nothing takes as long on a machine that is not stuck.
const LIMIT: Duration = Duration::from_secs(20);

/// The MCP server of a gateway. Its runs have numbers in the order of their creation, from 0.
struct McpServer {
    gateway: Arc<TestGateway>,
    url: String,
    stop: CancellationToken,
}

impl McpServer {
    async fn start() -> Self {
        Self::with_timing(Timing { call: LIMIT, ..timing() }).await
    }

    async fn with_timing(timing: Timing) -> Self {
        Self::serve(Arc::new(TestGateway::without_auth_cache()), timing).await
    }

    async fn serve(gateway: Arc<TestGateway>, timing: Timing) -> Self {
        let stop = gateway.service.stop.clone();
        let router: Router = super::http::routes(gateway.service.clone(), timing);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { gateway, url, stop }
    }

    /// Starts another replica of the same gateway.
    async fn replica(&self) -> Self {
        Self::serve(self.gateway.clone(), timing()).await
    }

    /// Connects a client of a protocol with sessions.
    async fn client(&self, account: &str) -> Client {
        self.client_of(account, ClientLifecycleMode::Initialize).await
    }

    async fn client_of(&self, account: &str, lifecycle: ClientLifecycleMode) -> Client {
        let token = self.gateway.token(account);
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str()).auth_header(token);
        let seen = Arc::new(Received::default());
        let transport = StreamableHttpClientTransport::from_config(config);
        let service = Handler(seen.clone()).serve_with_lifecycle(transport, lifecycle).await.unwrap();
        Client { service, seen }
    }

    /// Removes a skill's version 1.0.0.
    fn unseal(&self, namespace: &str, name: &str) {
        self.gateway.service.catalog.forget_version(namespace, &format!("{name}-1.0.0"));
    }

    /// Returns the number of lists of a namespace's skills so far.
    fn lists(&self, namespace: &str) -> usize {
        self.gateway.service.catalog.lists(namespace)
    }

    fn started(&self) -> usize {
        self.gateway.api.executions().len()
    }

    fn run(&self, number: usize) -> Value {
        let mut runs = self.gateway.api.executions();
        runs.sort_by_key(|run| run["metadata"]["uid"].as_str().unwrap()[4..].parse::<u64>().unwrap());
        runs.swap_remove(number)
    }

    fn name(&self, number: usize) -> String {
        self.run(number)["metadata"]["name"].as_str().unwrap().to_owned()
    }

    fn set_status(&self, number: usize, status: &Value) {
        let run = self.run(number);
        let text = |field: &str| run["metadata"][field].as_str().unwrap().to_owned();
        self.gateway.api.set_status(&text("namespace"), &text("name"), status.clone());
    }

    fn remove(&self, number: usize) {
        let run = self.run(number);
        let text = |field: &str| run["metadata"][field].as_str().unwrap().to_owned();
        self.gateway.api.delete(&path(&text("namespace"), "skillexecutions", &text("name")));
    }

    /// Returns the number of requests that wait for a run.
    fn waiting(&self, number: usize) -> usize {
        let uid = self.run(number)["metadata"]["uid"].as_str().unwrap().to_owned();
        self.gateway.service.executions.waiting(&uid)
    }

    /// Returns the names of the runs that are to be cancelled.
    fn cancelled(&self) -> Vec<String> {
        let runs = self.gateway.api.executions().into_iter().filter(|run| run["spec"]["cancel"] == true);
        runs.map(|run| run["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The start of a client that speaks the protocol without sessions.
fn without_sessions() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

fn timing() -> Timing {
    let short = Duration::from_millis(20);
    Timing { progress: short, call: LIMIT, settle: short, idle: LIMIT }
}

/// The notifications that a client has received.
#[derive(Default)]
struct Received {
    progress: Mutex<Vec<(f64, String)>>,
    list_changed: watch::Sender<u32>,
    resources_changed: watch::Sender<u32>,
}

struct Handler(Arc<Received>);

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::default().with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(&self, notice: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let progress = (notice.progress, notice.message.unwrap_or_default());
        self.0.progress.lock().unwrap().push(progress);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.list_changed.send_modify(|count| *count += 1);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.resources_changed.send_modify(|count| *count += 1);
    }
}

struct Client {
    service: RunningService<RoleClient, Handler>,
    seen: Arc<Received>,
}

impl Client {
    async fn tools(&self) -> HashMap<String, Tool> {
        let tools = self.service.list_all_tools().await.unwrap();
        tools.into_iter().map(|tool| (tool.name.to_string(), tool)).collect()
    }

    async fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        let done = self.service.call_tool(params(tool, arguments));
        tokio::time::timeout(LIMIT, done).await.expect("an answer").unwrap()
    }
}

fn params(tool: &str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)
}

/// The text of an answer, which is JSON.
fn text(result: &CallToolResult) -> Value {
    let result = serde_json::to_value(result).unwrap();
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap_or(json!(null))
}

/// Waits until it is so.
async fn until(mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(LIMIT, waiting).await.expect("the state that is waited for");
}
