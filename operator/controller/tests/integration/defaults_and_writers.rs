//! Objects as the API server stores them: defaults, unknown fields, YAML's booleans, and several field managers.

use kube::{Api, Resource as _};
use serde_json::{Value, json};
use skillet_api::{Skill, SkillExecution, SkillExecutionStatus, skill::Mode};
use skillet_kube::{apply_status, replace_unprintable};

use crate::{
    requests::{apply, create, create_yaml, keep},
    server::{namespace, rules_admin},
};

fn skill(at: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": { "name": "a", "namespace": at }, "spec": spec })
}

fn shortest() -> Value {
    json!({ "version": "1.0.0", "run": { "sandbox": { "runtime": "shell", "script": "cat" } } })
}

#[tokio::test]
async fn omitted_fields_get_their_defaults() {
    let Some(client) = rules_admin().await else { return };
    let stored = create(&client, &skill("default", &shortest())).await.assert_accepted("the shortest Skill");
    let mut wanted = shortest();
    for (field, value) in [
        ("description", json!("")),
        ("mode", json!("auto")),
        ("enabled", json!(true)),
        ("invocation", json!("auto")),
    ] {
        wanted[field] = value;
    }
    assert_eq!(stored["spec"], wanted);
    let execution = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution", "metadata": { "name": "e", "namespace": "default" }, "spec": { "skill": "a" } });
    let stored = create(&client, &execution).await.assert_accepted("the shortest SkillExecution");
    assert_eq!(stored["spec"], json!({ "skill": "a", "cancel": false }));
    serde_json::from_value::<SkillExecution>(stored).unwrap();
}

#[tokio::test]
async fn bare_on_and_off_are_modes_although_yaml_reads_booleans() {
    let Some(client) = rules_admin().await else { return };
    for (text, stored_as, mode) in [
        ("on", json!(true), Mode::On),
        ("off", json!(false), Mode::Off),
        ("auto", json!("auto"), Mode::Auto),
        ("'on'", json!("on"), Mode::On),
        ("\"off\"", json!("off"), Mode::Off),
    ] {
        let yaml = format!(
            "apiVersion: skillet.dev/v1alpha1\nkind: Skill\nmetadata:\n  name: a\nspec:\n  version: 1.0.0\n  mode: {text}\n  run:\n    sandbox:\n      runtime: shell\n      script: cat\n"
        );
        let folder = "/apis/skillet.dev/v1alpha1/namespaces/default/skills";
        let stored = create_yaml(&client, folder, &yaml).await.assert_accepted(text);
        assert_eq!(stored["spec"]["mode"], stored_as, "{text}");
        assert_eq!(serde_json::from_value::<Skill>(stored).unwrap().spec.mode, mode, "{text}");
    }
}

#[tokio::test]
async fn an_unknown_field_is_dropped_with_a_warning() {
    let Some(client) = rules_admin().await else { return };
    let mut spec = shortest();
    spec["tag"] = json!(["x"]);
    spec["run"]["sandbox"]["network"] = json!(true);
    let answer = create(&client, &skill("default", &spec)).await;
    let warnings = answer.warnings.join("\n");
    for field in ["spec.tag", "spec.run.sandbox.network"] {
        assert!(warnings.contains(&format!("unknown field \\\"{field}\\\"")), "{warnings}");
    }
    let stored = answer.assert_accepted("unknown fields");
    assert_eq!(stored["spec"]["tag"], Value::Null);
    assert_eq!(stored["spec"]["run"], shortest()["run"]);
}

#[tokio::test]
async fn only_unknown_fields_cause_warnings() {
    let Some(client) = rules_admin().await else { return };
    let mut spec = shortest();
    spec["mode"] = json!(true);
    spec["tool"] = json!({ "inputSchema": { "type": "object", "anything": { "goes": null } } });
    let answer = create(&client, &skill("default", &spec)).await;
    assert_eq!(answer.warnings, Vec::<String>::new());
    let stored = answer.assert_accepted("a Skill");
    assert_eq!(stored["spec"]["tool"], spec["tool"]);
}

/// Two writers of one list, such as a GitOps tool and a person: each keeps its items, and only takes back its own.
#[tokio::test]
async fn items_that_two_managers_apply_are_kept_apart() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "managers").await;
    let lists = [
        ("env", "name", json!({ "value": "x" })),
        ("files", "path", json!({ "content": "x" })),
        ("secretEnv", "name", json!({ "secret": "s", "key": "k" })),
    ];
    let items = |names: &[&str]| {
        let item = |key: &str, rest: &Value, name: &str| {
            let mut item = rest.clone();
            item[key] = json!(name);
            item
        };
        let list = |(field, key, rest): &(&str, &str, Value)| {
            ((*field).to_owned(), names.iter().map(|name| item(key, rest, name)).collect::<Value>())
        };
        lists.iter().map(list).collect::<Value>()
    };
    let mut whole = shortest();
    whole["run"]["sandbox"].as_object_mut().unwrap().extend(items(&["A", "B"]).as_object().unwrap().clone());
    apply(&client, "owner", &skill(&at, &whole)).await.assert_accepted("the owner's");
    let addition = skill(&at, &json!({ "run": { "sandbox": items(&["C"]) } }));
    apply(&client, "addition", &addition).await.assert_accepted("the addition");

    let mut less = shortest();
    less["run"]["sandbox"].as_object_mut().unwrap().extend(items(&["B"]).as_object().unwrap().clone());
    let stored =
        apply(&client, "owner", &skill(&at, &less)).await.assert_accepted("the owner's, one item less");
    let names = |field: &str, key: &str, stored: &Value| -> Vec<String> {
        let list = stored["spec"]["run"]["sandbox"][field].as_array().unwrap();
        list.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
    };
    for (field, key, _) in &lists {
        assert_eq!(names(field, key, &stored), ["B", "C"], "{field}");
    }

    let nothing = skill(&at, &json!({}));
    let stored = apply(&client, "addition", &nothing).await.assert_accepted("nothing more");
    for (field, key, _) in &lists {
        assert_eq!(names(field, key, &stored), ["B"], "{field}");
    }
}

#[tokio::test]
async fn a_manager_that_claims_anothers_item_gets_a_conflict() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "claims").await;
    let with = |value: &str| {
        let mut spec = shortest();
        spec["run"]["sandbox"]["env"] = json!([{ "name": "A", "value": value }]);
        skill(&at, &spec)
    };
    apply(&client, "owner", &with("1")).await.assert_accepted("the owner's");
    apply(&client, "owner", &with("2")).await.assert_accepted("a change of its own");
    apply(&client, "other", &with("3"))
        .await
        .assert_says(r#"conflict with "owner": .spec.run.sandbox.env[name="A"].value"#);
    apply(&client, "other", &with("2")).await.assert_accepted("the same value");
}

/// The API server reads server-side apply as YAML, which accepts less than JSON.
#[tokio::test]
async fn an_output_of_any_characters_is_stored_as_yaml_can_show_it() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "characters").await;
    let object = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution", "metadata": { "name": "e", "namespace": at }, "spec": { "skill": "a" } });
    let execution: SkillExecution = serde_json::from_value(keep(&client, &object).await).unwrap();
    let every: String = (0..=0x1_00ff).filter_map(char::from_u32).collect();
    // kubectl's YAML must be able to hold what is stored, and nothing else is replaced.
    let printed = |every: &str, odd: &str| {
        json!({
        "every": every, odd: null, "k".repeat(5_000): [[], {}], "<<": { "a": 1 },
        "numbers": [i64::MAX, i64::MIN, 1e300, 0.1, 0], "words": ["yes", "~", "1:30", "0o7", "2001-01-01", ""],
        })
    };
    let odd = "\u{85}\u{7f}: ? , #";
    let status =
        SkillExecutionStatus { output: Some(printed(&every, odd)), ..SkillExecutionStatus::default() };
    let output = printed(&replace_unprintable(&every), &replace_unprintable(odd));
    apply_status::<SkillExecution>(&client, &execution.object_ref(&()), &status).await.unwrap();
    let api: Api<SkillExecution> = Api::namespaced(client, &at);
    let stored = api.get("e").await.unwrap().status.unwrap().output.unwrap();
    for (key, value) in output.as_object().unwrap() {
        let lost =
            |text: &str| text.chars().filter(|c| !stored[key].as_str().unwrap().contains(*c)).collect();
        let lost: String = value.as_str().map(lost).unwrap_or_default();
        assert_eq!(lost, "");
        assert!(stored[key] == *value, "{key:.20}: {:.200}", stored[key].to_string());
    }
    assert_eq!(stored.as_object().unwrap().len(), output.as_object().unwrap().len());
}
