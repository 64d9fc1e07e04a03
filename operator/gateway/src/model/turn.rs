//! A model request from its arrival to its conversation; `proxy` and `inject` share it.
//!
//! The caller is authenticated, and the memory reservation covers the body, before a turn exists.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
use skillet_llm::{
    DialectName,
    confirmation::ConfirmationKey,
    continuation::{carried_bytes, carried_session, restore},
    json_edit::render,
};

use crate::{
    auth::{Caller, Verb},
    catalog::Namespace,
    commands::{CommandBudget, CommandCaller, CommandUse},
    compute::compute,
    error::ApiError,
    idempotency,
    mcp_servers::SessionCaller,
    memory::MemoryReservation,
    model::{BODY_BUDGET, ModelState},
    model::{
        conversation::{
            Conversation, Limits,
            headers::{confirmations, session},
        },
        native_tools::{NativePlan, NativeRequest},
        offered_tools::OfferedTools,
        preferences::SkillPreferences,
        provider_choice, question_vectors, server_tools,
        shared_key::{find_object_of_others, put_caller_id, stored_object_forbidden},
        tools::{self, CallerNamespaces, ExplainedOffer, OfferRequest},
        upstream::SharedKeyRules,
    },
    request_id,
};

pub(super) struct Turn {
    pub(super) caller: Caller,
    pub(super) headers: HeaderMap,
    pub(super) dialect: DialectName,
    pub(super) model: String,
    pub(super) request: Value,
    /// The request as the client wrote it.
    pub(super) original: Bytes,
    /// The request without skills, if turns of earlier responses or the caller's id were put into it.
    pub(super) restored: Option<Bytes>,
    pub(super) memory: MemoryReservation,
}

/// Returns an id that no other conversation has.
fn new_session() -> String {
    let mut bytes = [0; 16];
    // Without randomness, the conversations of a caller share their sessions.
    getrandom::fill(&mut bytes).ok();
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

impl Turn {
    /// Puts back the turns of skills that earlier responses carry. Then selects skills for the request, and adds them
    /// to it as tools.
    pub(super) async fn offer_tools(
        &mut self,
        state: &ModelState,
        commands: CommandUse,
    ) -> Result<OfferedTools, ApiError> {
        let session = self.restore_turns(state.confirmation.as_deref()).await?;
        let bytes = self.original.len();
        let preferences = SkillPreferences::of(&self.headers)?;
        let namespaces = tools::load_namespaces(state, &self.caller, &preferences).await?;
        namespaces.check_exact_names(&preferences)?;
        let policy = state.catalog.policy();
        let native = self.take_native_tools(state, &preferences, &namespaces.usable);
        let learned = state.learning.learned(&policy, &self.caller.namespace);
        let question = OfferRequest {
            learned: learned.as_deref(),
            stand_ins: &native.stand_ins,
            ..self.offer_request(state, &preferences)
        };
        question_vectors::ask_for_offer(&state.catalog, &namespaces.usable, &question).await;
        let mut offered = compute(bytes, || tools::offer(&policy, &namespaces, &question));
        if commands == CommandUse::Run {
            let (request_id, budget) = (request_id::get(&self.headers), CommandBudget::default());
            let request_id = request_id.as_deref();
            let caller = CommandCaller { caller: &self.caller, request_id, deadline: None, budget: &budget };
            offered.texts.run_commands(&state.commands, &state.memory, caller).await?;
        }
        let texts = offered.texts.bytes();
        if texts > 0 {
            self.memory.grow(BODY_BUDGET.estimate(texts)).await?;
        }
        offered.native.clone_from(&native.kept);
        tools::add(self.dialect, &mut self.request, &native, &mut offered)?;
        offered.session = session;
        self.attach_servers(state, &offered, commands).await?;
        Ok(offered)
    }

    /// Takes the provider's own tools out of the request in whose place the policy wants skills, as far as there are some.
    fn take_native_tools(
        &mut self,
        state: &ModelState,
        preferences: &SkillPreferences,
        namespaces: &[Arc<Namespace>],
    ) -> NativePlan {
        let mut request = self.request.take();
        let asked = NativeRequest {
            dialect: self.dialect,
            model: &self.model,
            preferences,
            can_ask: state.confirmation.is_some(),
        };
        let find_exclusion = |request: &Value| {
            OfferRequest { request, ..self.offer_request(state, preferences) }.find_exclusion()
        };
        let policy = state.catalog.policy();
        let plan =
            compute(self.original.len(), || asked.plan(&policy, namespaces, &mut request, find_exclusion));
        self.request = request;
        plan
    }

    /// Adds the tools of the MCP servers of skills whose text the conversation has.
    async fn attach_servers(
        &mut self,
        state: &ModelState,
        offered: &OfferedTools,
        commands: CommandUse,
    ) -> Result<(), ApiError> {
        let servers = &offered.restrictions.servers;
        let request_id = request_id::get(&self.headers);
        let caller = SessionCaller {
            caller: &self.caller,
            session: &offered.session,
            request_id: request_id.as_deref(),
        };
        let time = state.catalog.policy().gateway.conversation.timeout.0;
        let start_until = (commands == CommandUse::Run).then(|| tokio::time::Instant::now() + time);
        let asked = (self.dialect, &self.request);
        let tools = server_tools::list(state, caller, asked, offered, servers, start_until).await;
        self.memory.grow(tools.bytes).await?;
        tools.add_to(self.dialect, &mut self.request, offered);
        Ok(())
    }

    /// Returns the id of the conversation's sessions with MCP servers: the client's word, or that of an earlier response, or a
    /// new one.
    fn server_session(&self, key: Option<&ConfirmationKey>, is_carried: bool) -> Result<Arc<str>, ApiError> {
        if let Some(named) = session(&self.headers)? {
            return Ok(format!("named {named}").into());
        }
        let key = key.map(ConfirmationKey::continuation_key);
        let Caller { namespace, .. } = &self.caller;
        let carried = || carried_session(self.dialect, &self.request, key.as_ref(), namespace);
        let carried = is_carried.then(|| compute(self.original.len(), carried)).flatten();
        Ok(carried.unwrap_or_else(new_session).into())
    }

    /// Puts back the turns that earlier responses carry, and returns the id of the conversation's sessions. Memory for them is
    /// reserved before they are opened.
    async fn restore_turns(&mut self, key: Option<&ConfirmationKey>) -> Result<Arc<str>, ApiError> {
        let bytes = self.original.len();
        let carried = compute(bytes, || carried_bytes(self.dialect, &self.request));
        if carried > 0 {
            self.memory.grow(BODY_BUDGET.estimate(carried)).await?;
        }
        let session = self.server_session(key, carried > 0)?;
        let key = key.map(ConfirmationKey::continuation_key);
        let Caller { namespace, .. } = &self.caller;
        if compute(bytes + carried, || restore(self.dialect, &mut self.request, key.as_ref(), namespace)) {
            self.keep_restored().await?;
        }
        Ok(session)
    }

    /// Keeps the text of the changed request, as far as memory allows.
    async fn keep_restored(&mut self) -> Result<(), ApiError> {
        let bytes = self.original.len();
        let restored = compute(bytes, || render(&self.original, &self.request));
        self.memory.regain(bytes + BODY_BUDGET.reservation(&restored)).await?;
        self.restored = Some(restored.into());
        Ok(())
    }

    /// Refuses stored objects that are not the caller's, and names the caller to the provider.
    pub(super) async fn share_key(
        &mut self,
        state: &ModelState,
        rules: SharedKeyRules,
    ) -> Result<(), ApiError> {
        let Self { dialect, caller, request, original, .. } = self;
        let binding = state.id_binding(&caller.namespace);
        let (bound, other) = compute(original.len(), || {
            let bound = binding.map(|binding| binding.unbind(request)).unwrap_or_default();
            let other = find_object_of_others(*dialect, request, rules.stored_objects, &bound);
            (bound, other.map(ToOwned::to_owned))
        });
        if let Some(field) = other {
            state.metrics.refused("StoredObjectForbidden");
            return Err(stored_object_forbidden().at(field));
        }
        let is_named = rules.sends_caller_id && put_caller_id(*dialect, request, caller);
        if is_named || bound.is_changed {
            self.keep_restored().await?;
        }
        Ok(())
    }

    /// Explains for each skill of the caller why the request is or is not offered it, and names the namespaces whose skills
    /// the caller may not use.
    pub(super) async fn explain(
        &mut self,
        state: &ModelState,
    ) -> Result<(ExplainedOffer, Vec<(Arc<str>, Verb)>), ApiError> {
        let preferences = SkillPreferences::of(&self.headers)?;
        let CallerNamespaces { usable, forbidden } =
            tools::load_namespaces(state, &self.caller, &preferences).await?;
        let policy = state.catalog.policy();
        let native = self.take_native_tools(state, &preferences, &usable);
        let learned = state.learning.learned(&policy, &self.caller.namespace);
        let request = OfferRequest {
            learned: learned.as_deref(),
            stand_ins: &native.stand_ins,
            ..self.offer_request(state, &preferences)
        };
        question_vectors::ask_for_explanation(&state.catalog, &usable, &request).await;
        let explained = tools::explain_offer(&policy, &usable, &request);
        Ok((ExplainedOffer { native: native.explain(), ..explained }, forbidden))
    }

    pub(super) fn offer_request<'a>(
        &'a self,
        state: &ModelState,
        preferences: &'a SkillPreferences,
    ) -> OfferRequest<'a> {
        let Self { dialect, model, request, .. } = self;
        let policy = state.catalog.policy();
        OfferRequest {
            dialect: *dialect,
            model,
            request,
            preferences,
            can_ask: state.confirmation.is_some(),
            tool_use: provider_choice::tool_use(&policy.gateway.providers, *dialect, model),
            is_refused: state.tool_refusals.has(*dialect, model, Instant::now()),
            learned: None,
            stand_ins: &[],
        }
    }

    /// Starts the conversation; the request is returned beside it.
    pub(super) fn into_conversation(
        self,
        state: ModelState,
        offered: OfferedTools,
    ) -> Result<(Conversation, Value), ApiError> {
        let Self { caller, headers, dialect, model, request, original, restored, memory } = self;
        let conversation = Conversation {
            limits: Limits::of(&state.catalog.policy().gateway.conversation, &headers)?,
            caller,
            dialect,
            model,
            offered,
            original,
            restored,
            idempotency: idempotency::key(&headers)?,
            session: session(&headers)?,
            request_id: request_id::get(&headers),
            command_budget: CommandBudget::default(),
            confirmations: confirmations(&headers)?,
            memory: Some(memory),
            gateway: state,
        };
        Ok((conversation, request))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skillet_llm::continuation::Continuation;

    use super::*;
    use crate::{memory::MemoryPool, testing::TestGateway};

    #[tokio::test(start_paused = true)]
    async fn memory_for_carried_turns_is_reserved_before_they_are_opened() {
        const CARRIED: usize = 1 << 20;
        let (pool, key) = (MemoryPool::default(), ConfirmationKey::new(&[9; 32]).unwrap());
        let caller = TestGateway::caller("team/agent");
        // A seal of another namespace does not open: it counts all the same while that is unknown.
        let turns = vec![json!({ "output": "x".repeat(CARRIED) })];
        let dialect = DialectName::OpenAiResponses;
        let sealed = Continuation { turns, ..Continuation::default() };
        let seal = key.continuation_key().seal("other", dialect, &sealed).unwrap();
        let request =
            json!({ "input": [{ "type": "reasoning", "id": "rs_1", "encrypted_content": seal.as_str() }] });
        let original = Bytes::from(request.to_string());
        let memory = pool.reserve(&caller.namespace, 1000).await.unwrap();
        let mut turn = Turn {
            headers: HeaderMap::new(),
            model: String::new(),
            restored: None,
            caller,
            dialect,
            request,
            original,
            memory,
        };
        let rest = pool.fill_but("team", 2 * CARRIED).await;
        assert_eq!(turn.restore_turns(Some(&key)).await.unwrap_err().code, "Overloaded");
        assert!(turn.restored.is_none());
        drop(rest);
        turn.restore_turns(Some(&key)).await.unwrap();
        assert_eq!(turn.request["input"], json!([]));
        assert!(pool.reserved() < CARRIED, "{}", pool.reserved());
    }
}
