//! The identity of one execution: made once, where the watch hands the object over.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use skillet_api::{SkillExecution, names};
use tracing::{Span, error_span, field::Empty};

/// Namespace, name and uid. With the uid, an object created again under the same name is never taken for this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExecutionRef {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl ExecutionRef {
    /// `None` for an object that no API server has stored.
    pub(crate) fn of(execution: &impl Resource) -> Option<Self> {
        let meta = execution.meta();
        Some(Self { namespace: meta.namespace.clone()?, name: meta.name.clone()?, uid: meta.uid.clone()? })
    }

    /// The object as events name it.
    pub(crate) fn object(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(SkillExecution::api_version(&()).into_owned()),
            kind: Some(SkillExecution::kind(&()).into_owned()),
            namespace: Some(self.namespace.clone()),
            name: Some(self.name.clone()),
            uid: Some(self.uid.clone()),
            ..ObjectReference::default()
        }
    }

    /// The span of everything that the operator does for this execution, so that each log line of it names the
    /// execution and the gateway's request. Its level is the highest one: no log filter removes it.
    pub(crate) fn span(&self, execution: &SkillExecution) -> Span {
        let Self { namespace, name, uid } = self;
        let span = error_span!("execution", namespace, name, uid, request_id = Empty);
        let annotations = execution.metadata.annotations.as_ref();
        if let Some(id) = annotations.and_then(|annotations| annotations.get(names::ANNOTATION_REQUEST_ID)) {
            span.record("request_id", id);
        }
        span
    }
}
