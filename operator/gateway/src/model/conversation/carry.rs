//! The turns that a client does not see: they leave with its response, sealed, and come back with its next request.

use serde_json::Value;
use skillet_llm::{
    DialectName, MakeSeal, ToolResult,
    continuation::{Continuation, ContinuationKey, Seal, insert},
};
use tracing::warn;

use super::{Conversation, Progress};

impl Conversation {
    /// Notes the turns of a round that another one follows.
    pub(super) fn carry(
        &self,
        request: &Value,
        response: &Value,
        results: &[ToolResult],
        progress: &mut Progress,
    ) {
        if self.can_seal() {
            progress.carried.extend(self.dialect().turns(request, response, results));
        }
    }

    /// Returns true if this gateway has the key of seals.
    pub(super) fn can_seal(&self) -> bool {
        self.gateway.confirmation.is_some()
    }

    /// The id of the conversation's sessions, if it has some.
    fn server_session(&self) -> Option<String> {
        self.offered.has_server_tools().then(|| self.offered.session.to_string())
    }

    /// The maker of the seal of the rounds so far, for a response that ends in text.
    pub(super) fn seal_rounds(&self, progress: &Progress) -> Option<MakeSeal> {
        let key = self.gateway.confirmation.as_ref()?.continuation_key();
        if progress.carried.is_empty() {
            return None;
        }
        let (namespace, dialect) = (self.caller.namespace.clone(), self.dialect);
        let continuation =
            Continuation { turns: progress.carried.clone(), call_id: None, session: self.server_session() };
        Some(Box::new(move || seal(&key, &namespace, dialect, &continuation)))
    }

    /// The seal of all rounds and of `response`, and the id of the client's call that carries it.
    pub(super) fn seal_response(
        &self,
        request: &Value,
        response: &Value,
        results: &[ToolResult],
        progress: &Progress,
    ) -> Option<(Seal, String)> {
        if progress.carried.is_empty() && results.is_empty() {
            return None;
        }
        let is_clients = |id: &str| results.iter().all(|result| result.id != id);
        let call = self.dialect().tool_calls(response).into_iter().find(|call| is_clients(&call.id))?;
        let mut turns = progress.carried.clone();
        turns.extend(self.dialect().turns(request, response, results));
        let key = self.gateway.confirmation.as_ref()?.continuation_key();
        let continuation =
            Continuation { turns, call_id: Some(call.id.clone()), session: self.server_session() };
        Some((seal(&key, &self.caller.namespace, self.dialect, &continuation)?, call.id))
    }

    /// The whole response for the client, and the id of the call that carries a seal in it. Without a seal, results of
    /// skills beside the client's calls become text.
    pub(super) fn client_response(
        &self,
        request: &Value,
        response: &Value,
        results: &[ToolResult],
        progress: &Progress,
    ) -> (Value, Option<String>) {
        if let Some((seal, id)) = self.seal_response(request, response, results, progress) {
            let mut given = self.dialect().without_calls(response, results);
            if insert(self.dialect, &mut given, &seal, Some(&id)) {
                return (given, Some(id));
            }
        }
        let mut given = self.dialect().client_response(response, results);
        if self.offered.hides_reasoning && progress.carried.is_empty() {
            self.dialect().hide_reasoning(&mut given);
        }
        if results.is_empty()
            && let Some(seal) = self.seal_rounds(progress).and_then(|make| make())
        {
            insert(self.dialect, &mut given, &seal, None);
        }
        (given, None)
    }
}

fn seal(
    key: &ContinuationKey,
    namespace: &str,
    dialect: DialectName,
    continuation: &Continuation,
) -> Option<Seal> {
    let seal = key.seal(namespace, dialect, continuation);
    if seal.is_none() {
        warn!("Turns of skills are too large to be carried; the model will not know their results later");
    }
    seal
}

#[cfg(test)]
mod tests;
