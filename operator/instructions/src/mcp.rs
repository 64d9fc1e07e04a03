//! MCP servers of a skill, from `.mcp.json` or `mcp_tools`: checks and the expansion of variables.

use serde_json::{Map, Number, Value};

use crate::yaml::boolean;

/// Fields of a server that are kept.
const FIELDS: [&str; 14] = [
    "url",
    "transport",
    "command",
    "args",
    "env",
    "headers",
    "cwd",
    "description",
    "icon",
    "timeout",
    "sse_read_timeout",
    "keep_alive",
    "auth",
    "enabled",
];
const TEXTS: [&str; 3] = ["cwd", "description", "icon"];
const NUMBERS: [&str; 2] = ["timeout", "sse_read_timeout"];
const FLAGS: [&str; 2] = ["enabled", "keep_alive"];
const MAPS: [&str; 2] = ["env", "headers"];
const TRANSPORTS: [&str; 4] = ["stdio", "http", "streamable-http", "sse"];
const STRATEGIES: [&str; 6] = ["none", "api_key", "bearer", "basic", "header", "oauth2"];

/// Reads `{mcpServers: {name: server}}` or the map of servers alone. Unknown fields of a server are dropped.
pub fn servers(config: &Value) -> Result<Map<String, Value>, String> {
    let config = match config {
        Value::Null => return Ok(Map::new()),
        Value::Object(config) => config,
        _ => return Err("is not a map of servers".to_owned()),
    };
    let servers = match config.get("mcpServers") {
        None => config,
        Some(Value::Object(servers)) => servers,
        Some(Value::Null) => return Ok(Map::new()),
        Some(_) => return Err("mcpServers is not a map of servers".to_owned()),
    };
    let checked = servers.iter().map(|(name, server)| {
        let server = server.as_object().ok_or_else(|| format!("server {name:?} is not a map"))?;
        let server = check(server).map_err(|problem| format!("server {name:?}: {problem}"))?;
        Ok((name.clone(), Value::Object(server)))
    });
    checked.collect()
}

fn check(server: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut kept: Map<String, Value> = Map::new();
    for (field, value) in server {
        let field = if field == "type" { "transport" } else { field.as_str() };
        if !FIELDS.contains(&field) || (value.is_null() && field != "enabled") {
            continue;
        }
        if field == "transport" && server.contains_key("type") && server.contains_key("transport") {
            kept.insert(field.to_owned(), server["transport"].clone());
        } else {
            kept.insert(field.to_owned(), plain(field, value));
        }
    }
    if kept.get("transport").and_then(Value::as_str) == Some("shttp") {
        kept.insert("transport".to_owned(), "http".into());
    }
    check_types(&kept)?;
    kept.retain(|field, value| !MAPS.contains(&field.as_str()) || value != &Value::Object(Map::new()));
    let has = |field: &str| kept.contains_key(field);
    match kept.get("transport").and_then(Value::as_str) {
        Some("stdio") if !has("command") => Err("transport stdio needs a command".to_owned()),
        Some(transport) if transport != "stdio" && !has("url") => {
            Err(format!("transport {transport} needs a url"))
        }
        None if !has("command") && !has("url") => Err("has neither command nor url".to_owned()),
        _ => check_auth(&kept).map(|()| kept),
    }
}

/// Returns the value of a field. Text that stands for a number or a boolean is one.
fn plain(field: &str, value: &Value) -> Value {
    let read = match value {
        Value::String(text) if NUMBERS.contains(&field) => {
            text.trim().parse().ok().and_then(Number::from_f64).map(Value::Number)
        }
        Value::String(text) if FLAGS.contains(&field) => boolean(text).map(Value::Bool),
        Value::Number(number) if FLAGS.contains(&field) => boolean(&number.to_string()).map(Value::Bool),
        _ => None,
    };
    read.unwrap_or_else(|| value.clone())
}

fn check_types(server: &Map<String, Value>) -> Result<(), String> {
    for (field, value) in server {
        let is_good = match field.as_str() {
            "command" | "url" => value.as_str().is_some_and(|text| !text.is_empty()),
            field if TEXTS.contains(&field) => value.is_string(),
            field if NUMBERS.contains(&field) => value.is_number(),
            field if FLAGS.contains(&field) => value.is_boolean(),
            field if MAPS.contains(&field) => {
                value.as_object().is_some_and(|map| map.values().all(Value::is_string))
            }
            "transport" => value.as_str().is_some_and(|transport| TRANSPORTS.contains(&transport)),
            "args" => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            _ => true,
        };
        if !is_good {
            return Err(format!("{field} has a wrong type or value"));
        }
    }
    Ok(())
}

fn check_auth(server: &Map<String, Value>) -> Result<(), String> {
    let Some(auth) = server.get("auth") else { return Ok(()) };
    let strategy = auth.get("strategy").and_then(Value::as_str).unwrap_or_default();
    if !STRATEGIES.contains(&strategy) {
        return Err(format!("auth has no strategy of {}", STRATEGIES.join(", ")));
    }
    if strategy == "basic" && !["username", "password"].iter().all(|field| auth[*field].is_string()) {
        return Err("auth of strategy basic needs username and password".to_owned());
    }
    let headers = server.get("headers").and_then(Value::as_object);
    let has_header =
        headers.is_some_and(|map| map.keys().any(|name| name.eq_ignore_ascii_case("authorization")));
    if has_header {
        return Err("gives auth and an Authorization header; keep one of them".to_owned());
    }
    Ok(())
}

/// The value of a variable without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unset {
    /// Its default, if it names one.
    Default,
    /// Its own text, for a later expansion that knows more variables.
    Kept,
}

/// Expands `${VAR}` and `${VAR:-default}` in keys and values. A variable without a value and default stays as it is; values are
/// not expanded again.
pub fn expand(config: &Value, unset: Unset, lookup: &dyn Fn(&str) -> Option<String>) -> Value {
    match config {
        Value::String(text) => Value::String(expand_text(text, unset, lookup)),
        Value::Array(items) => items.iter().map(|item| expand(item, unset, lookup)).collect(),
        Value::Object(map) => {
            let expanded = map
                .iter()
                .map(|(key, value)| (expand_text(key, unset, lookup), expand(value, unset, lookup)));
            Value::Object(expanded.collect())
        }
        other => other.clone(),
    }
}

/// Expands the variables of one text, as [`expand`] does.
pub fn expand_text(text: &str, unset: Unset, lookup: &dyn Fn(&str) -> Option<String>) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        output.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some((name, default, length)) = variable(rest) else {
            output.push_str("${");
            rest = &rest[2..];
            continue;
        };
        let default = default.filter(|_default| unset == Unset::Default);
        let value = lookup(name).or_else(|| default.map(str::to_owned));
        output.push_str(value.as_deref().unwrap_or(&rest[..length]));
        rest = &rest[length..];
    }
    output + rest
}

/// The name, default and length of `${NAME:-default}` at the start of the text.
fn variable(text: &str) -> Option<(&str, Option<&str>, usize)> {
    let end = text.find('}')?;
    let inner = &text[2..end];
    let (name, default) =
        inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
    let mut bytes = name.bytes();
    let is_start = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    let is_name = is_start && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_name.then_some((name, default, end + 1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(config: &Value, part: &str) {
        let error = servers(config).unwrap_err();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn both_shapes_are_read_and_unknown_fields_dropped() {
        let server = json!({"command": "npx", "args": ["-y"], "x": 1, "enabled": false, "type": "stdio"});
        let kept = json!({"command": "npx", "args": ["-y"], "enabled": false, "transport": "stdio"});
        for config in [json!({"mcpServers": {"a": server}}), json!({"a": server})] {
            assert_eq!(Value::Object(servers(&config).unwrap()), json!({"a": kept}));
        }
        assert_eq!(servers(&Value::Null).unwrap(), Map::new());
        assert_eq!(servers(&json!({"a": {"url": "u", "type": "shttp"}})).unwrap()["a"]["transport"], "http");
    }

    #[test]
    fn wrong_servers_are_refused_by_name() {
        refused(&json!([]), "not a map");
        refused(&json!({"a": "npx"}), "server \"a\" is not a map");
        refused(&json!({"a": {"transport": "http", "command": "x"}}), "needs a url");
        refused(&json!({"a": {"transport": "stdio", "url": "x"}}), "needs a command");
        refused(&json!({"a": {"args": ["x"]}}), "neither command nor url");
        refused(&json!({"a": {"command": "x", "env": {"A": 1}}}), "env has a wrong type");
        refused(&json!({"a": {"command": "x", "args": "y"}}), "args has a wrong type");
        refused(&json!({"a": {"url": "x", "transport": "carrier"}}), "transport has a wrong");
        let auth = json!({"strategy": "bearer", "value": "t"});
        refused(
            &json!({"a": {"url": "x", "auth": auth, "headers": {"authorization": "y"}}}),
            "keep one of them",
        );
        refused(&json!({"a": {"url": "x", "auth": {"strategy": "magic"}}}), "no strategy");
        refused(&json!({"a": {"url": "x", "auth": "bearer"}}), "no strategy");
        refused(&json!({"a": {"url": "x", "auth": {"strategy": "basic"}}}), "needs username and password");
        refused(&json!({"a": {"command": ""}}), "command has a wrong type");
        refused(&json!({"a": {"command": "x", "enabled": null}}), "enabled has a wrong type");
        refused(&json!({"a": {"url": "x", "timeout": "soon"}}), "timeout has a wrong type");
    }

    #[test]
    fn text_stands_for_numbers_and_booleans_and_empty_maps_are_left_out() {
        let server =
            json!({"command": "x", "timeout": "5", "enabled": "no", "keep_alive": 1, "env": {}, "args": []});
        let kept = json!({"command": "x", "timeout": 5.0, "enabled": false, "keep_alive": true, "args": []});
        assert_eq!(servers(&json!({"a": server})).unwrap()["a"], kept);
    }

    #[test]
    fn variables_are_expanded_once_in_keys_and_values() {
        let lookup = |name: &str| match name {
            "K" => Some("k".to_owned()),
            "NESTED" => Some("${K}".to_owned()),
            _ => None,
        };
        let config =
            json!({"${K}": ["${K}-${N:-http://h:1/p}", 1, null, "$K ${1A} ${N} ${NESTED} ${", "${N:-}"]});
        let expected = json!({"k": ["k-http://h:1/p", 1, null, "$K ${1A} ${N} ${K} ${", ""]});
        assert_eq!(expand(&config, Unset::Default, &lookup), expected);
        let kept = expand(&json!("${K} ${N:-d}"), Unset::Kept, &lookup);
        assert_eq!(kept, json!("k ${N:-d}"));
    }
}
