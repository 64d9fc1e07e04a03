//! The protocol's requests, each to the part that answers it. One of these per session, or per request without one.

use std::sync::{Arc, Weak};

use http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelledNotificationParam, Extensions,
        GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
        ServerConfig, SubscriptionFilter,
    },
    service::{
        NotificationContext, RequestContext, ServiceError, SubscriptionContext, SubscriptionSendError,
    },
    transport::streamable_http_server::SessionRestoreMarker,
};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument as _, Span};

use super::{
    Timing,
    call::{self, CallContext, READ_BYTES, SkillCall},
    idempotent_calls::IdempotentCalls,
    instruction_tools, management,
    management_tool::ManagementTool,
    notifications::{Fingerprints, ListChanges, ListState},
    prompts::{self, PromptList},
    resources::{self, ResourceList},
    tools::{self, ToolList},
};
use crate::{
    auth::{AuthError, Caller},
    bundles::BundleReader,
    commands::{CommandBudget, CommandCaller},
    memory::MemoryReservation,
    service::SkillService,
};

const INSTRUCTIONS: &str = "Each tool is a skill: a small program that runs in a sandbox of its own, without a network, \
    on the input you give it and nothing else. A skill that fails answers with a reason and a message; correct the \
    input or say what is wrong, and do not repeat the same call. The tools that begin with skillet_ show which skills \
    there are, switch them, run one by name and version, and list past runs. Where there is a tool named read_skill, \
    it returns instructions: read them before you do the work that its description lists.";
const SESSION: &str = "mcp-session-id";

pub(super) struct Server {
    service: SkillService,
    bundles: BundleReader,
    timing: Timing,
    fingerprints: Arc<Fingerprints>,
    idempotent_calls: IdempotentCalls,
    /// Ends what was spawned for the session.
    ended: CancellationToken,
    _end: DropGuard,
}

impl Server {
    pub(super) fn new(service: SkillService, fingerprints: Arc<Fingerprints>, timing: Timing) -> Self {
        let ended = CancellationToken::new();
        Self {
            bundles: BundleReader::new(service.client()),
            service,
            timing,
            fingerprints,
            idempotent_calls: IdempotentCalls::default(),
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
        let call = CallContext {
            service: &self.service,
            caller: &caller,
            request: &context,
            timing: &self.timing,
            idempotent_calls: &self.idempotent_calls,
            memory: memory(&context.extensions),
        };
        if let Some(tool) = ManagementTool::of(&request.name) {
            let result = management::call(tool, input, session, call).await;
            return result.map(Into::into).map_err(|error| internal_error(&error));
        }
        if let Some(action) = instruction_tools::of(&request.name) {
            let result = instruction_tools::call(action, input, session, &self.bundles, call).await;
            return result.map(Into::into).map_err(|error| internal_error(&error));
        }
        let skill = tools::resolve(self.service.lookup(&caller), &request.name).await;
        let Some(skill) = skill.map_err(|error| internal_error(&error))? else {
            return Err(ErrorData::invalid_params(format!("Unknown tool: {}", request.name), None));
        };
        let version = Some(skill.version.spec.version.to_string());
        let skill = skill.resolved;
        let skill_call = SkillCall { skill, version, input, script: None, session, ignore_version: true };
        Ok(call::run(skill_call, call).await.into())
    }

    async fn prompts(&self, context: &RequestContext<RoleServer>) -> Result<PromptList, ErrorData> {
        let caller = caller(&context.extensions)?;
        PromptList::of(self.service.lookup(&caller)).await.map_err(|error| internal_error(&error))
    }

    async fn resources(&self, context: &RequestContext<RoleServer>) -> Result<ResourceList, ErrorData> {
        let caller = caller(&context.extensions)?;
        ResourceList::of(self.service.lookup(&caller)).await.map_err(|error| internal_error(&error))
    }

    /// Sends notifications for as long as the session is open. The first of them does not depend on how fast a task starts.
    async fn notify(&self, caller: Caller, context: &RequestContext<RoleServer>) {
        let list = if context.extensions.get::<SessionRestoreMarker>().is_some() {
            ListState::unknown(&self.service)
        } else {
            ListState::now(self.service.lookup(&caller), &self.fingerprints).await
        };
        let (service, timing, ended) = (self.service.clone(), self.timing, self.ended.clone());
        let fingerprints = self.fingerprints.clone();
        let peer = context.peer.clone();
        tokio::spawn(async move {
            let notify = async |changes: ListChanges| {
                if changes.tools {
                    peer.notify_tool_list_changed().await?;
                }
                if changes.instructions {
                    peer.notify_prompt_list_changed().await?;
                    peer.notify_resource_list_changed().await?;
                }
                Ok::<(), ServiceError>(())
            };
            let lookup = service.lookup(&caller);
            ended.run_until_cancelled(list.follow(lookup, &fingerprints, &timing, notify)).await;
        });
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .build();
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
        let lookup = self.service.lookup(&caller);
        let tools = ToolList::of(lookup).await.map_err(|error| internal_error(&error))?;
        let cursor = request.and_then(|request| request.cursor);
        let first = match cursor {
            None => instruction_tools::list(lookup).await.map_err(|error| internal_error(&error))?,
            Some(_) => Vec::new(),
        };
        tools.page(first, cursor.as_deref())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = self.prompts(&context).await?;
        prompts.page(request.and_then(|request| request.cursor).as_deref())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let body = self.prompts(&context).await?.body(&request.name, request.arguments.as_ref())?;
        let (caller, request_id) = (caller(&context.extensions)?, call::request_id(&context));
        let memory = memory(&context.extensions);
        let reserved = call::reserve(&self.service, &caller, memory.as_ref(), READ_BYTES).await;
        let _reservation = reserved.map_err(|error| ErrorData::internal_error(error.message, None))?;
        let (request_id, budget) = (request_id.as_deref(), CommandBudget::default());
        let caller = CommandCaller { caller: &caller, request_id, deadline: None, budget: &budget };
        let ends = self.service.commands.run(caller, &body).await;
        Ok(prompts::render(&body, &ends)?.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = self.resources(&context).await?;
        resources.page(request.and_then(|request| request.cursor).as_deref())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = caller(&context.extensions)?;
        let resources = self.resources(&context).await?;
        let file = resources.find(&request.uri)?;
        let memory = memory(&context.extensions);
        let reserved = call::reserve(&self.service, &caller, memory.as_ref(), READ_BYTES).await;
        let _reservation = reserved.map_err(|error| ErrorData::internal_error(error.message, None))?;
        Ok(file.read(&self.bundles).await?.into())
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
        let Some(execution) = cancelled.request_id.and_then(|id| self.idempotent_calls.cancel(&id)) else {
            return;
        };
        self.service.executions.cancel_unless_wanted(&execution).await;
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.tools_list_changed = requested.tools_list_changed;
        accepted.prompts_list_changed = requested.prompts_list_changed;
        accepted.resources_list_changed = requested.resources_list_changed;
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = caller(&context.request_context().extensions)?;
        let list = ListState::now(self.service.lookup(&caller), &self.fingerprints).await;
        let accepts = |list: Option<bool>| list == Some(true);
        let (accepted, sink) = (context.accepted(), context.sink());
        let notify = async |changes: ListChanges| {
            if changes.tools && accepts(accepted.tools_list_changed) {
                sink.notify_tool_list_changed().await?;
            }
            if changes.instructions && accepts(accepted.prompts_list_changed) {
                sink.notify_prompt_list_changed().await?;
            }
            if changes.instructions && accepts(accepted.resources_list_changed) {
                sink.notify_resource_list_changed().await?;
            }
            Ok::<(), SubscriptionSendError>(())
        };
        tokio::select! {
            () = self.service.stop.cancelled() => {}
            () = context.cancelled() => {}
            () = list.follow(self.service.lookup(&caller), &self.fingerprints, &self.timing, notify) => {}
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

fn memory(extensions: &Extensions) -> Option<Arc<Mutex<MemoryReservation>>> {
    extensions.get::<Parts>()?.extensions.get::<Weak<Mutex<MemoryReservation>>>()?.upgrade()
}

fn session(extensions: &Extensions) -> Option<String> {
    extensions.get::<Parts>()?.headers.get(SESSION)?.to_str().ok().map(str::to_owned)
}

fn internal_error(error: &AuthError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
