//! The real gateway behind the MCP server.

use std::sync::Arc;

use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use http::HeaderMap;
use skillet_api::Skill;
use tokio::sync::watch;

use super::backend::{Backend, Runs, Switch};
use crate::{
    auth::{AuthError, Caller},
    catalog::CachedSkill,
    executions::{Execution, ExecutionError, ExecutionRequest, Metadata},
    memory::MemoryPool,
    service::{ServiceError, SkillService},
};

impl Backend for SkillService {
    async fn identify(&self, headers: &HeaderMap) -> Result<Caller, AuthError> {
        Ok(self.auth.authenticate(headers, None).await?.caller)
    }

    fn memory(&self) -> &MemoryPool {
        &self.memory
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.catalog.changes()
    }

    fn last_change(&self, namespace: &str) -> u64 {
        self.catalog.last_change(namespace)
    }

    async fn start(&self, order: &ExecutionRequest) -> Result<Arc<Execution>, ExecutionError> {
        self.executions.start(order).await
    }

    async fn made(
        &self,
        order: &ExecutionRequest,
        namespace: &str,
    ) -> Result<Option<Arc<Execution>>, ExecutionError> {
        self.executions.find_by_key(order, namespace).await
    }

    fn states(&self, execution: &Execution) -> BoxStream<'_, Result<Arc<Execution>, ExecutionError>> {
        let following = self.executions.watch(execution);
        stream::unfold(following, |mut following| async move { Some((following.next().await, following)) })
            .boxed()
    }

    async fn cancel_unless_wanted(&self, execution: &Metadata) {
        self.executions.cancel_unless_wanted(execution).await;
    }

    async fn switch(&self, skill: &CachedSkill, switch: Switch) -> Result<Skill, ServiceError> {
        self.write_update(skill, &switch).await
    }

    async fn executions(
        &self,
        caller: &Caller,
        namespaces: &[Arc<str>],
        limit: usize,
    ) -> Result<Runs<'_>, ServiceError> {
        let entries = self.executions.list(caller, namespaces, &[]).await?;
        let total = entries.len();
        Ok(Runs { total, newest: self.executions.read(entries.into_iter().take(limit)) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use skillet_kube::testing::path;

    use crate::gateway_bed::Bed;

    #[tokio::test]
    async fn a_skill_that_was_made_again_is_not_switched_for_the_one_before() {
        let bed = Bed::new().await;
        let object = |uid: &str| {
            json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill",
                "metadata": { "namespace": "team", "name": "sum", "uid": uid },
                "spec": { "version": "1.0.0", "run": {}, "enabled": true } })
        };
        let seen: Skill = serde_json::from_value(object("first")).unwrap();
        let seen = CachedSkill::of(&seen).unwrap();
        let off = Switch { enabled: Some(false), mode: None };
        bed.api.put("skills", object("second"));
        let error = bed.gateway.service().switch(&seen, off).await.unwrap_err();
        assert_eq!(error.to_string(), "could not change Skill team/sum");
        let is_enabled =
            || bed.api.object(&path("team", "skills", "sum")).unwrap()["spec"]["enabled"].clone();
        assert_eq!(is_enabled(), true);
        bed.api.put("skills", object("first"));
        assert!(!bed.gateway.service().switch(&seen, off).await.unwrap().spec.enabled);
        assert_eq!(is_enabled(), false);
    }
}
