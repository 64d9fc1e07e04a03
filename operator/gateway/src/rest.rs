//! The HTTP interface under `/api/skills`: what a person or a program does with skills and their runs, without a model.
//!
//! Every request acts under the rights of its caller, and what it does has the same effect as through kubectl. Nothing
//! in a path, a parameter or a body says who asks.

pub(crate) mod body;
mod cancel;
mod docs;
mod events;
mod execution_view;
mod executions;
mod look_up;
mod openapi;
mod page;
mod params;
mod skill_view;
mod skills;
mod start;
mod switch;
#[cfg(test)]
mod test_bed;

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
    error::ApiError,
    executions::ExecutionClient,
    identity::{Caller, Identity, IdentityError, Verb},
    memory::MemoryPool,
    skills::{Known, Skills},
    state::GatewayState,
};
pub use openapi::document;

/// Who asks and what that caller may.
pub(crate) trait Rights: Send + Sync {
    fn caller<'a>(&'a self, headers: &'a HeaderMap) -> BoxFuture<'a, Result<Caller, IdentityError>>;

    fn check<'a>(
        &'a self,
        caller: &'a Caller,
        verb: Verb,
        namespace: &'a str,
        skill: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), IdentityError>>;
}

/// Which skills there are.
pub(crate) trait Catalogue: Send + Sync {
    fn policy(&self) -> Arc<SkillPolicySpec>;
    /// Where a caller's names are looked up, the nearest first.
    fn namespaces(&self, caller: &Caller) -> Vec<Arc<str>>;
    fn get(&self, namespace: &str, name: &str) -> Option<Arc<Known>>;
    fn list(&self, namespace: &str) -> Vec<Arc<Known>>;
}

impl Rights for Identity {
    fn caller<'a>(&'a self, headers: &'a HeaderMap) -> BoxFuture<'a, Result<Caller, IdentityError>> {
        Identity::caller(self, headers).boxed()
    }

    fn check<'a>(
        &'a self,
        caller: &'a Caller,
        verb: Verb,
        namespace: &'a str,
        skill: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), IdentityError>> {
        Identity::check(self, caller, verb, namespace, skill).boxed()
    }
}

impl Catalogue for Skills {
    fn policy(&self) -> Arc<SkillPolicySpec> {
        Skills::policy(self)
    }

    fn namespaces(&self, caller: &Caller) -> Vec<Arc<str>> {
        Skills::namespaces(self, caller)
    }

    fn get(&self, namespace: &str, name: &str) -> Option<Arc<Known>> {
        Skills::get(self, namespace, name)
    }

    fn list(&self, namespace: &str) -> Vec<Arc<Known>> {
        Skills::list(self, namespace)
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
            rights: gateway.identity.clone(),
            catalogue: gateway.skills.clone(),
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
        .route("/api/skills/{name}", get(skills::one).put(switch::put).patch(switch::patch))
        .route("/api/skills/{name}/versions", get(skills::versions))
        .route("/api/skills/{name}/resolve", get(skills::resolve))
        .route("/api/skills/executions", get(executions::list).post(start::start))
        .route("/api/skills/executions/{id}", get(executions::one).delete(cancel::delete))
        .route("/api/skills/executions/{id}/cancel", post(cancel::cancel))
        .route("/api/skills/executions/{id}/events", get(events::events))
        .route("/openapi.json", get(docs::openapi))
        .route("/docs", get(docs::page))
        .method_not_allowed_fallback(async || ApiError::method_not_allowed())
}
