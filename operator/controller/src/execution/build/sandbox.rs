//! The sandbox of one execution: names, labels, image and limits for the manifest.

use std::{collections::BTreeMap, time::Duration};

use kube::ResourceExt;
use skillet_api::{SkillExecution, SkillPolicySpec, names};
use skillet_core::{admission::Admitted, skill::ImageChoice};

use crate::{sandbox::manifest::SandboxSpec, settings::SandboxSettings};

/// On top of start, run and grace: the pod's own deadline is the last resort, not the time limit.
const SLACK: Duration = Duration::from_secs(30);

/// Label that tells which attempt a sandbox serves.
pub const LABEL_ATTEMPT: &str = "skillet.dev/attempt";
/// Label that tells which version of the skill a sandbox runs.
pub const LABEL_VERSION: &str = "skillet.dev/version";

/// Name of the `ordinal`th sandbox of an execution: the same after a restart, so that none is made twice.
pub fn job_name(execution_uid: &str, ordinal: u32) -> String {
    format!("run-{execution_uid}-{ordinal}")
}

/// What the manifest needs for one attempt.
pub fn spec(
    execution: &SkillExecution,
    admitted: &Admitted,
    policy: &SkillPolicySpec,
    settings: &SandboxSettings,
    (ordinal, attempt): (u32, u32),
) -> SandboxSpec {
    let (image, needs_runner) = match &admitted.content.image {
        ImageChoice::Runtime(runtime) => (settings.runtime_image(*runtime).to_owned(), false),
        ImageChoice::Image(image) => (image.clone(), true),
    };
    let uid = execution.uid().unwrap_or_default();
    SandboxSpec {
        job: job_name(&uid, ordinal),
        image,
        needs_runner,
        cpu_millis: admitted.content.limits.cpu_millis,
        memory_bytes: admitted.content.limits.memory_bytes,
        deadline: policy.start_timeout.0 + admitted.timeout + SLACK,
        isolation: policy.isolation,
        labels: BTreeMap::from([
            (names::LABEL_MANAGED_BY.to_owned(), names::MANAGED_BY.to_owned()),
            (names::LABEL_PURPOSE.to_owned(), names::PURPOSE_RUN.to_owned()),
            (names::LABEL_EXECUTION_UID.to_owned(), uid),
            (names::LABEL_EXECUTION_NAMESPACE.to_owned(), execution.namespace().unwrap_or_default()),
            (names::LABEL_SKILL.to_owned(), admitted.skill.clone()),
            (names::LABEL_SANDBOX.to_owned(), ordinal.to_string()),
            (LABEL_ATTEMPT.to_owned(), attempt.to_string()),
            (LABEL_VERSION.to_owned(), admitted.version.to_string()),
        ]),
        annotations: BTreeMap::from([(names::ANNOTATION_EXECUTION.to_owned(), execution.name_any())]),
        node: None,
    }
}
