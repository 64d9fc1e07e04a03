//! A gateway without a cluster: two tenants, a platform namespace, and executions that a test ends by hand.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex},
};

use futures::{StreamExt as _, stream::BoxStream};
use http::{HeaderMap, header::AUTHORIZATION};
use serde_json::{Value, json};
use skillet_api::Skill;
use tokio::sync::watch;

use super::super::backend::{Backend, Runs, Switch};
use crate::{
    auth::{AuthError, Caller, Verb},
    catalog::{CachedSkill, CachedVersion, CatalogEntry, Versions},
    executions::{Execution, ExecutionError, ExecutionRequest, Metadata, Spec},
    memory::MemoryPool,
    resolve::Shelves,
    service::ServiceError,
};

/// User, verb, namespace of the skill, and the skill or any.
type Forbidden = (String, Verb, String, Option<String>);
type Run = watch::Sender<Arc<Execution>>;

#[derive(Default)]
pub(super) struct Fake {
    skills: Mutex<BTreeMap<String, BTreeMap<String, Arc<CatalogEntry>>>>,
    forbidden: Mutex<HashSet<Forbidden>>,
    changes: watch::Sender<u64>,
    /// The number of the last change in each namespace.
    last_changes: Mutex<HashMap<String, u64>>,
    /// Number of lists of a namespace's skills.
    looked_at: Mutex<HashMap<String, usize>>,
    pub(super) orders: Mutex<Vec<ExecutionRequest>>,
    runs: Mutex<HashMap<String, Run>>,
    /// The run that each idempotency key has made in each namespace.
    keys: Mutex<HashMap<(String, String), String>>,
    /// Refusals of the next runs, the last first.
    pub(super) refusals: Mutex<Vec<ExecutionError>>,
    /// Status codes of the API server for the next refused updates.
    pub(super) switch_refusals: Mutex<Vec<u16>>,
    pub(super) cancelled: Mutex<Vec<String>>,
    pub(super) switched: Mutex<Vec<(String, String, Switch)>>,
    pub(super) is_unreachable: Mutex<bool>,
    pub(super) room: MemoryPool,
}

impl Fake {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// A skill with a version; `change` is merged into the Skill's spec, `tool` is its schemas.
    pub(super) fn put(&self, namespace: &str, name: &str, change: &Value, tool: &Value) {
        let mut spec = json!({ "version": "1.0.0", "description": "skill's", "run": {} });
        spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let number = spec["version"].clone();
        let skill = json!({ "metadata": { "name": name, "namespace": namespace }, "spec": spec });
        let version = json!({
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "skill": name, "version": number, "digest": "d", "description": format!("{name} of {namespace}"),
                "tool": tool, "run": {} },
        });
        let skill = CachedSkill::of(&serde_json::from_value(skill).unwrap()).unwrap();
        let version = CachedVersion::of(&serde_json::from_value(version).unwrap()).unwrap();
        let known = Arc::new(CatalogEntry::new(Arc::new(skill), Versions::default().with(version)));
        self.skills.lock().unwrap().entry(namespace.to_owned()).or_default().insert(name.to_owned(), known);
        self.tell(namespace);
    }

    /// A skill that any input runs.
    pub(super) fn put_plain(&self, namespace: &str, name: &str) {
        self.put(namespace, name, &json!({}), &json!({}));
    }

    pub(super) fn unseal(&self, namespace: &str, name: &str) {
        let mut skills = self.skills.lock().unwrap();
        let known = skills.get_mut(namespace).unwrap().get_mut(name).unwrap();
        *known = Arc::new(CatalogEntry::new(known.skill.clone(), Versions::default()));
        drop(skills);
        self.tell(namespace);
    }

    fn tell(&self, namespace: &str) {
        let number = *self.changes.borrow() + 1;
        self.last_changes.lock().unwrap().insert(namespace.to_owned(), number);
        self.changes.send_replace(number);
    }

    /// Returns the number of lists of a namespace's skills so far.
    pub(super) fn looks(&self, namespace: &str) -> usize {
        self.looked_at.lock().unwrap().get(namespace).copied().unwrap_or_default()
    }

    pub(super) fn forbid(&self, caller: &str, verb: Verb, namespace: &str) {
        self.forbidden.lock().unwrap().insert((caller.to_owned(), verb, namespace.to_owned(), None));
    }

    /// Only one skill, which whoever asks for all of the namespace does not ask for.
    pub(super) fn forbid_skill(&self, caller: &str, verb: Verb, namespace: &str, skill: &str) {
        let wish = (caller.to_owned(), verb, namespace.to_owned(), Some(skill.to_owned()));
        self.forbidden.lock().unwrap().insert(wish);
    }

    /// Gives the run of a number, from 0, a state.
    pub(super) fn set(&self, run: usize, status: &Value) {
        let runs = self.runs.lock().unwrap();
        let run = &runs[&format!("run-{run}")];
        let mut execution = Execution::clone(&run.borrow());
        execution.status = Some(serde_json::from_str(&status.to_string()).unwrap());
        run.send_replace(Arc::new(execution));
    }

    /// Deletes the execution.
    pub(super) fn remove(&self, run: usize) {
        self.runs.lock().unwrap().remove(&format!("run-{run}"));
    }

    /// Returns the number of callers that wait for a run.
    pub(super) fn waiting(&self, run: usize) -> usize {
        self.runs.lock().unwrap()[&format!("run-{run}")].receiver_count()
    }

    pub(super) fn started(&self) -> usize {
        self.runs.lock().unwrap().len()
    }
}

impl Shelves for Fake {
    async fn check(
        &self,
        caller: &Caller,
        verb: Verb,
        namespace: &str,
        skill: Option<&str>,
    ) -> Result<(), AuthError> {
        if *self.is_unreachable.lock().unwrap() {
            return Err(AuthError::Unreachable("a review had no answer".to_owned()));
        }
        let forbidden = self.forbidden.lock().unwrap();
        let is_forbidden = |skill: Option<&str>| {
            let skill = skill.map(str::to_owned);
            forbidden.contains(&(caller.user.to_string(), verb, namespace.to_owned(), skill))
        };
        let is_near = namespace == "platform" || *namespace == *caller.namespace;
        if is_near && !is_forbidden(None) && !is_forbidden(skill) {
            return Ok(());
        }
        Err(AuthError::Forbidden { verb, namespace: namespace.to_owned() })
    }

    fn namespaces(&self, caller: &Caller) -> Vec<Arc<str>> {
        vec![caller.namespace.clone(), "platform".into()]
    }

    fn skills(&self, namespace: &str) -> Vec<Arc<CatalogEntry>> {
        *self.looked_at.lock().unwrap().entry(namespace.to_owned()).or_default() += 1;
        let skills = self.skills.lock().unwrap();
        skills.get(namespace).map(|skills| skills.values().cloned().collect()).unwrap_or_default()
    }

    fn skill(&self, namespace: &str, name: &str) -> Option<Arc<CatalogEntry>> {
        self.skills.lock().unwrap().get(namespace)?.get(name).cloned()
    }
}

impl Backend for Fake {
    /// The token `a` is of namespace `a`, `a/other` of another account there.
    async fn identify(&self, headers: &HeaderMap) -> Result<Caller, AuthError> {
        let token = headers.get(AUTHORIZATION).ok_or(AuthError::Missing)?.to_str().unwrap();
        let user = token.strip_prefix("Bearer ").unwrap_or_default();
        match user.split('/').next() {
            Some(namespace @ ("a" | "b")) => {
                Ok(Caller { namespace: namespace.into(), user: user.into(), groups: [].into() })
            }
            _ => Err(AuthError::Unknown),
        }
    }

    fn memory(&self) -> &MemoryPool {
        &self.room
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn last_change(&self, namespace: &str) -> u64 {
        self.last_changes.lock().unwrap().get(namespace).copied().unwrap_or_default()
    }

    async fn start(&self, order: &ExecutionRequest) -> Result<Arc<Execution>, ExecutionError> {
        self.orders.lock().unwrap().push(order.clone());
        if let Some(refusal) = self.refusals.lock().unwrap().pop() {
            return Err(refusal);
        }
        let mut runs = self.runs.lock().unwrap();
        let name = format!("run-{}", runs.len());
        if let Some(key) = &order.idempotency {
            let key = (order.namespace.to_string(), key.clone());
            let made = self.keys.lock().unwrap().entry(key).or_insert(name.clone()).clone();
            if let Some(run) = runs.get(&made) {
                return Ok(run.borrow().clone());
            }
        }
        let execution = Execution {
            metadata: Metadata {
                name: name.clone(),
                namespace: order.namespace.to_string(),
                ..Metadata::default()
            },
            spec: Spec { skill: order.skill.to_string(), ..Spec::default() },
            status: None,
        };
        let execution = Arc::new(execution);
        runs.insert(name, watch::Sender::new(execution.clone()));
        Ok(execution)
    }

    async fn made(
        &self,
        order: &ExecutionRequest,
        namespace: &str,
    ) -> Result<Option<Arc<Execution>>, ExecutionError> {
        let Some(key) = order.idempotency.clone() else { return Ok(None) };
        let made = self.keys.lock().unwrap().get(&(namespace.to_owned(), key)).cloned();
        Ok(made.map(|made| self.runs.lock().unwrap()[&made].borrow().clone()))
    }

    fn states(&self, execution: &Execution) -> BoxStream<'_, Result<Arc<Execution>, ExecutionError>> {
        let name = execution.metadata.name.clone();
        let mut news = self.runs.lock().unwrap()[&name].subscribe();
        news.mark_changed();
        let states = futures::stream::unfold(news, move |mut news| {
            let name = name.clone();
            async move {
                let state = match news.changed().await {
                    Ok(()) => Ok(news.borrow_and_update().clone()),
                    Err(_) => Err(ExecutionError::Gone { namespace: "ns".to_owned(), name }),
                };
                Some((state, news))
            }
        });
        states.boxed()
    }

    async fn cancel_unless_wanted(&self, execution: &Metadata) {
        let name = execution.name.clone();
        let number = name.strip_prefix("run-").unwrap().parse().unwrap();
        if self.waiting(number) == 0 {
            self.set(number, &json!({ "phase": "Cancelled", "reason": "Cancelled" }));
            self.cancelled.lock().unwrap().push(name);
        }
    }

    async fn switch(&self, skill: &CachedSkill, switch: Switch) -> Result<Skill, ServiceError> {
        let CachedSkill { namespace, name, spec, .. } = skill;
        if let Some(code) = self.switch_refusals.lock().unwrap().pop() {
            let status = serde_json::from_value(json!({ "code": code, "message": "says why" })).unwrap();
            let source = Box::new(kube::Error::Api(Box::new(status)));
            return Err(ServiceError::Update {
                namespace: namespace.to_string(),
                name: name.to_string(),
                source,
            });
        }
        self.switched.lock().unwrap().push((namespace.to_string(), name.to_string(), switch));
        let skill = json!({
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "version": "1.0.0", "run": {}, "enabled": switch.enabled.unwrap_or(spec.enabled),
                "mode": switch.mode.unwrap_or(spec.mode) },
        });
        Ok(serde_json::from_value(skill).unwrap())
    }

    async fn executions(
        &self,
        caller: &Caller,
        namespaces: &[Arc<str>],
        limit: usize,
    ) -> Result<Runs<'_>, ServiceError> {
        let orders = self.orders.lock().unwrap();
        let own = orders.iter().enumerate().filter(|(_, order)| {
            order.caller.namespace == caller.namespace && namespaces.contains(&order.namespace)
        });
        let execution = |(number, order): (usize, &ExecutionRequest)| {
            let object = json!({
                "metadata": { "name": format!("run-{number}"), "namespace": *order.namespace,
                    "creationTimestamp": format!("2026-01-01T00:00:{number:02}Z") },
                "spec": { "skill": *order.skill, "sessionId": order.session },
            });
            Ok(Arc::new(serde_json::from_value(object).unwrap()))
        };
        let mut found: Vec<_> = own.map(execution).collect();
        found.reverse();
        let total = found.len();
        found.truncate(limit);
        Ok(Runs { total, newest: futures::stream::iter(found).boxed() })
    }
}
