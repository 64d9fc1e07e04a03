//! The text of `bodyFrom`: read from its ConfigMap, and put into the Skill before it is validated and sealed.
//!
//! A sealed version has the text itself. It keeps that text if the ConfigMap changes or goes later.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use skillet_api::{Reason, Skill, SkillVersion, instructions::ConfigMapKeyRef};
use skillet_core::{
    content::digest,
    skill::{BODY_SOURCE, FieldError, body_problem, body_source, with_body},
};

use super::{
    Error, build,
    gather::{self, Observed},
};
use crate::context::Context;

/// Keys of a ConfigMap that a message names.
const SHOWN_KEYS: usize = 5;

/// A Skill with its text, and what its author should know of the ConfigMap.
pub(crate) struct WithBody {
    pub(crate) skill: Skill,
    pub(crate) note: Option<String>,
}

/// Returns the Skill with the text of its ConfigMap, or with that of its sealed version; `None` if its text is its own.
pub(crate) async fn read(
    ctx: &Context,
    skill: &Skill,
    observed: &Observed,
) -> Result<Option<WithBody>, Error> {
    let (Some(source), Some(namespace)) = (body_source(&skill.spec), skill.namespace()) else {
        return Ok(None);
    };
    let found = gather::config_map(ctx, &namespace, &source.name).await?;
    let text = text_of(source, found);
    let sealed = observed.versions.iter().find(|version| version.spec.version == skill.spec.version);
    if let Some(sealed) = sealed
        && !text.as_ref().is_ok_and(|text| is_sealed(&fill(skill, text), sealed))
        && let Some(body) = gather::sealed_body(ctx, &namespace, &sealed.name_any()).await?
    {
        let skill = fill(skill, &body);
        // Otherwise something beside the text has changed, which is a conflict.
        let note = is_sealed(&skill, sealed).then(|| note(source, text.err(), &skill.spec.version));
        return Ok(Some(WithBody { skill, note }));
    }
    match text {
        Ok(text) => Ok(Some(WithBody { skill: fill(skill, &text), note: None })),
        Err(problem) => Err(Error::Body { problem, serving: build::sealed(observed) }),
    }
}

fn fill(skill: &Skill, text: &str) -> Skill {
    Skill { spec: with_body(&skill.spec, text.to_owned()), ..skill.clone() }
}

fn is_sealed(skill: &Skill, version: &SkillVersion) -> bool {
    digest(&skill.spec) == version.spec.digest
}

/// Returns the text under a key.
fn text_of(source: &ConfigMapKeyRef, found: Option<ConfigMap>) -> Result<String, FieldError> {
    let ConfigMapKeyRef { name, key } = source;
    let refuse =
        |reason: Reason, message: String| Err(FieldError { reason, field: BODY_SOURCE.to_owned(), message });
    let Some(found) = found else {
        return refuse(
            Reason::ConfigMapMissing,
            format!("this namespace has no ConfigMap {name}; create it"),
        );
    };
    if found.binary_data.is_some_and(|data| data.contains_key(key)) {
        let message = format!("the key {key} of ConfigMap {name} has bytes; move it from binaryData to data");
        return refuse(Reason::ConfigMapMissing, message);
    }
    let mut data = found.data.unwrap_or_default();
    let Some(text) = data.remove(key) else {
        let mut keys: Vec<&str> = data.keys().take(SHOWN_KEYS).map(String::as_str).collect();
        if keys.is_empty() {
            keys.push("no keys");
        }
        let keys = keys.join(", ");
        let message = format!("ConfigMap {name} has no key {key}; add it, or name one that it has: {keys}");
        return refuse(Reason::ConfigMapMissing, message);
    };
    match body_problem(&text) {
        None => Ok(text),
        Some(problem) => {
            refuse(Reason::SpecInvalid, format!("the text under {key} of ConfigMap {name} {problem}"))
        }
    }
}

fn note(source: &ConfigMapKeyRef, problem: Option<FieldError>, version: &str) -> String {
    let ConfigMapKeyRef { name, key } = source;
    match problem {
        None => format!(
            "{BODY_SOURCE}: the text under {key} of ConfigMap {name} has changed, and {version} keeps its sealed text; raise spec.version to seal the new one"
        ),
        Some(problem) => format!("{problem}; {version} keeps its sealed text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config_map: &str, expected: Result<&str, (Reason, &str)>) {
        let source = ConfigMapKeyRef { name: "notes".into(), key: "k".into() };
        let found = (!config_map.is_empty()).then(|| serde_saphyr::from_str(config_map).unwrap());
        let text = text_of(&source, found).map_err(|problem| (problem.reason, problem.to_string()));
        let expected = expected
            .map(str::to_owned)
            .map_err(|(reason, message)| (reason, format!("{BODY_SOURCE}: {message}")));
        assert_eq!(text, expected);
    }

    #[test]
    fn the_text_under_a_key_is_the_body_and_all_else_is_refused_with_the_fix() {
        let missing = |message| Err((Reason::ConfigMapMissing, message));
        check("data: {k: Read., j: x}", Ok("Read."));
        check("data: {k: ''}", Ok(""));
        check("", missing("this namespace has no ConfigMap notes; create it"));
        check(
            "data: {a: x, b: y}",
            missing("ConfigMap notes has no key k; add it, or name one that it has: a, b"),
        );
        check("{}", missing("ConfigMap notes has no key k; add it, or name one that it has: no keys"));
        check(
            "binaryData: {k: /w==}",
            missing("the key k of ConfigMap notes has bytes; move it from binaryData to data"),
        );
        check(
            &format!("data: {{k: {}}}", "x".repeat(204_801)),
            Err((
                Reason::SpecInvalid,
                "the text under k of ConfigMap notes has 204801 bytes, at most 204800 are allowed; move parts of it to spec.files",
            )),
        );
    }

    #[test]
    fn a_note_says_what_became_of_the_text_of_a_sealed_version() {
        let source = ConfigMapKeyRef { name: "notes".into(), key: "k".into() };
        let changed = note(&source, None, "1.0.0");
        assert!(changed.ends_with("raise spec.version to seal the new one"), "{changed}");
        let gone = note(&source, text_of(&source, None).err(), "1.0.0");
        assert!(gone.ends_with("has no ConfigMap notes; create it; 1.0.0 keeps its sealed text"), "{gone}");
    }
}
