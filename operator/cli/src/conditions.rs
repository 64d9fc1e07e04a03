//! One condition of an object's status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Returns the condition of a type.
pub(crate) fn find_condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}
