//! MCP servers that executions keep running, and the way of calls to them.
//!
//! An execution with `mcpServer` is a run like any other, whose program is the server. An execution with `mcpCall` has no
//! sandbox: its request goes through this table to the task that holds the server's stream. A session ends with its stream,
//! so the calls of an operator that was replaced end as `SessionEnded`, and none is delivered twice.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use skillet_api::{Reason, SkillExecution, mcp::McpCall};
use skillet_core::{admission::Refusal, mcp_client::McpRequest};
use skillet_kube::lock;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, mpsc, oneshot};

use super::{reference::ExecutionRef, session_driver::CallEnd};

/// Most calls that wait for a server to start.
const MAX_WAITING: usize = 32;

/// A request on its way to a server.
pub(crate) struct SessionCall {
    pub(crate) request: McpRequest,
    /// The execution's own time limit.
    pub(crate) timeout: Option<std::time::Duration>,
    pub(crate) answer: oneshot::Sender<CallEnd>,
    /// Set when the server gets the call.
    pub(crate) is_delivered: Arc<AtomicBool>,
}

pub(crate) type CallSender = mpsc::Sender<SessionCall>;
pub(super) type CallReceiver = mpsc::Receiver<SessionCall>;

/// The sessions of this operator, by namespace and name of their executions.
#[derive(Default)]
pub(crate) struct McpSessions(Mutex<HashMap<(String, String), Session>>);

struct Session {
    reference: Arc<ExecutionRef>,
    skill: String,
    caller: Option<String>,
    sender: CallSender,
    receiver: Arc<AsyncMutex<CallReceiver>>,
}

impl McpSessions {
    /// Adds the session of an execution. Calls for it wait until its server runs.
    pub(super) fn open(&self, reference: &Arc<ExecutionRef>, execution: &SkillExecution) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let session = Session {
            reference: reference.clone(),
            skill: execution.spec.skill.clone(),
            caller: execution.spec.caller.clone(),
            sender,
            receiver: Arc::new(AsyncMutex::new(receiver)),
        };
        lock(&self.0).insert(key(reference), session);
    }

    /// Removes the session of an execution that has ended, and with it the calls that wait.
    pub(super) fn close(&self, reference: &ExecutionRef) {
        let mut sessions = lock(&self.0);
        if sessions.get(&key(reference)).is_some_and(|session| session.reference.uid == reference.uid) {
            sessions.remove(&key(reference));
        }
    }

    /// Returns the receiver of a session's calls. It waits for the one who had it before.
    pub(super) async fn calls(&self, reference: &ExecutionRef) -> Option<OwnedMutexGuard<CallReceiver>> {
        let receiver = lock(&self.0).get(&key(reference)).map(|session| session.receiver.clone())?;
        Some(receiver.lock_owned().await)
    }

    /// Returns the way to the session of a call. A session serves the skill, the caller and the lane of its own execution.
    pub(super) fn find(
        &self,
        reference: &ExecutionRef,
        execution: &SkillExecution,
        call: &McpCall,
    ) -> Result<CallSender, Refusal> {
        let sessions = lock(&self.0);
        let name = &call.session;
        let found = sessions.get(&(reference.namespace().to_owned(), name.clone())).filter(|session| {
            session.reference.lane == reference.lane && session.caller == execution.spec.caller
        });
        let Some(found) = found else {
            let message = format!(
                "spec.mcpCall.session: no MCP server of this caller runs as SkillExecution {name}; create one with spec.mcpServer and call that"
            );
            return Err(Refusal::new(Reason::SessionEnded, message));
        };
        if found.skill != execution.spec.skill {
            let message = format!("spec.skill: SkillExecution {name} runs a server of Skill {}", found.skill);
            return Err(Refusal::new(Reason::SpecInvalid, message));
        }
        Ok(found.sender.clone())
    }
}

fn key(reference: &ExecutionRef) -> (String, String) {
    (reference.namespace().to_owned(), reference.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(name: &str, spec: &str) -> (Arc<ExecutionRef>, SkillExecution) {
        let yaml =
            format!("{{metadata: {{namespace: team, name: {name}, uid: u-{name}}}, spec: {{{spec}}}}}");
        let execution: SkillExecution = serde_saphyr::from_str(&yaml).unwrap();
        (Arc::new(ExecutionRef::of(&execution).unwrap()), execution)
    }

    fn find(sessions: &McpSessions, spec: &str) -> Result<(), Reason> {
        let (reference, execution) = execution("call", spec);
        let call = McpCall { session: "notes".into(), tool: None };
        sessions.find(&reference, &execution, &call).map(drop).map_err(|refusal| refusal.reason)
    }

    #[tokio::test]
    async fn a_session_serves_its_own_skill_and_caller_until_it_ends() {
        let sessions = McpSessions::default();
        assert_eq!(find(&sessions, "skill: s, caller: team/a"), Err(Reason::SessionEnded));
        let (reference, opened) = execution("notes", "skill: s, caller: team/a, mcpServer: n");
        sessions.open(&reference, &opened);
        assert_eq!(find(&sessions, "skill: s, caller: team/a"), Ok(()));
        assert_eq!(find(&sessions, "skill: s, caller: team/b"), Err(Reason::SessionEnded));
        assert_eq!(find(&sessions, "skill: s"), Err(Reason::SessionEnded));
        assert_eq!(find(&sessions, "skill: t, caller: team/a"), Err(Reason::SpecInvalid));
        let (mut other, _) = execution("notes", "skill: s");
        Arc::make_mut(&mut other).uid = "u-later".into();
        sessions.close(&other);
        assert!(sessions.calls(&reference).await.is_some(), "an object of the same name is another");
        sessions.close(&reference);
        assert!(sessions.calls(&reference).await.is_none());
        assert_eq!(find(&sessions, "skill: s, caller: team/a"), Err(Reason::SessionEnded));
    }

    #[tokio::test]
    async fn calls_that_wait_for_a_session_end_with_it() {
        let sessions = McpSessions::default();
        let (reference, opened) = execution("notes", "skill: s, mcpServer: n");
        sessions.open(&reference, &opened);
        let (caller, execution) = execution("call", "skill: s");
        let call = McpCall { session: "notes".into(), tool: None };
        let (answer, answered) = oneshot::channel();
        let sender = sessions.find(&caller, &execution, &call).unwrap();
        sender
            .try_send(SessionCall {
                request: McpRequest::ListTools,
                timeout: None,
                answer,
                is_delivered: Arc::default(),
            })
            .ok()
            .unwrap();
        drop(sender);
        sessions.close(&reference);
        assert!(answered.await.is_err());
    }
}
