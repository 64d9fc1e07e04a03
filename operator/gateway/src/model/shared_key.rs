//! Requests with the platform's key: what the provider keeps of other tenants, and an id of the caller. No I/O.
//!
//! All tenants share the key, so an id of a stored object reaches that of any tenant. The gateway signs the ids of responses
//! and conversations for the namespace that gets them, and refuses all others. It also tells the provider which caller a
//! request is of, so that abuse by one does not stop all.

use std::fmt::Write as _;

use http::StatusCode;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use skillet_api::gateway::{Provider, ProviderDialect, StoredObjects};
use skillet_llm::{
    DialectName,
    openai_responses::{
        bound_id::{BoundIds, ITEM_LISTS},
        stored_history::is_stored_item,
    },
};

use super::provider_choice::family;
use crate::{auth::Caller, error::ApiError};

/// Fields that name stored objects, at any depth.
const OBJECT_IDS: [&str; 5] = ["file_id", "file_ids", "vector_store_ids", "fileUri", "file_uri"];
/// The type of an item that has none.
const REFERENCE: &str = "item_reference";
/// Fields of a request itself that name stored objects.
const RESPONSES: [&str; 3] = ["previous_response_id", "conversation", "prompt"];
const ANTHROPIC: [&str; 1] = ["container"];
const GEMINI: [&str; 2] = ["cachedContent", "cached_content"];
/// Bytes of a hash in an id; OpenAI takes 64 characters.
const CALLER_BYTES: usize = 16;
const CLIENT_BYTES: usize = 8;

/// Finds the name of a stored object in a request that the caller may not reach, and returns its field. `bound` are the ids
/// that its namespace got from the gateway.
pub(super) fn find_object_of_others<'a>(
    dialect: DialectName,
    request: &'a Value,
    stored_objects: StoredObjects,
    bound: &BoundIds,
) -> Option<&'a str> {
    match stored_objects {
        StoredObjects::Allow => None,
        StoredObjects::Bind => find_stored_object(dialect, request, bound),
        StoredObjects::Refuse => find_stored_object(dialect, request, &BoundIds::default()),
    }
}

/// The refusal of a stored object.
pub(super) fn stored_object_forbidden() -> ApiError {
    let message = "the platform's key reaches what the provider keeps of all tenants, and this namespace did not get this \
                   id from the gateway; send the content itself, or a key of your own, which spec.gateway.providers of \
                   the SkillPolicy must allow";
    ApiError::new(StatusCode::FORBIDDEN, "StoredObjectForbidden", message)
}

fn find_stored_object<'a>(dialect: DialectName, request: &'a Value, bound: &BoundIds) -> Option<&'a str> {
    let fields: &[&str] = match dialect {
        DialectName::OpenAiChat => &[],
        DialectName::OpenAiResponses => &RESPONSES,
        DialectName::Anthropic => &ANTHROPIC,
        DialectName::Gemini => &GEMINI,
    };
    let is_own =
        |value: &Value| value.as_str().or_else(|| value["id"].as_str()).is_some_and(|id| bound.contains(id));
    let is_of_others = |field: &&str| !request[*field].is_null() && !is_own(&request[*field]);
    let at_top = fields.iter().copied().find(is_of_others);
    at_top.or_else(|| find_stored_item(dialect, request, bound)).or_else(|| find_id(request))
}

/// Finds an item of Responses that only its id names, and returns its type.
fn find_stored_item<'a>(dialect: DialectName, request: &'a Value, bound: &BoundIds) -> Option<&'a str> {
    if dialect != DialectName::OpenAiResponses {
        return None;
    }
    let is_own = |item: &Value| item["id"].as_str().is_some_and(|id| bound.contains(id));
    let lists = ITEM_LISTS.iter().filter_map(|list| request[*list].as_array());
    let item = lists.flatten().find(|item| is_stored_item(item) && !is_own(item))?;
    Some(item["type"].as_str().unwrap_or(REFERENCE))
}

fn find_id(value: &Value) -> Option<&str> {
    match value {
        Value::Array(items) => items.iter().find_map(find_id),
        Value::Object(fields) => {
            fields.iter().filter(|(name, _)| !is_of_client(fields, name)).find_map(|(name, value)| {
                if names_object(name, value) { Some(name.as_str()) } else { find_id(value) }
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Arguments of calls, results and schemas are the client's own data.
fn is_of_client(fields: &Map<String, Value>, name: &str) -> bool {
    let is_call =
        || fields.get("type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("tool_use"));
    match name {
        "input" => is_call(),
        "functionCall" | "functionResponse" | "metadata" | "input_schema" | "parameters" | "schema" => true,
        _ => false,
    }
}

fn names_object(name: &str, value: &Value) -> bool {
    // An address outside of the provider's own storage is no object of another tenant.
    let is_stored =
        |uri: &str| uri.starts_with("files/") || uri.contains("generativelanguage.googleapis.com");
    match (name, value) {
        ("fileUri" | "file_uri", Value::String(uri)) => is_stored(uri),
        // A new container is described by an object, one that exists by its id.
        ("container", Value::String(_)) => true,
        (_, Value::String(_) | Value::Array(_)) => OBJECT_IDS.contains(&name),
        _ => false,
    }
}

/// Returns true if the provider gets an id of the caller: by the policy, else at the public addresses.
pub(super) fn sends_caller_id(provider: &Provider) -> bool {
    let is_public = || {
        [ProviderDialect::OpenAI, ProviderDialect::Anthropic]
            .iter()
            .any(|of| provider.base_url.is_empty() || provider.base_url.starts_with(of.public_url()))
    };
    provider.caller_id.unwrap_or_else(is_public)
}

/// Writes the id of the caller into the request. Returns false if its dialect has no place for one.
pub(super) fn put_caller_id(dialect: DialectName, request: &mut Value, caller: &Caller) -> bool {
    let (place, field) = match family(dialect) {
        ProviderDialect::OpenAI => (request.as_object_mut(), "safety_identifier"),
        ProviderDialect::Anthropic => {
            if !request["metadata"].is_object() {
                request["metadata"] = json!({});
            }
            (request["metadata"].as_object_mut(), "user_id")
        }
        ProviderDialect::Gemini => return false,
    };
    let Some(place) = place else { return false };
    let id = caller_id(caller, place.get(field));
    place.insert(field.to_owned(), id.into());
    true
}

/// A stable id: a hash of the service account, and one of the client's own id. A client cannot take another's.
fn caller_id(caller: &Caller, of_client: Option<&Value>) -> String {
    let hash = |text: &str, bytes: usize| {
        Sha256::digest(text).iter().take(bytes).fold(String::new(), |mut hex, byte| {
            // Writing to a String does not fail.
            write!(hex, "{byte:02x}").ok();
            hex
        })
    };
    let mut id = format!("skillet-{}", hash(&caller.user, CALLER_BYTES));
    if let Some(own) = of_client.and_then(Value::as_str) {
        id.push('-');
        id.push_str(&hash(own, CLIENT_BYTES));
    }
    id
}

#[cfg(test)]
mod tests {
    use DialectName::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};

    use super::*;
    use crate::testing::TestGateway;

    #[test]
    fn an_id_of_a_stored_object_is_found_in_every_dialect() {
        for (dialect, request, expected) in [
            (OpenAiResponses, json!({ "previous_response_id": "resp_1" }), "previous_response_id"),
            (OpenAiResponses, json!({ "conversation": { "id": "conv_1" } }), "conversation"),
            (
                OpenAiResponses,
                json!({ "input": [{ "type": "item_reference", "id": "rs_1" }] }),
                "item_reference",
            ),
            (OpenAiResponses, json!({ "input": [{ "id": "msg_1" }] }), "item_reference"),
            (
                OpenAiResponses,
                json!({ "input": [{ "type": "reasoning", "id": "rs_1", "summary": [] }] }),
                "reasoning",
            ),
            (
                OpenAiResponses,
                json!({ "input": [{ "content": [{ "type": "input_file", "file_id": "f" }] }] }),
                "file_id",
            ),
            (
                OpenAiResponses,
                json!({ "tools": [{ "type": "file_search", "vector_store_ids": ["vs_1"] }] }),
                "vector_store_ids",
            ),
            (
                OpenAiResponses,
                json!({ "tools": [{ "type": "code_interpreter", "container": "cntr_1" }] }),
                "container",
            ),
            (OpenAiChat, json!({ "messages": [{ "content": [{ "file": { "file_id": "f" } }] }] }), "file_id"),
            (Anthropic, json!({ "container": "c" }), "container"),
            (
                Anthropic,
                json!({ "messages": [{ "content": [{ "source": { "type": "file", "file_id": "f" } }] }] }),
                "file_id",
            ),
            (Gemini, json!({ "cachedContent": "cachedContents/1" }), "cachedContent"),
            (
                Gemini,
                json!({ "contents": [{ "parts": [{ "fileData": { "fileUri": "files/1" } }] }] }),
                "fileUri",
            ),
        ] {
            assert_eq!(
                find_stored_object(dialect, &request, &BoundIds::default()),
                Some(expected),
                "{request}"
            );
        }
    }

    #[test]
    fn the_clients_own_data_names_no_stored_object() {
        for (dialect, request) in [
            (OpenAiResponses, json!({ "previous_response_id": null, "input": "file_id", "store": true })),
            (
                OpenAiResponses,
                json!({ "tools": [{ "type": "code_interpreter", "container": { "type": "auto" } }] }),
            ),
            (OpenAiResponses, json!({ "input": [{ "type": "item_reference", "id": "msg_skillet_call_1" }] })),
            (
                OpenAiChat,
                json!({ "tools": [{ "function": { "parameters": { "properties": { "file_id": {} }, "required": ["file_id"] } } }] }),
            ),
            (
                Anthropic,
                json!({ "messages": [{ "content": [{ "type": "tool_use", "input": { "file_id": "mine" } }] }] }),
            ),
            (
                Gemini,
                json!({ "contents": [{ "parts": [{ "functionCall": { "args": { "file_id": "mine" } } }] }] }),
            ),
            (
                Gemini,
                json!({ "contents": [{ "parts": [{ "fileData": { "fileUri": "https://youtu.be/x" } }] }] }),
            ),
        ] {
            assert_eq!(find_stored_object(dialect, &request, &BoundIds::default()), None, "{request}");
        }
    }

    #[test]
    fn an_id_tells_callers_apart_whatever_the_client_says() {
        let id = |account: &str, own: &str| {
            let mut request = json!({ "safety_identifier": own });
            put_caller_id(OpenAiChat, &mut request, &TestGateway::caller(account));
            request["safety_identifier"].as_str().unwrap().to_owned()
        };
        let (one, other, foreign) = (id("a/x", "user-1"), id("a/x", "user-2"), id("b/x", "user-1"));
        assert!(one != other && one != foreign && one.len() <= 64, "{one} {other} {foreign}");
        assert_eq!(one[..40], other[..40]);
        assert!(!one.contains("user-1"), "{one}");
        let mut request = json!({ "metadata": { "user_id": "u", "more": 1 } });
        put_caller_id(Anthropic, &mut request, &TestGateway::caller("a/x"));
        assert_eq!(request["metadata"]["more"], 1);
        assert_eq!(request["metadata"]["user_id"].as_str().unwrap()[..40], one[..40]);
        let mut request = json!({});
        put_caller_id(OpenAiResponses, &mut request, &TestGateway::caller("a/x"));
        // printf %s system:serviceaccount:a:x | sha256sum | cut -c1-32
        assert_eq!(request["safety_identifier"], one[..40]);
    }
}
