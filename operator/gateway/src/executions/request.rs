//! Builds the execution for a request, and compares an existing execution with it. Pure: no client.

use std::{collections::BTreeMap, fmt::Write as _};

use kube::api::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, value::RawValue};
use sha2::{Digest as _, Sha256};
use skillet_api::{SkillExecution, SkillExecutionSpec, duration::SkillDuration, names};
use skillet_core::{json_text::compact, text::truncate};

use super::{Execution, ExecutionRequest, McpPart, Spec};
use crate::auth::Caller;

/// Longest `spec.caller` that the CRD takes.
const MAX_CALLER: usize = 256;
/// Bytes of the digest that are in a name: no two keys meet by chance, and the name stays short.
const NAME_BYTES: usize = 16;

/// Bytes of a document that is read without a second thought.
const SMALL: usize = 4096;

/// The object to create.
pub(crate) fn object(request: &ExecutionRequest) -> SkillExecution {
    let spec = SkillExecutionSpec {
        skill: request.skill.to_string(),
        version: request.version.clone(),
        input: Some(request.input.clone()).filter(|input| !input.is_null()),
        script: request.script.clone(),
        command: request.command.clone(),
        mcp_server: match &request.mcp {
            Some(McpPart::Server { name, .. }) => Some(name.clone()),
            Some(McpPart::Call(_)) | None => None,
        },
        mcp_call: match &request.mcp {
            Some(McpPart::Call(call)) => Some(call.clone()),
            Some(McpPart::Server { .. }) | None => None,
        },
        timeout: request.timeout.map(SkillDuration),
        // The failure of a command is its result.
        retries: request.command.is_some().then_some(0),
        session_id: request.session.clone(),
        caller: Some(caller_text(&request.caller)),
        cancel: false,
    };
    let name = request_name(request);
    let generate_name = name.is_none().then(|| format!("{}-", request.skill));
    let caller_namespace = request.caller.namespace.to_string();
    let request_id = request.request_id.clone();
    let annotations = request_id.map(|id| [(names::ANNOTATION_REQUEST_ID.to_owned(), id)].into());
    let mut labels = BTreeMap::from([(names::LABEL_CALLER_NAMESPACE.to_owned(), caller_namespace)]);
    if let Some(McpPart::Server { name: _, session, number }) = &request.mcp {
        labels.insert(names::LABEL_SESSION.to_owned(), session.clone());
        labels.insert(names::LABEL_SESSION_NUMBER.to_owned(), number.to_string());
    }
    let metadata = ObjectMeta {
        name,
        generate_name,
        namespace: Some(request.namespace.to_string()),
        labels: Some(labels),
        annotations,
        ..ObjectMeta::default()
    };
    SkillExecution { metadata, spec, status: None }
}

/// The one name that a caller's key stands for, on every replica.
pub(super) fn keyed_name(caller: &Caller, key: &str) -> String {
    digest_name("call-", caller, key)
}

/// The name of a request with a key. Keys of commands and sessions are the gateway's own, and no client's key gives their name.
fn request_name(request: &ExecutionRequest) -> Option<String> {
    let prefix = match (&request.command, &request.mcp) {
        (Some(_), _) => "command-",
        (None, Some(McpPart::Server { .. })) => "session-",
        (None, Some(McpPart::Call(_)) | None) => "call-",
    };
    Some(digest_name(prefix, &request.caller, request.idempotency.as_deref()?))
}

fn digest_name(prefix: &str, caller: &Caller, key: &str) -> String {
    let mut digest = Sha256::new();
    for part in [&caller.namespace, &caller.user, key] {
        // With the length before it, no part can pretend to be the end of the one before.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let mut name = prefix.to_owned();
    for byte in digest.finalize().iter().take(NAME_BYTES) {
        // Writing to a String does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// Returns `spec.caller` of the caller's executions: `<namespace>/<service account>`.
pub(crate) fn caller_text(caller: &Caller) -> String {
    let account = caller.user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    let text = match account {
        Some((namespace, name)) => format!("{namespace}/{name}"),
        None => format!("{}/{}", caller.namespace, caller.user),
    };
    truncate(&text, MAX_CALLER).0.to_owned()
}

/// Returns true if the execution found under the request's name is the one that the request describes.
pub(super) fn is_same_call(request: &ExecutionRequest, found: &Execution) -> bool {
    let found = &found.spec;
    found.skill == *request.skill
        && (request.ignore_version || found.version == request.version)
        && found.caller == Some(caller_text(&request.caller))
        && is_same_part(found.script.as_deref(), request.script.as_ref())
        && is_same_part(found.command.as_deref(), request.command.as_ref())
        && is_same_mcp(found, request.mcp.as_ref())
        && is_same_input(found.input.as_deref(), &request.input)
}

/// Compares server and tool. A repeated call may be of another session.
fn is_same_mcp(found: &Spec, wanted: Option<&McpPart>) -> bool {
    match wanted {
        None => found.mcp_server.is_none() && found.mcp_call.is_none(),
        Some(McpPart::Server { name, .. }) => found.mcp_server.as_ref() == Some(name),
        Some(McpPart::Call(call)) => found.mcp_call.as_ref().is_some_and(|found| found.tool == call.tool),
    }
}

/// Compares a script or a command, with its values.
fn is_same_part<T: DeserializeOwned + PartialEq>(found: Option<&RawValue>, wanted: Option<&T>) -> bool {
    let found: Option<T> = found.and_then(|found| serde_json::from_str(found.get()).ok());
    found.as_ref() == wanted
}

fn is_same_input(found: Option<&RawValue>, wanted: &Value) -> bool {
    let is_nothing = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    let Some(found) = found.map(RawValue::get) else { return is_nothing(wanted) };
    // Somebody else's input may take any amount of memory; what is the same takes as much as what is here already, but
    // for the form of numbers.
    let Some(found) = compact(found) else { return false };
    let most = skillet_kube::parsed_size(wanted.to_string().as_bytes()).saturating_mul(2);
    if skillet_kube::parsed_size(found.as_bytes()) > most.max(SMALL) {
        return false;
    }
    let Ok(found) = serde_json::from_str::<Value>(&found) else { return false };
    is_same_json(&found, wanted) || (is_nothing(&found) && is_nothing(wanted))
}

/// Equal but for the form of numbers: the API server writes 1.0 back as 1, and numbers beyond 64 bits as powers of ten.
fn is_same_json(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || ((a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_json(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| is_same_json(value, other)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skillet_api::{dynamic::BodyCommand, execution::BundleScript};

    use super::{super::Found, *};

    fn caller(namespace: &str, user: &str) -> Caller {
        Caller { namespace: namespace.into(), user: user.into(), groups: [].into() }
    }

    fn request(input: Value) -> ExecutionRequest {
        let mut request =
            ExecutionRequest::new(caller("team", "system:serviceaccount:team:agent"), "platform", "sum");
        request.input = input;
        request
    }

    fn made(request: &ExecutionRequest) -> Execution {
        Execution::read(&Found::new(&object(request)).unwrap()).unwrap()
    }

    #[test]
    fn an_execution_carries_the_order_and_who_gave_it() {
        let request = ExecutionRequest {
            version: Some("^1.0.0".into()),
            session: Some("s".into()),
            timeout: Some(std::time::Duration::from_secs(3)),
            request_id: Some("r-1".into()),
            ..request(json!({ "a": 1 }))
        };
        let object = serde_json::to_value(object(&request)).unwrap();
        assert_eq!(
            object["metadata"],
            json!({ "generateName": "sum-", "namespace": "platform", "labels": { "skillet.dev/caller-namespace": "team" },
                "annotations": { "skillet.dev/request-id": "r-1" } })
        );
        assert_eq!(
            object["spec"],
            json!({ "skill": "sum", "version": "^1.0.0", "input": { "a": 1 }, "sessionId": "s", "timeout": "3s",
                "caller": "team/agent", "cancel": false })
        );
    }

    #[test]
    fn a_user_who_is_no_service_account_is_named_with_the_namespace() {
        assert_eq!(caller_text(&caller("team", "jane")), "team/jane");
        assert_eq!(caller_text(&caller("team", &"x".repeat(400))).len(), 256);
    }

    #[test]
    fn a_key_has_one_name_per_caller() {
        let name = keyed_name(&caller("a", "u"), "k");
        assert_eq!(name, keyed_name(&caller("a", "u"), "k"));
        let command = Some(BodyCommand::default());
        let mut keyed = ExecutionRequest::new(caller("a", "u"), "a", "s");
        keyed.idempotency = Some("k".into());
        assert_eq!(request_name(&keyed), Some(name.clone()));
        let of_command = request_name(&ExecutionRequest { command, ..keyed }).unwrap();
        assert!(of_command.len() == 40 && of_command.starts_with("command-"), "{of_command}");
        assert!(name.len() == 37 && name.starts_with("call-"), "{name}");
        for (other, key) in [(caller("b", "u"), "k"), (caller("a", "v"), "k"), (caller("a", "u"), "l")] {
            assert_ne!(name, keyed_name(&other, key));
        }
        assert_ne!(keyed_name(&caller("a", "bc"), "d"), keyed_name(&caller("a", "b"), "cd"));
    }

    #[test]
    fn a_call_is_the_same_by_skill_version_caller_and_input() {
        let first = request(json!({ "a": 1 }));
        let found = made(&first);
        assert!(is_same_call(&first, &found));
        assert!(!is_same_call(&request(json!({ "a": 2 })), &found));
        assert!(!is_same_call(&ExecutionRequest { skill: "other".into(), ..first.clone() }, &found));
        let newer = ExecutionRequest { version: Some("*".into()), ..first.clone() };
        assert!(!is_same_call(&newer, &found));
        assert!(is_same_call(&ExecutionRequest { ignore_version: true, ..newer }, &found));
        let command = Some(BodyCommand { text: "git log".into(), ..BodyCommand::default() });
        let commanded = ExecutionRequest { command, ..first.clone() };
        assert!(!is_same_call(&commanded, &found) && is_same_call(&commanded, &made(&commanded)));
        let script = Some(BundleScript { path: "a.sh".into(), args: vec!["x".into()], stdin: String::new() });
        let scripted = ExecutionRequest { script, ..first.clone() };
        assert!(!is_same_call(&scripted, &found) && !is_same_call(&first, &made(&scripted)));
        assert!(is_same_call(&scripted, &made(&scripted)));
        let mut other = scripted.clone();
        other.script.as_mut().unwrap().args.clear();
        assert!(!is_same_call(&other, &made(&scripted)));
        assert!(!is_same_call(&ExecutionRequest { caller: caller("team", "jane"), ..first }, &found));
    }

    #[test]
    fn inputs_are_compared_as_the_api_server_keeps_them() {
        let same = |a: Value, b: Value| is_same_call(&request(a), &made(&request(b)));
        assert!(same(json!({ "a": [1.0, { "b": 2 }] }), json!({ "a": [1, { "b": 2.0 }] })));
        assert!(same(json!(u64::MAX), json!(1.844_674_407_370_955_2e19)));
        assert!(!same(json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992_i64)));
        assert!(same(json!(null), json!({})));
        assert!(!same(json!(null), json!({ "a": 1 })));
        assert!(!same(json!([1]), json!([1, 2])));
        assert!(!same(json!({ "a": 1 }), json!({ "b": 1 })));
        assert!(!same(json!("1"), json!(1)));
        let escaped = "<".repeat(2 * SMALL);
        let mut found = made(&request(json!(escaped)));
        found.spec.input =
            Some(RawValue::from_string(format!("{escaped:?}").replace('<', "\\u003c")).unwrap());
        assert!(is_same_call(&request(json!(escaped)), &found));
        let many = json!(vec![json!({ "": 0 }); 20_000]);
        assert!(same(many.clone(), many.clone()) && !same(json!({}), many));
    }
}
