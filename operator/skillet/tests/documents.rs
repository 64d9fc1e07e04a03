//! The documents are true: every YAML example is an object that can be applied, and every reason is described.

// What is not a test here is still part of one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{fs, path::PathBuf};

use serde_json::Value;
use skillet_api::{
    ApiKey, Reason, Skill, SkillExecution, SkillExecutionSpec, SkillPolicy, SkillPolicySpec, SkillSource,
    SkillVersion,
};
use skillet_core::{skill::validate_skill, version::Constraint};

fn root() -> PathBuf {
    std::env::current_dir().unwrap().join("../..")
}

fn pages() -> Vec<(String, String)> {
    let mut found = vec![("README.md".to_owned(), fs::read_to_string(root().join("README.md")).unwrap())];
    for entry in fs::read_dir(root().join("docs/reference")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        found.push((name, fs::read_to_string(&path).unwrap()));
    }
    found
}

/// Every object in the fenced `yaml` blocks of a page.
fn objects(page: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut block: Option<String> = None;
    for line in page.lines() {
        match (&mut block, line) {
            (None, "```yaml") => block = Some(String::new()),
            (Some(text), "```") => {
                for document in text.split("\n---\n") {
                    found.push(
                        serde_saphyr::from_str(document).unwrap_or_else(|e| panic!("{e} in\n{document}")),
                    );
                }
                block = None;
            }
            (Some(text), line) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, _) => {}
        }
    }
    found
}

fn parse<T: serde::de::DeserializeOwned>(page: &str, object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{page}: {error} in {object}"))
}

#[test]
fn every_example_of_a_kind_parses_and_is_valid() {
    let mut kinds = Vec::new();
    for (page, text) in pages() {
        for object in objects(&text) {
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            match kind.as_str() {
                "Skill" => check_skill(&page, &parse(&page, &object)),
                "SkillExecution" => check_execution(&page, &parse::<SkillExecution>(&page, &object).spec),
                "SkillPolicy" => drop(parse::<SkillPolicy>(&page, &object)),
                "SkillVersion" => drop(parse::<SkillVersion>(&page, &object)),
                "SkillSource" => drop(parse::<SkillSource>(&page, &object)),
                "ApiKey" => drop(parse::<ApiKey>(&page, &object)),
                "Secret" | "ConfigMap" | "Namespace" | "ServiceAccount" | "Pod" | "Role" | "RoleBinding" => {
                    continue;
                }
                other => panic!("{page}: an example of the unknown kind {other:?}"),
            }
            kinds.push(kind);
        }
    }
    for kind in ["ApiKey", "Skill", "SkillExecution", "SkillPolicy", "SkillSource", "SkillVersion"] {
        assert!(kinds.iter().any(|found| found == kind), "the reference has no example of {kind}");
    }
}

fn check_skill(page: &str, skill: &Skill) {
    let name = skill.metadata.name.clone().unwrap_or_default();
    let policy = SkillPolicySpec {
        allowed_images: vec!["registry.example.com/".into()],
        builtins: skillet_api::builtin::Builtin::ALL.to_vec(),
        ..SkillPolicySpec::default()
    };
    if let Err(problems) = validate_skill(&name, &skill.spec, &policy) {
        panic!("{page}: {name}: {problems:?}");
    }
}

fn check_execution(page: &str, spec: &SkillExecutionSpec) {
    if let Some(version) = &spec.version {
        assert!(Constraint::parse(version).is_ok(), "{page}: version {version:?}");
    }
}

#[test]
fn every_reason_is_described_once() {
    let page = fs::read_to_string(root().join("docs/reference/reasons.md")).unwrap();
    for reason in Reason::ALL {
        let rows = page.lines().filter(|line| line.starts_with(&format!("| `{reason}` |"))).count();
        assert_eq!(rows, 1, "docs/reference/reasons.md has {rows} rows of {reason}");
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut pages =
        vec!["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/threat-model.md"]
            .into_iter()
            .map(PathBuf::from)
            .collect::<Vec<_>>();
    for folder in ["docs/reference", "docs/adr"] {
        pages.extend(
            fs::read_dir(root().join(folder))
                .unwrap()
                .map(|e| PathBuf::from(folder).join(e.unwrap().file_name())),
        );
    }
    for page in pages {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = root().join(page.parent().unwrap()).join(target);
            assert!(path.exists(), "{}: {link} leads nowhere", page.display());
        }
    }
}
