//! Invalid content of a version, in a Skill and in the SkillVersion that seals it.

use crate::{
    cases::{Case, breaks, long, many},
    mcp_server_cases::mcp_server_cases,
    network_cases::network_cases,
};

const PATH_RULE: &str =
    "spec.run.sandbox.files[] rule: path must be relative, without empty, . or .. segments";

/// Cases over a shortest spec whose sandbox has a runtime and a script.
pub fn content_cases() -> Vec<Case> {
    let mut cases = vec![
        breaks("spec.description maxLength", format!("description: {}", long(1025))),
        breaks(
            "spec rule: a skill needs run (a program), instructions (a text for models), or both",
            "run: null",
        ),
    ];
    cases.extend(program_cases());
    cases.extend(file_cases());
    cases.extend(env_cases());
    cases.extend(limit_cases());
    cases.extend(instruction_cases());
    cases.extend(bundle_image_cases());
    cases.extend(trigger_cases());
    cases.extend(bundle_cases());
    cases.extend(mcp_server_cases());
    cases.extend(network_cases());
    cases
}

fn instruction_cases() -> Vec<Case> {
    let with = |fields: &str| format!("instructions: {{{fields}}}");
    let input = |fields: &str| with(&format!("inputs: [{{{fields}}}]"));
    let source = |fields: &str| with(&format!("bodyFrom: {{configMapKeyRef: {{{fields}}}}}"));
    vec![
        breaks("spec.instructions.body maxLength", with(&format!("body: {}", long(204_801)))),
        breaks(
            "spec.instructions rule: give body or bodyFrom, not both",
            with("body: x, bodyFrom: {configMapKeyRef: {name: m, key: k}}"),
        ),
        breaks("spec.instructions.bodyFrom.configMapKeyRef required", with("bodyFrom: {}")),
        breaks("spec.instructions.bodyFrom.configMapKeyRef.name required", source("key: k")),
        breaks("spec.instructions.bodyFrom.configMapKeyRef.name minLength", source("name: '', key: k")),
        breaks("spec.instructions.bodyFrom.configMapKeyRef.name pattern", source("name: ../n, key: k")),
        breaks(
            "spec.instructions.bodyFrom.configMapKeyRef.name maxLength",
            source(&format!("name: {}, key: k", long(254))),
        ),
        breaks("spec.instructions.bodyFrom.configMapKeyRef.key required", source("name: m")),
        breaks("spec.instructions.bodyFrom.configMapKeyRef.key minLength", source("name: m, key: ''")),
        breaks("spec.instructions.bodyFrom.configMapKeyRef.key pattern", source("name: m, key: a/b")),
        breaks(
            "spec.instructions.bodyFrom.configMapKeyRef.key maxLength",
            source(&format!("name: m, key: {}", long(254))),
        ),
        breaks("spec.instructions.activation enum", with("activation: Sometimes")),
        breaks("spec.instructions.dynamic enum", with("dynamic: Always")),
        breaks("spec.instructions.argumentHint maxLength", with(&format!("argumentHint: {}", long(257)))),
        breaks(
            "spec.instructions.allowedTools maxItems",
            with(&format!("allowedTools: {}", many(129, |n| format!("t{n}")))),
        ),
        breaks("spec.instructions.allowedTools[] minLength", with("allowedTools: ['']")),
        breaks("spec.instructions.allowedTools[] maxLength", with(&format!("allowedTools: [{}]", long(257)))),
        breaks(
            "spec.instructions.deniedTools maxItems",
            with(&format!("deniedTools: {}", many(129, |n| format!("t{n}")))),
        ),
        breaks("spec.instructions.deniedTools[] minLength", with("deniedTools: ['']")),
        breaks("spec.instructions.deniedTools[] maxLength", with(&format!("deniedTools: [{}]", long(257)))),
        breaks(
            "spec.instructions.inputs maxItems",
            with(&format!("inputs: {}", many(33, |n| format!("{{name: a{n}}}")))),
        ),
        breaks("spec.instructions.inputs[] unique", with("inputs: [{name: a}, {name: a, required: true}]")),
        breaks("spec.instructions.inputs[].name required", input("description: d")),
        breaks("spec.instructions.inputs[].name pattern", input("name: 1a")),
        breaks("spec.instructions.inputs[].name maxLength", input(&format!("name: {}", long(65)))),
        breaks(
            "spec.instructions.inputs[].description maxLength",
            input(&format!("name: a, description: {}", long(1025))),
        ),
        breaks("spec.instructions.inputs[].type enum", input("name: a, type: date")),
        breaks(
            "spec.instructions.inputs[].default maxLength",
            input(&format!("name: a, default: {}", long(4097))),
        ),
    ]
}

fn bundle_image_cases() -> Vec<Case> {
    let with = |fields: &str| format!("instructions: {{{fields}}}");
    vec![
        breaks("spec.instructions.filesFrom.image required", with("filesFrom: {}")),
        breaks("spec.instructions.filesFrom.image.reference required", with("filesFrom: {image: {path: a}}")),
        breaks(
            "spec.instructions.filesFrom.image.reference maxLength",
            with(&format!("filesFrom: {{image: {{reference: '{}@sha256:0'}}}}", "a".repeat(512))),
        ),
        breaks(
            "spec.instructions.filesFrom.image.reference rule: write the image with its digest, such as registry.example.com/skills@sha256:..., since sealed files never change",
            with("filesFrom: {image: {reference: 'own/a:1'}}"),
        ),
        breaks(
            "spec.instructions.filesFrom.image.path maxLength",
            with(&format!("filesFrom: {{image: {{reference: 'a@sha256:0', path: {}}}}}", long(513))),
        ),
        breaks(
            "spec.instructions.filesFrom.image.path rule: write a directory from the root of the image, without a leading / and without ..",
            with("filesFrom: {image: {reference: 'a@sha256:0', path: /etc}}"),
        ),
        breaks(
            "spec.instructions.filesFrom.image.files maxItems",
            with(&format!(
                "filesFrom: {{image: {{reference: 'a@sha256:0', files: {}}}}}",
                many(1001, |n| format!("f{n}"))
            )),
        ),
        breaks(
            "spec.instructions.filesFrom.image.files[] minLength",
            with("filesFrom: {image: {reference: 'a@sha256:0', files: ['']}}"),
        ),
        breaks(
            "spec.instructions.filesFrom.image.files[] maxLength",
            with(&format!("filesFrom: {{image: {{reference: 'a@sha256:0', files: [{}]}}}}", long(257))),
        ),
    ]
}

fn trigger_cases() -> Vec<Case> {
    let triggers = |fields: &str| format!("instructions: {{triggers: {{{fields}}}}}");
    vec![
        breaks(
            "spec.instructions.triggers.keywords maxItems",
            triggers(&format!("keywords: {}", many(65, |n| format!("k{n}")))),
        ),
        breaks("spec.instructions.triggers.keywords[] minLength", triggers("keywords: ['']")),
        breaks(
            "spec.instructions.triggers.keywords[] maxLength",
            triggers(&format!("keywords: [{}]", long(129))),
        ),
        breaks(
            "spec.instructions.triggers.exclude maxItems",
            triggers(&format!("exclude: {}", many(65, |n| format!("k{n}")))),
        ),
        breaks("spec.instructions.triggers.exclude[] minLength", triggers("exclude: ['']")),
        breaks(
            "spec.instructions.triggers.exclude[] maxLength",
            triggers(&format!("exclude: [{}]", long(129))),
        ),
        breaks(
            "spec.instructions.triggers.paths maxItems",
            triggers(&format!("paths: {}", many(65, |n| format!("p{n}")))),
        ),
        breaks("spec.instructions.triggers.paths[] minLength", triggers("paths: ['']")),
        breaks("spec.instructions.triggers.paths[] maxLength", triggers(&format!("paths: [{}]", long(257)))),
        breaks(
            "spec.instructions.triggers.slash maxItems",
            triggers(&format!("slash: {}", many(17, |n| format!("s{n}")))),
        ),
        breaks("spec.instructions.triggers.slash[] minLength", triggers("slash: ['']")),
        breaks("spec.instructions.triggers.slash[] maxLength", triggers(&format!("slash: [{}]", long(65)))),
    ]
}

fn bundle_cases() -> Vec<Case> {
    let content = "spec.files[] rule: give exactly one of content and contentBase64";
    let path = "spec.files[] rule: path must be relative, without empty, . or .. segments";
    let file = |fields: &str| format!("files: [{{{fields}}}]");
    vec![
        breaks(
            "spec.files maxItems",
            format!("files: {}", many(129, |n| format!("{{path: f{n}, content: x}}"))),
        ),
        breaks("spec.files[] unique", "files: [{path: a, content: x}, {path: a, content: y}]"),
        breaks(content, file("path: a")),
        breaks(path, file("path: /a, content: x")),
        breaks(path, file("path: a/../b, content: x")),
        breaks("spec.files[].path required", file("content: x")),
        breaks("spec.files[].path minLength", file("path: '', content: x")),
        breaks("spec.files[].path maxLength", file(&format!("path: {}, content: x", long(257)))),
        breaks("spec.files[].content maxLength", file(&format!("path: a, content: {}", long(262_145)))),
        breaks(
            "spec.files[].contentBase64 maxLength",
            file(&format!("path: a, contentBase64: {}", long(350_004))),
        ),
    ]
}

/// A change of `run.sandbox`.
pub fn sandbox(fields: &str) -> String {
    format!("run: {{sandbox: {{{fields}}}}}")
}

fn program_cases() -> Vec<Case> {
    let one_image = "spec.run.sandbox rule: give exactly one of image and runtime";
    let one_program = "spec.run.sandbox rule: give exactly one of script and command";
    let script =
        "spec.run.sandbox rule: script needs runtime: shell, python or node; with image, use command";
    vec![
        breaks(one_image, sandbox("image: busybox")),
        breaks(one_image, sandbox("runtime: null")),
        breaks(one_program, sandbox("command: [cat]")),
        breaks(one_program, sandbox("script: null")),
        breaks(script, sandbox("runtime: null, image: busybox")),
        breaks(
            "spec.run.sandbox.image minLength",
            sandbox("runtime: null, image: '', script: null, command: [cat]"),
        ),
        breaks(
            "spec.run.sandbox.image maxLength",
            sandbox(&format!("runtime: null, image: {}, script: null, command: [cat]", long(513))),
        ),
        breaks("spec.run.sandbox.runtime enum", sandbox("runtime: perl")),
        breaks("spec.run.sandbox.script minLength", sandbox("script: ''")),
        breaks("spec.run.sandbox.script maxLength", sandbox(&format!("script: {}", long(262_145)))),
        breaks("spec.run.sandbox.command minItems", sandbox("script: null, command: []")),
        breaks(
            "spec.run.sandbox.command maxItems",
            sandbox(&format!("script: null, command: {}", many(65, |n| format!("a{n}")))),
        ),
        breaks(
            "spec.run.sandbox.command[] maxLength",
            sandbox(&format!("script: null, command: [{}]", long(4097))),
        ),
        breaks(
            "spec.run.sandbox.args maxItems",
            sandbox(&format!("args: {}", many(257, |n| format!("a{n}")))),
        ),
        breaks("spec.run.sandbox.args[] maxLength", sandbox(&format!("args: [{}]", long(4097)))),
    ]
}

fn file_cases() -> Vec<Case> {
    let content = "spec.run.sandbox.files[] rule: give exactly one of content and contentBase64";
    let file = |fields: &str| sandbox(&format!("files: [{{{fields}}}]"));
    let at = |path: &str| file(&format!("path: {path}, content: x"));
    let mut cases = vec![
        breaks(
            "spec.run.sandbox.files maxItems",
            sandbox(&format!("files: {}", many(65, |n| format!("{{path: f{n}, content: x}}")))),
        ),
        breaks(
            "spec.run.sandbox.files[] unique",
            sandbox("files: [{path: a, content: x}, {path: a, content: z}]"),
        ),
        breaks("spec.run.sandbox.files[].path required", file("content: x")),
        breaks("spec.run.sandbox.files[].path minLength", at("''")),
        breaks("spec.run.sandbox.files[].path maxLength", at(&long(257))),
        breaks(
            "spec.run.sandbox.files[].content maxLength",
            file(&format!("path: a, content: {}", long(262_145))),
        ),
        breaks(
            "spec.run.sandbox.files[].contentBase64 maxLength",
            file(&format!("path: a, contentBase64: {}", long(350_004))),
        ),
        breaks(content, file("path: a")),
        breaks(content, file("path: a, content: x, contentBase64: eA==")),
    ];
    let paths = ["/etc/passwd", "../a", "a/../b", "a/..", "./a", "a/.", ".", "..", "a/", "a//b"];
    cases.extend(paths.map(|path| breaks(PATH_RULE, at(path))));
    cases
}

fn env_cases() -> Vec<Case> {
    let secret = |name: &str| format!("{{name: {name}, secret: s, key: k}}");
    let field = |fields: &str| sandbox(&format!("secretEnv: [{{{fields}}}]"));
    vec![
        breaks(
            "spec.run.sandbox.env maxItems",
            sandbox(&format!("env: {}", many(129, |n| format!("{{name: A{n}}}")))),
        ),
        breaks("spec.run.sandbox.env[] unique", sandbox("env: [{name: A}, {name: A, value: b}]")),
        breaks("spec.run.sandbox.env[].name required", sandbox("env: [{value: a}]")),
        breaks("spec.run.sandbox.env[].name pattern", sandbox("env: [{name: 1A}]")),
        breaks("spec.run.sandbox.env[].name pattern", sandbox("env: [{name: A-B}]")),
        breaks("spec.run.sandbox.env[].name pattern", sandbox("env: [{name: 'A=B'}]")),
        breaks("spec.run.sandbox.env[].name maxLength", sandbox(&format!("env: [{{name: {}}}]", long(129)))),
        breaks(
            "spec.run.sandbox.env[].value maxLength",
            sandbox(&format!("env: [{{name: A, value: {}}}]", long(32_769))),
        ),
        breaks(
            "spec.run.sandbox.secretEnv maxItems",
            sandbox(&format!("secretEnv: {}", many(65, |n| secret(&format!("A{n}"))))),
        ),
        breaks(
            "spec.run.sandbox.secretEnv[] unique",
            sandbox(&format!("secretEnv: [{}, {}]", secret("A"), secret("A"))),
        ),
        breaks("spec.run.sandbox.secretEnv[].name required", field("secret: s, key: k")),
        breaks("spec.run.sandbox.secretEnv[].name pattern", field("name: 1A, secret: s, key: k")),
        breaks(
            "spec.run.sandbox.secretEnv[].name maxLength",
            field(&format!("name: {}, secret: s, key: k", long(129))),
        ),
        breaks("spec.run.sandbox.secretEnv[].secret required", field("name: A, key: k")),
        breaks("spec.run.sandbox.secretEnv[].secret minLength", field("name: A, secret: '', key: k")),
        breaks(
            "spec.run.sandbox.secretEnv[].secret maxLength",
            field(&format!("name: A, secret: {}, key: k", long(254))),
        ),
        breaks("spec.run.sandbox.secretEnv[].secret pattern", field("name: A, secret: .., key: k")),
        breaks("spec.run.sandbox.secretEnv[].secret pattern", field("name: A, secret: a/b, key: k")),
        breaks("spec.run.sandbox.secretEnv[].key pattern", field("name: A, secret: s, key: a/b")),
        breaks("spec.run.sandbox.secretEnv[].key required", field("name: A, secret: s")),
        breaks("spec.run.sandbox.secretEnv[].key minLength", field("name: A, secret: s, key: ''")),
        breaks(
            "spec.run.sandbox.secretEnv[].key maxLength",
            field(&format!("name: A, secret: s, key: {}", long(254))),
        ),
    ]
}

fn limit_cases() -> Vec<Case> {
    vec![
        breaks(
            "spec.limits.timeout rule: write a duration like 500ms, 30s, 1m30s or 1h",
            "limits: {timeout: soon}",
        ),
        breaks(
            "spec.limits.timeout rule: write a duration like 500ms, 30s, 1m30s or 1h",
            "limits: {timeout: 1s1m}",
        ),
        breaks(
            "spec.limits.timeout rule: write a duration like 500ms, 30s, 1m30s or 1h",
            "limits: {timeout: '30'}",
        ),
        breaks("spec.limits.timeout minLength", "limits: {timeout: ''}"),
        breaks("spec.limits.timeout maxLength", format!("limits: {{timeout: {}1s}}", "0".repeat(31))),
        breaks("spec.limits.retries minimum", "limits: {retries: -1}"),
        breaks("spec.limits.retries maximum", "limits: {retries: 11}"),
        breaks("spec.limits.retryOn enum", "limits: {retryOn: Always}"),
        breaks(
            "spec.limits.cpu rule: write an amount as in a pod, such as 500m, 2 or 1.5Gi",
            "limits: {cpu: much}",
        ),
        breaks(
            "spec.limits.cpu rule: write an amount as in a pod, such as 500m, 2 or 1.5Gi",
            "limits: {cpu: '-1'}",
        ),
        breaks("spec.limits.cpu maxLength", format!("limits: {{cpu: '{}'}}", "1".repeat(33))),
        breaks(
            "spec.limits.memory rule: write an amount as in a pod, such as 500m, 2 or 1.5Gi",
            "limits: {memory: 1.5Gb}",
        ),
        breaks("spec.limits.memory maxLength", format!("limits: {{memory: '{}'}}", "1".repeat(33))),
        breaks("spec.limits.processes minimum", "limits: {processes: 0}"),
        breaks("spec.limits.processes maximum", "limits: {processes: 4097}"),
        breaks("spec.limits.outputBytes minimum", "limits: {outputBytes: 0}"),
        breaks("spec.limits.outputBytes maximum", "limits: {outputBytes: 524289}"),
        breaks("spec.limits.concurrency minimum", "limits: {concurrency: 0}"),
        breaks("spec.limits.concurrency maximum", "limits: {concurrency: 1001}"),
    ]
}
