//! Skills as an API server holds them: each sealed, of the size that people write.

use std::fmt::Write as _;

use serde_json::{Value, json};
use skillet_offer::{Candidate, synthetic};

use super::api::NAMESPACE;

const SEED: u64 = 12_345;
const MADE: &str = "2026-01-01T00:00:00Z";
const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

/// The condition under which skills are offered.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    On,
    Auto,
}

/// A number of Skills, each with one version.
pub(crate) fn made(number: u32, mode: Mode) -> (Vec<Value>, Vec<Value>) {
    let corpus = synthetic::corpus(number, SEED);
    corpus.iter().map(|skill| (self::skill(skill, mode), version(skill))).unzip()
}

/// The policy that sends every request to one provider.
pub(crate) fn policy(provider: &str) -> Value {
    let providers = json!({ "openai": { "baseUrl": format!("http://{provider}") } });
    json!({
        "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillPolicy",
        "metadata": { "name": "default", "uid": "policy", "resourceVersion": "1" },
        "spec": { "gateway": { "providers": providers } },
    })
}

fn skill(skill: &Candidate, mode: Mode) -> Value {
    let name = &*skill.name;
    let ready = |kind: &str, reason: &str| json!({ "type": kind, "status": "True", "reason": reason, "message": "", "observedGeneration": 1, "lastTransitionTime": MADE });
    let mut metadata = metadata(name, "skill");
    metadata["managedFields"] =
        json!([managed("kubectl", "f:spec"), managed("skillet-operator", "f:status")]);
    let mut spec = content(skill);
    spec["version"] = json!("1.0.0");
    spec["tags"] = json!(*skill.tags);
    spec["mode"] = json!(match mode {
        Mode::On => "on",
        Mode::Auto => "auto",
    });
    json!({
        "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": metadata, "spec": spec,
        "status": {
            "observedGeneration": 1, "latestVersion": "1.0.0", "versions": ["1.0.0"], "digest": DIGEST,
            "conditions": [ready("Ready", "Ready"), ready("Sealed", "Sealed")],
        },
    })
}

fn version(skill: &Candidate) -> Value {
    let name = &*skill.name;
    let mut metadata = metadata(&format!("{name}-1.0.0"), "version");
    metadata["labels"] = json!({ "skillet.dev/skill": name, "app.kubernetes.io/managed-by": "skillet" });
    metadata["ownerReferences"] = json!([{
        "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "name": name, "uid": format!("skill-{name}"),
        "controller": true, "blockOwnerDeletion": true,
    }]);
    metadata["managedFields"] = json!([managed("skillet-operator", "f:spec")]);
    let mut spec = content(skill);
    spec["skill"] = json!(name);
    spec["version"] = json!("1.0.0");
    spec["digest"] = json!(DIGEST);
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillVersion", "metadata": metadata, "spec": spec })
}

/// The sealed content: the same in a Skill and in its version.
fn content(skill: &Candidate) -> Value {
    let description =
        format!("{}. Use it when that is what was asked for, and nothing else will do.", skill.description);
    let field =
        |kind: &str, what: &str| json!({ "type": kind, "description": format!("{what} of {}", skill.name) });
    let properties = json!({
        "text": field("string", "The text"),
        "limit": field("integer", "The most lines"),
        "language": { "type": "string", "enum": ["en", "de", "fr", "pt"], "description": "The language" },
        "strict": field("boolean", "Whether it must be exact, which is slower: leave it out"),
        "labels": { "type": "array", "items": { "type": "string" }, "description": "Labels to look for" },
    });
    let schema = json!({ "type": "object", "properties": properties, "required": ["text"], "additionalProperties": false });
    json!({
        "description": description,
        "tool": { "inputSchema": schema },
        "run": { "sandbox": { "runtime": "python", "script": script(&skill.name) } },
        "limits": { "timeout": "10s", "memory": "128Mi" },
    })
}

/// Some 1.5 KB, as a small program has.
fn script(name: &str) -> String {
    let mut script = format!("import json, sys\n\nasked = json.load(sys.stdin)\nfound = []\n# {name}\n");
    for step in 0..20 {
        let line = "if asked['text'].count(asked.get('language', 'en')) > ";
        // Writing to a String cannot fail.
        writeln!(script, "{line}{step}:\n    found.append({step})").ok();
    }
    script + "print(json.dumps({'found': found}))\n"
}

fn metadata(name: &str, kind: &str) -> Value {
    json!({
        "name": name, "namespace": NAMESPACE, "uid": format!("{kind}-{name}"), "resourceVersion": "1",
        "generation": 1, "creationTimestamp": MADE,
    })
}

fn managed(manager: &str, field: &str) -> Value {
    json!({
        "manager": manager, "operation": "Apply", "apiVersion": "skillet.dev/v1alpha1", "time": MADE,
        "fieldsType": "FieldsV1", "fieldsV1": { field: { "f:description": {}, "f:tool": {}, "f:run": {}, "f:tags": {} } },
    })
}

#[cfg(test)]
mod tests {
    use skillet_api::{Skill, SkillPolicy, SkillVersion};

    use super::*;

    #[test]
    fn generated_skills_parse_as_the_kinds() {
        let (skills, versions) = made(3, Mode::On);
        for (skill, version) in skills.into_iter().zip(versions) {
            let (skill, version): (Skill, SkillVersion) =
                (serde_json::from_value(skill).unwrap(), serde_json::from_value(version).unwrap());
            assert_eq!(skill.metadata.name.as_deref(), Some(version.spec.skill.as_str()));
            assert_eq!(
                (skill.spec.run, skill.spec.mode),
                (version.spec.run.clone(), skillet_api::skill::Mode::On)
            );
            let script = version.spec.run.unwrap().sandbox.unwrap().script.unwrap().len();
            assert!((1_000..2_000).contains(&script), "{script}");
            let description = version.spec.description.len();
            assert!((130..190).contains(&description), "{description}");
        }
        let policy: SkillPolicy = serde_json::from_value(policy("127.0.0.1:1")).unwrap();
        assert_eq!(policy.spec.gateway.providers.openai.base_url, "http://127.0.0.1:1");
    }
}
