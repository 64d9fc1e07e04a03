//! The HTTP interface under `/api/skills`: what a person or a program does with skills and their runs, without a model.
//!
//! Every request acts under the rights of its caller, and what it does has the same effect as through kubectl. Nothing
//! in a path, a parameter or a body says who asks.

pub(crate) mod body;
mod cancel;
mod create_execution;
mod docs;
mod events;
mod execution_view;
mod executions;
mod openapi;
mod pagination;
mod params;
mod resolve;
mod skill_view;
mod skills;
#[cfg(test)]
mod test_bed;
mod update_skill;

use std::sync::Arc;

use axum::{
    Router,
    extract::FromRef,
    routing::{get, post},
};
use futures::{FutureExt as _, future::BoxFuture};
use http::HeaderMap;
use skillet_api::SkillPolicySpec;
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{Auth, AuthError, Caller, Verb},
    catalog::{CatalogEntry, SkillCatalog},
    error::ApiError,
    executions::ExecutionClient,
    memory::MemoryPool,
    state::GatewayState,
};
pub use openapi::document;

/// Who asks and what that caller may.
pub(crate) trait Rights: Send + Sync {
    fn caller<'a>(&'a self, headers: &'a HeaderMap) -> BoxFuture<'a, Result<Caller, AuthError>>;

    fn check<'a>(
        &'a self,
        caller: &'a Caller,
        verb: Verb,
        namespace: &'a str,
        skill: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AuthError>>;
}

/// Which skills there are.
pub(crate) trait Catalogue: Send + Sync {
    fn policy(&self) -> Arc<SkillPolicySpec>;
    /// Where a caller's names are looked up, the nearest first.
    fn namespaces(&self, caller: &Caller) -> Vec<Arc<str>>;
    fn get(&self, namespace: &str, name: &str) -> Option<Arc<CatalogEntry>>;
    fn list(&self, namespace: &str) -> Vec<Arc<CatalogEntry>>;
}

impl Rights for Auth {
    fn caller<'a>(&'a self, headers: &'a HeaderMap) -> BoxFuture<'a, Result<Caller, AuthError>> {
        Auth::caller(self, headers).boxed()
    }

    fn check<'a>(
        &'a self,
        caller: &'a Caller,
        verb: Verb,
        namespace: &'a str,
        skill: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AuthError>> {
        Auth::check(self, caller, verb, namespace, skill).boxed()
    }
}

impl Catalogue for SkillCatalog {
    fn policy(&self) -> Arc<SkillPolicySpec> {
        SkillCatalog::policy(self)
    }

    fn namespaces(&self, caller: &Caller) -> Vec<Arc<str>> {
        SkillCatalog::namespaces(self, caller)
    }

    fn get(&self, namespace: &str, name: &str) -> Option<Arc<CatalogEntry>> {
        SkillCatalog::get(self, namespace, name)
    }

    fn list(&self, namespace: &str) -> Vec<Arc<CatalogEntry>> {
        SkillCatalog::list(self, namespace)
    }
}

/// What these routes need of the gateway.
#[derive(Clone)]
pub(crate) struct Rest {
    pub(crate) rights: Arc<dyn Rights>,
    pub(crate) catalogue: Arc<dyn Catalogue>,
    pub(crate) executor: Arc<ExecutionClient>,
    pub(crate) client: kube::Client,
    pub(crate) room: Arc<MemoryPool>,
    /// Ends streams that wait for news.
    pub(crate) stop: CancellationToken,
}

impl FromRef<GatewayState> for Rest {
    fn from_ref(gateway: &GatewayState) -> Self {
        Self {
            rights: gateway.auth.clone(),
            catalogue: gateway.catalog.clone(),
            executor: gateway.executions.clone(),
            client: gateway.client.clone(),
            room: gateway.memory.clone(),
            stop: gateway.stop.clone(),
        }
    }
}

/// `/api/skills`, `/openapi.json` and `/docs`.
pub fn routes() -> Router<GatewayState> {
    routes_of()
}

fn routes_of<S>() -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    Rest: FromRef<S>,
{
    // A path with fixed words goes before one with a name, whatever the order here.
    Router::new()
        .route("/api/skills", get(skills::list))
        .route("/api/skills/{name}", get(skills::get).put(update_skill::put).patch(update_skill::patch))
        .route("/api/skills/{name}/versions", get(skills::versions))
        .route("/api/skills/{name}/resolve", get(skills::resolve))
        .route("/api/skills/executions", get(executions::list).post(create_execution::create))
        .route("/api/skills/executions/{id}", get(executions::get).delete(cancel::delete))
        .route("/api/skills/executions/{id}/cancel", post(cancel::cancel))
        .route("/api/skills/executions/{id}/events", get(events::events))
        .route("/openapi.json", get(docs::openapi))
        .route("/docs", get(docs::page))
        .method_not_allowed_fallback(async || ApiError::method_not_allowed())
}
