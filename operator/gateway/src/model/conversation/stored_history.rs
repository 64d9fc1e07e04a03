//! History that the provider keeps, as far as its calls of skills lack an output.
//!
//! A client with `previous_response_id` or `conversation` sends new items alone. Two histories of it would be refused: a
//! stream whose first rounds had text for the client, because the client knows the first response only, and a response
//! that a limit of tokens cut inside a call. The provider's refusal names the call, so that nothing is asked before.

use serde_json::Value;
use skillet_llm::{ContinuedResponse, DialectName, openai_responses::stored_history};
use tracing::warn;

use super::{Conversation, Progress, buffered};
use crate::model::upstream::Upstream;

/// Most changes of one request.
pub(super) const MAX_REPAIRS: usize = 16;

impl Conversation {
    /// Returns true if the provider keeps the turns before the request.
    pub(super) fn has_stored_history(&self, request: &Value) -> bool {
        self.dialect == DialectName::OpenAiResponses && stored_history::is_named(request)
    }

    /// Notes the last response of a stream whose client knows an earlier one.
    pub(super) async fn note_last_response(&self, continued: &ContinuedResponse, progress: &Progress) {
        let Some(execution) = &progress.last_run else { return };
        let ContinuedResponse { shown_id, last_id } = continued;
        let noted = self.gateway.executions.note_response(&self.caller, execution, shown_id, last_id).await;
        if let Err(error) = noted {
            warn!(%error, "Last response was not noted; the next request continues from an earlier one");
        }
    }

    /// Changes a request that the provider refused for the history that it keeps. Returns false if the refusal has
    /// another cause, or concerns a call of the client's own tool.
    pub(super) async fn repair_stored_history(
        &self,
        upstream: &Upstream,
        request: &mut Value,
        refusal: &[u8],
    ) -> bool {
        let Ok(refusal) = serde_json::from_slice::<Value>(refusal) else { return false };
        let missing = stored_history::missing_output(&refusal);
        if missing.is_none() && !stored_history::is_response_lost(&refusal) {
            return false;
        }
        if let Some(shown_id) = request["previous_response_id"].as_str()
            && let Some(last_id) = self.find_last_response(shown_id).await
        {
            let is_new = last_id != shown_id;
            request["previous_response_id"] = last_id.into();
            return is_new;
        }
        let Some(call_id) = missing else { return false };
        if self.may_be_clients(upstream, request, call_id).await {
            return false;
        }
        stored_history::add_missing_output(request, call_id)
    }

    async fn find_last_response(&self, shown_id: &str) -> Option<String> {
        let namespaces = self.gateway.catalog.namespaces(&self.caller);
        let found = self.gateway.executions.find_response(&self.caller, &namespaces, shown_id).await;
        found.unwrap_or_else(|error| {
            warn!(%error, "Last response could not be looked up");
            None
        })
    }

    /// Returns true if the client may owe the output of a call itself. Only the provider knows the call's name.
    async fn may_be_clients(&self, upstream: &Upstream, request: &Value, call_id: &str) -> bool {
        let own: Vec<&str> = self.dialect().client_tool_names(request);
        let own: Vec<&str> = own.into_iter().filter(|name| self.offered.target(name).is_none()).collect();
        if own.is_empty() {
            return false;
        }
        let Some(path) = stored_history::path(request) else { return true };
        let Ok(response) = upstream.get_beside("/responses", &path).await else { return true };
        let Ok(answer) = buffered::receive(self, response).await else { return true };
        let Ok(stored) = serde_json::from_slice::<Value>(&answer.body) else { return true };
        stored_history::call_name(&stored, call_id).is_none_or(|name| own.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::stocked;
    use crate::testing::{AGENT, TestGateway};

    fn refusal(message: &str, code: &str) -> serde_json::Value {
        json!({ "error": { "message": message, "code": code, "type": "invalid_request_error" } })
    }

    /// Sends a request with `previous_response_id`; the status, and the requests that the provider got.
    async fn ask(gateway: &TestGateway, tools: &serde_json::Value) -> (u16, Vec<serde_json::Value>) {
        let request =
            json!({ "model": "m", "previous_response_id": "resp_1", "input": "hi", "tools": tools });
        let before = gateway.provider.texts().len();
        let answer = gateway.send("POST", "/v1/responses", Some(AGENT), &[], &request.to_string()).await;
        let asked = gateway.provider.texts().split_off(before);
        (answer.status, asked.iter().map(|text| serde_json::from_str(text).unwrap_or_default()).collect())
    }

    #[tokio::test]
    async fn a_stored_call_of_a_skill_without_output_gets_one() {
        let gateway = stocked(None);
        gateway.provider.will_fail(400, &refusal("No tool output found for function call call_9.", ""));
        gateway.provider.will_say(&json!({ "id": "resp_2", "output": [] }));
        let (status, asked) = ask(&gateway, &json!([])).await;
        assert_eq!((status, asked.len()), (200, 2));
        assert_eq!(asked[1]["input"][0]["call_id"], "call_9");
        assert!(asked[1]["input"][0]["output"].as_str().unwrap().contains("ResultNotKept"));
        assert_eq!(asked[1]["input"][1]["content"], "hi");
        assert_eq!(asked[1]["previous_response_id"], "resp_1");
    }

    #[tokio::test]
    async fn a_client_that_forgot_the_output_of_its_own_call_learns_it() {
        let gateway = stocked(None);
        let tools = json!([{ "type": "function", "name": "own", "parameters": {} }]);
        for (name, status, requests) in [("own", 400, 2), ("look", 200, 3)] {
            gateway.provider.will_fail(400, &refusal("No tool output found for function call call_9.", ""));
            let call = json!({ "type": "function_call", "call_id": "call_9", "name": name });
            gateway.provider.will_say(&json!({ "output": [call] }));
            let (got, asked) = ask(&gateway, &tools).await;
            assert_eq!((got, asked.len()), (status, requests), "{name}");
        }
    }

    #[tokio::test]
    async fn another_refusal_reaches_the_client() {
        let gateway = stocked(None);
        for text in
            [refusal("too long", ""), refusal("not found", "previous_response_not_found"), json!("no")]
        {
            gateway.provider.will_fail(400, &text);
            let (status, asked) = ask(&gateway, &json!([])).await;
            assert_eq!((status, asked.len()), (400, 1));
        }
    }
}
