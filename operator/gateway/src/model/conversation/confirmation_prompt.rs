//! The prompt that asks a person to confirm calls of hybrid skills. [`super::confirmations`] reads the reply.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use skillet_llm::{
    Arguments, ToolCall,
    confirmation::{NONCE_BYTES, PendingCall, ProviderIds, prompt},
    tool_names::SkillIdentity,
};

use super::{
    Conversation,
    called_tool::{CallRefusal, CalledTool, SkillCall},
};
use crate::auth::Caller;

/// Lifetime of a prompt if executions are kept at least as long: a kept execution is not run again.
const OPEN_FOR: Duration = Duration::from_secs(3600);

/// The question to a person about calls.
pub(super) struct ConfirmationPrompt {
    /// Tells it from other texts of the answer.
    pub(super) id: String,
    pub(super) text: String,
}

/// The question about all these calls of `answer`. None without a call. The client knows the call `sealed` by another
/// id.
pub(super) fn build(
    conversation: &Conversation,
    answer: &Value,
    asked: &[ToolCall],
    sealed: Option<&str>,
) -> Option<ConfirmationPrompt> {
    let first = asked.first()?;
    let ids = ProviderIds::of(answer);
    let texts: Vec<String> =
        asked.iter().map(|call| about(conversation, &ids, call, sealed == Some(&*call.id))).collect();
    Some(ConfirmationPrompt { id: format!("confirm_{}", first.id), text: texts.join("\n\n") })
}

fn about(conversation: &Conversation, ids: &ProviderIds<'_>, call: &ToolCall, is_sealed: bool) -> String {
    let gateway = &conversation.gateway;
    let Some(key) = &gateway.confirmation else {
        return prompt::text_without(&call.name, "this gateway has no key to confirm calls with");
    };
    let Arguments::Json(arguments) = &call.arguments else {
        return prompt::text_without(&call.name, "its arguments are not JSON");
    };
    let target = match conversation.called_tool(call) {
        Ok(CalledTool::Skill(SkillCall { target, .. })) => target,
        Ok(CalledTool::Found(_) | CalledTool::Reading(_)) => {
            return prompt::text_without(&call.name, "it runs no skill");
        }
        Err(CallRefusal { message, .. }) => return prompt::text_without(&call.name, &message),
    };
    let shown = conversation.shown_name(call);
    let (caller, call_id) = (caller(&conversation.caller), ids.of_call(call));
    let pending = PendingCall { caller: &caller, call_id, tool: &call.name, arguments };
    let skill = SkillIdentity { namespace: &target.namespace, name: &target.skill, version: &target.version };
    let open_for = OPEN_FOR.min(gateway.catalog.policy().retention.ttl.0);
    let token = key.make(&pending, skill, now().saturating_add(open_for.as_secs()), nonce());
    prompt::text(&shown, if is_sealed { "" } else { call_id }, arguments, &token)
}

/// The caller as a token names it. A namespace has no slash.
pub(super) fn caller(caller: &Caller) -> String {
    format!("{}/{}", caller.namespace, caller.user)
}

/// In seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn nonce() -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    // Without it, two calls that are alike and of one second would be run once for both, which is the safer mistake.
    getrandom::fill(&mut nonce).ok();
    nonce
}
