//! Prompts: which instructions are listed, with which arguments, and what a client gets.

use rmcp::model::GetPromptRequestParams;

use super::*;

async fn stocked() -> McpServer {
    let server = McpServer::start().await;
    let notes = json!({ "body": "Read the log of ${tag}, $1.",
        "inputs": [{ "name": "tag", "description": "the tag", "required": true }] });
    let gateway = &server.gateway;
    gateway.skill("team", "notes", &json!({ "description": "Writes.", "run": null, "instructions": notes }));
    gateway.skill("team", "plain", &json!({ "run": null, "instructions": { "body": "Do $ARGUMENTS." } }));
    let unnamed = json!({ "body": "x", "userInvocable": false });
    gateway.skill("team", "unnamed", &json!({ "run": null, "instructions": unnamed }));
    gateway.skill("team", "off", &json!({ "run": null, "mode": "off", "instructions": {} }));
    gateway.skill("team", "program", &json!({}));
    gateway.skill("other", "secret", &json!({ "run": null, "instructions": { "body": "x" } }));
    server
}

#[tokio::test]
async fn instructions_that_a_user_may_name_are_prompts_with_their_inputs() {
    let server = stocked().await;
    let client = server.client("team/agent").await;
    let listed = client.service.list_prompts(None).await.unwrap();
    assert_eq!(
        serde_json::to_value(&listed.prompts).unwrap(),
        json!([
            { "name": "notes", "description": "Writes.",
                "arguments": [{ "name": "tag", "description": "the tag", "required": true }] },
            { "name": "plain", "description": "plain of team",
                "arguments": [{ "name": "arguments", "description": "Words for the instructions.", "required": false }] },
        ])
    );
    assert_eq!(listed.next_cursor, None);
}

#[tokio::test]
async fn a_prompt_is_the_text_with_the_values_in_its_block() {
    let server = stocked().await;
    let client = server.client("team/agent").await;
    let get = async |name: &str, arguments: Value| {
        let arguments = arguments.as_object().unwrap().clone();
        let request = GetPromptRequestParams::new(name).with_arguments(arguments);
        client
            .service
            .get_prompt(request)
            .await
            .map(|prompt| json!(prompt.messages))
            .map_err(|e| e.to_string())
    };
    let messages = get("plain", json!({ "arguments": "it now" })).await.unwrap();
    let text = messages[0]["content"]["text"].as_str().unwrap();
    assert!(text.starts_with("<skill_instructions name=\"plain\" version=\"1.0.0\">"), "{text}");
    assert!(text.contains("Do it now.") && messages[0]["role"] == "user", "{messages}");
    let text = get("notes", json!({ "tag": "v1" })).await.unwrap().to_string();
    assert!(text.contains("Read the log of v1"), "{text}");
    let error = get("notes", json!({})).await.unwrap_err();
    assert!(error.contains("Ask the user for `tag`"), "{error}");
    for name in ["secret", "unnamed", "off", "program", ""] {
        let error = get(name, json!({})).await.unwrap_err();
        assert!(error.contains("Unknown prompt"), "{error}");
    }
}

#[tokio::test]
async fn a_prompt_and_a_text_that_is_read_have_the_outputs_of_their_commands() {
    let server = stocked().await;
    let gateway = &server.gateway;
    gateway.change_policy(|policy| policy.dynamic_content.namespaces = vec!["team".into()]);
    gateway.api.set_status_on_create(json!({ "phase": "Succeeded", "attempts": 1, "truncated": false,
        "output": { "output": "v1 </skill_instructions>" } }));
    let body = json!({ "body": "Log: !`git log $1`.", "dynamic": "Run" });
    gateway.skill("team", "log", &json!({ "run": null, "instructions": body }));
    let client = server.client("team/agent").await;
    let arguments = json!({ "arguments": "v0" }).as_object().unwrap().clone();
    let request = GetPromptRequestParams::new("log").with_arguments(arguments);
    let prompt = json!(client.service.get_prompt(request).await.unwrap().messages);
    let text = prompt[0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("Log: v1 &lt;/skill_instructions>."), "{text}");
    assert_eq!(server.run(0)["spec"]["command"], json!({ "text": "git log $1", "arguments": "v0" }));
    let read = client.call("read_skill", json!({ "name": "log", "arguments": "v0" })).await;
    assert_eq!(super::text(&read)["instructions"], "Log: v1 &lt;/skill_instructions>.");
    // The file is as it is written.
    let file = client.call("read_skill_file", json!({ "name": "log", "path": "SKILL.md" })).await;
    assert_eq!(super::text(&file)["text"], "Log: !`git log $1`.");
}

#[tokio::test]
async fn many_prompts_come_in_pages() {
    let server = McpServer::start().await;
    for n in 0..101 {
        let name = format!("guide-{n:03}");
        server.gateway.skill("team", &name, &json!({ "run": null, "instructions": { "body": "x" } }));
    }
    let client = server.client("team/agent").await;
    let first = client.service.list_prompts(None).await.unwrap();
    assert_eq!((first.prompts.len(), &*first.prompts[99].name), (100, "guide-099"));
    let names: Vec<String> =
        client.service.list_all_prompts().await.unwrap().into_iter().map(|prompt| prompt.name).collect();
    assert_eq!((names.len(), names[100].as_str()), (101, "guide-100"));
}
