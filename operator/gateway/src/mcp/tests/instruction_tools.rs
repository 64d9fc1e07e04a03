//! The tools that read instructions and files, and run scripts.

use super::*;

async fn stocked() -> McpServer {
    let server = McpServer::start().await;
    let gateway = &server.gateway;
    let files = json!([
        { "path": "style.md", "content": "Short." },
        { "path": "a.py", "content": "print(1)" },
        { "path": "b.bin", "contentBase64": "/wA=" },
    ]);
    let notes = json!({ "body": "Read ${tag}.", "inputs": [{ "name": "tag", "required": true }] });
    let spec = |instructions: &Value| json!({ "description": "Writes notes.", "run": null, "instructions": instructions, "files": files });
    gateway.skill("team", "notes", &spec(&notes));
    let mut asks = spec(&json!({ "body": "x" }));
    asks["invocation"] = json!("hybrid");
    gateway.skill("team", "asks", &asks);
    gateway.skill("team", "always", &spec(&json!({ "body": "x", "activation": "Always" })));
    gateway.skill("team", "skill", &json!({}));
    gateway.skill("other", "secret", &spec(&notes));
    server
}

fn enum_of(tool: &Tool) -> Value {
    json!(tool.input_schema)["properties"]["name"]["enum"].clone()
}

#[tokio::test]
async fn the_tools_name_the_skills_that_they_are_for() {
    let server = stocked().await;
    let tools = server.client("team/agent").await.tools().await;
    assert_eq!(enum_of(&tools["read_skill"]), json!(["asks", "notes"]));
    assert_eq!(enum_of(&tools["read_skill_file"]), json!(["asks", "notes"]));
    assert_eq!(enum_of(&tools["run_skill_script"]), json!(["notes"]));
    assert_eq!(enum_of(&tools["run_skill_script_with_confirmation"]), json!(["asks"]));
    let description = tools["read_skill"].description.as_deref().unwrap();
    assert!(description.contains("notes") && description.contains("Writes notes."), "{description}");
    let hints = |name: &str| json!(tools[name].annotations)["destructiveHint"].clone();
    let name = "run_skill_script_with_confirmation";
    assert_eq!((hints("run_skill_script"), hints(name)), (json!(false), json!(true)));
    // A skill keeps the name that a tool for instructions has in requests to models.
    assert_eq!(tools["skill"].title.as_deref(), Some("skill"));
    let of_none = server.client("empty/agent").await.tools().await;
    assert!(!of_none.contains_key("read_skill") && !of_none.contains_key("run_skill_script"));
}

#[tokio::test]
async fn instructions_and_files_are_read_and_refusals_have_a_reason() {
    let server = stocked().await;
    let client = server.client("team/agent").await;
    let read = client.call("read_skill", json!({ "name": "notes", "arguments": "tag=v1" })).await;
    assert_eq!((read.is_error, &text(&read)["instructions"]), (Some(false), &json!("Read v1.")));
    assert_eq!(text(&read)["files"], json!(["style.md", "a.py", "b.bin"]));
    let file = client.call("read_skill_file", json!({ "name": "notes", "path": "style.md" })).await;
    assert_eq!(text(&file), json!({ "path": "style.md", "text": "Short." }));
    for (tool, arguments, reason) in [
        ("read_skill", json!({ "name": "notes" }), "InputInvalid"),
        ("read_skill", json!({ "name": "always" }), "SkillNotFound"),
        ("read_skill", json!({ "name": "secret" }), "SkillNotFound"),
        ("read_skill_file", json!({ "name": "notes", "path": "b.bin" }), "NotText"),
        ("read_skill_file", json!({ "name": "notes", "path": "../x" }), "FileNotFound"),
        ("run_skill_script", json!({ "name": "notes", "path": "style.md" }), "NoInterpreter"),
        ("run_skill_script", json!({ "name": "asks", "path": "a.py" }), "NotConfirmed"),
        ("run_skill_script", json!({}), "InputInvalid"),
    ] {
        let refused = client.call(tool, arguments.clone()).await;
        assert_eq!(refused.is_error, Some(true), "{tool} {arguments}");
        assert_eq!(text(&refused)["reason"], reason, "{tool} {arguments}");
    }
    server.gateway.deny_user("agent", "team", None, Verb::Execute);
    let refused = client.call("read_skill", json!({ "name": "notes", "arguments": "tag=v1" })).await;
    assert_eq!(text(&refused)["reason"], "SkillNotFound");
    assert_eq!(server.started(), 0);
}

#[tokio::test]
async fn a_script_runs_and_the_result_is_what_it_printed() {
    let server = stocked().await;
    let client = server.client("team/agent").await;
    let end = async |number: usize, tool: &str, name: &str, status: Value| {
        let peer = client.service.peer().clone();
        let arguments = json!({ "name": name, "path": "a.py", "args": ["x"], "stdin": "in" });
        let params = params(tool, arguments);
        let call = tokio::spawn(async move { peer.call_tool(params).await.unwrap() });
        until(|| server.started() > number).await;
        server.set_status(number, &status);
        call.await.unwrap()
    };
    let good = json!({ "phase": "Succeeded", "attempts": 1, "exitCode": 0, "output": { "output": "one" } });
    let result = end(0, "run_skill_script", "notes", good.clone()).await;
    assert_eq!((result.is_error, text(&result)), (Some(false), json!({ "exitCode": 0, "stdout": "one" })));
    let run = server.run(0)["spec"].clone();
    assert_eq!(run["script"], json!({ "path": "a.py", "args": ["x"], "stdin": "in" }));
    assert_eq!((&run["skill"], &run["version"]), (&json!("notes"), &json!("1.0.0")));
    let bad =
        json!({ "phase": "Failed", "reason": "ExitCode", "attempts": 1, "exitCode": 2, "message": "m" });
    let result = end(1, "run_skill_script", "notes", bad).await;
    assert_eq!((result.is_error, &text(&result)["exitCode"]), (Some(true), &json!(2)));
    assert_eq!(text(&result)["error"]["reason"], "ExitCode");
    let result = end(2, "run_skill_script_with_confirmation", "asks", good).await;
    assert_eq!(result.is_error, Some(false));
}

#[tokio::test]
async fn a_skill_that_is_listed_anew_changes_the_tools() {
    let server = stocked().await;
    let client = server.client("team/agent").await;
    let mut round = 0;
    until(|| {
        round += 1;
        let spec = json!({ "run": null, "instructions": { "body": "y" } });
        server.gateway.skill("team", &format!("guide-{round}"), &spec);
        *client.seen.list_changed.borrow() > 0
    })
    .await;
}
