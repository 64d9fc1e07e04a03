//! The protocol's requests, each to the part that answers it. One of these per session, or per request without one.

use std::sync::{Arc, Weak};

use http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelledNotificationParam, Extensions, Implementation,
        InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
    transport::streamable_http_server::SessionRestoreMarker,
};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument as _, Span};

use super::{
    Timing,
    backend::Backend,
    call::{self, CallContext, Wish},
    idempotent_calls::IdempotentCalls,
    management::{self, ManagementTool},
    notifications::{Fingerprints, ToolListState},
    tools::{self, ToolList},
};
use crate::{
    auth::{AuthError, Caller},
    memory::MemoryReservation,
};

const INSTRUCTIONS: &str = "Each tool is a skill: a small program that runs in a sandbox of its own, without a network, \
    on the input you give it and nothing else. A skill that fails answers with a reason and a message; correct the \
    input or say what is wrong, and do not repeat the same call. The tools that begin with skillet_ show which skills \
    there are, switch them, run one by name and version, and list past runs.";
const SESSION: &str = "mcp-session-id";

pub(super) struct Server<B> {
    backend: Arc<B>,
    stop: CancellationToken,
    timing: Timing,
    fingerprints: Arc<Fingerprints>,
    keyed: IdempotentCalls,
    /// Ends what was spawned for the session.
    ended: CancellationToken,
    _end: DropGuard,
}

impl<B: Backend> Server<B> {
    pub(super) fn new(
        backend: Arc<B>,
        fingerprints: Arc<Fingerprints>,
        stop: CancellationToken,
        timing: Timing,
    ) -> Self {
        let ended = CancellationToken::new();
        Self {
            backend,
            stop,
            timing,
            fingerprints,
            keyed: IdempotentCalls::default(),
            ended: ended.clone(),
            _end: ended.drop_guard(),
        }
    }

    async fn call_in_span(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = caller(&context.extensions)?;
        let input = Value::Object(request.arguments.unwrap_or_default());
        let session = session(&context.extensions);
        let asking = CallContext {
            context: &context,
            timing: &self.timing,
            keyed: &self.keyed,
            room: room(&context.extensions),
        };
        if let Some(tool) = ManagementTool::of(&request.name) {
            let asked = management::ManagementCall { caller: &caller, session, request: asking };
            let result = management::call(&*self.backend, tool, input, asked).await;
            return result.map(Into::into).map_err(|error| unanswered(&error));
        }
        let skill = tools::tool(&*self.backend, &caller, &request.name).await;
        let Some(skill) = skill.map_err(|error| unanswered(&error))? else {
            return Err(ErrorData::invalid_params(format!("Unknown tool: {}", request.name), None));
        };
        let version = Some(skill.version.spec.version.to_string());
        let wish = Wish { seen: skill.seen, version, input, session, ignore_version: true };
        Ok(call::run(&*self.backend, &caller, wish, asking).await.into())
    }

    /// Sends notifications for as long as the session is open. The first of them does not depend on how fast a task starts.
    async fn notify(&self, caller: Caller, context: &RequestContext<RoleServer>) {
        let list = if context.extensions.get::<SessionRestoreMarker>().is_some() {
            ToolListState::unknown(&*self.backend)
        } else {
            ToolListState::now(&*self.backend, &self.fingerprints, &caller).await
        };
        let (backend, timing, ended) = (self.backend.clone(), self.timing, self.ended.clone());
        let fingerprints = self.fingerprints.clone();
        let peer = context.peer.clone();
        tokio::spawn(async move {
            let tell = || peer.notify_tool_list_changed();
            ended.run_until_cancelled(list.follow(&*backend, &fingerprints, &caller, &timing, tell)).await;
        });
    }
}

impl<B: Backend> ServerHandler for Server<B> {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("skillet", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        self.notify(caller(&context.extensions)?, &context).await;
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = caller(&context.extensions)?;
        let catalogue = ToolList::of(&*self.backend, &caller).await.map_err(|error| unanswered(&error))?;
        catalogue.page(request.and_then(|request| request.cursor).as_deref())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let span = span(&context.extensions);
        self.call_in_span(request, context).instrument(span).await
    }

    async fn on_cancelled(&self, cancelled: CancelledNotificationParam, _: NotificationContext<RoleServer>) {
        let Some(execution) = cancelled.request_id.and_then(|id| self.keyed.cancel(&id)) else { return };
        self.backend.cancel_unless_wanted(&execution).await;
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = caller(&context.request_context().extensions)?;
        let list = ToolListState::now(&*self.backend, &self.fingerprints, &caller).await;
        let tell = || context.sink().notify_tool_list_changed();
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = context.cancelled() => {}
            () = list.follow(&*self.backend, &self.fingerprints, &caller, &self.timing, tell) => {}
        }
        Ok(())
    }
}

/// Returns the caller that the transport has authenticated for this request.
fn caller(extensions: &Extensions) -> Result<Caller, ErrorData> {
    let caller = extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
    caller.cloned().ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
}

/// The span of the HTTP request: the protocol's library handles each request in a task of its own.
fn span(extensions: &Extensions) -> Span {
    let span = extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Span>());
    span.cloned().unwrap_or_else(Span::current)
}

fn room(extensions: &Extensions) -> Option<Arc<Mutex<MemoryReservation>>> {
    extensions.get::<Parts>()?.extensions.get::<Weak<Mutex<MemoryReservation>>>()?.upgrade()
}

fn session(extensions: &Extensions) -> Option<String> {
    extensions.get::<Parts>()?.headers.get(SESSION)?.to_str().ok().map(str::to_owned)
}

fn unanswered(error: &AuthError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
