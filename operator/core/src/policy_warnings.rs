//! Warnings about a SkillPolicy that is in force, but probably not as its author means.

use skillet_api::{SkillPolicySpec, gateway::OfferMatching};

use crate::{
    quantity::{cpu_millis, memory_bytes},
    skill::{is_image_reference, is_skill_name},
};

/// Returns the warnings, each with its field.
pub fn policy_warnings(policy: &SkillPolicySpec) -> Vec<String> {
    let (default, maximum) = (&policy.defaults, &policy.maximums);
    let above = [
        ("timeout", default.timeout > maximum.timeout),
        ("cpu", cpu_millis(&default.cpu) > cpu_millis(&maximum.cpu)),
        ("memory", memory_bytes(&default.memory) > memory_bytes(&maximum.memory)),
        ("processes", default.processes > maximum.processes),
        ("outputBytes", default.output_bytes > maximum.output_bytes),
    ];
    let mut found = Vec::new();
    for (name, _) in above.into_iter().filter(|(_, is_above)| *is_above) {
        found.push(format!("spec.defaults.{name} is above spec.maximums.{name}, which counts"));
    }
    if policy.start_timeout.0.is_zero() {
        found.push("spec.startTimeout: with 0s no sandbox is ever in time".to_owned());
    }
    if policy.retention.ttl.0.is_zero() {
        found.push("spec.retention.ttl: with 0s a run is deleted as soon as it ends".to_owned());
    }
    for image in &policy.allowed_images {
        if image.strip_suffix('*').unwrap_or(image).contains('*') {
            found.push(format!("spec.allowedImages: in {image:?} only a * at the end has a meaning"));
        }
    }
    let images = &policy.script_images;
    for (name, image) in [("shell", &images.shell), ("python", &images.python), ("node", &images.node)] {
        if let Some(image) = image.as_ref().filter(|image| !is_image_reference(image)) {
            found.push(format!("spec.scriptImages.{name}: {image:?} is not an image reference"));
        }
    }
    let gateway = &policy.gateway;
    for (field, namespaces) in [
        ("gateway.platformNamespaces", &gateway.platform_namespaces),
        ("gateway.catalogNamespaces", &gateway.catalog_namespaces),
        ("dynamicContent.namespaces", &policy.dynamic_content.namespaces),
    ] {
        let wrong = namespaces.iter().filter(|namespace| !is_skill_name(namespace));
        found.extend(wrong.map(|namespace| format!("spec.{field}: {namespace:?} is no name of a namespace")));
    }
    let offer = &gateway.offer;
    if !offer.embeddings.is_off() && offer.matching != OfferMatching::Ranked {
        found.push("spec.gateway.offer.embeddings has an effect with matching Ranked only".to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictions_and_names_that_cannot_be_are_named() {
        assert_eq!(policy_warnings(&SkillPolicySpec::default()), Vec::<String>::new());
        let policy: SkillPolicySpec = serde_saphyr::from_str(
            "{defaults: {timeout: 1h, memory: 4Gi}, startTimeout: 0s, retention: {ttl: 0s}, allowedImages: ['docker.io/*/x', 'a/*'], scriptImages: {shell: 'A', python: 'py:3'}, dynamicContent: {namespaces: ['*']}, gateway: {platformNamespaces: [Bad NS], offer: {matching: Words, embeddings: {provider: {model: m}}}}}",
        )
        .unwrap();
        assert_eq!(
            policy_warnings(&policy),
            [
                "spec.defaults.timeout is above spec.maximums.timeout, which counts",
                "spec.defaults.memory is above spec.maximums.memory, which counts",
                "spec.startTimeout: with 0s no sandbox is ever in time",
                "spec.retention.ttl: with 0s a run is deleted as soon as it ends",
                r#"spec.allowedImages: in "docker.io/*/x" only a * at the end has a meaning"#,
                r#"spec.scriptImages.shell: "A" is not an image reference"#,
                r#"spec.gateway.platformNamespaces: "Bad NS" is no name of a namespace"#,
                r#"spec.dynamicContent.namespaces: "*" is no name of a namespace"#,
                "spec.gateway.offer.embeddings has an effect with matching Ranked only",
            ]
        );
    }
}
