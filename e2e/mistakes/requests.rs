//! Mistakes in requests to the gateway: REST, MCP, models' routes.

use std::{collections::BTreeMap, time::Instant};

use anyhow::{Context as _, Result, ensure};
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    door::{Answer, Door, Row},
    stage::Stage,
};

const MCP_VERSION: &str = "2026-07-28";

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GatewayRequest {
    /// Method and path.
    request: String,
    #[serde(default = "agent", rename = "as")]
    caller: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<Value>,
    /// A body that may be no JSON.
    text: Option<String>,
    /// Method and parameters of an MCP request, in the protocol without sessions.
    mcp: Option<Map<String, Value>>,
    status: u16,
}

fn agent() -> String {
    "agent".to_owned()
}

impl GatewayRequest {
    fn build(&self, stage: &Stage<'_>) -> Result<RequestBuilder> {
        let (method, path) = self.request.split_once(' ').context("no method and path")?;
        let url = format!("{}{path}", stage.gateway.url);
        let mut request = stage.http.request(method.parse::<Method>()?, url);
        let token = stage.token(&self.caller)?;
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if path == "/mcp" {
            request = request.header("accept", "application/json, text/event-stream");
        }
        let body = match (&self.mcp, &self.text, &self.body) {
            (Some(mcp), _, _) => {
                let (headers, body) = mcp_request(mcp);
                request =
                    headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
                body.to_string()
            }
            (None, Some(text), _) => text.clone(),
            (None, None, Some(body)) => body.to_string(),
            (None, None, None) => String::new(),
        };
        Ok(request.header("content-type", "application/json").body(body))
    }
}

/// The headers and the body of an MCP request.
fn mcp_request(mcp: &Map<String, Value>) -> (Vec<(&'static str, String)>, Value) {
    let word = |key: &str| mcp.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MCP_VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut params = mcp.clone();
    params.remove("method");
    params.insert("_meta".to_owned(), meta);
    let headers = vec![
        ("mcp-protocol-version", MCP_VERSION.to_owned()),
        ("mcp-method", word("method")),
        ("mcp-name", word("name")),
    ];
    (headers, json!({ "jsonrpc": "2.0", "id": 1, "method": word("method"), "params": params }))
}

impl Door for GatewayRequest {
    const NAME: &'static str = "requests";
    const TABLE: &'static str = include_str!("tables/requests.yaml");

    async fn answer(row: &Row<Self>, stage: &Stage<'_>) -> Result<Answer> {
        let request = row.deed.build(stage)?;
        let began = Instant::now();
        let response = request.send().await.context("no answer")?;
        let status = response.status().as_u16();
        let text = response.text().await?;
        let took = began.elapsed();
        ensure!(status == row.deed.status, "{status} in the place of {}: {text}", row.deed.status);
        // Quotes in a message are escaped in JSON.
        Ok(Answer { text: text.replace("\\\"", "\""), took })
    }
}
