//! The client of one MCP server that runs in a sandbox: bytes of its standard output in, lines for its standard input and
//! answers out. It knows no clock and does no I/O.
//!
//! The server is what a tenant wrote. Lines that are no messages are ignored, as are answers that nobody asked for; memory is
//! bounded by one line, and by the requests that wait.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

/// Most bytes of one line of a server.
const MAX_LINE: usize = 4 << 20;
/// Most tools of a list, over all its pages.
const MAX_TOOLS: usize = 256;
const MAX_PAGES: u32 = 32;
/// Most bytes of an error's message.
const MAX_MESSAGE: usize = 2048;
/// The version of the protocol that is proposed. A server answers with the one that it speaks; requests of tools are alike in all.
const PROTOCOL: &str = "2025-06-18";
const METHOD_NOT_FOUND: i64 = -32601;

/// A request of a caller.
#[derive(Clone, Debug, PartialEq)]
pub enum McpRequest {
    ListTools,
    CallTool { name: String, arguments: Value },
}

/// Number of a request, given by the caller.
pub type Ticket = u64;

/// The reason why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpFailure {
    /// The server's own error.
    #[error("the MCP server answered with error {code}: {message}")]
    Server { code: i64, message: String },
    #[error("the MCP server {0}")]
    Protocol(&'static str),
}

/// A consequence of what was read or asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A line for the server.
    Send(Vec<u8>),
    Answer(Ticket, Result<Value, McpFailure>),
}

/// The connection to one server.
#[derive(Debug, Default)]
pub struct McpClient {
    state: State,
    line: Vec<u8>,
    /// The line is longer than a line may be, and is dropped up to its end.
    is_skipping: bool,
    last_id: u64,
    /// Requests on their way, by their id.
    sent: BTreeMap<u64, Sent>,
    /// Requests that wait for the server to be ready.
    waiting: VecDeque<(Ticket, McpRequest)>,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    #[default]
    New,
    /// The request `initialize` of this id is on its way.
    Initializing(u64),
    Ready,
    Failed(McpFailure),
}

#[derive(Debug)]
struct Sent {
    ticket: Ticket,
    /// Tools of earlier pages, if tools are listed.
    tools: Option<Vec<Value>>,
    pages: u32,
}

impl McpClient {
    /// Begins the connection.
    pub fn start(&mut self) -> Effect {
        let id = self.next_id();
        self.state = State::Initializing(id);
        let client = json!({ "name": "skillet", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client });
        request(id, "initialize", &params)
    }

    /// Asks the server, at once or as soon as it is ready.
    pub fn ask(&mut self, ticket: Ticket, asked: McpRequest) -> Vec<Effect> {
        match &self.state {
            State::New | State::Initializing(_) => {
                self.waiting.push_back((ticket, asked));
                Vec::new()
            }
            State::Ready => vec![self.send(ticket, asked)],
            State::Failed(failure) => vec![Effect::Answer(ticket, Err(failure.clone()))],
        }
    }

    /// Forgets a request that nobody waits for, and says so to the server.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<Effect> {
        self.waiting.retain(|(waiting, _)| *waiting != ticket);
        let id = self.sent.iter().find(|(_, sent)| sent.ticket == ticket).map(|(id, _)| *id)?;
        self.sent.remove(&id);
        Some(notification("notifications/cancelled", &json!({ "requestId": id, "reason": "nobody waits" })))
    }

    /// Takes bytes of the server's standard output.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<Effect> {
        let mut effects = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_end) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            if self.line.len() + text.len() > MAX_LINE {
                self.is_skipping = true;
                self.line = Vec::new();
            }
            if !self.is_skipping {
                self.line.extend_from_slice(text);
            }
            if is_end {
                let line = std::mem::take(&mut self.line);
                if std::mem::take(&mut self.is_skipping) {
                    effects.extend(self.fail_all(&McpFailure::Protocol("wrote a line of more than 4 MiB")));
                } else if let Ok(message) = serde_json::from_slice(&line) {
                    effects.extend(self.on_message(message));
                }
            }
        }
        effects
    }

    fn on_message(&mut self, message: Value) -> Vec<Effect> {
        // Earlier versions of the protocol have batches.
        if let Value::Array(messages) = message {
            return messages.into_iter().flat_map(|message| self.on_message(message)).collect();
        }
        let id = &message["id"];
        match (message["method"].as_str(), id.as_u64()) {
            (Some(method), _) if !id.is_null() => vec![answer_server(method, id)],
            (None, Some(id)) if self.state == State::Initializing(id) => self.on_initialized(&message),
            (None, Some(id)) => self.on_answer(id, message),
            // A notification, or an answer that nobody asked for.
            (Some(_) | None, _) => Vec::new(),
        }
    }

    fn on_initialized(&mut self, message: &Value) -> Vec<Effect> {
        if let Some(failure) = error_of(message) {
            return self.fail_all(&failure);
        }
        self.state = State::Ready;
        let mut effects = vec![notification("notifications/initialized", &json!({}))];
        for (ticket, asked) in std::mem::take(&mut self.waiting) {
            effects.push(self.send(ticket, asked));
        }
        effects
    }

    fn on_answer(&mut self, id: u64, mut message: Value) -> Vec<Effect> {
        let Some(Sent { ticket, tools, pages }) = self.sent.remove(&id) else { return Vec::new() };
        let answer = |result| vec![Effect::Answer(ticket, result)];
        if let Some(failure) = error_of(&message) {
            return answer(Err(failure));
        }
        let mut result = message["result"].take();
        if !result.is_object() {
            return answer(Err(McpFailure::Protocol("answered without a result")));
        }
        let Some(mut tools) = tools else { return answer(Ok(result)) };
        match result["tools"].take() {
            Value::Array(page) => tools.extend(page),
            _ => return answer(Err(McpFailure::Protocol("answered without a list of tools"))),
        }
        match result["nextCursor"].as_str() {
            Some(cursor) if pages < MAX_PAGES && tools.len() < MAX_TOOLS => {
                let sent = Sent { ticket, tools: Some(tools), pages: pages + 1 };
                vec![self.send_as("tools/list", &json!({ "cursor": cursor }), sent)]
            }
            Some(_) | None => {
                tools.truncate(MAX_TOOLS);
                answer(Ok(json!({ "tools": tools })))
            }
        }
    }

    fn send(&mut self, ticket: Ticket, asked: McpRequest) -> Effect {
        match asked {
            McpRequest::ListTools => {
                let sent = Sent { ticket, tools: Some(Vec::new()), pages: 1 };
                self.send_as("tools/list", &json!({}), sent)
            }
            McpRequest::CallTool { name, arguments } => {
                let params = json!({ "name": name, "arguments": arguments });
                self.send_as("tools/call", &params, Sent { ticket, tools: None, pages: 1 })
            }
        }
    }

    fn send_as(&mut self, method: &str, params: &Value, sent: Sent) -> Effect {
        let id = self.next_id();
        self.sent.insert(id, sent);
        request(id, method, params)
    }

    fn fail_all(&mut self, failure: &McpFailure) -> Vec<Effect> {
        let sent = std::mem::take(&mut self.sent).into_values().map(|sent| sent.ticket);
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|(ticket, _)| ticket);
        let tickets: Vec<Ticket> = sent.chain(waiting).collect();
        if self.state != State::Ready {
            self.state = State::Failed(failure.clone());
        }
        tickets.into_iter().map(|ticket| Effect::Answer(ticket, Err(failure.clone()))).collect()
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

/// Answers a request of the server. This client offers it nothing beside a sign of life.
fn answer_server(method: &str, id: &Value) -> Effect {
    if method == "ping" {
        return line(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
    }
    let error = json!({ "code": METHOD_NOT_FOUND, "message": "this client answers no such request" });
    line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

fn error_of(message: &Value) -> Option<McpFailure> {
    let error = message.get("error").filter(|error| !error.is_null())?;
    let text = error["message"].as_str().unwrap_or("no message");
    let message = crate::text::truncate(text, MAX_MESSAGE).0.to_owned();
    Some(McpFailure::Server { code: error["code"].as_i64().unwrap_or_default(), message })
}

fn request(id: u64, method: &str, params: &Value) -> Effect {
    line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

fn notification(method: &str, params: &Value) -> Effect {
    line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

fn line(message: &Value) -> Effect {
    Effect::Send(format!("{message}\n").into_bytes())
}

#[cfg(test)]
mod tests;
