//! The operator's settings for sandboxes: their namespace and images.
//!
//! `skillet operator` parses them from flags. Settings that users may change while the operator runs are in SkillPolicy.

use skillet_api::skill::Runtime;

/// The way in which the runner gets into an image that does not contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunnerDelivery {
    /// The runner's image is mounted as a volume (Kubernetes 1.35 or newer, with a runtime that supports it).
    ImageVolume,
    /// An init container copies the runner into an empty volume.
    InitContainer,
}

/// Everything a sandbox's manifest needs beside the skill itself.
#[derive(Clone, Debug)]
pub struct SandboxSettings {
    /// Namespace of all sandboxes.
    pub namespace: String,
    /// Image of each runtime. Each contains the runner.
    pub shell_image: String,
    pub python_image: String,
    pub node_image: String,
    /// Image that contains only the runner.
    pub runner_image: String,
    pub runner_delivery: RunnerDelivery,
    /// `imagePullPolicy` of sandboxes; Kubernetes decides if unset.
    pub image_pull_policy: Option<String>,
    /// `runtimeClassName` of sandboxes, such as gvisor or kata.
    pub runtime_class: Option<String>,
}

impl SandboxSettings {
    /// Returns Skillet's own image for a runtime.
    pub fn runtime_image(&self, runtime: Runtime) -> &str {
        match runtime {
            Runtime::Shell => &self.shell_image,
            Runtime::Python => &self.python_image,
            Runtime::Node => &self.node_image,
        }
    }
}
