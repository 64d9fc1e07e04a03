//! The operator's settings for sandboxes: their namespace and images.
//!
//! `skillet operator` parses them from flags. Settings that users may change while the operator runs are in SkillPolicy.

use std::{collections::BTreeMap, str::FromStr};

use k8s_openapi::api::core::v1::{LocalObjectReference, Node, Taint, Toleration};
use serde::Deserialize;
use skillet_api::skill::Runtime;
use skillet_core::skill::ImageChoice;

/// Label of every node with its operating system, and the only one that sandboxes run on.
const OS: (&str, &str) = ("kubernetes.io/os", "linux");

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
    /// Image of the built-in `browser`, with the runner.
    pub browser_image: String,
    /// Image that contains only the runner.
    pub runner_image: String,
    pub runner_delivery: RunnerDelivery,
    /// `imagePullPolicy` of sandboxes; Kubernetes decides if unset.
    pub image_pull_policy: Option<String>,
    /// `runtimeClassName` of sandboxes, such as gvisor or kata.
    pub runtime_class: Option<String>,
    pub pod: SandboxPodSettings,
}

/// Fields of a sandbox's pod that depend on the cluster: where it is scheduled, and with what its images are pulled.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SandboxPodSettings {
    pub node_selector: BTreeMap<String, String>,
    pub tolerations: Vec<Toleration>,
    pub priority_class_name: String,
    /// Secrets of the sandbox namespace.
    pub image_pull_secrets: Vec<LocalObjectReference>,
    pub annotations: BTreeMap<String, String>,
}

impl FromStr for SandboxPodSettings {
    type Err = serde_json::Error;

    /// Parses JSON with the names of a pod's fields.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

impl SandboxPodSettings {
    /// Returns the labels that a sandbox's node must have.
    pub(crate) fn node_labels(&self) -> BTreeMap<String, String> {
        let (os, linux) = OS;
        let mut labels = BTreeMap::from([(os.to_owned(), linux.to_owned())]);
        labels.extend(self.node_selector.clone());
        labels
    }

    /// Tells if a sandbox may be scheduled on a node, by labels and taints.
    pub(crate) fn fits(&self, node: &Node) -> bool {
        let labels = node.metadata.labels.as_ref();
        let has = |(name, value): (&String, &String)| {
            labels.and_then(|labels| labels.get(name)).is_some_and(|found| found == value)
        };
        let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        self.node_labels().iter().all(has)
            && taints.filter(|taint| repels(taint)).all(|taint| self.tolerates(taint))
    }

    fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerations.iter().any(|toleration| {
            let is_any = |wanted: &Option<String>| wanted.as_deref().unwrap_or_default().is_empty();
            let exists = toleration.operator.as_deref() == Some("Exists");
            (is_any(&toleration.effect) || toleration.effect.as_deref() == Some(&taint.effect))
                && ((exists && is_any(&toleration.key)) || toleration.key.as_deref() == Some(&taint.key))
                && (exists
                    || toleration.value.as_deref().unwrap_or_default()
                        == taint.value.as_deref().unwrap_or_default())
        })
    }
}

/// Tells if a taint keeps pods away, and does not only advise against them.
fn repels(taint: &Taint) -> bool {
    taint.effect != "PreferNoSchedule"
}

impl SandboxSettings {
    /// Returns the image of a program.
    pub(crate) fn image<'a>(&'a self, choice: &'a ImageChoice) -> &'a str {
        match choice {
            ImageChoice::Runtime(runtime) => self.runtime_image(*runtime),
            ImageChoice::Browser => &self.browser_image,
            ImageChoice::Image(image) => image,
        }
    }

    /// Returns Skillet's own image for a runtime.
    pub fn runtime_image(&self, runtime: Runtime) -> &str {
        match runtime {
            Runtime::Shell => &self.shell_image,
            Runtime::Python => &self.python_image,
            Runtime::Node => &self.node_image,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(settings: &str, labels: &serde_json::Value, taints: &serde_json::Value, expected: bool) {
        let settings: SandboxPodSettings = settings.parse().unwrap();
        let mut all = json!({ "kubernetes.io/os": "linux" });
        all.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
        let node = json!({ "metadata": { "labels": all }, "spec": { "taints": taints } });
        assert_eq!(
            settings.fits(&serde_json::from_value(node).unwrap()),
            expected,
            "{settings:?} {labels} {taints}"
        );
    }

    #[test]
    fn a_node_fits_by_its_labels() {
        check("{}", &json!({}), &json!([]), true);
        check("{}", &json!({ "kubernetes.io/os": "windows" }), &json!([]), false);
        let pool = r#"{"nodeSelector": {"pool": "sandboxes"}}"#;
        check(pool, &json!({ "pool": "sandboxes" }), &json!([]), true);
        check(pool, &json!({ "pool": "gpu" }), &json!([]), false);
        check(pool, &json!({}), &json!([]), false);
    }

    #[test]
    fn a_node_fits_if_each_taint_is_tolerated() {
        let taint = |effect: &str| json!([{ "key": "role", "value": "db", "effect": effect }]);
        check("{}", &json!({}), &taint("NoSchedule"), false);
        check("{}", &json!({}), &taint("NoExecute"), false);
        check("{}", &json!({}), &taint("PreferNoSchedule"), true);
        for toleration in [
            r#"{"operator": "Exists"}"#,
            r#"{"key": "role", "operator": "Exists"}"#,
            r#"{"key": "role", "value": "db"}"#,
            r#"{"key": "role", "operator": "Equal", "value": "db", "effect": "NoSchedule"}"#,
        ] {
            check(&format!(r#"{{"tolerations": [{toleration}]}}"#), &json!({}), &taint("NoSchedule"), true);
        }
        for toleration in [
            r#"{"key": "other", "operator": "Exists"}"#,
            r#"{"key": "role", "value": "web"}"#,
            r#"{"key": "role", "value": "db", "effect": "NoExecute"}"#,
        ] {
            check(&format!(r#"{{"tolerations": [{toleration}]}}"#), &json!({}), &taint("NoSchedule"), false);
        }
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let error = r#"{"nodeSelectors": {}}"#.parse::<SandboxPodSettings>().unwrap_err();
        assert!(error.to_string().contains("nodeSelectors"), "{error}");
    }
}
