//! The four management tools, each under the caller's own rights.

use serde_json::json;
use skillet_api::skill::Mode;

use super::{super::backend::Switch, *};
use crate::auth::Verb;

async fn reason(client: &Client, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments).await;
    assert_eq!(result.is_error, Some(true), "{result:?}");
    text(&result)["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn skills_are_listed_with_what_switches_them_and_the_tool_that_runs_them() {
    let world = World::new().await;
    world.fake.put("a", "3d", &json!({ "tags": ["shape"] }), &json!({}));
    world.fake.put("a", "draft", &json!({ "enabled": false }), &json!({}));
    world.fake.unseal("a", "draft");
    world.fake.put_plain("platform", "sum");
    world.fake.put_plain("b", "of-b");
    let client = world.client("a").await;
    let all = text(&client.call("skillet_skills_list", json!({})).await);
    assert_eq!(all["total"], 3);
    assert_eq!(
        all["skills"][0],
        json!({ "name": "3d", "namespace": "a", "description": "3d of a", "version": "1.0.0", "enabled": true,
            "mode": "auto", "invocation": "auto", "tags": ["shape"], "tool": "_3d" })
    );
    let draft = &all["skills"][1];
    assert_eq!(
        (&draft["description"], &draft["version"], &draft["tool"]),
        (&json!("skill's"), &json!(null), &json!(null))
    );
    for (filter, names) in [
        (json!({ "name": "SU" }), json!(["sum"])),
        (json!({ "name": " \u{15f}um " }), json!(["sum"])),
        (json!({ "enabled": false }), json!(["draft"])),
        (json!({ "name": "d", "enabled": true }), json!(["3d"])),
    ] {
        let found = text(&client.call("skillet_skills_list", filter).await);
        let found: Vec<&Value> =
            found["skills"].as_array().unwrap().iter().map(|skill| &skill["name"]).collect();
        assert_eq!(json!(found), names);
    }
}

#[tokio::test]
async fn a_skill_is_switched_by_who_may_change_it() {
    let world = World::new().await;
    world.fake.put_plain("a", "sum");
    world.fake.put_plain("platform", "shared");
    world.fake.forbid("a", Verb::Patch, "platform");
    let client = world.client("a").await;
    let tool = "skillet_skills_enable";
    let done = client.call(tool, json!({ "name": "sum", "enabled": false, "mode": "on" })).await;
    assert_eq!(text(&done), json!({ "name": "sum", "namespace": "a", "enabled": false, "mode": "on" }));
    assert_eq!(reason(&client, tool, json!({ "name": "shared", "enabled": false })).await, "Forbidden");
    assert_eq!(reason(&client, tool, json!({ "name": "nothing", "enabled": false })).await, "SkillNotFound");
    assert_eq!(reason(&client, tool, json!({ "name": "sum" })).await, "InputInvalid");
    assert_eq!(reason(&client, tool, json!({ "name": "sum", "mode": "often" })).await, "InputInvalid");
    for (code, word) in [
        (403, "Forbidden"),
        (404, "SkillNotFound"),
        (409, "Conflict"),
        (422, "InputInvalid"),
        (500, "ApiError"),
    ] {
        world.fake.switch_refusals.lock().unwrap().push(code);
        assert_eq!(reason(&client, tool, json!({ "name": "sum", "enabled": true })).await, word, "{code}");
    }
    let switch = Switch { enabled: Some(false), mode: Some(Mode::On) };
    assert_eq!(*world.fake.switched.lock().unwrap(), [("a".to_owned(), "sum".to_owned(), switch)]);
}

#[tokio::test]
async fn the_callers_rights_to_the_named_skill_count() {
    let world = World::new().await;
    for name in ["seen", "unseen", "switched", "run"] {
        world.fake.put_plain("platform", name);
    }
    world.fake.forbid_skill("a", Verb::Get, "platform", "unseen");
    world.fake.forbid_skill("a", Verb::Patch, "platform", "switched");
    world.fake.forbid_skill("a", Verb::Execute, "platform", "run");
    let (client, other) = (world.client("a").await, world.client("a/other").await);
    let (enable, execute) = ("skillet_skills_enable", "skillet_skills_execute");
    let off = |name: &str| json!({ "name": name, "enabled": false });
    assert_eq!(reason(&client, enable, off("unseen")).await, "SkillNotFound");
    assert_eq!(reason(&client, enable, off("switched")).await, "Forbidden");
    assert_eq!(reason(&client, execute, json!({ "skill": "run" })).await, "Forbidden");
    assert!(world.fake.switched.lock().unwrap().is_empty() && world.fake.started() == 0);
    for (client, name) in [(&client, "seen"), (&other, "unseen"), (&other, "switched")] {
        assert_eq!(client.call(enable, off(name)).await.is_error, Some(false), "{name}");
    }
}

#[tokio::test]
async fn a_skill_is_run_by_name_and_version() {
    let world = World::new().await;
    world.fake.put_plain("a", "sum");
    let client = world.client("a").await;
    let peer = client.service.peer().clone();
    let arguments = json!({ "skill": "sum", "version": "^1.0.0", "input": [1, 2], "sessionId": "s" });
    let call =
        tokio::spawn(
            async move { peer.call_tool(params("skillet_skills_execute", arguments)).await.unwrap() },
        );
    until(|| world.fake.started() == 1).await;
    let order = world.fake.orders.lock().unwrap()[0].clone();
    assert_eq!((order.version.as_deref(), order.session.as_deref()), (Some("^1.0.0"), Some("s")));
    assert_eq!(order.input, json!([1, 2]));
    world.fake.set(0, &json!({ "phase": "Succeeded", "output": [3] }));
    assert_eq!(call.await.unwrap().structured_content, Some(json!({ "value": [3] })));
}

#[tokio::test]
async fn a_skill_is_not_run_by_name_for_who_may_not_or_where_only_people_may() {
    let world = World::new().await;
    world.fake.put("a", "manual", &json!({ "invocation": "manual" }), &json!({}));
    world.fake.put_plain("platform", "shared");
    world.fake.put_plain("b", "of-b");
    world.fake.forbid("a", Verb::Execute, "platform");
    let client = world.client("a").await;
    let tool = "skillet_skills_execute";
    assert_eq!(reason(&client, tool, json!({ "skill": "manual" })).await, "ManualOnly");
    assert_eq!(reason(&client, tool, json!({ "skill": "shared" })).await, "Forbidden");
    assert_eq!(reason(&client, tool, json!({ "skill": "of-b" })).await, "SkillNotFound");
    assert_eq!(reason(&client, tool, json!({ "skill": "shared", "owner": "b" })).await, "InputInvalid");
    assert!(world.fake.orders.lock().unwrap().is_empty());
}

#[tokio::test]
async fn runs_are_listed_newest_first_and_only_those_of_the_callers_namespace() {
    let world = World::new().await;
    world.fake.put_plain("platform", "sum");
    let (of_a, of_b) = (world.client("a").await, world.client("b").await);
    for client in [&of_a, &of_b, &of_a] {
        let run = world.fake.started();
        let peer = client.service.peer().clone();
        let call = tokio::spawn(async move { peer.call_tool(params("sum", json!({}))).await.unwrap() });
        until(|| world.fake.started() > run).await;
        world.fake.set(run, &json!({ "phase": "Succeeded" }));
        call.await.unwrap();
    }
    let runs = text(&of_a.call("skillet_executions", json!({})).await);
    let names: Vec<&Value> = runs["executions"].as_array().unwrap().iter().map(|run| &run["name"]).collect();
    assert_eq!(names, ["run-2", "run-0"]);
    let one = text(&of_b.call("skillet_executions", json!({ "limit": 1 })).await);
    assert_eq!(
        (&one["executions"][0]["name"], &one["executions"][0]["skill"]),
        (&json!("run-1"), &json!("sum"))
    );
    assert_eq!(one["total"], 1);
    let none = text(&of_a.call("skillet_executions", json!({ "limit": 0 })).await);
    assert_eq!((&none["executions"], &none["total"]), (&json!([]), &json!(2)));
    assert_eq!(reason(&of_a, "skillet_executions", json!({ "limit": -1 })).await, "InputInvalid");
}
