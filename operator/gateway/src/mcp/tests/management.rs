//! The four management tools, each under the caller's own rights.

use serde_json::json;

use super::*;
use crate::auth::Verb;

async fn reason(client: &Client, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments).await;
    assert_eq!(result.is_error, Some(true), "{result:?}");
    text(&result)["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn skills_are_listed_with_what_switches_them_and_the_tool_that_runs_them() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "3d", &json!({ "tags": ["shape"] }));
    server.gateway.skill("a", "draft", &json!({ "enabled": false, "description": "skill's" }));
    server.unseal("a", "draft");
    server.gateway.skill("platform", "sum", &json!({}));
    server.gateway.skill("b", "of-b", &json!({}));
    let client = server.client("a/agent").await;
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
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    server.gateway.skill("platform", "shared", &json!({}));
    server.gateway.deny_user("agent", "platform", None, Verb::Patch);
    let client = server.client("a/agent").await;
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
        server.gateway.api.fail_next("PATCH ", code, "says why");
        assert_eq!(reason(&client, tool, json!({ "name": "sum", "enabled": true })).await, word, "{code}");
    }
    let spec = server.gateway.api.object(&path("a", "skills", "sum")).unwrap()["spec"].clone();
    assert_eq!((&spec["enabled"], &spec["mode"]), (&json!(false), &json!("on")));
    assert_eq!(server.gateway.api.count("PATCH "), 1 + 5, "one update and five refused updates");
}

#[tokio::test]
async fn the_callers_rights_to_the_named_skill_count() {
    let server = McpServer::start().await;
    for name in ["seen", "unseen", "switched", "run"] {
        server.gateway.skill("platform", name, &json!({}));
    }
    server.gateway.deny_user("agent", "platform", Some("unseen"), Verb::Get);
    server.gateway.deny_user("agent", "platform", Some("switched"), Verb::Patch);
    server.gateway.deny_user("agent", "platform", Some("run"), Verb::Execute);
    let (client, other) = (server.client("a/agent").await, server.client("a/other").await);
    let (enable, execute) = ("skillet_skills_enable", "skillet_skills_execute");
    let off = |name: &str| json!({ "name": name, "enabled": false });
    assert_eq!(reason(&client, enable, off("unseen")).await, "SkillNotFound");
    assert_eq!(reason(&client, enable, off("switched")).await, "Forbidden");
    assert_eq!(reason(&client, execute, json!({ "skill": "run" })).await, "Forbidden");
    assert!(server.gateway.api.count("PATCH ") == 0 && server.started() == 0);
    for (client, name) in [(&client, "seen"), (&other, "unseen"), (&other, "switched")] {
        assert_eq!(client.call(enable, off(name)).await.is_error, Some(false), "{name}");
    }
}

#[tokio::test]
async fn a_skill_is_run_by_name_and_version() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    let client = server.client("a/agent").await;
    let peer = client.service.peer().clone();
    let arguments = json!({ "skill": "sum", "version": "^1.0.0", "input": [1, 2], "sessionId": "s" });
    let call =
        tokio::spawn(
            async move { peer.call_tool(params("skillet_skills_execute", arguments)).await.unwrap() },
        );
    until(|| server.started() == 1).await;
    let spec = server.run(0)["spec"].clone();
    assert_eq!((&spec["version"], &spec["sessionId"]), (&json!("^1.0.0"), &json!("s")));
    assert_eq!(spec["input"], json!([1, 2]));
    server.set_status(0, &json!({ "phase": "Succeeded", "output": [3] }));
    assert_eq!(call.await.unwrap().structured_content, Some(json!({ "value": [3] })));
}

#[tokio::test]
async fn a_skill_is_not_run_by_name_for_who_may_not_or_where_only_people_may() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "manual", &json!({ "invocation": "manual" }));
    server.gateway.skill("platform", "shared", &json!({}));
    server.gateway.skill("b", "of-b", &json!({}));
    server.gateway.deny_user("agent", "platform", None, Verb::Execute);
    let client = server.client("a/agent").await;
    let tool = "skillet_skills_execute";
    assert_eq!(reason(&client, tool, json!({ "skill": "manual" })).await, "ManualOnly");
    assert_eq!(reason(&client, tool, json!({ "skill": "shared" })).await, "Forbidden");
    assert_eq!(reason(&client, tool, json!({ "skill": "of-b" })).await, "SkillNotFound");
    assert_eq!(reason(&client, tool, json!({ "skill": "shared", "owner": "b" })).await, "InputInvalid");
    assert!(server.started() == 0);
}

#[tokio::test]
async fn runs_are_listed_newest_first_and_only_those_of_the_callers_namespace() {
    let server = McpServer::start().await;
    server.gateway.skill("platform", "sum", &json!({}));
    let (of_a, of_b) = (server.client("a/agent").await, server.client("b/agent").await);
    for client in [&of_a, &of_b, &of_a] {
        let run = server.started();
        let peer = client.service.peer().clone();
        let call = tokio::spawn(async move { peer.call_tool(params("sum", json!({}))).await.unwrap() });
        until(|| server.started() > run).await;
        server.set_status(run, &json!({ "phase": "Succeeded" }));
        call.await.unwrap();
    }
    let runs = text(&of_a.call("skillet_executions", json!({})).await);
    let names: Vec<&Value> = runs["executions"].as_array().unwrap().iter().map(|run| &run["name"]).collect();
    assert_eq!(names, [&json!(server.name(2)), &json!(server.name(0))]);
    let one = text(&of_b.call("skillet_executions", json!({ "limit": 1 })).await);
    assert_eq!(
        (&one["executions"][0]["name"], &one["executions"][0]["skill"]),
        (&json!(server.name(1)), &json!("sum"))
    );
    assert_eq!(one["total"], 1);
    let none = text(&of_a.call("skillet_executions", json!({ "limit": 0 })).await);
    assert_eq!((&none["executions"], &none["total"]), (&json!([]), &json!(2)));
    assert_eq!(reason(&of_a, "skillet_executions", json!({ "limit": -1 })).await, "InputInvalid");
}
