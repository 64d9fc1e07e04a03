//! The server over HTTP, asked by rmcp's own client and by requests written by hand; the gateway behind it is a fake.

mod calls;
mod fake;
mod idempotent_calls;
mod lists;
mod management;
mod names;
mod requests;
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
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

use self::fake::Fake;
use super::Timing;

/// Nothing takes as long on a machine that is not stuck.
const LIMIT: Duration = Duration::from_secs(20);

/// A served fake.
struct World {
    fake: Arc<Fake>,
    url: String,
    stop: CancellationToken,
}

impl World {
    async fn new() -> Self {
        Self::of(Arc::new(Fake::new()), Timing { call: LIMIT, ..timing() }).await
    }

    async fn of(fake: Arc<Fake>, timing: Timing) -> Self {
        let stop = CancellationToken::new();
        let router: Router = super::http::routes(fake.clone(), &stop, timing);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { fake, url, stop }
    }

    /// Another replica of the same gateway.
    async fn replica(&self) -> Self {
        Self::of(self.fake.clone(), timing()).await
    }

    /// A client of a protocol with sessions.
    async fn client(&self, token: &str) -> Client {
        self.client_of(token, ClientLifecycleMode::Initialize).await
    }

    async fn client_of(&self, token: &str, lifecycle: ClientLifecycleMode) -> Client {
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str()).auth_header(token);
        let seen = Arc::new(Received::default());
        let transport = StreamableHttpClientTransport::from_config(config);
        let service = Handler(seen.clone()).serve_with_lifecycle(transport, lifecycle).await.unwrap();
        Client { service, seen }
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
