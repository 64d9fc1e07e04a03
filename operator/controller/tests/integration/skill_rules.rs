//! The API server's rules for a Skill, bound by bound. The operator's own validation refuses the same objects.

use kube::{Client, CustomResourceExt as _, ResourceExt as _};
use serde_json::{Value, json};
use skillet_api::{Skill, SkillPolicySpec};
use skillet_core::skill::validate_skill;
use skillet_kube::{ParseError, RawObject};

use crate::{
    cases::{Case, assert_complete, breaks, is_about, long, many, with},
    content_cases::{content_cases, sandbox},
    requests::{Answer, create},
    server::rules_admin,
};

const SHORTEST: &str = "{version: 1.0.0, run: {sandbox: {runtime: shell, script: cat}}}";
const NAME_RULE: &str = "metadata.name must be at most 63 characters of a-z, 0-9 and -, beginning and ending with a letter or digit";
/// Broken by `sealing`, since it takes the operator's status.
const SEALED_RULE: &str =
    "this version is sealed; raise spec.version to change description, tool, run or limits";
const SEALED_TEXT_RULE: &str =
    "this version is sealed; raise spec.version to change instructions, files or network";

fn cases() -> Vec<Case> {
    let mut cases = vec![
        breaks("spec.version required", "version: null"),
        breaks(
            "spec.version rule: version is three numbers without leading zeros, such as 1.2.3: no v, no pre-release, no build",
            "version: 1.0.0-rc1",
        ),
        breaks(
            "spec.version rule: version is three numbers without leading zeros, such as 1.2.3: no v, no pre-release, no build",
            "version: v1.0.0",
        ),
        breaks(
            "spec.version rule: version is three numbers without leading zeros, such as 1.2.3: no v, no pre-release, no build",
            "version: 01.0.0",
        ),
        breaks(
            "spec.version rule: version is three numbers without leading zeros, such as 1.2.3: no v, no pre-release, no build",
            "version: '1.0'",
        ),
        breaks(
            "spec.version rule: version is three numbers without leading zeros, such as 1.2.3: no v, no pre-release, no build",
            "version: 1000000000.0.0",
        ),
        breaks(
            "spec.version rule: version is three numbers without leading zeros, such as 1.2.3: no v, no pre-release, no build",
            "version: ''",
        ),
        breaks("spec.version maxLength", format!("version: 1.0.{}", "1".repeat(26))),
        breaks("spec.mode enum", "mode: sometimes"),
        breaks("spec.mode enum", "mode: 1"),
        breaks("spec.invocation enum", "invocation: never"),
        breaks("spec.tags maxItems", format!("tags: {}", many(33, |n| format!("t{n}")))),
        breaks("spec.tags[] minLength", "tags: [ok, '']"),
        breaks("spec.tags[] maxLength", format!("tags: [{}]", long(65))),
        breaks(
            "spec.yankedVersions maxItems",
            format!("yankedVersions: {}", many(257, |n| format!("1.0.{n}"))),
        ),
        breaks("spec.examples maxItems", format!("examples: {}", many(33, |n| format!("question {n}")))),
        breaks("spec.examples[] minLength", "examples: ['']"),
        breaks("spec.examples[] maxLength", format!("examples: [{}]", long(257))),
        breaks("spec.yankedVersions[] pattern", "yankedVersions: ['1.0']"),
        breaks("spec.yankedVersions[] maxLength", format!("yankedVersions: [{}]", long(30))),
    ];
    cases.extend(content_cases());
    cases
}

/// At its bounds, or written in another way.
fn good() -> Vec<(&'static str, String)> {
    let limits = "{timeout: 15m, retries: 10, retryOn: Failure, cpu: '4', memory: 2Gi, processes: 1024, outputBytes: 524288, concurrency: 1000}";
    let full = format!(
        "files: {}, env: {}, secretEnv: {}, args: {}",
        many(64, |n| format!("{{path: d/f{n}, content: x}}")),
        many(128, |n| format!("{{name: A{n}, value: x}}")),
        many(64, |n| format!("{{name: S{n}, secret: s, key: k}}")),
        many(256, |n| format!("a{n}")),
    );
    vec![
        ("nothing optional", "{}".into()),
        ("instructions alone", "{run: null, instructions: {body: Read.}}".into()),
        ("a ConfigMap", "instructions: {bodyFrom: {configMapKeyRef: {name: a.b, key: k_1.md}}}".into()),
        (
            "instructions at their bounds",
            format!(
                "{{instructions: {{body: {}, activation: Triggered, triggers: {{keywords: {}}}, inputs: {}}}, files: {}}}",
                long(204_800),
                many(64, |n| format!("k{n}")),
                many(32, |n| format!("{{name: a{n}, type: integer, required: true, default: '1'}}")),
                many(128, |n| format!("{{path: d/f{n}, content: x}}")),
            ),
        ),
        ("a version of nine digits", "version: 999999999.0.10".into()),
        ("1024 characters that are more bytes", format!("description: {}", "é".repeat(1024))),
        ("32 tags of 64 characters", format!("tags: {}", many(32, |n| format!("{}{n:02}", long(62))))),
        (
            "32 examples of 256 characters",
            format!("examples: {}", many(32, |n| format!("{}{n:02}", long(254)))),
        ),
        ("256 yanked versions", format!("yankedVersions: {}", many(256, |n| format!("1.0.{n}")))),
        ("on as a word", "mode: 'on'".into()),
        ("on as YAML 1.1 reads it", "mode: true".into()),
        ("off as YAML 1.1 reads it", "mode: false".into()),
        ("the highest limits", format!("limits: {limits}")),
        ("limits that are all unset", "limits: {}".into()),
        ("parts of a CPU", "limits: {cpu: '0.25', memory: 64M, timeout: 1m30s500ms}".into()),
        ("amounts as in a pod", "limits: {cpu: 2, memory: 1.5Gi}".into()),
        ("bytes as a number", "limits: {memory: 134217728}".into()),
        ("a whole number written as a decimal", "limits: {retries: 1.0}".into()),
        ("a script of 256 KiB", sandbox(&format!("script: {}", long(262_144)))),
        ("lists at their bounds", sandbox(&full)),
        (
            "an image with a command",
            sandbox("runtime: null, script: null, image: r.example/a:1, command: [cat]"),
        ),
        ("a runtime with a command", sandbox("script: null, command: [cat, '-']")),
        (
            "paths with dots in names",
            sandbox("files: [{path: ..a/b.., content: x}, {path: a.b/.c, content: x}]"),
        ),
        (
            "an empty file and bytes",
            sandbox("files: [{path: a, content: ''}, {path: b, contentBase64: /w==}]"),
        ),
        (
            "schemas of any form",
            "tool: {inputSchema: {type: object, x: [1, {y: null}]}, outputSchema: {}}".into(),
        ),
    ]
}

fn policy() -> SkillPolicySpec {
    SkillPolicySpec { allowed_images: vec!["r.example/".into()], ..SkillPolicySpec::default() }
}

fn object(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": { "name": name, "namespace": "default" }, "spec": spec })
}

async fn answer(client: &Client, spec: &Value) -> Answer {
    create(client, &object("a", spec)).await
}

/// Returns the problems that the operator's own parser and validation find: fields and messages.
fn validate(object: &Value) -> Result<(), Vec<(String, String)>> {
    let raw: RawObject<Skill> = serde_json::from_str(&object.to_string()).unwrap();
    let skill = match raw.parse() {
        Ok(skill) => skill,
        Err(error) => {
            let ParseError::Field { field, .. } = &error else { panic!("{error}") };
            return Err(vec![(field.clone(), error.to_string())]);
        }
    };
    match validate_skill(&skill.name_any(), &skill.spec, &policy()) {
        Ok(_) => Ok(()),
        Err(problems) => Err(problems.into_iter().map(|problem| (problem.field, problem.message)).collect()),
    }
}

#[test]
fn every_bound_of_a_skill_has_a_case_that_breaks_it() {
    let rules = [NAME_RULE, SEALED_RULE, SEALED_TEXT_RULE].map(|rule| format!("metadata rule: {rule}"));
    assert_complete(&Skill::crd(), &cases(), &rules.each_ref().map(String::as_str));
}

#[tokio::test]
async fn the_api_server_refuses_each_broken_bound_of_a_skill_and_names_the_field() {
    let Some(client) = rules_admin().await else { return };
    for case in cases() {
        answer(&client, &case.spec(SHORTEST)).await.assert_refused(&case);
    }
}

#[test]
fn the_operators_validation_refuses_whatever_the_api_server_refuses_of_a_skill() {
    let accepted = |case: &Case| validate(&object("a", &case.spec(SHORTEST))).is_ok();
    let missed: Vec<String> = cases()
        .into_iter()
        .filter(accepted)
        .map(|case| format!("{} by {:.80}", case.breaks, case.with))
        .collect();
    assert!(missed.is_empty(), "not refused: {missed:#?}");
}

#[test]
fn the_operators_validation_names_the_field_that_is_wrong() {
    let mut unnamed = Vec::new();
    for case in cases() {
        let Err(problems) = validate(&object("a", &case.spec(SHORTEST))) else { continue };
        let field = case.path().trim_start_matches("spec.");
        let is_named = |(at, message): &(String, String)| {
            // The parent reports a missing field.
            is_about(at, case.path()) && (at != "spec" || message.contains(field))
        };
        if !problems.iter().any(is_named) {
            unnamed.push(format!("{}: {problems:?}", case.breaks));
        }
    }
    assert!(unnamed.is_empty(), "no problem names the field: {unnamed:#?}");
}

#[tokio::test]
async fn what_both_accept_is_accepted_by_both_and_parses_as_it_is_stored() {
    let Some(client) = rules_admin().await else { return };
    for (what, change) in good() {
        let spec = with(SHORTEST, &change);
        let stored = answer(&client, &spec).await.assert_accepted(what);
        assert_eq!(validate(&stored), Ok(()), "{what}");
    }
}

#[tokio::test]
async fn null_for_a_field_that_may_be_unset_is_the_same_as_leaving_it_out() {
    let Some(client) = rules_admin().await else { return };
    let spec = json!({
        "version": "1.0.0",
        "tool": null,
        "limits": null,
        "run": { "sandbox": { "runtime": "shell", "image": null, "script": null, "command": ["cat"] } },
    });
    let stored = answer(&client, &spec).await.assert_accepted("null");
    assert_eq!(validate(&stored), Ok(()));
    assert_eq!(validate(&object("a", &spec)), Ok(()));
}

#[tokio::test]
async fn a_field_of_another_type_is_refused_by_both() {
    let Some(client) = rules_admin().await else { return };
    let fields = ["version", "description", "enabled", "invocation", "tags", "tool", "run", "limits"];
    let inner = ["timeout", "retries", "retryOn", "cpu", "memory", "processes", "outputBytes", "concurrency"];
    let paths = fields.map(|f| vec![f]).into_iter().chain(inner.map(|f| vec!["limits", f]));
    let program = ["image", "runtime", "script", "command", "args", "files", "env", "secretEnv"];
    for path in paths.chain(program.map(|f| vec!["run", "sandbox", f])) {
        let mut spec = with(SHORTEST, "{}");
        let (last, parents) = path.split_last().unwrap();
        let holder = parents.iter().fold(&mut spec, |value, key| {
            value.as_object_mut().unwrap().entry(*key).or_insert_with(|| json!({}))
        });
        // No field is a decimal number.
        holder[*last] = json!(0.5);
        answer(&client, &spec).await.assert_names(&format!("spec.{}", path.join(".")), "must be of type");
        assert!(validate(&object("a", &spec)).is_err(), "{path:?}");
    }
}

#[tokio::test]
async fn a_name_that_could_not_be_a_label_is_refused_by_both() {
    let Some(client) = rules_admin().await else { return };
    let spec = with(SHORTEST, "{}");
    for name in ["a", "0", "word-count", &long(63)] {
        create(&client, &object(name, &spec)).await.assert_accepted(name);
        assert_eq!(validate(&object(name, &spec)), Ok(()), "{name}");
    }
    for name in ["a.b", &long(64)] {
        create(&client, &object(name, &spec)).await.assert_names("", NAME_RULE);
        let problems = validate(&object(name, &spec)).unwrap_err();
        assert!(problems.iter().any(|(field, _)| field == "metadata.name"), "{name}: {problems:?}");
    }
}
