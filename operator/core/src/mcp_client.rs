//! The client of one MCP server that runs in a sandbox: bytes of its standard output in, lines for its standard input and
//! answers out. It knows no clock and does no I/O.
//!
//! The server is what a tenant wrote. Lines that are no messages are ignored, as are answers that nobody asked for. Results stay
//! text, since a text takes many times its memory once it is parsed: memory is bounded by one line, and by the lists on their way.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// Most bytes of one line of a server. A larger result fits no status.
const MAX_LINE: usize = 1 << 20;
/// Most tools of a list, and bytes of all, over all its pages.
const MAX_TOOLS: usize = 256;
const MAX_LIST: usize = 512 << 10;
const MAX_PAGES: u32 = 32;
/// Most bytes of the id of a request of the server.
const MAX_ID: usize = 256;
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
    /// The result as JSON, an object.
    Answer(Ticket, Result<String, McpFailure>),
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
    /// Tools of earlier pages as JSON, if tools are listed.
    tools: Option<Vec<String>>,
    pages: u32,
}

/// The parts of a message that are read.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    error: Option<RpcError>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RpcError {
    code: i64,
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    next_cursor: Option<String>,
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
                    let failure = McpFailure::Protocol("wrote a line of more than 1 MiB");
                    effects.extend(self.fail_all(&failure));
                } else {
                    effects.extend(self.on_line(&line));
                }
            }
        }
        effects
    }

    fn on_line(&mut self, line: &[u8]) -> Vec<Effect> {
        if let Ok(message) = serde_json::from_slice::<Message<'_>>(line) {
            return self.on_message(&message);
        }
        // Earlier versions of the protocol have batches.
        let batch: Vec<Message<'_>> = serde_json::from_slice(line).unwrap_or_default();
        batch.iter().flat_map(|message| self.on_message(message)).collect()
    }

    fn on_message(&mut self, message: &Message<'_>) -> Vec<Effect> {
        let Some(id) = message.id.filter(|id| id.get() != "null") else {
            // A notification.
            return Vec::new();
        };
        let number = id.get().parse().ok();
        match (&message.method, number) {
            (Some(method), _) => answer_server(method, id).into_iter().collect(),
            (None, Some(id)) if self.state == State::Initializing(id) => self.on_initialized(message),
            (None, Some(id)) => self.on_answer(id, message),
            (None, None) => Vec::new(),
        }
    }

    fn on_initialized(&mut self, message: &Message<'_>) -> Vec<Effect> {
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

    fn on_answer(&mut self, id: u64, message: &Message<'_>) -> Vec<Effect> {
        let Some(Sent { ticket, tools, pages }) = self.sent.remove(&id) else { return Vec::new() };
        let answer = |result| vec![Effect::Answer(ticket, result)];
        if let Some(failure) = error_of(message) {
            return answer(Err(failure));
        }
        let Some(result) = message.result.map(RawValue::get).filter(|text| text.starts_with('{')) else {
            return answer(Err(McpFailure::Protocol("answered without a result")));
        };
        let Some(mut tools) = tools else { return answer(Ok(result.to_owned())) };
        let Ok(Page { tools: page, next_cursor }) = serde_json::from_str(result) else {
            return answer(Err(McpFailure::Protocol("answered without a list of tools")));
        };
        let mut room = MAX_LIST.saturating_sub(tools.iter().map(String::len).sum());
        for tool in page.into_iter().map(RawValue::get).take(MAX_TOOLS.saturating_sub(tools.len())) {
            let Some(rest) = room.checked_sub(tool.len()) else { break };
            room = rest;
            tools.push(tool.to_owned());
        }
        match next_cursor {
            Some(cursor) if pages < MAX_PAGES && tools.len() < MAX_TOOLS && room > 0 => {
                let sent = Sent { ticket, tools: Some(tools), pages: pages + 1 };
                vec![self.send_as("tools/list", &json!({ "cursor": cursor }), sent)]
            }
            Some(_) | None => answer(Ok(format!("{{\"tools\":[{}]}}", tools.join(",")))),
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

/// Answers a request of the server. This client offers it nothing beside a sign of life. `None` for an id that is none.
fn answer_server(method: &str, id: &RawValue) -> Option<Effect> {
    if id.get().len() > MAX_ID {
        return None;
    }
    let id: Value = serde_json::from_str(id.get()).ok()?;
    if method == "ping" {
        return Some(line(&json!({ "jsonrpc": "2.0", "id": id, "result": {} })));
    }
    let error = json!({ "code": METHOD_NOT_FOUND, "message": "this client answers no such request" });
    Some(line(&json!({ "jsonrpc": "2.0", "id": id, "error": error })))
}

fn error_of(message: &Message<'_>) -> Option<McpFailure> {
    let RpcError { code, message } = message.error.as_ref()?;
    let text = if message.is_empty() { "no message" } else { message };
    let message = crate::text::truncate(text, MAX_MESSAGE).0.to_owned();
    Some(McpFailure::Server { code: *code, message })
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
