//! What the operator is told at start: where sandboxes live and which images they use.
//!
//! Parsed at the edge (`skillet operator`), final types here. Cluster-wide settings that a user may change
//! while the operator runs are in SkillPolicy, not here.

use skillet_api::skill::Runtime;

/// How the runner gets into an image that does not hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunnerDelivery {
    /// The runner's image is mounted as a volume (Kubernetes 1.35 or newer with a runtime that can).
    ImageVolume,
    /// An init container copies the runner into an empty volume.
    InitContainer,
}

/// Everything a sandbox's manifest needs beside the skill itself.
#[derive(Clone, Debug)]
pub struct SandboxSettings {
    /// Namespace of all sandboxes.
    pub namespace: String,
    /// Image of each runtime; each holds the runner.
    pub shell_image: String,
    pub python_image: String,
    pub node_image: String,
    /// Image that holds only the runner.
    pub runner_image: String,
    pub runner_delivery: RunnerDelivery,
    /// `imagePullPolicy` of sandboxes; unset leaves it to Kubernetes.
    pub image_pull_policy: Option<String>,
    /// `runtimeClassName` of sandboxes, such as gvisor or kata.
    pub runtime_class: Option<String>,
}

impl SandboxSettings {
    /// The image that comes with Skillet for `runtime`.
    pub fn runtime_image(&self, runtime: Runtime) -> &str {
        match runtime {
            Runtime::Shell => &self.shell_image,
            Runtime::Python => &self.python_image,
            Runtime::Node => &self.node_image,
        }
    }
}
