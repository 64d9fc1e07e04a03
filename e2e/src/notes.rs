//! A skill with MCP servers, of which one counts its calls.

use serde_json::{Value, json};

use crate::SkillDraft;

/// A server over lines of JSON that counts its calls.
const PYTHON: &str = r#"
import json, os, socket, sys, time
count = 0
tool = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}}
print("a server may greet on its log", file=sys.stderr)
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "n", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [tool]}
    elif method == "tools/call":
        count += 1
        what = params["arguments"].get("do")
        if what == "exit":
            sys.exit(3)
        if what == "sleep":
            time.sleep(20)
        if what == "fail":
            result = {"content": [{"type": "text", "text": "no such note"}], "isError": True}
        elif what == "large":
            result = {"content": [{"type": "text", "text": "x" * 300000}]}
        elif what == "network":
            try:
                socket.create_connection(("10.96.0.1", 443), 2)
                text = "connected"
            except OSError as error:
                text = type(error).__name__
            result = {"content": [{"type": "text", "text": text}]}
        else:
            text = open(os.environ["SKILL_DIR"] + "/notes.txt").read().strip()
            result = {"content": [{"type": "text", "text": f"{text} {count} {os.environ['GREETING']} {os.environ.get('TOKEN', '')}"}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

const NODE: &str = r#"
const lines = require("node:readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const results = { initialize: { protocolVersion: "2025-06-18", capabilities: {} }, "tools/list": { tools: [{ name: "hi", inputSchema: { type: "object" } }] } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] ?? { content: [{ type: "text", text: "node" }] } }));
});
"#;

/// The skill `notes` with the servers `python` and `node`. It needs the Secret `token`.
pub fn notes() -> SkillDraft {
    let servers = json!({
        "python": { "command": "python3", "args": ["${SKILL_ROOT}/server.py"], "env": { "GREETING": "${NAME:-hello}" },
            "secretEnv": [{ "name": "TOKEN", "secret": "token", "key": "value" }] },
        "node": { "command": "node", "args": ["server.js"], "idleTimeout": "1s" },
    });
    let instructions = json!({ "body": "Use the notes.", "mcpServers": servers });
    SkillDraft::bundle("notes", &[("server.py", PYTHON), ("server.js", NODE), ("notes.txt", "noted")])
        .spec("instructions", instructions)
        .spec("limits", json!({ "timeout": "5s" }))
}

/// The Secret of the skill.
pub fn token() -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "token" },
        "stringData": { "value": "hunter2-hunter2" } })
}
