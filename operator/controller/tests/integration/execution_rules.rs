//! The API server's rules for a SkillExecution, of which only `cancel` can change.

use kube::CustomResourceExt as _;
use serde_json::{Value, json};
use skillet_api::SkillExecution;

use crate::{
    cases::{Case, assert_complete, breaks, long, many, with},
    chart,
    eventually::{LIMIT, eventually},
    requests::{create, keep, patch, patch_status},
    server::{namespace, rules_admin},
};

const SHORTEST: &str = "{skill: a}";
const SKILL_RULE: &str = "spec.skill rule: skill must be the name of a Skill: a-z, 0-9 and -, beginning and ending with a letter or digit; a version belongs in spec.version";
const IMMUTABLE: &str = "spec is immutable, except cancel; create another SkillExecution";
const SCRIPT_IMMUTABLE: &str = "script is immutable; create another SkillExecution";
const COMMAND_IMMUTABLE: &str = "command is immutable; create another SkillExecution";
const MCP_IMMUTABLE: &str = "mcpServer and mcpCall are immutable; create another SkillExecution";
const FINAL: &str = "cancel cannot be taken back; create another SkillExecution";

fn cases() -> Vec<Case> {
    vec![
        breaks("spec.skill required", "skill: null"),
        breaks("spec.skill minLength", "skill: ''"),
        breaks("spec.skill maxLength", format!("skill: {}", long(64))),
        breaks(SKILL_RULE, "skill: a@1.0.0"),
        breaks(SKILL_RULE, "skill: A b"),
        breaks("spec.version maxLength", format!("version: {}", long(257))),
        breaks("spec.script.path required", "script: {args: [a]}"),
        breaks("spec.script.path minLength", "script: {path: ''}"),
        breaks("spec.script.path maxLength", format!("script: {{path: {}}}", long(257))),
        breaks(
            "spec.script.args maxItems",
            format!("script: {{path: a, args: {}}}", many(65, |n| format!("a{n}"))),
        ),
        breaks("spec.script.args[] maxLength", format!("script: {{path: a, args: [{}]}}", long(4097))),
        breaks("spec.script.stdin maxLength", format!("script: {{path: a, stdin: {}}}", long(262_145))),
        breaks("spec.command.text required", "command: {arguments: a}"),
        breaks("spec.command.text minLength", "command: {text: ''}"),
        breaks("spec.command.text maxLength", format!("command: {{text: {}}}", long(4097))),
        breaks(
            "spec.command.arguments maxLength",
            format!("command: {{text: a, arguments: {}}}", long(16_385)),
        ),
        breaks(
            "spec.command.inputs maxProperties",
            format!("command: {{text: a, inputs: {}}}", values(33, 1)),
        ),
        breaks("spec.command.inputs maxLength", format!("command: {{text: a, inputs: {}}}", values(1, 4097))),
        breaks("spec.mcpServer minLength", "mcpServer: ''"),
        breaks("spec.mcpServer maxLength", format!("mcpServer: {}", long(65))),
        breaks("spec.mcpCall.session required", "mcpCall: {tool: a}"),
        breaks("spec.mcpCall.session minLength", "mcpCall: {session: ''}"),
        breaks("spec.mcpCall.session maxLength", format!("mcpCall: {{session: {}}}", long(254))),
        breaks("spec.mcpCall.session pattern", "mcpCall: {session: a/b}"),
        breaks("spec.mcpCall.tool minLength", "mcpCall: {session: a, tool: ''}"),
        breaks("spec.mcpCall.tool maxLength", format!("mcpCall: {{session: a, tool: {}}}", long(129))),
        breaks("spec.timeout rule: write a duration like 500ms, 30s, 1m30s or 1h", "timeout: soon"),
        breaks("spec rule: timeout must be more than 0, such as 10s", "timeout: 0s"),
        breaks("spec.timeout minLength", "timeout: ''"),
        breaks("spec.timeout maxLength", format!("timeout: {}1s", "0".repeat(31))),
        breaks("spec.retries minimum", "retries: -1"),
        breaks("spec.retries maximum", "retries: 11"),
        breaks("spec.sessionId maxLength", format!("sessionId: {}", long(257))),
        breaks("spec.caller maxLength", format!("caller: {}", long(257))),
    ]
}

/// This many inputs, each with a value of this length.
fn values(count: usize, length: usize) -> String {
    let values: Vec<String> = (0..count).map(|n| format!("v{n}: {}", long(length))).collect();
    format!("{{{}}}", values.join(", "))
}

fn object(at: &str, name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution", "metadata": { "name": name, "namespace": at }, "spec": spec })
}

#[test]
fn every_bound_of_an_execution_has_a_case_that_breaks_it() {
    let elsewhere = [IMMUTABLE, SCRIPT_IMMUTABLE, COMMAND_IMMUTABLE, MCP_IMMUTABLE, FINAL]
        .map(|rule| format!("spec rule: {rule}"));
    assert_complete(&SkillExecution::crd(), &cases(), &elsewhere.each_ref().map(String::as_str));
}

#[tokio::test]
async fn the_api_server_refuses_each_broken_bound_of_an_execution_and_names_the_field() {
    let Some(client) = rules_admin().await else { return };
    for case in cases() {
        create(&client, &object("default", "e", &case.spec(SHORTEST))).await.assert_refused(&case);
    }
}

#[tokio::test]
async fn an_input_can_be_any_json_and_is_stored_as_it_is() {
    let Some(client) = rules_admin().await else { return };
    let inputs = [
        json!({ "a": { "b": [1, 2.5, null, "x", { "c": true }] }, "kind": "x" }),
        json!([1, [2]]),
        json!("text"),
        json!(9_007_199_254_740_993_i64),
        json!(-0.5),
        json!(false),
    ];
    for input in inputs {
        let spec = json!({ "skill": "a", "input": input });
        let stored = create(&client, &object("default", "e", &spec)).await.assert_accepted("an input");
        let parsed: SkillExecution = serde_json::from_value(stored).unwrap();
        assert_eq!(parsed.spec.input, Some(input));
    }
}

#[tokio::test]
async fn an_execution_at_its_bounds_is_accepted() {
    let Some(client) = rules_admin().await else { return };
    let change = format!(
        "version: '{}', timeout: 1h, retries: 10, sessionId: {}, caller: {}, script: {{path: {}, args: {}, stdin: {}}}",
        "^1.2.3 ".repeat(36),
        long(256),
        long(256),
        long(256),
        many(64, |_| long(4096)),
        long(262_144)
    );
    let command = format!(
        "command: {{text: {}, arguments: {}, inputs: {}}}",
        long(4096),
        long(16_384),
        values(32, 4096)
    );
    let spec = with(SHORTEST, &format!("{{{command}}}"));
    create(&client, &object("default", "c", &spec)).await.assert_accepted("an execution of a command");
    let spec = with(SHORTEST, &format!("{{{change}}}"));
    create(&client, &object("default", "e", &spec)).await.assert_accepted("an execution");
}

#[tokio::test]
async fn nothing_in_an_execution_can_be_changed_but_cancel() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "executions").await;
    let whole = "version: ^1.0.0, timeout: 10s, retries: 1, sessionId: s, caller: c";
    let full = keep(&client, &object(&at, "full", &with(SHORTEST, &format!("{{{whole}}}")))).await;
    let bare = keep(&client, &object(&at, "bare", &with(SHORTEST, "{}"))).await;
    let others = [
        ("skill", json!("b")),
        ("version", json!("^2.0.0")),
        ("timeout", json!("11s")),
        ("retries", json!(2)),
        ("sessionId", json!("t")),
        ("caller", json!("d")),
    ];
    for (field, value) in others {
        let change = json!({ "spec": { field: value } });
        patch(&client, &full, &change).await.assert_names("spec", IMMUTABLE);
        patch(&client, &bare, &change).await.assert_names("spec", IMMUTABLE);
        if field != "skill" {
            let removal = json!({ "spec": { field: null } });
            patch(&client, &full, &removal).await.assert_names("spec", IMMUTABLE);
        }
    }
}

#[tokio::test]
async fn the_script_of_an_execution_cannot_be_changed() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "scripts").await;
    let script = "script: {path: a.sh, args: [x], stdin: text}";
    let full = keep(&client, &object(&at, "full", &with(SHORTEST, &format!("{{{script}}}")))).await;
    let bare = keep(&client, &object(&at, "bare", &with(SHORTEST, "{}"))).await;
    for change in [json!({ "path": "b.sh" }), json!({ "args": ["z"] }), json!({ "stdin": null }), json!(null)]
    {
        let change = json!({ "spec": { "script": change } });
        patch(&client, &full, &change).await.assert_names("spec", SCRIPT_IMMUTABLE);
    }
    let added = json!({ "spec": { "script": { "path": "a.sh" } } });
    patch(&client, &bare, &added).await.assert_names("spec", SCRIPT_IMMUTABLE);
}

#[tokio::test]
async fn the_server_and_the_call_of_an_execution_cannot_be_changed() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "sessions").await;
    let server = keep(&client, &object(&at, "server", &with(SHORTEST, "{mcpServer: notes}"))).await;
    let call = with(SHORTEST, "{mcpCall: {session: server, tool: add}, input: {a: 1}}");
    let call = keep(&client, &object(&at, "call", &call)).await;
    for (execution, change) in [
        (&server, json!({ "mcpServer": "other" })),
        (&server, json!({ "mcpServer": null })),
        (&call, json!({ "mcpCall": { "session": "other" } })),
        (&call, json!({ "mcpCall": { "tool": null } })),
    ] {
        patch(&client, execution, &json!({ "spec": change })).await.assert_names("spec", MCP_IMMUTABLE);
    }
}

#[tokio::test]
async fn the_command_of_an_execution_cannot_be_changed() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "commands").await;
    let command = "command: {text: git log, arguments: x, inputs: {tag: v1}}";
    let full = keep(&client, &object(&at, "full", &with(SHORTEST, &format!("{{{command}}}")))).await;
    let bare = keep(&client, &object(&at, "bare", &with(SHORTEST, "{}"))).await;
    for change in [json!({ "text": "id" }), json!({ "inputs": { "tag": "v2" } }), json!(null)] {
        let change = json!({ "spec": { "command": change } });
        patch(&client, &full, &change).await.assert_names("spec", COMMAND_IMMUTABLE);
    }
    let added = json!({ "spec": { "command": { "text": "id" } } });
    patch(&client, &bare, &added).await.assert_names("spec", COMMAND_IMMUTABLE);
}

#[tokio::test]
async fn an_execution_can_be_cancelled_and_that_cannot_be_taken_back() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "cancelled").await;
    let execution = keep(&client, &object(&at, "e", &with(SHORTEST, "{}"))).await;
    let cancel = |value: Value| json!({ "spec": { "cancel": value } });
    patch(&client, &execution, &cancel(true.into())).await.assert_accepted("a cancellation");
    patch(&client, &execution, &cancel(true.into())).await.assert_accepted("the same again");
    patch(&client, &execution, &cancel(false.into())).await.assert_names("spec", FINAL);
    patch(&client, &execution, &cancel(Value::Null)).await.assert_names("spec", FINAL);
}

#[tokio::test]
async fn an_end_is_not_written_over() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "ended").await;
    let said = |phase: &str| json!({ "status": { "phase": phase, "message": format!("is {phase}") } });
    for end in ["Succeeded", "Failed", "TimedOut", "Cancelled"] {
        let execution = keep(&client, &object(&at, &end.to_lowercase(), &with(SHORTEST, "{}"))).await;
        for phase in ["Pending", "Running", end, end] {
            patch_status(&client, &execution, &said(phase)).await.assert_accepted(phase);
        }
        for phase in ["Pending", "Running", "Succeeded", "Failed", "TimedOut", "Cancelled"] {
            let answer = patch_status(&client, &execution, &said(phase)).await;
            if phase == end {
                answer.assert_accepted(phase);
            } else {
                answer.assert_names("status", "the execution has ended; its phase does not change any more");
            }
        }
    }
}

#[tokio::test]
async fn the_charts_admission_policy_keeps_an_input_as_it_was() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "inputs").await;
    chart::apply(&client, "templates/admission.yaml", &[]).await;
    let many = format!("{{skill: a, input: {{list: {}}}}}", many(100, |n| n.to_string()));
    let execution = keep(&client, &object(&at, "e", &with(&many, "{}"))).await;
    let without = keep(&client, &object(&at, "without", &with(SHORTEST, "{}"))).await;
    let message = "spec.input is immutable; create another SkillExecution";
    let input = |value: Value| json!({ "spec": { "input": value } });
    // A policy counts some moments after it was made. Until then each try must change something.
    let mut tries = 0;
    eventually("the admission policy is in force", LIMIT, async || {
        tries += 1;
        let answer = patch(&client, &execution, &input(json!({ "list": [tries] }))).await;
        answer.body["message"].as_str().is_some_and(|text| text.contains(message)).then_some(())
    })
    .await;
    for change in [json!({ "other": 1 }), json!([]), json!("text"), Value::Null] {
        patch(&client, &execution, &input(change)).await.assert_says(message);
    }
    patch(&client, &without, &input(json!({}))).await.assert_says(message);
    patch(&client, &execution, &json!({ "spec": { "cancel": true } }))
        .await
        .assert_accepted("a cancellation");
}
