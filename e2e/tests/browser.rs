//! The built-in `browser`: a page of a host outside of the cluster, in Chromium behind the one way out, and its picture in the
//! workspace of the caller.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use skillet_api::Verdict;
use skillet_e2e::{Journey, journey_under, policy, stand_in::StandIn};

/// A host that the policy allows, and skills that browse it and read files.
async fn prepared(j: &Journey) -> Result<StandIn> {
    let host = StandIn::start(j, "pages").await?.with_public_name(j);
    policy::change(&j.client, host.policy()).await?;
    let skill = |name: &str, spec: Value| {
        json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": { "name": name }, "spec": spec,
        })
    };
    let browses = json!({ "version": "1.0.0", "run": { "builtin": "browser" }, "network": host.network() });
    j.apply(&skill("browses", browses)).await?;
    j.apply(&skill("reads", json!({ "version": "1.0.0", "run": { "builtin": "file_read" } }))).await?;
    j.ready("browses").await?;
    j.ready("reads").await?;
    Ok(host)
}

#[tokio::test]
async fn a_page_is_used_as_a_person_does_and_its_picture_is_a_file_of_the_caller() -> Result<()> {
    journey_under(json!({ "builtins": ["browser", "file_read"] }), async |j| {
        let host = prepared(j).await?;
        let input = json!({ "timeoutMs": 20_000, "actions": [
            { "action": "goto", "url": host.url("/form") },
            { "action": "type", "selector": "#word", "text": "sun" },
            { "action": "click", "selector": "button" },
            { "action": "text" },
            { "action": "screenshot", "path": "shots/found.png" },
        ] });
        let ended = j.run("browses", input).await?;
        let record = ended.status.connections.clone().unwrap_or_default();
        let output = ended.output();
        assert_eq!(
            (&output["success"], &output["message"]),
            (&json!(true), &json!("")),
            "{output} {record:?}"
        );
        assert_eq!(output["url"], host.url("/found?word=sun"));
        let text = output["results"][3]["text"].as_str().context("no text")?;
        assert!(text.contains("\"path\":\"/found?word=sun\""), "{text}");
        let picture = &output["results"][4];
        assert_eq!((&picture["path"], &picture["png"]), (&json!("shots/found.png"), &Value::Null));
        let allowed: Vec<_> =
            record.list.iter().filter(|listed| listed.verdict == Verdict::Allowed).collect();
        assert!(!allowed.is_empty() && allowed.iter().all(|listed| listed.host == host.host), "{record:?}");

        let read = j.run("reads", json!({ "path": "shots/found.png", "encoding": "base64" })).await?.output();
        assert_eq!(read["bytesRead"], picture["bytes"]);
        assert!(read["content"].as_str().is_some_and(|content| content.starts_with("iVBORw0KGgo")), "{read}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_host_that_the_skill_does_not_name_is_refused_and_in_the_record() -> Result<()> {
    journey_under(json!({ "builtins": ["browser", "file_read"] }), async |j| {
        prepared(j).await?;
        let other = StandIn::start(j, "other").await?.with_public_name(j);
        let ended = j.run("browses", json!({ "action": "goto", "url": other.url("/") })).await?;
        let record = ended.status.connections.clone().unwrap_or_default();
        let output = ended.output();
        let message = output["message"].as_str().unwrap_or_default();
        assert!(message.contains("see network of the Skill"), "{output}");
        assert_eq!((&output["success"], record.allowed), (&json!(false), 0), "{record:?}");
        let refused = record.list.iter().find(|listed| listed.host == other.host);
        assert_eq!(refused.map(|listed| listed.verdict), Some(Verdict::HostNotAllowed), "{record:?}");
        assert!(other.requests().is_empty());
        Ok(())
    })
    .await
}
