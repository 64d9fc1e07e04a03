//! The skills and their runs that REST and MCP offer, each under the caller's rights.
//!
//! Every method checks the caller's rights before it reads or changes anything. A skill that the caller may not see is
//! reported like a skill that does not exist. The service knows no HTTP and no MCP: REST maps a [`ServiceError`] to a
//! status, MCP to a tool result.

use std::sync::Arc;

use http::HeaderMap;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde::Serialize;
use serde_json::json;
use skillet_api::{Skill, names};
use skillet_workspace::WorkspaceClient;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{Auth, AuthError, Caller, Verb},
    catalog::{CachedSkill, CatalogEntry, SkillCatalog},
    commands::CommandRunner,
    executions::{Execution, ExecutionClient, ExecutionError, ExecutionRequest, ListEntry},
    memory::MemoryPool,
    resolve::{self, Lookup, ResolvedSkill},
    workspace::FileError,
};

/// The services that REST and MCP share. Clones share them too.
#[derive(Clone)]
pub struct SkillService {
    pub(crate) auth: Arc<Auth>,
    pub(crate) catalog: Arc<SkillCatalog>,
    pub(crate) executions: Arc<ExecutionClient>,
    pub(crate) commands: Arc<CommandRunner>,
    pub(crate) memory: Arc<MemoryPool>,
    /// The store of the callers' files.
    pub(crate) workspaces: Option<WorkspaceClient>,
    /// Cancelled when the gateway is to stop; requests that only wait end then.
    pub(crate) stop: CancellationToken,
    client: Client,
}

#[derive(Debug, Error)]
pub enum ServiceError {
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error("namespace {0} is not among those looked up for this caller")]
    UnknownNamespace(String),
    #[error(
        "none of the namespaces looked up for this caller has a Skill {name}; GET /api/skills lists those that there are"
    )]
    SkillNotFound { name: String },
    #[error("namespace {namespace} does not have a Skill {name}")]
    SkillNotFoundIn { namespace: String, name: String },
    #[error("could not change Skill {namespace}/{name}")]
    Update { namespace: String, name: String, source: Box<kube::Error> },
    #[error("there is no run {0} of this caller")]
    ExecutionNotFound(String),
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    #[error(transparent)]
    File(#[from] FileError),
}

impl SkillService {
    pub fn new(client: Client, memory: MemoryPool) -> Self {
        let (catalog, executions) = (Arc::default(), Arc::new(ExecutionClient::new(client.clone())));
        Self {
            auth: Arc::new(Auth::new(client.clone())),
            commands: Arc::new(CommandRunner::new(Arc::clone(&catalog), executions.clone())),
            catalog,
            executions,
            memory: Arc::new(memory),
            workspaces: None,
            stop: CancellationToken::new(),
            client,
        }
    }

    /// Returns a client of the API server.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns true once the first list of every watch is complete.
    pub fn is_synced(&self) -> bool {
        self.catalog.is_synced() && self.auth.is_synced() && self.executions.is_synced()
    }

    /// Returns the caller of a request, by its headers.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, AuthError> {
        Ok(self.auth.authenticate(headers, None).await?.caller)
    }

    /// Returns the look-up of this caller.
    pub fn lookup<'a>(&'a self, caller: &'a Caller) -> Lookup<'a> {
        Lookup { auth: &self.auth, catalog: &self.catalog, caller }
    }

    /// Returns every skill that the caller sees, or those of one namespace: nearest namespace first, then by name.
    pub async fn list(
        &self,
        caller: &Caller,
        namespace: Option<&str>,
    ) -> Result<Vec<ResolvedSkill>, ServiceError> {
        self.namespaces_of(caller, namespace)?;
        let visible = self.allowed(caller, Verb::Get, self.catalog.namespaces(caller), None).await?;
        let mut skills = resolve::list(&self.catalog, &visible);
        if let Some(namespace) = namespace {
            self.auth.authorize(caller, Verb::Get, namespace, None).await?;
            skills.retain(|skill| &*skill.namespace == namespace);
        }
        Ok(skills)
    }

    /// Returns the nearest skill of a name, or the skill of the given namespace.
    pub async fn get(
        &self,
        caller: &Caller,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<ResolvedSkill, ServiceError> {
        let namespaces = self.namespaces_of(caller, namespace)?;
        if let Some(skill) = self.lookup(caller).resolve(name, namespace).await? {
            return Ok(skill);
        }
        // The response must not show that a skill exists to a caller who may not see it.
        self.allowed(caller, Verb::Get, namespaces, Some(name)).await?;
        let name = name.to_owned();
        Err(match namespace {
            Some(namespace) => ServiceError::SkillNotFoundIn { namespace: namespace.to_owned(), name },
            None => ServiceError::SkillNotFound { name },
        })
    }

    /// Merges `update` into the spec of the nearest skill of a name, and returns the changed skill.
    pub async fn update(
        &self,
        caller: &Caller,
        name: &str,
        namespace: Option<&str>,
        update: &impl Serialize,
    ) -> Result<ResolvedSkill, ServiceError> {
        let resolved = self.get(caller, name, namespace).await?;
        self.auth.authorize(caller, Verb::Patch, &resolved.namespace, Some(name)).await?;
        let CatalogEntry { skill, versions, .. } = &*resolved.entry;
        let api: Api<Skill> = Api::namespaced(self.client.clone(), &skill.namespace);
        // With the uid, one made again under the same name is not taken for the one whose rights were asked.
        let patch = json!({ "metadata": { "uid": skill.uid }, "spec": update });
        let field_manager = Some(names::GATEWAY_FIELD_MANAGER.to_owned());
        let params = PatchParams { field_manager, ..PatchParams::default() };
        let changed = api.patch(name, &params, &Patch::Merge(patch)).await.map_err(|source| {
            let (namespace, name) = (skill.namespace.to_string(), skill.name.to_string());
            ServiceError::Update { namespace, name, source: Box::new(source) }
        })?;
        let changed = CachedSkill::of(&changed).map_or_else(|| skill.clone(), Arc::new);
        let entry = Arc::new(CatalogEntry::new(changed, versions.clone()));
        Ok(ResolvedSkill { entry, ..resolved })
    }

    /// Returns the run that the request's idempotency key has started, or starts a run of the nearest skill.
    pub async fn start_or_find(
        &self,
        request: ExecutionRequest,
        namespace: Option<&str>,
    ) -> Result<Arc<Execution>, ServiceError> {
        let skill = self.get(&request.caller, &request.skill, namespace).await;
        let nearest = skill.as_ref().ok().map(|skill| skill.namespace.clone());
        if let Some(execution) = self.find_elsewhere(&request, namespace, nearest.as_deref()).await? {
            return Ok(execution);
        }
        let request = ExecutionRequest { namespace: skill?.namespace, ..request };
        self.auth.authorize(&request.caller, Verb::Execute, &request.namespace, Some(&request.skill)).await?;
        Ok(self.executions.start(&request).await?)
    }

    /// Does what [`Self::start_or_find`] does, for a skill that is resolved and that the caller may execute.
    pub async fn start_resolved(&self, request: &ExecutionRequest) -> Result<Arc<Execution>, ServiceError> {
        match self.find_elsewhere(request, None, Some(&request.namespace)).await? {
            Some(execution) => Ok(execution),
            None => Ok(self.executions.start(request).await?),
        }
    }

    /// Returns the run that the key has started in another namespace than the nearest, while the name resolved to a
    /// skill there. In the nearest namespace the execution's own name finds the run.
    async fn find_elsewhere(
        &self,
        request: &ExecutionRequest,
        chosen: Option<&str>,
        nearest: Option<&str>,
    ) -> Result<Option<Arc<Execution>>, ServiceError> {
        if request.idempotency.is_none() {
            return Ok(None);
        }
        for other in self.lookup(&request.caller).other_namespaces(&request.skill, nearest).await? {
            if chosen.is_some_and(|chosen| chosen != &*other) {
                continue;
            }
            if let Some(execution) = self.executions.find_by_key(request, &other).await? {
                return Ok(Some(execution));
            }
        }
        Ok(None)
    }

    /// Returns the caller's run of this name from the nearest namespace that has it.
    pub async fn execution(
        &self,
        caller: &Caller,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<Arc<Execution>, ServiceError> {
        for namespace in self.namespaces_of(caller, namespace)? {
            let Some(execution) = self.executions.find(&namespace, name).await? else { continue };
            let skill = Some(&*execution.spec.skill);
            if belongs_to(caller, &namespace, &execution)
                && self.auth.may(caller, Verb::Execute, &namespace, skill).await?
            {
                return Ok(execution);
            }
        }
        Err(ServiceError::ExecutionNotFound(name.to_owned()))
    }

    /// Returns the caller's runs, newest first. `fields` are field selectors of the API server.
    ///
    /// A caller who may run all skills of a namespace sees every run of its own there. With rights to some skills only,
    /// it has to name one of these.
    pub async fn list_executions(
        &self,
        caller: &Caller,
        namespace: Option<&str>,
        skill: Option<&str>,
        fields: Option<&[String]>,
    ) -> Result<Vec<ListEntry>, ServiceError> {
        let namespaces = self.namespaces_of(caller, namespace)?;
        let allowed = self.allowed(caller, Verb::Execute, namespaces, skill).await?;
        match fields {
            Some(fields) => Ok(self.executions.list(caller, &allowed, fields).await?),
            None => Ok(Vec::new()),
        }
    }

    /// Cancels a run that has not ended, and returns it as it was before.
    pub async fn cancel(
        &self,
        caller: &Caller,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<Arc<Execution>, ServiceError> {
        let execution = self.execution(caller, name, namespace).await?;
        if !execution.is_ended() {
            self.executions.cancel(&execution.metadata).await?;
        }
        Ok(execution)
    }

    /// Returns the namespaces in which the caller's names are resolved, or the given namespace if it is one of these.
    pub(crate) fn namespaces_of(
        &self,
        caller: &Caller,
        given: Option<&str>,
    ) -> Result<Vec<Arc<str>>, ServiceError> {
        let mut namespaces = self.catalog.namespaces(caller);
        if let Some(given) = given {
            namespaces.retain(|namespace| &**namespace == given);
            if namespaces.is_empty() {
                return Err(ServiceError::UnknownNamespace(given.to_owned()));
            }
        }
        Ok(namespaces)
    }

    /// Returns those of `namespaces` in which the caller may do this, or the first refusal if there are none.
    async fn allowed(
        &self,
        caller: &Caller,
        verb: Verb,
        namespaces: Vec<Arc<str>>,
        skill: Option<&str>,
    ) -> Result<Vec<Arc<str>>, AuthError> {
        let first = namespaces.first().map(ToString::to_string);
        let allowed = self.auth.allowed(caller, &[verb], namespaces, skill).await?;
        match first {
            Some(namespace) if allowed.is_empty() => Err(AuthError::Forbidden { verb, namespace }),
            _ => Ok(allowed),
        }
    }
}

fn belongs_to(caller: &Caller, namespace: &str, execution: &Execution) -> bool {
    let made_for = execution.metadata.labels.get(names::LABEL_CALLER_NAMESPACE);
    *namespace == *caller.namespace || made_for.is_some_and(|made_for| *made_for == *caller.namespace)
}

#[cfg(test)]
mod tests;
