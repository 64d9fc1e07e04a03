//! From the YAML a user writes to the valid content, and every refusal with its field and words.

use std::time::Duration;

use skillet_api::{Reason, skill::RetryOn};

use std::collections::BTreeMap;

use super::*;

mod limits;

const SHORTEST: &str = "{version: 1.0.0, run: {sandbox: {runtime: shell, script: cat}}}";

fn policy(yaml: &str) -> SkillPolicySpec {
    serde_saphyr::from_str(yaml).unwrap()
}

fn validate(yaml: &str, policy_yaml: &str) -> Result<ValidSkill, Vec<FieldError>> {
    let spec: SkillSpec = serde_saphyr::from_str(yaml).unwrap();
    validate_skill("demo", &spec, &policy(policy_yaml))
}

fn valid(yaml: &str) -> ValidContent {
    validate(yaml, "{allowedImages: [ghcr.io/acme/]}").unwrap().content.unwrap()
}

/// A skill with this sandbox is refused for exactly these reasons.
fn refuse(yaml: &str, expected: &[(Reason, &str)]) {
    let errors = validate(yaml, "{}").unwrap_err();
    let found: Vec<(Reason, String)> =
        errors.iter().map(|error| (error.reason(), error.to_string())).collect();
    let expected: Vec<(Reason, String)> =
        expected.iter().map(|(reason, text)| (*reason, (*text).to_owned())).collect();
    assert_eq!(found, expected, "{yaml}");
}

fn refuse_sandbox(sandbox: &str, expected: &str) {
    refuse(
        &format!("{{version: 1.0.0, run: {{sandbox: {{{sandbox}}}}}}}"),
        &[(Reason::SpecInvalid, expected)],
    );
}

#[test]
fn the_shortest_skill_takes_everything_else_from_the_policy() {
    let skill = validate(SHORTEST, "{}").unwrap();
    assert_eq!(skill.version.to_string(), "1.0.0");
    assert_eq!(skill.digest.len(), 64);
    let content = skill.content.unwrap();
    assert_eq!(content.sandbox().unwrap().image, ImageChoice::Runtime(Runtime::Shell));
    let program = Program::Script { runtime: Runtime::Shell, text: "cat".into(), args: vec![] };
    assert_eq!(content.sandbox().unwrap().program, program);
    let expected = ValidLimits {
        timeout: Duration::from_secs(30),
        retries: 0,
        retry_on: RetryOn::Lost,
        cpu_millis: 1000,
        memory_bytes: 256 << 20,
        processes: 100,
        output_bytes: 100_000,
        concurrency: None,
    };
    assert_eq!(content.limits, expected);
    assert!(
        content.sandbox().unwrap().files.is_empty()
            && content.sandbox().unwrap().env.is_empty()
            && content.sandbox().unwrap().secret_env.is_empty()
    );
    assert!(content.input_schema.is_none() && content.output_schema.is_none());
}

#[test]
fn everything_a_skill_says_arrives() {
    let content = valid(
        "
        version: 1.0.0
        tool: {inputSchema: {type: object}, outputSchema: {type: object}}
        limits: {timeout: 1m30s, retries: 2, retryOn: Failure, cpu: 500m, memory: 64Mi, processes: 5, outputBytes: 10, concurrency: 3}
        run:
          sandbox:
            image: ghcr.io/acme/tool:1
            command: [tool, sub]
            args: [--fast]
            files: [{path: lib/a.txt, content: text}, {path: b.bin, contentBase64: '/w=='}, {path: c, contentBase64: \"/w\\n==\\n\"}]
            env: [{name: A, value: '1'}, {name: _B}]
            secretEnv: [{name: TOKEN, secret: creds, key: token}]
        ",
    );
    assert_eq!(content.sandbox().unwrap().image, ImageChoice::Image("ghcr.io/acme/tool:1".into()));
    let argv = ["tool", "sub", "--fast"].map(String::from).to_vec();
    assert_eq!(content.sandbox().unwrap().program, Program::Command { argv });
    let files: Vec<(&str, &[u8])> =
        content.sandbox().unwrap().files.iter().map(|f| (f.path.as_str(), f.bytes.as_slice())).collect();
    assert_eq!(files, [("lib/a.txt", b"text".as_slice()), ("b.bin", &[0xff]), ("c", &[0xff])]);
    assert_eq!(
        content.sandbox().unwrap().env,
        BTreeMap::from([("A".into(), "1".into()), ("_B".into(), String::new())])
    );
    assert_eq!(content.sandbox().unwrap().secret_env[0].key, "token");
    assert!(content.input_schema.is_some() && content.output_schema.is_some());
    let limits = content.limits;
    assert_eq!(
        (limits.timeout, limits.retries, limits.retry_on),
        (Duration::from_secs(90), 2, RetryOn::Failure)
    );
    assert_eq!((limits.cpu_millis, limits.memory_bytes), (500, 64 << 20));
    assert_eq!((limits.processes, limits.output_bytes, limits.concurrency), (5, 10, Some(3)));
}

#[test]
fn a_runtime_can_run_a_command() {
    let content = valid("{version: 1.0.0, run: {sandbox: {runtime: node, command: [node, --version]}}}");
    assert_eq!(content.sandbox().unwrap().image, ImageChoice::Runtime(Runtime::Node));
}

#[test]
fn a_name_is_a_dns_label() {
    let spec: SkillSpec = serde_saphyr::from_str(SHORTEST).unwrap();
    let long = "a".repeat(63);
    for good in ["a", "0", "a-b", &long] {
        assert!(validate_skill(good, &spec, &policy("{}")).is_ok(), "{good}");
    }
    let too_long = "a".repeat(64);
    for bad in ["", "-a", "a-", "A", "a.b", "a_b", "é", &too_long] {
        let errors = validate_skill(bad, &spec, &policy("{}")).unwrap_err();
        assert!(errors[0].to_string().starts_with("metadata.name: must be at most 63 characters"), "{bad}");
    }
}

#[test]
fn every_error_is_returned_not_only_the_first() {
    refuse(
        "{version: v1, tags: [''], tool: {inputSchema: {type: x}, outputSchema: {type: z}}, limits: {memory: 3Gi, cpu: x}, run: {sandbox: {image: evil/a, script: cat}}}",
        &[
            (
                Reason::SpecInvalid,
                r#"spec.version: "v1" is not a version; write three numbers like 1.2.3, without leading zeros and without a suffix"#,
            ),
            (Reason::SpecInvalid, "spec.tags[0]: must not be empty"),
            (
                Reason::InputSchemaInvalid,
                r#"spec.tool.inputSchema: is not a JSON Schema that can be used: at /type: expected one of ["array","boolean","integer","null","number","object","string"] or array, got "x""#,
            ),
            (
                Reason::OutputSchemaInvalid,
                r#"spec.tool.outputSchema: is not a JSON Schema that can be used: at /type: expected one of ["array","boolean","integer","null","number","object","string"] or array, got "z""#,
            ),
            (
                Reason::ImageNotAllowed,
                "spec.run.sandbox.image: SkillPolicy does not allow evil/a; use runtime, or have it added to spec.allowedImages of the SkillPolicy",
            ),
            (
                Reason::SpecInvalid,
                "spec.run.sandbox: script needs runtime: shell, python or node; with image, use command",
            ),
            (Reason::SpecInvalid, "spec.limits.cpu: x is not an amount; write it like 500m, 1 or 0.5"),
            (
                Reason::LimitTooHigh,
                "spec.limits.memory: 3Gi is above the maximum of 2Gi that the SkillPolicy sets",
            ),
        ],
    );
}

#[test]
fn a_handler_an_image_and_a_program_are_needed_once() {
    refuse(
        "{version: 1.0.0, run: {}}",
        &[(Reason::SpecInvalid, "spec.run: needs exactly one handler: sandbox, http or builtin")],
    );
    refuse_sandbox(
        "script: cat, image: a, runtime: shell",
        "spec.run.sandbox: give exactly one of image and runtime",
    );
    refuse_sandbox("runtime: shell", "spec.run.sandbox: give exactly one of script and command");
    refuse_sandbox("runtime: shell, command: []", "spec.run.sandbox: give exactly one of script and command");
    refuse_sandbox(
        "runtime: shell, command: [a], script: b",
        "spec.run.sandbox: give exactly one of script and command",
    );
    refuse_sandbox("command: [a]", "spec.run.sandbox: give exactly one of image and runtime");
    refuse_sandbox("runtime: shell, script: ''", "spec.run.sandbox.script: must not be empty");
    refuse_sandbox("runtime: shell, command: ['']", "spec.run.sandbox.command[0]: must not be empty");
    refuse_sandbox(
        "image: 'Not An Image', command: [a]",
        r#"spec.run.sandbox.image: "Not An Image" is not an image reference; write it like ghcr.io/acme/tool:1.2"#,
    );
}

#[test]
fn arguments_are_strings_the_system_can_pass() {
    refuse_sandbox(
        r#"runtime: shell, command: [a, "b\0c"]"#,
        "spec.run.sandbox.command[1]: must not contain a NUL character",
    );
    refuse_sandbox(
        r#"runtime: shell, script: cat, args: ["\0"]"#,
        "spec.run.sandbox.args[0]: must not contain a NUL character",
    );
    let long = "é".repeat(4097);
    refuse_sandbox(
        &format!("runtime: shell, script: cat, args: [{long}]"),
        "spec.run.sandbox.args[0]: has 4097 characters, at most 4096 are allowed",
    );
    assert!(validate(&SHORTEST.replace("cat", &"é".repeat(262_144)), "{}").is_ok());
}

#[test]
fn lists_and_texts_have_the_crds_bounds() {
    let list = |count: usize, item: &str| vec![item; count].join(",");
    let sandbox = |part: &str| format!("{{version: 1.0.0, run: {{sandbox: {{runtime: shell, {part}}}}}}}");
    let files: Vec<String> = (0..65).map(|n| format!("{{path: f{n}, content: ''}}")).collect();
    let variables: Vec<String> = (0..129).map(|n| format!("{{name: V{n}}}")).collect();
    let secrets: Vec<String> = (0..65).map(|n| format!("{{name: V{n}, secret: s, key: k}}")).collect();
    let many = |field: &str, count: usize, limit: usize| {
        format!("spec.{field}: has {count} entries, at most {limit} are allowed")
    };
    let long = |field: &str, count: usize, limit: usize| {
        format!("spec.{field}: has {count} characters, at most {limit} are allowed")
    };
    for (yaml, expected) in [
        (sandbox(&format!("command: [{}]", list(65, "a"))), many("run.sandbox.command", 65, 64)),
        (sandbox(&format!("script: cat, args: [{}]", list(257, "a"))), many("run.sandbox.args", 257, 256)),
        (sandbox(&format!("script: cat, files: [{}]", files.join(","))), many("run.sandbox.files", 65, 64)),
        (sandbox(&format!("script: cat, env: [{}]", variables.join(","))), many("run.sandbox.env", 129, 128)),
        (
            sandbox(&format!("script: cat, secretEnv: [{}]", secrets.join(","))),
            many("run.sandbox.secretEnv", 65, 64),
        ),
        (SHORTEST.replace("run:", &format!("tags: [{}], run:", list(33, "a"))), many("tags", 33, 32)),
        (SHORTEST.replace("run:", &format!("tags: [{}], run:", "a".repeat(65))), long("tags[0]", 65, 64)),
        (
            SHORTEST.replace("run:", &format!("description: {}, run:", "a".repeat(1025))),
            long("description", 1025, 1024),
        ),
        (SHORTEST.replace("cat", &"a".repeat(262_145)), long("run.sandbox.script", 262_145, 262_144)),
        (
            sandbox(&format!("script: cat, env: [{{name: A, value: {}}}]", "a".repeat(32_769))),
            long("run.sandbox.env[0].value", 32_769, 32_768),
        ),
        (
            sandbox(&format!("script: cat, files: [{{path: a, content: {}}}]", "a".repeat(262_145))),
            long("run.sandbox.files[0].content", 262_145, 262_144),
        ),
        (
            sandbox(&format!("script: cat, files: [{{path: a, contentBase64: {}}}]", "a".repeat(350_004))),
            long("run.sandbox.files[0].contentBase64", 350_004, 350_000),
        ),
        (
            sandbox(&format!("script: cat, secretEnv: [{{name: A, secret: {}, key: k}}]", "a".repeat(254))),
            long("run.sandbox.secretEnv[0].secret", 254, 253),
        ),
    ] {
        refuse(&yaml, &[(Reason::SpecInvalid, &expected)]);
    }
}

#[test]
fn a_files_path_stays_below_the_working_directory() {
    for path in ["/etc/passwd", "../up", "a/../../up", "a//b", "./a", "a/.", "a/", "..", ""] {
        refuse_sandbox(
            &format!("runtime: shell, script: cat, files: [{{path: '{path}', content: x}}]"),
            "spec.run.sandbox.files[0].path: must be relative, without empty, . or .. segments, like lib/words.txt",
        );
    }
    assert_eq!(
        valid(&SHORTEST.replace("cat", "cat, files: [{path: ..a/...b/.c, content: x}]"))
            .sandbox()
            .unwrap()
            .files[0]
            .path,
        "..a/...b/.c"
    );
    refuse_sandbox(
        &format!("runtime: shell, script: cat, files: [{{path: {}, content: x}}]", "a/".repeat(128) + "b"),
        "spec.run.sandbox.files[0].path: has 257 characters, at most 256 are allowed",
    );
    refuse_sandbox(
        &format!("runtime: shell, script: cat, files: [{{path: {}, content: x}}]", "é".repeat(128)),
        "spec.run.sandbox.files[0].path: has a segment of more than 255 bytes",
    );
    refuse_sandbox(
        r#"runtime: shell, script: cat, files: [{path: "a\0", content: x}]"#,
        "spec.run.sandbox.files[0].path: must not contain a NUL character",
    );
}

#[test]
fn a_file_has_one_path_and_one_content() {
    let refuse_files = |files: &str, expected: &str| {
        refuse_sandbox(&format!("runtime: shell, script: cat, files: [{files}]"), expected);
    };
    let once = "spec.run.sandbox.files[0]: give exactly one of content and contentBase64";
    refuse_files("{path: a}", once);
    refuse_files("{path: a, content: x, contentBase64: eA==}", once);
    refuse_files(
        "{path: a, content: x}, {path: a, content: y}",
        r#"spec.run.sandbox.files[1]: the path "a" is used twice"#,
    );
    refuse_files(
        "{path: a/b/c, content: x}, {path: a/b, content: y}",
        r#"spec.run.sandbox.files[0]: "a/b" is a file, so "a/b/c" cannot be below it"#,
    );
    for path in ["main.sh", "main.sh/a"] {
        let message =
            format!("spec.run.sandbox.files[0]: {path:?} is where the script itself lies; take another path");
        refuse_files(&format!("{{path: {path}, content: x}}"), &message);
    }
    let others = "{version: 1.0.0, run: {sandbox: {runtime: node, command: [node, main.js], files: [{path: main.js, content: x}, {path: a/main.js, content: x}]}}}";
    assert_eq!(valid(others).sandbox().unwrap().files.len(), 2);
    let errors =
        validate(&SHORTEST.replace("cat", "cat, files: [{path: a, contentBase64: '*'}]"), "{}").unwrap_err();
    assert!(errors[0].to_string().starts_with("spec.run.sandbox.files[0].contentBase64: is not base64: "));
}

#[test]
fn a_variable_has_a_name_the_system_takes_and_is_set_once() {
    let wrong = "must be at most 128 letters, digits and _, not beginning with a digit";
    let long = "A".repeat(129);
    for name in ["", "1A", "A-B", "A=B", "é", &long] {
        refuse_sandbox(
            &format!("runtime: shell, script: cat, env: [{{name: '{name}'}}]"),
            &format!("spec.run.sandbox.env[0].name: {wrong}"),
        );
        refuse_sandbox(
            &format!("runtime: shell, script: cat, secretEnv: [{{name: '{name}', secret: s, key: k}}]"),
            &format!("spec.run.sandbox.secretEnv[0].name: {wrong}"),
        );
    }
    refuse_sandbox(
        "runtime: shell, script: cat, env: [{name: A}], secretEnv: [{name: A, secret: s, key: k}]",
        "spec.run.sandbox.secretEnv[0].name: A is set twice in env and secretEnv",
    );
    refuse_sandbox(
        r#"runtime: shell, script: cat, env: [{name: A, value: "\0"}]"#,
        "spec.run.sandbox.env[0].value: must not contain a NUL character",
    );
    refuse_sandbox(
        "runtime: shell, script: cat, secretEnv: [{name: A, secret: '', key: k}]",
        "spec.run.sandbox.secretEnv[0].secret: must not be empty",
    );
}

#[test]
fn a_secret_is_named_as_the_api_server_names_secrets() {
    let variable = |secret: &str, key: &str| {
        format!("runtime: shell, script: cat, secretEnv: [{{name: A, secret: {secret:?}, key: {key:?}}}]")
    };
    let field = "spec.run.sandbox.secretEnv[0]";
    for secret in ["..", ".", "a/b", "../../kube-system/secrets/y", "A", "a.", "-a", "a b", "a..b"] {
        let message = "must be the name of a Secret: a-z, 0-9, - and ., with a letter or digit at each end and around each dot";
        refuse_sandbox(&variable(secret, "k"), &format!("{field}.secret: {message}"));
    }
    for key in ["a/b", "a b", "é"] {
        let message = "must be a key of a Secret: letters, digits, -, _ and .";
        refuse_sandbox(&variable("s", key), &format!("{field}.key: {message}"));
    }
    for (secret, key) in [("a.b-c.d0", ".dot-config"), ("0", "A_b.c-d")] {
        let skill = format!("{{version: 1.0.0, run: {{sandbox: {{{}}}}}}}", variable(secret, key));
        assert!(validate(&skill, "{}").is_ok(), "{secret} {key}");
    }
}

#[test]
fn a_sealed_version_is_held_to_the_same_rules() {
    let spec: SkillSpec = serde_saphyr::from_str(SHORTEST).unwrap();
    let mut sealed = crate::content::seal("demo", &spec);
    assert!(validate_content(&sealed, &policy("{}")).is_ok());
    sealed.run = Some(Run::default());
    let errors = validate_content(&sealed, &policy("{}")).unwrap_err();
    assert_eq!(errors[0].to_string(), "spec.run: needs exactly one handler: sandbox, http or builtin");
    sealed.run = None;
    let errors = validate_content(&sealed, &policy("{}")).unwrap_err();
    let message = "spec.run: is not set: the skill has instructions, which models read, and no program";
    assert_eq!((errors[0].reason(), errors[0].to_string()), (Reason::NoProgram, message.to_owned()));
}
