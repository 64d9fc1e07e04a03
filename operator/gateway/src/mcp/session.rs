//! Sessions of clients of earlier protocols: rmcp's own, under ids that name their owner.
//!
//! An id is a digest of the caller and a random part. Whoever made it up, it is good for the caller it names and for
//! no other, so that nothing about sessions need be shared between replicas.

use std::sync::Arc;

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::Stream;
use rmcp::{
    model::{
        ClientCapabilities, ClientJsonRpcMessage, Implementation, InitializeRequestParams, ProtocolVersion,
        ServerJsonRpcMessage,
    },
    transport::{
        common::server_side_http::{ServerSseMessage, session_id},
        streamable_http_server::{
            RestoreOutcome, SessionId, SessionManager,
            session::{
                SessionState, SessionStore, SessionStoreError,
                local::{LocalSessionManager, LocalSessionManagerError, SessionConfig},
            },
        },
    },
};
use sha2::{Digest as _, Sha256};

use super::Timing;
use crate::auth::Caller;

/// Most sessions of one caller that are open at a time on one replica.
pub(super) const SESSIONS_PER_CALLER: usize = 1000;
/// Length of the random part, a UUID.
const RANDOM_LENGTH: usize = 36;

tokio::task_local! {
    /// The owner of the current request: rmcp creates a session's id without naming the request.
    pub(super) static OPENER: Owner;
}

/// The caller to whom a session belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner(Arc<str>);

impl Owner {
    pub(super) fn of(caller: &Caller) -> Self {
        let mut digest = Sha256::new();
        // With the length before it, a namespace cannot run into the user.
        digest.update((caller.namespace.len() as u64).to_be_bytes());
        digest.update(caller.namespace.as_bytes());
        digest.update(caller.user.as_bytes());
        Self(URL_SAFE_NO_PAD.encode(digest.finalize()).into())
    }

    /// Returns true if the session with this id belongs to this caller.
    pub(super) fn owns(&self, id: &str) -> bool {
        let random = id.strip_prefix(&*self.0).and_then(|rest| rest.strip_prefix('.'));
        random.is_some_and(|random| {
            random.len() == RANDOM_LENGTH
                && random.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        })
    }

    fn new_session(&self) -> SessionId {
        format!("{}.{}", self.0, session_id()).into()
    }
}

/// The sessions that are open on this replica.
pub(super) struct Sessions {
    local: LocalSessionManager,
}

impl Sessions {
    pub(super) fn new(timing: &Timing) -> Self {
        let mut config = SessionConfig::default();
        config.keep_alive = Some(timing.idle);
        let mut local = LocalSessionManager::default();
        local.session_config = config;
        Self { local }
    }

    /// Returns true if the caller may open another session on this replica.
    pub(super) async fn may_open(&self, owner: &Owner) -> bool {
        let sessions = self.local.sessions.read().await;
        sessions.keys().filter(|id| owner.owns(id)).count() < SESSIONS_PER_CALLER
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let nobody = |_| LocalSessionManagerError::SessionNotFound("of nobody".into());
        let id = OPENER.try_with(Owner::new_session).map_err(nobody)?;
        match self.local.restore_session(id.clone()).await? {
            RestoreOutcome::Restored(transport) => Ok((id, transport)),
            _ => Err(LocalSessionManagerError::SessionNotFound(id)),
        }
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.resume(id, last_event_id).await
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.local.restore_session(id).await
    }
}

/// The known part of a session that another replica opened, or this replica before the session was idle: its owner.
/// The transport has checked the id, and nothing that the client said when it opened the session is used.
pub(super) struct RestorableSessions;

#[async_trait]
impl SessionStore for RestorableSessions {
    async fn load(&self, _: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let unknown = Implementation::new("unknown", "0");
        let params = InitializeRequestParams::new(ClientCapabilities::default(), unknown)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
        Ok(Some(SessionState::new(params)))
    }

    async fn store(&self, _: &str, _: &SessionState) -> Result<(), SessionStoreError> {
        Ok(())
    }

    async fn delete(&self, _: &str) -> Result<(), SessionStoreError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(namespace: &str, user: &str) -> Owner {
        Owner::of(&Caller { namespace: namespace.into(), user: user.into(), groups: [].into() })
    }

    #[test]
    fn a_session_is_its_openers_and_nobody_elses() {
        let id = owner("a", "u").new_session();
        assert!(owner("a", "u").owns(&id));
        for other in [owner("b", "u"), owner("a", "v"), owner("au", "")] {
            assert!(!other.owns(&id), "{id}");
        }
    }

    #[test]
    fn a_forged_id_is_no_session() {
        let owner = owner("a", "u");
        let id = owner.new_session();
        for wrong in ["", "x", &owner.0, &format!("{}.", owner.0), &format!("{id}0"), &id.replace('-', "/")] {
            assert!(!owner.owns(wrong), "{wrong}");
        }
    }
}
