//! The client for SkillExecutions: creates them, waits for their end, cancels them.
//!
//! One watch serves all requests. A run that its request drops is cancelled if the request asked for that and no other
//! request of this gateway waits for it. The name of a keyed execution is derived from the caller and its idempotency
//! key, so every replica finds the same run and nothing is stored. The client does not check the caller's rights, and
//! nothing is executed here: the operator does that.

mod continued;
mod error;
mod execution;
mod list;
mod request;
mod script_result;
mod subscriptions;
mod watch;

use std::{sync::Arc, time::Duration};

use kube::{
    Api, Resource as _, ResourceExt as _,
    api::{ListParams, PartialObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use skillet_api::{dynamic::BodyCommand, execution::BundleScript, mcp::McpCall, names};
use skillet_core::admission::check_input_text;
use tokio::sync::oneshot;
use tracing::{Instrument as _, warn};

use crate::auth::Caller;
pub use error::ExecutionError;
use execution::Found;
pub use execution::{Execution, Metadata, Spec, Status};
pub use list::ListEntry;
pub(crate) use request::caller_text;
#[cfg(test)]
pub(crate) use request::object as created_object;
pub(crate) use script_result::script_result;
use subscriptions::Subscriptions;
pub use watch::ExecutionWatch;

/// One run to create: skill, input, caller and key.
#[derive(Clone, Debug)]
pub struct ExecutionRequest {
    pub caller: Caller,
    /// Namespace of the skill, where the execution is made.
    pub namespace: Arc<str>,
    pub skill: Arc<str>,
    /// Version constraint; the newest where none is given.
    pub version: Option<String>,
    /// Null beside a script or a command.
    pub input: Value,
    /// Script of the bundle that runs instead of the skill's own program.
    pub script: Option<BundleScript>,
    /// Command of the body that runs instead of the skill's own program.
    pub command: Option<BodyCommand>,
    /// MCP server to keep running, or a call of one, instead of the skill's own program.
    pub mcp: Option<McpPart>,
    pub session: Option<String>,
    pub timeout: Option<Duration>,
    /// The HTTP request that asks for the run; the execution carries it as an annotation.
    pub request_id: Option<String>,
    /// The same key is the same execution, whatever replica or restart lies between.
    pub idempotency: Option<String>,
    /// Cancels the run once no request waits for it; only `ExecutionClient::run` reads this.
    pub cancel_when_dropped: bool,
    /// Accepts an execution of another version under the same idempotency key.
    pub ignore_version: bool,
}

impl ExecutionRequest {
    /// The newest version with no input and nothing else asked for.
    pub fn new(caller: Caller, namespace: impl Into<Arc<str>>, skill: impl Into<Arc<str>>) -> Self {
        Self {
            caller,
            namespace: namespace.into(),
            skill: skill.into(),
            version: None,
            input: Value::Null,
            script: None,
            command: None,
            mcp: None,
            session: None,
            timeout: None,
            request_id: None,
            idempotency: None,
            cancel_when_dropped: false,
            ignore_version: false,
        }
    }
}

/// The part of an execution in a session with an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpPart {
    /// A server, as a session of this digest and number.
    Server {
        name: String,
        session: String,
        number: u32,
    },
    Call(McpCall),
}

/// Attempts to create an execution whose name was taken and then free again.
const MAX_RACES: u32 = 4;

/// Makes executions and waits for them.
pub struct ExecutionClient {
    client: kube::Client,
    subscriptions: Arc<Subscriptions>,
}

impl ExecutionClient {
    pub fn new(client: kube::Client) -> Self {
        Self { client, subscriptions: Arc::default() }
    }

    /// Watches the executions of the whole cluster, until it is dropped. They are not listed: of tens of thousands the
    /// gateway needs those that a request waits for, and asks for each.
    pub async fn watch_all(self: Arc<Self>) {
        let api: Api<Found> = Api::all(self.client.clone());
        skillet_kube::mirror_changes(api, &mut &*self.subscriptions).await;
    }

    /// Returns true once changes of executions are followed.
    pub fn is_synced(&self) -> bool {
        self.subscriptions.is_synced()
    }

    /// Creates the execution, or finds the one that the same idempotency key created.
    pub async fn start(&self, request: &ExecutionRequest) -> Result<Arc<Execution>, ExecutionError> {
        let api = self.api(&request.namespace);
        check_input_text(&request.input.to_string())
            .map_err(|refusal| ExecutionError::InputRefused { message: refusal.message })?;
        let sent = Found::new(&request::object(request))
            .map_err(|error| ExecutionError::of_create(&request.namespace, kube::Error::SerdeError(error)))?;
        let params = PostParams { field_manager: Some(names::GATEWAY_FIELD_MANAGER.into()), dry_run: false };
        let mut races = 0;
        loop {
            let error = match api.create(&params, &sent).await {
                Ok(created) => return read(&created),
                Err(error) => error,
            };
            let is_taken = matches!(&error, kube::Error::Api(status) if status.is_already_exists());
            let Some(name) = sent.meta().name.as_deref().filter(|_| is_taken && races < MAX_RACES) else {
                return Err(ExecutionError::of_create(&request.namespace, error));
            };
            match self.find(&request.namespace, name).await? {
                Some(found) if request::is_same_call(request, &found) => return Ok(found),
                Some(_) => return Err(ExecutionError::Conflict),
                // It was deleted in between, so the name is free.
                None => races += 1,
            }
        }
    }

    /// The execution that the request's idempotency key has made in this namespace, if it is still there. Makes none.
    pub async fn find_by_key(
        &self,
        request: &ExecutionRequest,
        namespace: &str,
    ) -> Result<Option<Arc<Execution>>, ExecutionError> {
        let Some(key) = &request.idempotency else { return Ok(None) };
        match self.find(namespace, &request::keyed_name(&request.caller, key)).await? {
            Some(found) if !request::is_same_call(request, &found) => Err(ExecutionError::Conflict),
            found => Ok(found),
        }
    }

    /// Waits for the end of an execution. Dropped, it leaves the execution running.
    pub async fn wait(
        &self,
        execution: &Execution,
        limit: Duration,
    ) -> Result<Arc<Execution>, ExecutionError> {
        if execution.is_ended() {
            return Ok(Arc::new(execution.clone()));
        }
        let mut watch = self.watch(execution);
        let end = async {
            loop {
                let state = watch.next().await?;
                if state.is_ended() {
                    return Ok(state);
                }
            }
        };
        let Metadata { namespace, name, .. } = execution.metadata.clone();
        let too_late = |_| Err(ExecutionError::TooLate { namespace, name, limit });
        tokio::time::timeout(limit, end).await.unwrap_or_else(too_late)
    }

    /// Starts, and waits for the end. If the request says so, the run is cancelled when this future is dropped, from
    /// whatever point on, unless another request of this gateway waits for the same run.
    pub async fn run(
        self: &Arc<Self>,
        request: &ExecutionRequest,
        limit: Duration,
    ) -> Result<Arc<Execution>, ExecutionError> {
        if !request.cancel_when_dropped {
            let execution = self.start(request).await?;
            return self.wait(&execution, limit).await;
        }
        let (answer, answered) = oneshot::channel();
        let run = self.clone().run_until_dropped(request.clone(), limit, answer);
        tokio::spawn(run.in_current_span());
        answered.await.unwrap_or(Err(ExecutionError::Stopping))
    }

    async fn run_until_dropped(
        self: Arc<Self>,
        request: ExecutionRequest,
        limit: Duration,
        mut answer: oneshot::Sender<Result<Arc<Execution>, ExecutionError>>,
    ) {
        // Not left half way: what was asked of the API server may exist, and must then be cancelled.
        let execution = match self.start(&request).await {
            Ok(execution) => execution,
            Err(error) => {
                // Whoever asked may be gone; then nobody needs the error.
                answer.send(Err(error)).ok();
                return;
            }
        };
        tokio::select! {
            biased;
            end = self.wait(&execution, limit) => {
                let is_too_late = matches!(end, Err(ExecutionError::TooLate { .. }));
                answer.send(end).ok();
                if is_too_late {
                    self.cancel_unless_wanted(&execution.metadata).await;
                }
            }
            () = answer.closed() => self.cancel_unless_wanted(&execution.metadata).await,
        }
    }

    /// Cancels a run that was waited for, unless another request of this gateway waits for it.
    pub async fn cancel_unless_wanted(&self, execution: &Metadata) {
        if self.waiting(&execution.uid) > 0 {
            return;
        }
        if let Err(error) = self.cancel(execution).await {
            warn!(%error, "Execution that nobody waits for was not cancelled");
        }
    }

    /// Returns the number of requests of this gateway that wait for an execution.
    pub fn waiting(&self, uid: &str) -> usize {
        self.subscriptions.count(uid)
    }

    /// Follows the states of an execution.
    pub fn watch(&self, execution: &Execution) -> ExecutionWatch {
        let api = self.api(&execution.metadata.namespace);
        ExecutionWatch::new(api, self.subscriptions.clone(), execution)
    }

    /// An execution as the API server holds it.
    pub async fn find(&self, namespace: &str, name: &str) -> Result<Option<Arc<Execution>>, ExecutionError> {
        let found = self.get_raw(namespace, name).await?;
        found.as_ref().map(read).transpose()
    }

    /// The highest number of the sessions with an MCP server that have this digest.
    pub async fn newest_session(&self, namespace: &str, digest: &str) -> Result<Option<u32>, ExecutionError> {
        let of_session = ListParams::default().labels(&format!("{}={digest}", names::LABEL_SESSION));
        let listed = self.api(namespace).list_metadata(&of_session).await;
        let listed = listed.map_err(|source| ExecutionError::List {
            namespace: namespace.to_owned(),
            source: Box::new(source),
        })?;
        let number = |session: &PartialObjectMeta<Found>| {
            session.labels().get(names::LABEL_SESSION_NUMBER)?.parse::<u32>().ok()
        };
        Ok(listed.items.iter().filter_map(number).max())
    }

    /// Asks for the end of an execution.
    pub async fn cancel(&self, execution: &Metadata) -> Result<(), ExecutionError> {
        let Metadata { namespace, name, .. } = execution.clone();
        match self.merge(execution, json!({ "spec": { "cancel": true } })).await {
            Ok(()) => Ok(()),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                Err(ExecutionError::Gone { namespace, name })
            }
            Err(source) => Err(ExecutionError::Cancel { namespace, name, source: Box::new(source) }),
        }
    }

    /// Merges `patch` into an execution.
    async fn merge(&self, execution: &Metadata, mut patch: Value) -> Result<(), kube::Error> {
        // With the uid, one made again under the same name is not taken for this one.
        patch["metadata"]["uid"] = execution.uid.clone().into();
        let params = PatchParams {
            field_manager: Some(names::GATEWAY_FIELD_MANAGER.into()),
            ..PatchParams::default()
        };
        let api = self.api(&execution.namespace);
        api.patch(&execution.name, &params, &Patch::Merge(&patch)).await.map(drop)
    }

    async fn get_raw(&self, namespace: &str, name: &str) -> Result<Option<Found>, ExecutionError> {
        self.api(namespace).get_opt(name).await.map_err(|error| read_error(namespace, name, error))
    }

    fn api(&self, namespace: &str) -> Api<Found> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

fn read(found: &Found) -> Result<Arc<Execution>, ExecutionError> {
    let read_error = |error| read_error(&found.namespace().unwrap_or_default(), &found.name_any(), error);
    Execution::read(found).map(Arc::new).map_err(read_error)
}

fn read_error(namespace: &str, name: &str, source: kube::Error) -> ExecutionError {
    ExecutionError::Read { namespace: namespace.to_owned(), name: name.to_owned(), source: Box::new(source) }
}

#[cfg(test)]
mod tests;
