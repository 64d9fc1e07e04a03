//! The findings of the doctor in the cluster. Data only.

use skillet_api::SkillPolicy;

/// The result of reading an object. A missing right is a result too.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Lookup<T> {
    Found(T),
    NotFound,
    Denied,
    Failed(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Findings {
    /// Namespace of the access reviews.
    pub(crate) namespace: String,
    pub(crate) server: Lookup<ServerVersion>,
    /// Resources of the API group in this plugin's version.
    pub(crate) served: Lookup<Vec<String>>,
    /// Every version of the API group that is served.
    pub(crate) served_versions: Vec<String>,
    pub(crate) operators: Lookup<Vec<OperatorDeployment>>,
    pub(crate) policy: Lookup<Box<SkillPolicy>>,
    pub(crate) nodes: Lookup<Vec<ClusterNode>>,
    pub(crate) sandboxes: SandboxNamespace,
    /// Each reviewed right, and true if the user has it.
    pub(crate) rights: Lookup<Vec<(Right, bool)>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerVersion {
    /// As the server writes it, such as `v1.36.3`.
    pub(crate) text: String,
    /// Minor version of Kubernetes 1; `None` if it is not a number.
    pub(crate) minor: Option<u32>,
}

/// A Deployment that runs an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperatorDeployment {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) is_available: bool,
    /// Kubernetes' message of an operator that is not available.
    pub(crate) message: String,
    /// Namespace of its sandboxes, if its environment or arguments set one.
    pub(crate) sandbox_namespace: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterNode {
    pub(crate) name: String,
    /// Ready, and open for pods.
    pub(crate) is_usable: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct SandboxNamespace {
    pub(crate) name: String,
    /// Pod Security level that is enforced, if any.
    pub(crate) enforced: Lookup<Option<String>>,
}

/// A right that a user of this plugin needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Right {
    pub(crate) verb: &'static str,
    pub(crate) resource: &'static str,
    /// True if no skill can run without it.
    pub(crate) is_needed: bool,
}

pub(crate) const RIGHTS: [Right; 8] = [
    Right { verb: "create", resource: "skillexecutions", is_needed: true },
    Right { verb: "execute", resource: "skills", is_needed: true },
    Right { verb: "list", resource: "skillexecutions", is_needed: true },
    Right { verb: "watch", resource: "skillexecutions", is_needed: true },
    Right { verb: "patch", resource: "skillexecutions", is_needed: false },
    Right { verb: "get", resource: "skills", is_needed: false },
    Right { verb: "list", resource: "skills", is_needed: false },
    Right { verb: "list", resource: "skillversions", is_needed: false },
];
