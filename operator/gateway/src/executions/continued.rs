//! The last response of a conversation, noted at one of its executions.
//!
//! A client of a stream may know the response of an earlier round alone. Every replica finds the last one by that id, as
//! long as the execution is kept.

use std::sync::Arc;

use kube::{ResourceExt as _, api::ListParams};
use serde_json::json;
use skillet_api::names;

use super::{ExecutionClient, ExecutionError, Metadata, request::keyed_name};
use crate::auth::Caller;

/// Longest id of a response that is noted, in bytes.
const MAX_ID: usize = 512;

impl ExecutionClient {
    /// Notes at `execution` that `caller` knows the response `last_id` as `shown_id`.
    pub async fn note_response(
        &self,
        caller: &Caller,
        execution: &Metadata,
        shown_id: &str,
        last_id: &str,
    ) -> Result<(), ExecutionError> {
        if last_id.len() > MAX_ID {
            return Ok(());
        }
        let metadata = json!({
            "labels": { names::LABEL_RESPONSE: label(caller, shown_id) },
            "annotations": { names::ANNOTATION_LAST_RESPONSE: last_id },
        });
        let noted = self.merge(execution, json!({ "metadata": metadata })).await;
        noted.map_err(|source| ExecutionError::Annotate {
            namespace: execution.namespace.clone(),
            name: execution.name.clone(),
            source: Box::new(source),
        })
    }

    /// The last response of the conversation whose response `caller` knows as `shown_id`.
    pub async fn find_response(
        &self,
        caller: &Caller,
        namespaces: &[Arc<str>],
        shown_id: &str,
    ) -> Result<Option<String>, ExecutionError> {
        let selector = format!("{}={}", names::LABEL_RESPONSE, label(caller, shown_id));
        let params = ListParams::default().labels(&selector).limit(1);
        for namespace in namespaces {
            let found = self.api(namespace).list_metadata(&params).await;
            let found = found.map_err(|source| ExecutionError::List {
                namespace: namespace.to_string(),
                source: Box::new(source),
            })?;
            let noted =
                found.items.first().and_then(|it| it.annotations().get(names::ANNOTATION_LAST_RESPONSE));
            if let Some(last_id) = noted {
                return Ok(Some(last_id.clone()));
            }
        }
        Ok(None)
    }
}

/// A response as its caller knows it, in the letters of a label.
fn label(caller: &Caller, shown_id: &str) -> String {
    keyed_name(caller, &format!("response {shown_id}"))
}

#[cfg(test)]
mod tests {
    use skillet_kube::testing::FakeApiServer;

    use super::*;

    #[tokio::test]
    async fn the_caller_of_a_response_finds_the_last_one_and_nobody_else() {
        let api = FakeApiServer::default();
        let meta = json!({ "namespace": "team", "name": "a", "uid": "u" });
        api.put("skillexecutions", json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution", "metadata": meta, "spec": { "skill": "sum" } }));
        let executions = ExecutionClient::new(api.client());
        let caller = |user: &str| Caller { namespace: "team".into(), user: user.into(), groups: [].into() };
        let run =
            Metadata { name: "a".into(), namespace: "team".into(), uid: "u".into(), ..Metadata::default() };
        executions.note_response(&caller("u"), &run, "resp_1", "resp_3").await.unwrap();
        let namespaces = ["other".into(), "team".into()];
        let find = async |user: &str, id: &str| {
            executions.find_response(&caller(user), &namespaces, id).await.unwrap()
        };
        assert_eq!(find("u", "resp_1").await.as_deref(), Some("resp_3"));
        assert_eq!(find("u", "resp_2").await, None);
        assert_eq!(find("v", "resp_1").await, None);
        let gone = Metadata { uid: "w".into(), ..run };
        let error = executions.note_response(&caller("u"), &gone, "resp_1", "resp_3").await.unwrap_err();
        assert_eq!(error.to_string(), "could not annotate SkillExecution team/a");
    }
}
