//! The real gateway behind the MCP server.

use std::sync::Arc;

use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use http::HeaderMap;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use skillet_api::{Skill, SkillExecution, names::GATEWAY_FIELD_MANAGER};
use tokio::sync::watch;

use super::backend::{Backend, BackendError, Listed, Runs, Switch};
use crate::{
    executor::{ExecutorError, Order},
    identity::{Caller, IdentityError, Verb},
    skills::Known,
    state::Gateway,
};

impl Backend for Gateway {
    async fn identify(&self, headers: &HeaderMap) -> Result<Caller, IdentityError> {
        self.identity.caller(headers).await
    }

    async fn check(
        &self,
        caller: &Caller,
        verb: Verb,
        namespace: &str,
        skill: Option<&str>,
    ) -> Result<(), IdentityError> {
        self.identity.check(caller, verb, namespace, skill).await
    }

    fn namespaces(&self, caller: &Caller) -> Vec<Arc<str>> {
        self.skills.namespaces(caller)
    }

    fn skills(&self, namespace: &str) -> Vec<Listed> {
        self.skills.list(namespace).iter().map(|known| listed(known)).collect()
    }

    fn skill(&self, namespace: &str, name: &str) -> Option<Listed> {
        self.skills.get(namespace, name).map(|known| listed(&known))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.skills.changes()
    }

    async fn start(&self, order: &Order) -> Result<Arc<SkillExecution>, ExecutorError> {
        self.executor.start(order).await
    }

    fn states(
        &self,
        execution: &SkillExecution,
    ) -> BoxStream<'_, Result<Arc<SkillExecution>, ExecutorError>> {
        let following = self.executor.follow(execution);
        stream::unfold(following, |mut following| async move { Some((following.next().await, following)) })
            .boxed()
    }

    async fn cancel(&self, execution: &SkillExecution) -> Result<(), ExecutorError> {
        self.executor.cancel(execution).await
    }

    async fn switch(&self, namespace: &str, name: &str, switch: Switch) -> Result<Skill, BackendError> {
        let api: Api<Skill> = Api::namespaced(self.client.clone(), namespace);
        let params =
            PatchParams { field_manager: Some(GATEWAY_FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        api.patch(name, &params, &Patch::Merge(json!({ "spec": switch }))).await.map_err(|source| {
            BackendError::Switch {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                source: Box::new(source),
            }
        })
    }

    async fn executions(
        &self,
        caller: &Caller,
        namespaces: &[Arc<str>],
        limit: usize,
    ) -> Result<Runs<'_>, BackendError> {
        let entries = self.executor.entries(caller, namespaces, &[]).await?;
        let total = entries.len();
        Ok(Runs { total, newest: self.executor.read(entries.into_iter().take(limit)) })
    }
}

fn listed(known: &Known) -> Listed {
    Listed { skill: known.skill.clone(), version: known.newest().cloned() }
}
