//! Runs of a caller: counted and put into order by their metadata alone, and read one by one, so that a list of runs with
//! large outputs takes no more memory than those that are shown.

use std::sync::Arc;

use futures::{
    FutureExt as _, StreamExt as _, TryStreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use kube::{ResourceExt as _, api::ListParams};
use skillet_api::names;

use super::{Execution, ExecutionClient, ExecutionError, read};
use crate::auth::Caller;

/// Entries of one answer of the API server.
const CHUNK: u32 = 500;
/// Most entries that are read of one namespace; retention keeps far fewer.
const MAX_READ: usize = 20_000;
/// Runs that are read side by side.
const READS: usize = 16;

/// The listed part of an execution: its input and output stay in the API server.
pub struct ListEntry {
    namespace: Arc<str>,
    name: String,
    created: Option<jiff::Timestamp>,
}

impl ExecutionClient {
    /// The caller's runs in these namespaces, newest first: all of its own namespace, and those it has made in others.
    /// `fields` are field selectors.
    pub async fn list(
        &self,
        caller: &Caller,
        namespaces: &[Arc<str>],
        fields: &[String],
    ) -> Result<Vec<ListEntry>, ExecutionError> {
        let mut entries = Vec::new();
        for namespace in namespaces {
            entries.extend(self.list_namespace(caller, namespace, fields).await?);
        }
        // Times are whole seconds: the name decides between equals, so that pages do not overlap.
        entries
            .sort_unstable_by(|a: &ListEntry, b| b.created.cmp(&a.created).then_with(|| a.name.cmp(&b.name)));
        Ok(entries)
    }

    async fn list_namespace(
        &self,
        caller: &Caller,
        namespace: &Arc<str>,
        fields: &[String],
    ) -> Result<Vec<ListEntry>, ExecutionError> {
        let mut params = ListParams::default().limit(CHUNK).fields(&fields.join(","));
        if **namespace != *caller.namespace {
            params = params.labels(&format!("{}={}", names::LABEL_CALLER_NAMESPACE, caller.namespace));
        }
        let mut entries = Vec::new();
        loop {
            let chunk = self.api(namespace).list_metadata(&params).await;
            let chunk = chunk.map_err(|source| ExecutionError::List {
                namespace: namespace.to_string(),
                source: Box::new(source),
            })?;
            params.continue_token = chunk.metadata.continue_.clone().filter(|token| !token.is_empty());
            entries.extend(chunk.items.iter().map(|meta| ListEntry {
                namespace: namespace.clone(),
                name: meta.name_any(),
                created: meta.creation_timestamp().map(|time| time.0),
            }));
            if params.continue_token.is_none() || entries.len() >= MAX_READ {
                return Ok(entries);
            }
        }
    }

    /// The runs themselves, in the order of the entries, without those that were deleted in between. They are parsed as
    /// they are taken.
    pub fn read(
        &self,
        entries: impl IntoIterator<Item = ListEntry>,
    ) -> BoxStream<'_, Result<Arc<Execution>, ExecutionError>> {
        let reads = entries
            .into_iter()
            .map(|entry| async move { self.get_raw(&entry.namespace, &entry.name).await }.boxed());
        let reads: Vec<BoxFuture<'_, _>> = reads.collect();
        stream::iter(reads)
            .buffered(READS)
            .try_filter_map(async |found| found.as_ref().map(read).transpose())
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use skillet_kube::testing::{FakeApiServer, path};

    fn stocked() -> (FakeApiServer, ExecutionClient, Caller) {
        let api = FakeApiServer::default();
        for (namespace, name, of) in
            [("team", "a", ""), ("platform", "b", "team"), ("platform", "c", "other"), ("team", "d", "team")]
        {
            api.put(
                "skillexecutions",
                json!({
                    "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution", "spec": { "skill": "sum" },
                    "metadata": { "namespace": namespace, "name": name, "labels": { "skillet.dev/caller-namespace": of } },
                }),
            );
        }
        let executor = ExecutionClient::new(api.client());
        let caller = Caller { namespace: "team".into(), user: "u".into(), groups: [].into() };
        (api, executor, caller)
    }

    fn everywhere() -> [Arc<str>; 2] {
        ["team".into(), "platform".into()]
    }

    #[tokio::test]
    async fn runs_are_counted_without_reading_them_and_only_those_taken_are_read() {
        let (api, executor, caller) = stocked();
        let entries = executor.list(&caller, &everywhere(), &[]).await.unwrap();
        let names: Vec<&str> = entries.iter().map(|entry| &*entry.name).collect();
        assert_eq!(names, ["d", "b", "a"], "own ones and those made elsewhere, newest first");
        let reads = || api.requests().iter().filter(|line| !line.contains('?')).count();
        assert_eq!(reads(), 0);
        let read: Vec<_> = executor.read(entries.into_iter().take(2)).try_collect().await.unwrap();
        assert_eq!(read.iter().map(|run| run.metadata.name.clone()).collect::<Vec<_>>(), ["d", "b"]);
        assert_eq!(reads(), 2);
    }

    #[tokio::test]
    async fn a_run_that_was_deleted_in_between_is_left_out() {
        let (api, executor, caller) = stocked();
        let entries = executor.list(&caller, &everywhere(), &[]).await.unwrap();
        api.delete(&path("team", "skillexecutions", "d"));
        let read: Vec<_> = executor.read(entries).try_collect().await.unwrap();
        assert_eq!(read.iter().map(|run| run.metadata.name.clone()).collect::<Vec<_>>(), ["b", "a"]);
    }

    #[tokio::test]
    async fn a_namespace_that_cannot_be_listed_is_named() {
        let (api, executor, caller) = stocked();
        api.fail_next("GET /apis/skillet.dev/v1alpha1/namespaces/platform", 500, "no");
        let error = executor.list(&caller, &everywhere(), &[]).await.err().unwrap();
        assert_eq!(error.to_string(), "could not list the SkillExecutions of namespace platform");
    }
}
