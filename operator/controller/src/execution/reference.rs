//! The identity of one execution: made once, where the watch hands the object over.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use skillet_api::{SkillExecution, names};
use skillet_core::lane::Lane;
use tracing::{Span, error_span, field::Empty};

/// Lane with the namespace, name and uid. With the uid, an object created again under the same name is never taken for this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExecutionRef {
    pub(crate) lane: Lane,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl ExecutionRef {
    /// `None` for an object that no API server has stored.
    pub(crate) fn of(execution: &impl Resource) -> Option<Self> {
        let meta = execution.meta();
        let caller = meta.labels.as_ref().and_then(|labels| labels.get(names::LABEL_CALLER_NAMESPACE));
        let lane = Lane::new(meta.namespace.as_deref()?, caller.map(String::as_str));
        Some(Self { lane, name: meta.name.clone()?, uid: meta.uid.clone()? })
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.lane.namespace
    }

    /// The object as events name it.
    pub(crate) fn object(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(SkillExecution::api_version(&()).into_owned()),
            kind: Some(SkillExecution::kind(&()).into_owned()),
            namespace: Some(self.lane.namespace.clone()),
            name: Some(self.name.clone()),
            uid: Some(self.uid.clone()),
            ..ObjectReference::default()
        }
    }

    /// The span of everything that the operator does for this execution, so that each log line of it names the
    /// execution, its skill, its caller and the gateway's request. Its level is the highest one: no log filter removes it.
    pub(crate) fn span(&self, execution: &SkillExecution) -> Span {
        let (namespace, Self { name, uid, .. }) = (self.namespace(), self);
        let span = error_span!(
            "execution",
            namespace,
            name,
            uid,
            skill = execution.spec.skill,
            caller = execution.spec.caller,
            request_id = Empty
        );
        let annotations = execution.metadata.annotations.as_ref();
        if let Some(id) = annotations.and_then(|annotations| annotations.get(names::ANNOTATION_REQUEST_ID)) {
            span.record("request_id", id);
        }
        span
    }
}

#[cfg(test)]
mod tests {
    use skillet_kube::RawObject;

    use super::*;

    #[test]
    fn an_execution_of_the_gateway_is_in_the_lane_of_its_caller() {
        let lane = |labels: &str| {
            let object = format!(
                r#"{{"metadata": {{"namespace": "platform", "name": "e", "uid": "u", "labels": {labels}}}, "spec": {{}}}}"#
            );
            let raw: RawObject<SkillExecution> = serde_json::from_str(&object).unwrap();
            ExecutionRef::of(&raw).unwrap().lane
        };
        let of_caller = lane(r#"{"skillet.dev/caller-namespace": "team"}"#);
        assert_eq!(of_caller, Lane::new("platform", Some("team")));
        assert_eq!(lane("null"), Lane::new("platform", Some("platform")));
        assert_ne!(lane("null"), of_caller);
    }
}
