//! The request of a round while its response comes: the bytes that were sent, without the parsed document.
//!
//! A response may take an hour, and most responses call no skill. If one does, the bytes are parsed again.

use bytes::Bytes;
use serde_json::Value;
use skillet_llm::json_edit::render;

use crate::{compute::compute, error::ApiError, memory::MemoryReservation, model::BODY_BUDGET};

pub(super) struct RoundRequest {
    text: Bytes,
    /// True if the client wants its answer as JSON of a schema.
    pub(super) is_json: bool,
    /// Null while nobody needs it.
    document: Value,
    memory: Option<MemoryReservation>,
}

impl RoundRequest {
    /// Keeps the bytes that were sent, and a reservation of their size.
    pub(super) fn new(text: Bytes, is_json: bool, memory: Option<MemoryReservation>) -> Self {
        let mut request = Self { text, is_json, document: Value::Null, memory };
        request.release();
        request
    }

    /// Returns the parsed request.
    pub(super) async fn document(&mut self) -> Result<&Value, ApiError> {
        if self.document.is_null() {
            if let Some(memory) = &mut self.memory {
                memory.regain(BODY_BUDGET.reservation(&self.text)).await?;
            }
            let parsed = compute(self.text.len(), || serde_json::from_slice(&self.text));
            self.document =
                parsed.map_err(|error| ApiError::bad_request(format!("the request is not JSON: {error}")))?;
        }
        Ok(&self.document)
    }

    /// Returns the parsed request if it `is_needed`, else null.
    pub(super) async fn document_if(&mut self, is_needed: bool) -> Result<&Value, ApiError> {
        if is_needed { self.document().await } else { Ok(&Value::Null) }
    }

    /// Becomes the request of the next round, and returns its bytes. Unchanged parts keep their bytes.
    pub(super) fn replace(&mut self, next: &Value) -> Bytes {
        self.text = compute(self.text.len(), || render(&self.text, next)).into();
        self.release();
        self.text.clone()
    }

    /// Drops the document, and reserves the bytes alone.
    fn release(&mut self) {
        self.document = Value::Null;
        if let Some(memory) = &mut self.memory {
            memory.shrink_to(self.text.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::memory::MemoryPool;

    #[tokio::test]
    async fn the_document_takes_memory_only_while_a_skill_is_called() {
        let pool = MemoryPool::default();
        let tenant: Arc<str> = "team".into();
        let text = json!({ "messages": vec!["text"; 1000] }).to_string();
        let memory = pool.reserve(&tenant, BODY_BUDGET.reservation(text.as_bytes())).await.unwrap();
        let whole = pool.reserved();
        let mut request = RoundRequest::new(text.clone().into(), false, Some(memory));
        assert_eq!(pool.reserved(), text.len());
        let mut next = request.document().await.unwrap().clone();
        assert_eq!(pool.reserved(), whole);
        next["messages"] = json!(["more"]);
        assert_eq!(request.replace(&next), "{\"messages\":[\"more\"]}");
        assert_eq!(pool.reserved(), request.text.len());
        assert_eq!(*request.document().await.unwrap(), next);
        drop(request);
        assert_eq!(pool.reserved(), 0);
    }
}
