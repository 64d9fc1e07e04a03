//! The ids in a request for what a provider keeps: of OpenAI's responses and conversations.
//!
//! With the platform's key a caller reaches the objects whose ids its namespace got from the gateway, and no list.

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use skillet_api::gateway::StoredObjects;
use skillet_llm::{
    DialectName,
    json_edit::render,
    openai_responses::bound_id::{BoundIds, IdBinding},
};

use super::is_in;
use crate::model::shared_key::find_object_of_others;

/// Path families whose ids the gateway signs.
const FAMILIES: [&str; 2] = [CONVERSATIONS, "/v1/responses"];
const CONVERSATIONS: &str = "/v1/conversations";

/// The ids of a request to one of these families.
#[derive(Default)]
pub(super) struct StoredIds {
    binding: Option<IdBinding>,
    /// The ids of the path that are the caller's.
    path: BoundIds,
    /// The field of the body that names an object of others.
    foreign: Option<String>,
}

/// Returns true for the paths of what the gateway signs the ids of.
pub(super) fn has_bound_ids(path: &str) -> bool {
    FAMILIES.iter().any(|family| is_in(path, family))
}

impl StoredIds {
    /// Removes the tags from a path and its query.
    pub(super) fn unbind_path(binding: IdBinding, path: &mut String) -> Self {
        let (bare, ids) = binding.unbind_path(path);
        *path = bare;
        Self { binding: Some(binding), path: ids, foreign: None }
    }

    /// Removes the tags from a body, and notes what else it names. A body that is not JSON is left to the provider.
    pub(super) fn unbind_body(&mut self, body: Bytes) -> Bytes {
        let (Some(binding), Ok(mut request)) = (&self.binding, serde_json::from_slice::<Value>(&body)) else {
            return body;
        };
        let bound = binding.unbind(&mut request);
        let dialect = DialectName::OpenAiResponses;
        self.foreign =
            find_object_of_others(dialect, &request, StoredObjects::Bind, &bound).map(ToOwned::to_owned);
        if bound.is_changed { render(&body, &request).into() } else { body }
    }

    /// Returns true if the request makes a conversation, or is about an object whose id the caller got.
    pub(super) fn is_of_caller(&self, method: &Method, path: &str) -> bool {
        let id = |family: &&str| path.strip_prefix(*family)?.strip_prefix('/')?.split('/').next();
        match FAMILIES.iter().find_map(id) {
            Some(id) => self.path.contains(id),
            None => self.binding.is_some() && *method == Method::POST && path == CONVERSATIONS,
        }
    }

    /// The field that names an object of others.
    pub(super) fn foreign(&self) -> Option<&str> {
        self.foreign.as_deref()
    }

    /// The signature for the ids of the response.
    pub(super) fn into_binding(self) -> Option<IdBinding> {
        self.binding
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skillet_llm::confirmation::ConfirmationKey;

    use super::*;

    fn binding(namespace: &str) -> IdBinding {
        ConfirmationKey::new(&[3; 32]).unwrap().continuation_key().bind_ids(namespace)
    }

    /// An id as `namespace` gets it.
    fn tagged(namespace: &str, id: &str) -> String {
        let mut out = Vec::new();
        binding(namespace).tagger().write(json!({ "id": id }).to_string().as_bytes(), &mut out);
        let given: Value = serde_json::from_slice(&out).unwrap();
        given["id"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_path_is_the_callers_if_it_names_an_id_that_the_caller_got() {
        let (own, other) = (tagged("team", "resp_1"), tagged("other", "resp_1"));
        for (method, path, expected) in [
            (Method::GET, format!("/v1/responses/{own}"), true),
            (Method::POST, format!("/v1/responses/{own}/cancel"), true),
            (Method::GET, format!("/v1/responses/{other}"), false),
            (Method::GET, "/v1/responses/resp_1".to_owned(), false),
            (Method::GET, format!("/v1/responses/resp_2/{own}"), false),
            (Method::POST, "/v1/conversations".to_owned(), true),
            (Method::GET, "/v1/conversations".to_owned(), false),
            (Method::POST, "/v1/responses".to_owned(), false),
            (Method::POST, "/v1/conversations/".to_owned(), false),
        ] {
            let mut bare = path.clone();
            let ids = StoredIds::unbind_path(binding("team"), &mut bare);
            assert_eq!(ids.is_of_caller(&method, &bare), expected, "{method} {path}");
        }
        assert!(!StoredIds::default().is_of_caller(&Method::POST, CONVERSATIONS));
    }

    #[test]
    fn a_body_names_objects_of_the_caller_alone() {
        for (id, foreign) in
            [(tagged("team", "msg_1"), None), (tagged("other", "msg_1"), Some("item_reference"))]
        {
            let mut ids = StoredIds::unbind_path(binding("team"), &mut String::new());
            let body = json!({ "items": [{ "type": "item_reference", "id": id }] }).to_string();
            let sent: Value = serde_json::from_slice(&ids.unbind_body(body.into())).unwrap();
            assert_eq!(sent["items"][0]["id"], "msg_1");
            assert_eq!(ids.foreign(), foreign);
        }
        let mut ids = StoredIds::unbind_path(binding("team"), &mut String::new());
        assert_eq!(ids.unbind_body("no json".into()), "no json");
    }
}
