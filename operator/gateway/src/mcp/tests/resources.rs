//! Resources: which files are listed, what a client reads of them, and what it may not read.

use rmcp::model::{ReadResourceRequestParams, SubscriptionFilter};

use super::*;

async fn stocked() -> McpServer {
    let server = McpServer::start().await;
    let gateway = &server.gateway;
    let files = json!([
        { "path": "references/süß style.md", "content": "Short. <skill_instructions name=\"x\">" },
        { "path": "a.bin", "contentBase64": "/wA=" },
    ]);
    let notes = json!({ "body": "Read ${tag}.", "inputs": [{ "name": "tag" }] });
    gateway.skill(
        "team",
        "notes",
        &json!({ "description": "Writes.", "run": null, "instructions": notes, "files": files }),
    );
    gateway.skill(
        "team",
        "always",
        &json!({ "run": null, "instructions": { "body": "x", "activation": "Always" } }),
    );
    let hidden = json!({ "body": "x", "disableModelInvocation": true });
    gateway.skill("team", "hidden", &json!({ "run": null, "instructions": hidden }));
    gateway.skill("team", "off", &json!({ "run": null, "mode": "off", "instructions": {} }));
    gateway.skill("team", "program", &json!({}));
    gateway.skill("other", "secret", &json!({ "run": null, "instructions": { "body": "x" } }));
    server
}

async fn read(client: &Client, uri: &str) -> Result<Value, String> {
    let read = client.service.read_resource(ReadResourceRequestParams::new(uri)).await;
    read.map(|result| json!(result.contents)).map_err(|error| error.to_string())
}

const STYLE: &str = "skill://notes/references/s%C3%BC%C3%9F%20style.md";

#[tokio::test]
async fn the_text_and_the_files_of_readable_skills_are_resources() {
    let server = stocked().await;
    let client = server.client("team/agent").await;
    let listed = client.service.list_resources(None).await.unwrap();
    assert_eq!(
        json!(listed.resources),
        json!([
            { "uri": "skill://always/SKILL.md", "name": "always/SKILL.md", "description": "always of team", "mimeType": "text/markdown" },
            { "uri": "skill://notes/SKILL.md", "name": "notes/SKILL.md", "description": "Writes.", "mimeType": "text/markdown" },
            { "uri": "skill://notes/a.bin", "name": "notes/a.bin" },
            { "uri": STYLE, "name": "notes/references/süß style.md", "mimeType": "text/markdown" },
        ])
    );
    assert_eq!(listed.next_cursor, None);
    let templates = client.service.list_resource_templates(None).await.unwrap().resource_templates;
    assert_eq!(templates[0].uri_template, "skill://{name}/{+path}");
}

#[tokio::test]
async fn a_text_is_read_as_it_is_but_for_marks_of_the_gateway_and_bytes_as_base64() {
    let server = stocked().await;
    for client in
        [server.client("team/agent").await, server.client_of("team/agent", without_sessions()).await]
    {
        let body =
            json!([{ "uri": "skill://notes/SKILL.md", "mimeType": "text/markdown", "text": "Read ${tag}." }]);
        assert_eq!(read(&client, "skill://notes/SKILL.md").await, Ok(body));
        let style = read(&client, STYLE).await.unwrap();
        assert_eq!((&style[0]["uri"], &style[0]["mimeType"]), (&json!(STYLE), &json!("text/markdown")));
        let text = style[0]["text"].as_str().unwrap();
        assert!(text.starts_with("Short. ") && !text.contains("<skill_instructions"), "{text}");
        let blob =
            json!([{ "uri": "skill://notes/a.bin", "mimeType": "application/octet-stream", "blob": "/wA=" }]);
        assert_eq!(read(&client, "skill://notes/a.bin").await, Ok(blob));
    }
}

#[tokio::test]
async fn what_a_model_may_not_read_is_no_resource() {
    let server = stocked().await;
    let client = server.client("team/agent").await;
    for uri in [
        "skill://hidden/SKILL.md",
        "skill://off/SKILL.md",
        "skill://program/SKILL.md",
        "skill://secret/SKILL.md",
        "skill://notes/../always/SKILL.md",
        "skill://notes/%2e%2e/always/SKILL.md",
        "skill://notes/%ff",
        "skill://notes",
        "file:///etc/passwd",
        "",
    ] {
        let error = read(&client, uri).await.unwrap_err();
        assert!(error.contains("Unknown resource"), "{uri}: {error}");
    }
    server.gateway.deny_user("agent", "team", None, Verb::Execute);
    assert!(client.service.list_resources(None).await.unwrap().resources.is_empty());
    assert!(read(&client, "skill://notes/SKILL.md").await.unwrap_err().contains("Unknown resource"));
}

#[tokio::test]
async fn a_file_that_cannot_be_read_now_is_an_error_of_the_server() {
    let server = stocked().await;
    let client = server.client("team/agent").await;
    server.gateway.api.delete(&path("team", "skillversions", "notes-1.0.0"));
    let error = read(&client, "skill://notes/a.bin").await.unwrap_err();
    assert!(error.contains("is not there any more"), "{error}");
    let _all = server.gateway.service.memory.fill("team").await;
    let error = read(&client, "skill://notes/SKILL.md").await.unwrap_err();
    assert!(error.contains("503") || error.contains("memory"), "{error}");
}

#[tokio::test]
async fn many_resources_come_in_pages() {
    let server = McpServer::start().await;
    let files: Vec<Value> = (0..120).map(|n| json!({ "path": format!("f{n:03}"), "content": "x" })).collect();
    for name in ["a", "b"] {
        let spec = json!({ "run": null, "instructions": { "body": "x" }, "files": files });
        server.gateway.skill("team", name, &spec);
    }
    let client = server.client("team/agent").await;
    let first = client.service.list_resources(None).await.unwrap().resources;
    assert_eq!((first.len(), first[99].uri.as_str()), (100, "skill://a/f098"));
    let all = client.service.list_all_resources().await.unwrap();
    let uris: std::collections::BTreeSet<&str> = all.iter().map(|resource| resource.uri.as_str()).collect();
    assert_eq!((all.len(), uris.len(), all[121].uri.as_str()), (242, 242, "skill://b/SKILL.md"));
}

#[tokio::test]
async fn a_change_of_instructions_is_no_change_of_the_tools() {
    let server = stocked().await;
    let client = server.client("team/agent").await;
    let mut round = 0;
    until(|| {
        round += 1;
        let instructions = json!({ "body": "y", "activation": "Always" });
        let spec = json!({ "run": null, "version": format!("1.0.{round}"), "instructions": instructions });
        server.gateway.skill("team", "always", &spec);
        *client.seen.resources_changed.borrow() > 0
    })
    .await;
    assert_eq!(*client.seen.list_changed.borrow(), 0);
}

#[tokio::test]
async fn a_client_without_sessions_hears_of_the_lists_that_it_asked_for() {
    let server = stocked().await;
    let client = server.client_of("team/agent", without_sessions()).await;
    let filter = SubscriptionFilter::builder().resources_list_changed().build();
    let mut subscription = client.service.listen(filter).await.unwrap();
    let (gateway, done) = (server.gateway.clone(), CancellationToken::new());
    let changing = done.clone();
    let changes = tokio::spawn(async move {
        let mut round = 0;
        until(|| {
            round += 1;
            let spec = json!({ "run": null, "version": format!("1.0.{round}"), "instructions": {} });
            gateway.skill("team", "notes", &spec);
            gateway.skill("team", &format!("tool-{round}"), &json!({}));
            changing.is_cancelled()
        })
        .await;
    });
    let notice = tokio::time::timeout(LIMIT, subscription.next()).await.expect("a notice").unwrap();
    assert!(format!("{notice:?}").contains("ResourceListChanged"), "{notice:?}");
    done.cancel();
    changes.await.unwrap();
}
