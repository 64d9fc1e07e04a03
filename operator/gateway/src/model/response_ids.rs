//! Signs the ids in a response on its way to the client, so that the client's next request may name them.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::TryStreamExt as _;
use http::header::CONTENT_LENGTH;
use skillet_llm::openai_responses::bound_id::IdBinding;

use crate::compute::compute;

/// Adds tags to the ids of a response. Without a binding the response stays as it is.
pub(super) fn bind_ids(response: Response, binding: Option<IdBinding>) -> Response {
    let Some(binding) = binding else { return response };
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    let mut tagger = binding.tagger();
    let stream = body.into_data_stream().map_ok(move |bytes| {
        let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 8);
        compute(bytes.len(), || tagger.write(&bytes, &mut out));
        Bytes::from(out)
    });
    Response::from_parts(parts, Body::from_stream(stream))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skillet_api::gateway::KeySecret;
    use skillet_llm::confirmation::ConfirmationKey;

    use crate::testing::{AGENT, TestGateway};

    const RESPONSES: &str = "/v1/responses";
    const OTHER_TENANT: &str = "other/agent";

    /// A gateway with a key of its own, and one of the platform for the provider.
    fn gateway() -> TestGateway {
        let gateway = TestGateway::with_confirmation(Some(ConfirmationKey::new(&[5; 32]).unwrap()));
        gateway.change_policy(|policy| {
            policy.gateway.providers.openai.key_secret =
                Some(KeySecret { name: "k".into(), key: "k".into() });
        });
        let meta = json!({ "namespace": "skillet-system", "name": "k" });
        gateway.api.put_secret(json!({ "metadata": meta, "data": { "k": "cGxhdGZvcm0=" } }));
        gateway
    }

    async fn send(
        gateway: &TestGateway,
        method: &str,
        path: &str,
        caller: &str,
        body: &Value,
    ) -> (u16, Value) {
        let text = if method == "GET" { String::new() } else { body.to_string() };
        let headers: &[(&str, &str)] = &[("content-type", "application/json")];
        let answer = gateway.send(method, path, Some(caller), headers, &text).await;
        (answer.status, answer.json())
    }

    /// The id of a response that the agent got.
    async fn respond(gateway: &TestGateway) -> String {
        gateway.provider.will_say(
            &json!({ "id": "resp_1", "output": [{ "type": "message", "id": "msg_1", "content": [] }] }),
        );
        let (status, given) = send(gateway, "POST", RESPONSES, AGENT, &json!({ "input": "hi" })).await;
        assert_eq!(status, 200);
        assert!(given["output"][0]["id"].as_str().unwrap().starts_with("msg_1_"), "{given}");
        given["id"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_conversation_continues_in_the_namespace_that_began_it_alone() {
        let gateway = gateway();
        gateway.offer("team", "sum", "auto");
        let id = respond(&gateway).await;
        let next = json!({ "previous_response_id": id, "input": "and?" });
        gateway.provider.will_say(&json!({ "id": "resp_2", "previous_response_id": "resp_1", "output": [] }));
        let (status, given) = send(&gateway, "POST", RESPONSES, AGENT, &next).await;
        assert_eq!((status, &given["previous_response_id"]), (200, &json!(id)));
        assert_eq!(gateway.provider.last_request()["previous_response_id"], "resp_1");
        let asked = gateway.provider.requests().len();
        for (caller, id) in [(OTHER_TENANT, &*id), (AGENT, "resp_1"), (OTHER_TENANT, "resp_1")] {
            let next = json!({ "previous_response_id": id, "input": "and?" });
            let (status, given) = send(&gateway, "POST", RESPONSES, caller, &next).await;
            assert_eq!(
                (status, &given["error"]["code"]),
                (403, &json!("StoredObjectForbidden")),
                "{caller} {id}"
            );
        }
        assert_eq!(gateway.provider.requests().len(), asked);
    }

    #[tokio::test]
    async fn a_response_is_read_and_deleted_by_its_namespace_alone() {
        let gateway = gateway();
        let id = respond(&gateway).await;
        for (method, caller, id, expected) in [
            ("GET", AGENT, &*id, 200),
            ("DELETE", AGENT, &*id, 200),
            ("GET", OTHER_TENANT, &*id, 403),
            ("GET", AGENT, "resp_1", 403),
        ] {
            gateway.provider.will_say(&json!({ "id": "resp_1" }));
            let path = format!("{RESPONSES}/{id}");
            let (status, given) = send(&gateway, method, &path, caller, &Value::Null).await;
            assert_eq!(status, expected, "{method} {caller} {id}");
            assert!(status != 200 || given["id"] == id, "{given}");
        }
    }

    #[tokio::test]
    async fn a_conversation_object_is_made_and_its_items_are_the_namespaces_own() {
        let gateway = gateway();
        gateway.provider.will_say(&json!({ "id": "conv_1" }));
        let (status, made) = send(&gateway, "POST", "/v1/conversations", AGENT, &json!({})).await;
        assert_eq!(status, 200);
        let path = format!("/v1/conversations/{}/items", made["id"].as_str().unwrap());
        for (item, expected) in [
            (json!({ "role": "user", "content": "hi" }), 200),
            (json!({ "type": "item_reference", "id": "msg_theirs" }), 403),
        ] {
            gateway.provider.will_say(&json!({ "data": [] }));
            let (status, _) = send(&gateway, "POST", &path, AGENT, &json!({ "items": [item] })).await;
            assert_eq!(status, expected, "{item}");
        }
        let next = json!({ "conversation": made["id"], "input": "hi" });
        gateway.provider.will_say(&json!({ "id": "resp_1", "output": [] }));
        assert_eq!(send(&gateway, "POST", RESPONSES, AGENT, &next).await.0, 200);
        assert_eq!(gateway.provider.last_request()["conversation"], "conv_1");
        assert_eq!(send(&gateway, "GET", "/v1/conversations", AGENT, &Value::Null).await.0, 403);
    }
}
