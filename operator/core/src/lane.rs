//! Lanes: the parts of the load between which room is shared.

/// The executions of one namespace that callers of one namespace started. A lane has limits, turns and retention of its own, so
/// that callers who share the skills of a platform do not stand in each other's way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// Namespace of the executions.
    pub namespace: String,
    /// Namespace of their callers.
    pub caller_namespace: String,
}

impl Lane {
    /// The lane of an execution. One without a caller of the gateway belongs to its own namespace.
    pub fn new(namespace: &str, caller_namespace: Option<&str>) -> Self {
        let caller_namespace = caller_namespace.unwrap_or(namespace).to_owned();
        Self { namespace: namespace.to_owned(), caller_namespace }
    }
}
