//! History that the provider keeps: `previous_response_id` and `conversation`, and refusals that concern it.

use serde_json::{Value, json};

use super::{OpenAiResponses, item::is_own_reference};
use crate::{
    codec::Codec as _,
    continuation::is_seal,
    wire::{items, text},
};

/// The words of a refusal before the id of a call that has no output.
const MISSING_OUTPUT: &str = "No tool output found for function call ";

/// Returns true if the provider keeps the turns before the request.
pub fn is_named(request: &Value) -> bool {
    ["previous_response_id", "conversation"].iter().any(|field| !request[*field].is_null())
}

/// Returns true for an item of a request that the provider reads from its store: the item has an id, and no content of
/// its own. References to what this crate wrote are none.
pub fn is_stored_item(item: &Value) -> bool {
    let (Some(id), Some(fields)) = (item["id"].as_str(), item.as_object()) else { return false };
    if is_seal(id) || is_own_reference(item) {
        return false;
    }
    // Neither the summary of reasoning nor the prompt of an image is what the provider needs.
    match text(&item["type"]) {
        "reasoning" => text(&item["encrypted_content"]).is_empty(),
        "image_generation_call" => text(&item["result"]).is_empty(),
        _ => fields
            .iter()
            .all(|(name, value)| matches!(&**name, "id" | "type" | "status" | "role") || value.is_null()),
    }
}

/// The id of the stored call that has no output, if a refusal names one.
pub fn missing_output(refusal: &Value) -> Option<&str> {
    let (_, rest) = refusal["error"]["message"].as_str()?.split_once(MISSING_OUTPUT)?;
    let end = rest.find(|letter: char| !is_of_id(letter)).unwrap_or(rest.len());
    rest.get(..end).filter(|id| !id.is_empty())
}

/// Returns true if a refusal says that the response before the request is not stored.
pub fn is_response_lost(refusal: &Value) -> bool {
    refusal["error"]["code"] == "previous_response_not_found"
}

/// Adds an output for a stored call that has none. Returns false if the request has one, or has another shape.
pub fn add_missing_output(request: &mut Value, call_id: &str) -> bool {
    let message =
        "the call was not complete, or its result is not known any more; call the tool again if needed";
    let error = json!({"error": {"reason": "ResultNotKept", "message": message}});
    let Some(fields) = request.as_object_mut() else { return false };
    let mut input = match fields.remove(OpenAiResponses::TURNS) {
        Some(Value::Array(items)) => items,
        Some(Value::String(text)) => vec![json!({"type": "message", "role": "user", "content": text})],
        None | Some(Value::Null) => Vec::new(),
        Some(other) => vec![other],
    };
    let is_new = input.iter().all(|item| item["call_id"] != call_id);
    if is_new {
        let output = json!({"type": "function_call_output", "call_id": call_id, "output": error.to_string()});
        input.insert(0, output);
    }
    fields.insert(OpenAiResponses::TURNS.to_owned(), input.into());
    is_new
}

/// The path of the newest stored items before the request, below the API's base.
pub fn path(request: &Value) -> Option<String> {
    let conversation = &request["conversation"];
    let (id, path) = if let Some(id) = request["previous_response_id"].as_str() {
        (id, format!("/responses/{id}"))
    } else {
        let id = conversation.as_str().or_else(|| conversation["id"].as_str())?;
        (id, format!("/conversations/{id}/items?limit=100"))
    };
    id.chars().all(is_of_id).then_some(path)
}

/// The name of a call in what that path gives.
pub fn call_name<'a>(stored: &'a Value, call_id: &str) -> Option<&'a str> {
    let mut stored = items(&stored["output"]).iter().chain(items(&stored["data"]));
    stored.find(|item| item["type"] == "function_call" && item["call_id"] == call_id)?["name"].as_str()
}

fn is_of_id(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_call_that_has_no_output() {
        let refusal = |message: &str| json!({"error": {"message": message}});
        let named = refusal("No tool output found for function call call_a-1.");
        assert_eq!(missing_output(&named), Some("call_a-1"));
        for other in
            ["No tool output found for function call .", "No tool call found for function call output"]
        {
            assert_eq!(missing_output(&refusal(other)), None);
        }
        assert!(is_response_lost(&json!({"error": {"code": "previous_response_not_found"}})));
    }

    #[test]
    fn an_item_without_content_is_the_providers_unless_the_gateway_wrote_it() {
        for stored in [
            json!({"type": "item_reference", "id": "msg_1"}),
            json!({"id": "msg_1"}),
            json!({"type": "message", "role": "assistant", "id": "msg_1", "content": null}),
            json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}),
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": ""}),
            json!({"type": "image_generation_call", "id": "ig_1", "revised_prompt": "a cat"}),
            json!({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
        ] {
            assert!(is_stored_item(&stored), "{stored}");
        }
        for own in [
            json!({"type": "item_reference", "id": "msg_skillet_call_1"}),
            json!({"type": "item_reference", "id": "rs_c2tpbGxldGMyAAAA"}),
            json!({"role": "user", "content": "hi"}),
            json!({"type": "message", "role": "assistant", "id": "msg_1", "content": []}),
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}),
            json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "look", "arguments": "{}"}),
            json!({"type": "image_generation_call", "id": "ig_1", "result": "aGk="}),
        ] {
            assert!(!is_stored_item(&own), "{own}");
        }
    }

    #[test]
    fn an_output_is_added_once_and_before_all_else() {
        let mut request = json!({"input": "hi", "conversation": "conv_1"});
        assert!(add_missing_output(&mut request, "c"));
        assert_eq!(request["input"][0]["call_id"], "c");
        assert_eq!(request["input"][1], json!({"type": "message", "role": "user", "content": "hi"}));
        assert!(!add_missing_output(&mut request, "c"));
        assert!(add_missing_output(&mut request, "d"));
        assert_eq!(items(&request["input"]).len(), 3);
    }

    #[test]
    fn a_path_has_no_id_that_leads_elsewhere() {
        let path = |request: Value| path(&request);
        assert_eq!(path(json!({"previous_response_id": "resp_1"})).unwrap(), "/responses/resp_1");
        let items = "/conversations/conv_1/items?limit=100";
        assert_eq!(path(json!({"conversation": "conv_1"})).unwrap(), items);
        assert_eq!(path(json!({"conversation": {"id": "conv_1"}})).unwrap(), items);
        for id in ["../files", "a/b", "a?b"] {
            assert_eq!(path(json!({ "previous_response_id": id })), None, "{id}");
        }
    }

    #[test]
    fn a_stored_call_is_found_in_a_response_and_in_a_conversation() {
        let call = json!({"type": "function_call", "call_id": "c", "name": "look"});
        assert_eq!(call_name(&json!({"output": [call]}), "c"), Some("look"));
        assert_eq!(call_name(&json!({"data": [call]}), "c"), Some("look"));
        assert_eq!(call_name(&json!({"data": [call]}), "d"), None);
    }
}
